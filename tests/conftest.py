"""Keys and what is remembered of ledgers: each test has a folder of its own for them."""

import itertools

import pytest

_NUMBERS = itertools.count()


@pytest.fixture(scope="session")
def configurations(tmp_path_factory):
    return tmp_path_factory.mktemp("configurations")


@pytest.fixture(autouse=True)
def _configuration(configurations, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(configurations / str(next(_NUMBERS))))
