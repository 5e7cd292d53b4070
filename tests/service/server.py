"""A real server process on loopback, which can be killed and started again."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEY = "operator-key-of-the-tests"


class Server:
    """`deniable survey serve` in a process of its own."""

    def __init__(self, folder, document, *, store=None, setup=""):
        self.setup = setup
        self.file = folder / "survey.json"
        self.file.write_text(document.text)
        self.store = store or str(folder / "survey.db")
        self.log = folder / "server.log"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = None
        self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        command = ["serve", str(self.file), "--port", str(self.port)]
        code = "import sys; from deniable.cli.survey import app; app(sys.argv[1:])"
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-c", self.setup + code, *command, "--store", self.store],
                stdout=log,
                stderr=subprocess.STDOUT,
                env={
                    **os.environ,
                    "DENIABLE_OPERATOR_KEY": KEY,
                    "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path]),
                },
            )
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            assert self.process.poll() is None, self.log.read_text()
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("the server did not start")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=60)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(timeout=60)

    def ask(self, method, path, body=None, **headers):
        """Status, headers and body of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, named)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def get(self, path):
        return self.ask("GET", path)

    def operator(self, path, form=None):
        method = "GET" if form is None else "POST"
        headers = {"Cookie": f"deniable_operator={KEY}"}
        if form is not None:
            headers["Content_Type"] = "application/x-www-form-urlencoded"
        return self.ask(method, f"/operator{path}", form, **headers)

    def send(self, survey, body):
        """Send a submission; status and what was said."""
        body = body if isinstance(body, bytes | str) else json.dumps(body)
        status, _, said = self.ask(
            "POST", f"/s/{survey}/reports", body, Content_Type="application/json"
        )
        return status, json.loads(said)


def body_of(survey, code, reports, nonce="0" * 32, **changes):
    body = {
        "version": 1,
        "survey": survey,
        "message": code.encode().hex(),
        "signature": "",
        "nonce": nonce,
        "reports": list(reports),
    }
    return {**body, **changes}
