import pytest

from postgres import Postgres

KEY = bytes(range(32))


@pytest.fixture(scope="session")
def postgres():
    server = Postgres()
    yield server
    server.remove()


@pytest.fixture(autouse=True)
def key(monkeypatch):
    monkeypatch.setenv("DENIABLE_LEDGER_KEY", KEY.hex())
