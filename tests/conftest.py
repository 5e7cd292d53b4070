"""Keys and what is remembered of ledgers: each test has a folder of its own for them."""

import itertools

import pytest
from hypothesis import HealthCheck, settings

_NUMBERS = itertools.count()

# No test depends on how fast the machine is.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.fixture(scope="session")
def configurations(tmp_path_factory):
    return tmp_path_factory.mktemp("configurations")


@pytest.fixture(autouse=True)
def _configuration(configurations, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(configurations / str(next(_NUMBERS))))
