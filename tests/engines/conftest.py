import pytest

from corpus import hospital
from engines.loading import to_postgres
from postgres import Postgres


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items):
    """One worker starts Spark: two of them only take each other's memory and time."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()) or "test_spark" in item.nodeid:
            item.add_marker(pytest.mark.xdist_group("spark"))


@pytest.fixture(scope="session")
def server():
    """A server with the tables of the hospital."""
    made = Postgres()
    try:
        for name in ("visits", "prescriptions", "wards"):
            to_postgres(made.url, name, getattr(hospital, name)())
        yield made
    finally:
        made.remove()
