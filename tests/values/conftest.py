import pytest

from postgres import Postgres


@pytest.hookimpl(tryfirst=True)  # before the groups are read
def pytest_collection_modifyitems(items):
    """One worker starts the server, or the one that has Spark."""
    for item in items:
        names = getattr(item, "fixturenames", ())
        if "postgres" in names and "spark" not in names:
            item.add_marker(pytest.mark.xdist_group("postgres"))


@pytest.fixture(scope="session")
def postgres():
    made = Postgres()
    try:
        yield made.url
    finally:
        made.remove()


@pytest.fixture(scope="session")
def spark():
    from engines.spark_session import local_spark  # which starts Java's world

    with local_spark() as session:
        yield session
