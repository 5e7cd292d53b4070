import pytest

from service.chromium import chromium


@pytest.fixture(scope="module")
def browser():
    with chromium() as running:
        yield running
