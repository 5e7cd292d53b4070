import pytest

from postgres import Postgres

KEY = bytes(range(32))


@pytest.fixture(scope="session")
def postgres():
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(autouse=True)
def key(monkeypatch, tmp_path):
    """A key, and a folder that remembers what was done under it, for each test."""
    monkeypatch.setenv("DENIABLE_LEDGER_KEY", KEY.hex())
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration"))
