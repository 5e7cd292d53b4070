"""Random questions about crowds, held against the oracle of neighbours.

`python tests/values/neighbours.py arrow 0 17` asks crowd 0 of Arrow tables its question 17 again;
one more number asks so many.
"""

import math
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from deniable.session import Session
from fuzz import grammar
from values import oracle
from values.crowds import Crowd, crowd
from values.oracle import Breach
from values.stores import Store

TIES = 0.2  # of the questions choose among rows that are equal
ORDERS = 0.1  # pair the places of such rows in two orders
CHECKED = 4  # one question in so many is checked on a neighbour, if the crowd takes it


@dataclass
class Found:
    """What a run found: questions, pairs that were compared, and the worst movement over charge."""

    questions: int = 0
    answered: int = 0
    pairs: int = 0
    worst: float = 0.0
    breaches: list[str] = field(default_factory=list)
    reasons: Counter = field(default_factory=Counter)

    def __str__(self) -> str:
        share = self.answered / max(1, self.questions)
        return (
            f"{self.pairs} pairs, {self.answered} of {self.questions} questions answered "
            f"({share:.0%}), worst movement over what is charged {self.worst:.6f}, "
            f"{len(self.breaches)} breaches"
        )


def query(crowd: Crowd, seed: object) -> grammar.Query:
    """The question of this number about a crowd: never broken, with what it declares."""
    rng = random.Random(f"neighbours {seed}")
    writer = grammar.Writer(crowd.world, rng, filters=0.6, mixed=0.01, hostile=0.02, unbounded=0.2)
    if writer.chance(TIES):
        sql = grammar.told_apart(writer)
    elif writer.chance(ORDERS / (1 - TIES)):
        sql = grammar.paired(writer)
    else:
        sql = grammar.select(writer, depths=(0, 1, 2, 3, 4))
    options: dict = {name: given for name, given in writer.options.items() if given}
    if writer.chance(0.1):
        options["max_rows"] = writer.rng.choice([1, 2, 50])
    return grammar.Query(0, sql, options, broken=False)


def compare(
    given: Crowd, store: Store, seeds: Iterable[int], found: Found, pairs: float = math.inf
) -> None:
    """Ask the questions of these numbers with and without each group of guests.

    Until all are asked, or so many pairs are found.
    """
    left = iter(seeds)
    while not _asked_until_a_breach(given, store, left, found, pairs):
        pass


def _asked_until_a_breach(
    given: Crowd, store: Store, seeds: Iterator[int], found: Found, pairs: float
) -> bool:
    """Whether all were asked. After a breach sessions are opened anew: it may have ended them."""
    with ExitStack() as stack:
        opened = Sessions(
            given,
            stack.enter_context(store.opened(given)),
            [stack.enter_context(store.opened(given, guests)) for guests in given.guests],
            stack.enter_context(store.opened(given, given.everyone, alone=True)),
        )
        for seed in seeds:
            asked = query(given, seed)
            found.questions += 1
            try:
                opened.compare(asked, seed, found)
            except Breach as breach:
                found.breaches.append(f"{breach}\n  seed {seed}: {asked.sql}\n  {asked.options}")
                return False
            if found.pairs >= pairs:
                break
    return True


@dataclass(frozen=True)
class Sessions:
    """A crowd's session, one for each group of guests with it, and one of all guests alone."""

    crowd: Crowd
    base: Session
    joined: list[Session]
    guests: Session

    def compare(self, asked: grammar.Query, seed: int, found: Found) -> None:
        """Ask one question of all of them."""
        spend, made = self.crowd.world.spend, []

        def ask(session: Session) -> None:
            made.append(oracle.ask(session, asked.sql, asked.options, spend))

        other = self.joined[seed % len(self.joined)]
        ended = again = oracle.outcome(lambda: ask(self.base))
        if ended[0] != "answered":
            found.reasons[f"{ended[0]}: {ended[1]}"[:90]] += 1
            again = oracle.outcome(lambda: ask(other))
        elif seed % CHECKED == 0:
            again = oracle.outcome(lambda: made[0].check(other))
        if again != ended:
            raise Breach(f"a neighbour is told {again}, the crowd {ended}")
        if ended[0] == "answered":
            found.answered += 1
            self._read(made[0], found)

    def _read(self, question: oracle.Question, found: Found) -> None:
        after = [*map(question.exact, self.joined)]  # first: each has every group of the crowd
        before = question.exact(self.base)
        for guests, each in zip(self.crowd.guests, after, strict=True):
            found.worst = max(found.worst, oracle.moved(before, each, guests.units))
        oracle.added_up(before, after, question.exact(self.guests))
        found.pairs += len(after)


def main() -> None:
    """Ask one question again, or several in a row."""
    source, seed, first, *count = sys.argv[1:]
    found = Found()
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        store = Store(Path(folder))
        if source == "postgres":
            from postgres import Postgres

            server = Postgres()
            stack.callback(server.remove)
            store.postgres = server.url
        if source == "spark":
            from engines.spark_session import local_spark

            store.spark = stack.enter_context(local_spark())
        seeds = range(int(first), int(first) + int(*count or (1,)))
        compare(crowd(seed, source), store, seeds, found)
    print(found, *found.breaches, *found.reasons.most_common(20), sep="\n")


if __name__ == "__main__":
    main()
