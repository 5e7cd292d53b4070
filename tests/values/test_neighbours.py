"""Whatever is asked, one more person moves exact numbers by no more than is charged.

Random hostile crowds, random questions; see `oracle` for the law. A breach names its crowd and
question: `python tests/values/neighbours.py SOURCE SEED QUESTION` asks it again.
"""

import itertools
import secrets

import pytest

from deniable.query.plan.plan import SCALE
from deniable.query.run import emit
from values.crowds import crowd
from values.neighbours import Found, compare, query
from values.stores import Store

LEAST_ANSWERED = 0.7
CROWDS, PAIRS = 6, 2_000


def held(found, pairs):
    print(found)
    assert not found.breaches, f"{found}\n" + "\n".join(found.breaches[:5])
    assert found.answered >= LEAST_ANSWERED * found.questions, found.reasons.most_common(9)
    assert found.pairs >= pairs


@pytest.mark.parametrize("number", range(CROWDS))
def test_two_thousand_neighbours_on_duckdb(number, tmp_path):
    source = ("arrow", "parquet", "duckdb")[number % 3]
    found, seeds = Found(), itertools.count(1_000 * number)
    compare(crowd(number, source), Store(tmp_path), seeds, found, PAIRS / CROWDS)
    held(found, PAIRS / CROWDS)


def test_two_hundred_neighbours_on_postgres(tmp_path, postgres):
    found, store = Found(), Store(tmp_path, postgres=postgres)
    for number in range(2):
        seeds = itertools.count(10_000 + 1_000 * number)
        compare(crowd(number, "postgres"), store, seeds, found, 100 + 100 * number)
    held(found, 200)


def soaked(source, store, pairs, each=100):
    """Crowds that nobody has seen before; their number is printed."""
    found = Found()
    while found.pairs < pairs and not found.breaches:
        seed = secrets.randbits(32)
        print(f"{source} crowd {seed}")
        compare(crowd(seed, source), store, range(seed, seed + each), found, pairs)
    held(found, pairs)


@pytest.mark.soak
@pytest.mark.parametrize("source", ["arrow", "parquet", "duckdb"])
def test_twenty_thousand_neighbours_on_duckdb(source, tmp_path):
    soaked(source, Store(tmp_path), 20_000 / 3)


@pytest.mark.soak
def test_five_thousand_neighbours_on_postgres(tmp_path, postgres):
    soaked("postgres", Store(tmp_path, postgres=postgres), 5_000)


@pytest.mark.soak
def test_three_hundred_neighbours_on_spark(tmp_path, spark):
    soaked("spark", Store(tmp_path, spark=spark), 300, each=30)


def test_noise_for_half_of_what_one_unit_adds_is_found(monkeypatch, tmp_path):
    monkeypatch.setattr("deniable.query.price.price.SCALE", SCALE // 2)
    found = Found()
    compare(crowd(0, "arrow"), Store(tmp_path), range(12), found)
    assert any("times what is charged" in each for each in found.breaches)


def test_rows_that_others_choose_are_found(monkeypatch, tmp_path):
    """Of each unit the first row as it comes, which is not a function of the unit's rows."""
    step = emit._base
    monkeypatch.setattr(emit, "_base", lambda *given, **more: f"{step(*given, **more)} LIMIT 5000")
    found = Found()
    compare(crowd(0, "arrow"), Store(tmp_path), range(14, 18), found)
    assert found.breaches


def test_equal_rows_whose_places_are_paired_by_chance_are_found(monkeypatch, tmp_path):
    """Two windows of one SELECT, each with an order of equal rows of its own."""
    monkeypatch.setattr("deniable.query.read.compile.places_in", lambda made: [])
    given, found = crowd(2, "duckdb"), Found()
    two = [seed for seed in range(2_000, 2_100) if " AS g FROM" in query(given, seed).sql]
    compare(given, Store(tmp_path), two[:2], found)
    assert found.breaches
