"""Keys and what is remembered of ledgers: each test has a folder of its own for them."""

import gc
import inspect
import itertools

import pytest
from hypothesis import HealthCheck, settings

_NUMBERS = itertools.count()

# No test depends on how fast the machine is.
settings.register_profile("steady", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items):
    """What is made once is made by one worker: Spark, and what a module makes."""
    for item in items:
        made = item._fixtureinfo.name2fixturedefs.values()
        # Two workers with a Spark each only take each other's memory and time.
        if "spark" in item.nodeid.lower() or any(_starts_spark(each[-1].func) for each in made):
            item.add_marker(pytest.mark.xdist_group("spark"))
            continue
        if any(each[-1].scope == "module" for each in made) and not _group(item):
            item.add_marker(pytest.mark.xdist_group(item.nodeid.partition("::")[0]))


def _starts_spark(fixture):
    return "local_spark" in inspect.unwrap(fixture).__code__.co_names


def pytest_collection_finish(session):
    """What collecting left behind is let go of once, and what it made is not looked at again:
    forked children would have copies of it.
    """
    # A worker reads them, and adds them to names.
    read = getattr(session.config.option, "loadgroup", False)
    if read and any(_group(each) and "@" not in each.nodeid for each in session.items):
        raise pytest.UsageError("groups of tests are not read: pytest is too new for pytest-xdist")
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True, tryfirst=True)  # after failures are remembered
def pytest_sessionfinish(session):
    """Failures are remembered by the names that they have when they run again, without groups."""
    result = yield
    cache = getattr(session.config, "cache", None)
    if cache is not None and not hasattr(session.config, "workerinput"):
        failed = cache.get("cache/lastfailed", {})
        cache.set("cache/lastfailed", {_alone(name): True for name in failed})
    return result


def _alone(name):
    before, _, group = name.rpartition("@")
    return before if group == "spark" or before.startswith(f"{group}::") else name


def _group(item):
    return item.get_closest_marker("xdist_group")


def pytest_unconfigure():
    """Or modules would be told of as leaks when Python ends."""
    gc.unfreeze()


@pytest.fixture(scope="session")
def configurations(tmp_path_factory):
    return tmp_path_factory.mktemp("configurations")


@pytest.fixture(autouse=True)
def _configuration(configurations, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(configurations / str(next(_NUMBERS))))
