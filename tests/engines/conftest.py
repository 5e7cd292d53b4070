import pytest

from corpus import hospital
from engines.loading import to_postgres
from postgres import Postgres


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
