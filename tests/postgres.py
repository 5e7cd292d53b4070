"""A real Postgres server in a temporary folder, run by an ordinary user, on loopback only."""

import atexit
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path

# Letters in an order that is not that of their bytes: nothing may follow the database's own.
_OWN_ORDER = ("--locale-provider=icu", "--icu-locale=en-US")
# A server that is killed loses nothing without these: only a machine that falls does.
_WITHOUT_DISKS = ("fsync=off", "full_page_writes=off")


def _binary(name):
    found = shutil.which(name)
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    if places:
        return str(places[-1])
    assert found, f"{name} is missing: run `make test`, which installs Debian's postgresql"
    return found


def _own_folder():
    """An empty folder of who runs the server, and what a command needs to run as them."""
    folder, user = Path(tempfile.mkdtemp(prefix="deniable-postgres-")), _user()
    if os.geteuid() == 0:
        shutil.chown(folder, user)
    return folder, ({"user": user} if os.geteuid() == 0 else {})


def _user():
    return "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name


@cache
def _fresh():
    """The files of a new server, which all servers of this process begin with."""
    folder, ordinary = _own_folder()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    command = [
        _binary("initdb"), "-D", str(folder / "data"), "-U", "deniable", "-A", "trust",
        "--no-sync", "-E", "UTF8", *_OWN_ORDER,
    ]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True, cwd=folder, **ordinary)
    return folder / "data"


class Postgres:
    """Started by `start`, ended by `stop`; both may be called again."""

    def __init__(self):
        self.folder, self._ordinary = _own_folder()
        self.user = _user()
        copy = ["cp", "-a", "--reflink=auto", str(_fresh()), str(self.folder / "data")]
        subprocess.run(copy, check=True, cwd=self.folder, **self._ordinary)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.process = None
        self.start()

    @property
    def url(self):
        return f"postgresql://deniable@127.0.0.1:{self.port}/postgres"

    def start(self):
        self.process = subprocess.Popen(
            [_binary("postgres"), "-D", str(self.folder / "data"), "-p", str(self.port),
             "-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={self.folder}",
             *(part for each in _WITHOUT_DISKS for part in ("-c", each))],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.folder,
            **self._ordinary,
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                    pass
                self._ready()
            except (OSError, subprocess.CalledProcessError):
                time.sleep(0.02)
            else:
                return
        raise AssertionError("Postgres did not start")

    def _ready(self):
        import psycopg

        try:
            psycopg.connect(self.url, connect_timeout=2).close()
        except psycopg.OperationalError as cause:
            raise OSError from cause

    def stop(self, how=signal.SIGINT):
        self.process.send_signal(how)
        self.process.wait(timeout=60)

    def remove(self):
        if self.process.poll() is None:
            self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
