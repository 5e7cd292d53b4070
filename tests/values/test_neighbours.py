"""Whatever is asked, one more person moves exact numbers by no more than is charged.

Random hostile crowds, random questions; see `oracle` for the law. A breach names its crowd and
question: `python tests/values/neighbours.py SOURCE SEED QUESTION` asks it again.
"""

import secrets

import pytest

from deniable.query.plan import Plan
from values.crowds import crowd
from values.neighbours import Found, compare
from values.stores import Store

LEAST_ANSWERED = 0.7
CROWDS = 9
QUESTIONS = 80  # of a crowd, four pairs each: 2,000 pairs where seven in ten are answered


def held(found, questions):
    print(found)
    assert not found.breaches, f"{found}\n" + "\n".join(found.breaches[:5])
    assert found.questions == questions
    assert found.answered >= LEAST_ANSWERED * questions, found.reasons.most_common(9)
    assert found.pairs == 4 * found.answered


@pytest.mark.parametrize("number", range(CROWDS))
def test_two_thousand_neighbours_on_duckdb(number, tmp_path):
    source = ("arrow", "parquet", "duckdb")[number % 3]
    found, first = Found(), number * QUESTIONS
    compare(crowd(number, source), Store(tmp_path), range(first, first + QUESTIONS), found)
    held(found, QUESTIONS)


def test_two_hundred_neighbours_on_postgres(tmp_path, postgres):
    found = Found()
    for number in range(2):
        seeds = range(10_000 + 40 * number, 10_040 + 40 * number)
        compare(crowd(number, "postgres"), Store(tmp_path, postgres=postgres), seeds, found)
    held(found, 80)


def soaked(source, store, questions, each=100):
    """Crowds that nobody has seen before; their number is printed."""
    found = Found()
    for _ in range(questions // each):
        seed = secrets.randbits(32)
        print(f"{source} crowd {seed}")
        compare(crowd(seed, source), store, range(seed, seed + each), found)
    held(found, questions)


@pytest.mark.soak
@pytest.mark.parametrize("source", ["arrow", "parquet", "duckdb"])
def test_twenty_thousand_neighbours_on_duckdb(source, tmp_path):
    soaked(source, Store(tmp_path), 2_400)


@pytest.mark.soak
def test_five_thousand_neighbours_on_postgres(tmp_path, postgres):
    soaked("postgres", Store(tmp_path, postgres=postgres), 1_800)


@pytest.mark.soak
def test_three_hundred_neighbours_on_spark(tmp_path, spark):
    soaked("spark", Store(tmp_path, spark=spark), 120, each=40)


def test_a_bound_that_is_too_small_is_found(monkeypatch, tmp_path):
    """Power: noise for half of what one unit adds."""
    right = Plan.bound
    monkeypatch.setattr(
        "deniable.query.price.SCALE", 1 << 15
    )  # what is charged, not what is counted
    assert right is Plan.bound
    found = Found()
    compare(crowd(0, "arrow"), Store(tmp_path), range(12), found)
    assert any("times what is charged" in each for each in found.breaches)
