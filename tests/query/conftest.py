import random

import pytest

from query.test_bounding import World, rows_at_random


@pytest.fixture(scope="module")
def worlds():
    """All questions of a module are asked of the same ones."""
    rng = random.Random(11)
    made = [World.of(rows_at_random(rng)) for _ in range(6)]
    yield made
    for world in made:
        world.close()
