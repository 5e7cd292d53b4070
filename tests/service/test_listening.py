"""A port that is taken, clients that hold connections and say nothing, a log that repeats."""

import logging
import re
import signal
import socket
import sys
import time

import pytest
from typer.testing import CliRunner

from deniable.cli.app import app
from deniable.errors import ParameterError
from deniable.service.document import load_document
from deniable.service.listening import PatientProtocol, _Few, bind
from deniable.service.store import SurveyStore
from service.server import Server
from service.surveys import YES_NO, survey


def test_a_port_that_is_taken_costs_no_invitation(tmp_path):
    file = tmp_path / "drugs.json"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = CliRunner().invoke
        run(app, ["survey", "new", str(file), "--admission", "linkable codes"])
        done = run(app, ["survey", "serve", str(file), "--port", str(port)])
        assert done.exit_code == 1
        assert "name another" in done.output
        with pytest.raises(ParameterError):
            bind("127.0.0.1", port)
    store = SurveyStore(tmp_path / "drugs.db")
    assert store.status(load_document(file)).invited == 0
    store.close()


def test_who_says_nothing_is_let_go(tmp_path):
    """Silent from the start, in the middle of a head, and after an answer."""
    server = Server(tmp_path, survey([YES_NO]), setup=SHORT)
    try:
        held = [socket.create_connection(("127.0.0.1", server.port), 10) for _ in range(3)]
        head = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n"
        held[1].sendall(head)
        held[2].sendall(head + b"\r\n")
        assert held[2].recv(12) == b"HTTP/1.1 404"
        held[2].sendall(head)
        started = time.monotonic()
        for each in held:
            each.settimeout(30)
            while each.recv(65_536):
                pass
            each.close()
        assert time.monotonic() - started < 25
        assert server.get("/nowhere")[0] == 404
    finally:
        server.stop()


DOCUMENT = survey([YES_NO])
SHORT = "from deniable.service.listening import PatientProtocol as P; P.PATIENCE = 0.3; "


def test_a_message_is_logged_ten_times_at_most():
    few, record = _Few(), logging.LogRecord("asyncio", 40, "", 0, "out of files", (), None)
    assert sum(few.filter(record) for _ in range(1_000)) == 10
    assert few.filter(logging.LogRecord("asyncio", 40, "", 0, "another", (), None))
    assert PatientProtocol.PATIENCE == 20


HURRIED = "import deniable.service.listening as l; l._LAST_SECONDS = 1; "


@pytest.mark.parametrize(
    "signals",
    [[signal.SIGINT] * 3, [signal.SIGTERM, signal.SIGINT], [signal.SIGHUP, signal.SIGTERM] * 2],
    ids=lambda signals: "-".join(each.name for each in signals),
)
def test_a_second_signal_asks_for_nothing_more(tmp_path, signals):
    """While a request is under way, which the first lets end or gives up in its time."""
    server = Server(tmp_path, DOCUMENT, setup=HURRIED)
    try:
        with socket.create_connection(("127.0.0.1", server.port)) as slow:
            slow.sendall(
                f"POST /s/{DOCUMENT.id}/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n"
                "Content-Type: application/json\r\n\r\n{".encode()
            )
            assert server.get("/nothing")[0] == 404  # the first is under way by now
            for each in signals:
                server.process.send_signal(each)
                time.sleep(0.2)
            assert server.process.wait(timeout=60) == 0
    finally:
        server.stop()
    told = server.log.read_text()
    assert "Traceback" not in told
    assert "stopped; every answer that was acknowledged is stored" in told


def test_an_error_is_logged_without_what_it_says():
    try:
        raise ValueError("zq7319qz")
    except ValueError:
        record = logging.LogRecord("uvicorn.error", 40, "", 0, "Failed\n", (), sys.exc_info())
    assert _Few().filter(record)
    shown = logging.Formatter().format(record)
    assert "zq7319qz" not in shown
    assert re.fullmatch(r"Failed: ValueError in test_listening\.py, line \d+", shown)
