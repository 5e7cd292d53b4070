"""How the server listens: a port first, connections that may not idle, a log that may not fill."""

from __future__ import annotations

import errno
import logging
import resource
import signal
import socket
import traceback
from asyncio import TimerHandle, Transport
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from deniable.errors import ParameterError
from deniable.service.app import create_app
from deniable.service.store import SurveyStore

_BACKLOG = 4096
_MOST_CONNECTIONS = 10_000
_SPARE_FILES = 64
_REPEATS = 10
_LAST_SECONDS = 10  # for requests that are under way when the server is stopped
_STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NO_SUCH_ADDRESS = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def bind(host: str, port: int) -> list[socket.socket]:
    """Take the port, on all addresses of this host; ParameterError where it cannot be had.

    Nobody is let in before `run` listens.
    """
    taken: list[socket.socket] = []
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, _, _, _, address in dict.fromkeys(found):
            try:
                taken.append(_bound(family, address))
            except OSError as problem:
                if problem.errno not in _NO_SUCH_ADDRESS:
                    raise
    except OSError as problem:
        for each in taken:
            each.close()
        raise ParameterError(
            "port", port, f"cannot be had on {host} ({problem.strerror}); name another"
        ) from None
    if not taken:
        raise ParameterError("host", host, "is no address of this machine")
    return taken


def _bound(family: int, address: tuple[Any, ...]) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


class PatientProtocol(H11Protocol):
    """HTTP that does not wait for ever: who asks nothing for `PATIENCE` seconds or two is let go.

    A body may take its own time (see `read_body`); this is about connections without a request.
    """

    PATIENCE = 20.0
    _timer: TimerHandle | None = None
    _looked_at: object = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Begin to look."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(self.PATIENCE, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def _look(self) -> None:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        idle = cycle is None or cycle.response_complete
        if idle and self._looked_at is cycle:  # no request since the last look
            self.transport.close()
            return
        self._looked_at = cycle
        self._timer = self.loop.call_later(self.PATIENCE, self._look)


class _Few(logging.Filter):
    """Lets the first ten of a message through: somebody who causes more fills no disk.

    Of an error its kind and line are told: what it says may quote a row.
    """

    def __init__(self) -> None:
        super().__init__()
        self._seen: Counter[tuple[str, str]] = Counter()

    def filter(self, record: logging.LogRecord) -> bool:
        kind = (record.name, str(record.msg))
        self._seen[kind] += 1
        if record.exc_info:
            record.msg, record.args = _in_one_line(record), ()
            record.exc_info = record.exc_text = None
        return self._seen[kind] <= _REPEATS


def _in_one_line(record: logging.LogRecord) -> str:
    """What is logged, and the kind and place of the error that comes with it."""
    error = record.exc_info[1] if isinstance(record.exc_info, tuple) else None
    lines = traceback.extract_tb(None if error is None else error.__traceback__)
    place = f" in {Path(lines[-1].filename).name}, line {lines[-1].lineno}" if lines else ""
    return f"{str(record.msg).strip()}: {type(error).__name__}{place}"


def _more_files() -> int:
    """Raise the number of files that may be open to what is allowed; how many connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _MOST_CONNECTIONS + _SPARE_FILES
    most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
        soft = most
    return max(1, min(most, wanted) - _SPARE_FILES)


class _Stoppable(uvicorn.Server):
    """A server whose end is the same whichever signal asks for it: what follows `run` is done.

    Uvicorn's own raises the signal again when it has shut down, and TERM then ends the process. A
    second one of its own would break off the requests that the first one lets end.
    """

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002
        """Take no more requests, let those that are under way end, and do what follows."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals ask for the end, once and for all."""
        for each in _STOPS:
            signal.signal(each, self.handle_exit)
        yield
        for each in _STOPS:  # nothing interrupts what follows
            signal.signal(each, signal.SIG_IGN)


def run(
    where: str | Path,
    *,
    keys: Path | None = None,
    sockets: list[socket.socket],
    operator_key: str,
    ready: Callable[[], None],
) -> None:
    """Serve until interrupted, terminated or hung up; then settle the store.

    No access log: it would hold times and addresses.
    """
    few = _Few()
    for name in ("asyncio", "uvicorn.error"):
        logging.getLogger(name).addFilter(few)
    store = SurveyStore(where, keys=keys)
    try:
        server = _Stoppable(
            uvicorn.Config(
                create_app(store, operator_key=operator_key),
                http=PatientProtocol,
                access_log=False,
                log_level="warning",
                server_header=False,
                date_header=False,
                backlog=_BACKLOG,
                limit_concurrency=_more_files(),
                timeout_graceful_shutdown=_LAST_SECONDS,
            )
        )
        ready()
        server.run(sockets=sockets)
    finally:
        store.settle()
        store.close()
