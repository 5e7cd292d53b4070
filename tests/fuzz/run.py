"""Runs the fuzzer: `python tests/fuzz/run.py --seed 1234` asks one question again, and shows it.

`--seed 0 --count 2000` asks many, and tells what was answered, refused, and why.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from fuzz import grammar, hostile, oracle
from fuzz.oracle import QUESTIONS_A_SESSION, Breach, Tally

QUESTIONS_A_WORLD = 20
BATCH = 100  # of one tally; after a breach the rest of its batch is not asked
CLOSELY, ALIKE, EXHAUSTED = 25, 49, 21  # one question in so many
REPLAYED = 30  # one answer in so many, so that a batch with enough answers is never without


def run(first: int, count: int) -> Tally:
    """Ask the questions of these numbers. Those of one world follow each other."""
    tally = Tally()
    for seed in range(first, first + count, QUESTIONS_A_WORLD):
        last = min(seed + QUESTIONS_A_WORLD, first + count)
        _run_world(range(seed, last), tally)
    tally.check_noise()
    return tally


def _run_world(seeds: range, tally: Tally) -> None:
    world = hostile.world(seeds[0] // QUESTIONS_A_WORLD)
    session, spent = world.session(), oracle.exhausted(world)
    unasked, other = world.session(), hostile.neighbour(world, seeds[0]).session()
    for place, seed in enumerate(seeds):
        query = grammar.query(world, seed)
        if place and place % QUESTIONS_A_SESSION == 0:
            session.close()
            session = world.session()
        with _named(query):
            answered = tally.answered
            oracle.check(world, session, query, tally, closely=seed % CLOSELY == 0)
            if seed % ALIKE == 0:
                oracle.check_alike(world, query, unasked, other)
            if seed % EXHAUSTED == 0:
                oracle.check_exhausted(world, spent, query)
            if tally.answered > answered and tally.answered >= REPLAYED * (tally.replayed + 1):
                oracle.check_replayed(world, query, tally)
    for each in (session, unasked, spent, other):
        each.close()


@contextmanager
def _named(query: grammar.Query) -> Iterator[None]:
    """A breach tells which question it was."""
    try:
        yield
    except Breach as breach:
        raise Breach(
            f"{breach}\n  seed {query.seed}: python tests/fuzz/run.py --seed {query.seed}\n"
            f"  {query.sql}\n  {query.options}"
        ) from breach.__cause__


def run_one(seed: int) -> None:
    """One question, with everything that can be held against it."""
    world = hostile.world(seed // QUESTIONS_A_WORLD)
    query = grammar.query(world, seed)
    print(f"{query.sql}\n{query.options} {world.spend} {world.budget}")
    tally = Tally()
    other = hostile.neighbour(world, seed)
    with (
        _named(query),
        world.session() as session,
        world.session() as unasked,
        other.session() as beside,
    ):
        oracle.check(world, session, query, tally, closely=True)
        oracle.check_alike(world, query, unasked, beside)
        if tally.answered:
            oracle.check_replayed(world, query, tally)
    print("answered" if tally.answered else f"refused: {list(tally.reasons)}")


def main() -> None:
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--seed", type=int, default=0)
    reader.add_argument("--count", type=int, default=1)
    given = reader.parse_args()
    warnings.simplefilter("error")
    if given.count == 1:
        run_one(given.seed)
        return
    breaches, total = 0, Tally()
    for first in range(given.seed, given.seed + given.count, BATCH):
        try:
            found = run(first, min(BATCH, given.seed + given.count - first))
        except Breach as breach:
            breaches += 1
            print(breach)
            continue
        total.answered += found.answered
        total.refused += found.refused
        total.replayed += found.replayed
        for reason, times in found.reasons.items():
            total.reasons[reason] = total.reasons.get(reason, 0) + times
    for reason, times in sorted(total.reasons.items(), key=lambda each: -each[1])[:25]:
        print(f"{times:6d} {reason}")
    print(f"{total.answered} answered, {total.refused} refused, {total.replayed} replayed")
    sys.exit(1 if breaches else 0)


if __name__ == "__main__":
    main()
