"""The oracle of neighbours: exact numbers before noise, with and without some units.

A question is read through a door that draws no noise and hears what would be noised. Between a
table D and D with hostile units H, every number moves by no more than is charged, and whatever is a
sum over units moves by exactly what H alone gives: T(D ∪ H) = T(D) + T(H), in whole numbers.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import deniable as dp
from deniable.engines.base import LazySnapshot, Rows, Step
from deniable.mechanisms.grid_quantile import GridQuantile
from deniable.mechanisms.joint import JointNoise
from deniable.mechanisms.keys import WEIGHT, KeySelection
from deniable.privacy.amount import Amount
from deniable.privacy.price import Price
from deniable.query.plan.plan import Plan
from deniable.query.plan.planner import Asked
from deniable.query.price.needed import needed, unseen
from deniable.query.price.price import Priced, price
from deniable.query.read.build import Spend
from deniable.query.read.resolve import parse
from deniable.query.run.drawing import draw
from deniable.session import Session, _options

SECRET = "0" * 32
Numbers = dict[tuple, int]
"""Whole numbers by their place: a group, and a column or a cell of it."""


class Breach(AssertionError):  # noqa: N818  (what it is, not an error of the library)
    """Something that must hold of neighbours does not."""


@dataclass(frozen=True)
class Heard:
    """One draw: its mechanism, the exact value, and whether that is a sum over units."""

    mechanism: object
    numbers: Numbers
    additive: bool


@dataclass
class Listener:
    """A door without noise. What it tells is what was told before, so that all runs go one way."""

    told: list[object] = field(default_factory=list)
    heard: list[tuple[object, object]] = field(default_factory=list)

    def draw(self, mechanism: object, read: Callable[[], object]) -> object:
        value = read()
        if len(self.heard) == len(self.told):
            self.told.append(_released(mechanism, value))
        self.heard.append((mechanism, value))
        return self.told[len(self.heard) - 1]


def _released(mechanism: object, value: object) -> object:
    """What a release could be, of the right shape."""
    if isinstance(mechanism, KeySelection):
        return list(value)
    if isinstance(mechanism, GridQuantile):
        return [_best(mechanism, row) for row in value]
    assert isinstance(mechanism, JointNoise)
    return [list(row) for row in value]


def _best(mechanism: GridQuantile, weights: Sequence[int]) -> int:
    scores = mechanism.scores([int(each) for each in weights])
    return scores.index(max(scores)) - (1 if mechanism.ends else 0)


def ask(session: Session, sql: str, options: dict, spend: dict) -> "Question":
    """A question with its price, checked as it is before anything is charged."""
    names = ("keys", "bounds", "max_rows", "max_groups")
    given = _options(*(options.get(name) for name in names))
    price = Spend(spend.get("epsilon"), spend.get("rho"), None)
    return Question(
        session._answering.planner.asked(parse(sql), given, price), session.parts.budget
    )


def outcome(ask_it: Callable[[], object]) -> tuple[str, str]:
    """How a question ends: answered, or with which error and sentence."""
    try:
        ask_it()
    except dp.DeniableError as refusal:
        return type(refusal).__name__, str(refusal)
    except Exception as error:
        raise Breach(f"{type(error).__name__} is raised, which is no error of ours") from error
    return "answered", ""


class Readers:
    """A snapshot that stands for one session's after another's, and what was read through it."""

    cost = Price(None, Fraction(1), Fraction(1, 10**8))  # a δ for choosing keys

    def __init__(self) -> None:
        self.snapshot: LazySnapshot | None = None
        self.draws: list[tuple[object, Callable[[], object]]] = []

    def run(self, step: Step) -> Rows:
        assert self.snapshot is not None
        return self.snapshot.run(step)

    def draw(self, mechanism: object, read: Callable[[], object]) -> object:
        """Keep a reading, so that it can be done again elsewhere."""
        self.draws.append((mechanism, read))
        return _released(mechanism, read())


@dataclass
class Question:
    """A question that was accepted, to be read from several sessions in one way.

    What the first reading releases (bounds that are bought, groups that are chosen) holds for all.
    """

    asked: Asked
    budget: dp.Budget
    told: list[object] = field(default_factory=list)
    bought: Readers = field(default_factory=Readers)
    priced: Priced | None = None
    ended: bool = False
    """Whether nobody is seen, or no group: nothing comes after the estimates."""

    def exact(self, session: Session) -> list[Heard]:
        """All that is noised, exactly."""
        door = Listener(self.told)
        try:
            with LazySnapshot(
                session.parts.engine, (), session.parts.catalogue.schemas
            ) as snapshot:
                self.bought.snapshot = snapshot
                if self.priced is None and not self.ended:
                    self._price_after_estimates()
                for mechanism, read in self.bought.draws:
                    door.draw(mechanism, read)
                if self.priced is not None:
                    draw(self.priced, snapshot, door, SECRET)
        except Exception as error:
            raise Breach(f"accepted, and fails with {type(error).__name__}: {error}") from error
        return [
            Heard(
                mechanism,
                _numbers(mechanism, value),
                self.priced is None or not any(mechanism is each for each in self.priced.distinct),
            )
            for mechanism, value in door.heard
        ]

    def check(self, session: Session) -> None:
        """What the engine of another session says of the statements."""
        asked = self.asked
        bought = [step for each in asked.estimates for step in each.steps()]
        priced = self._price(asked.assumed, asked.left)
        self.priced = None if bought else priced
        session.parts.engine.check([*priced.steps(SECRET).values(), *bought])

    def _price_after_estimates(self) -> None:
        plan, left = self.asked.plan, self.asked.amount
        while (one := needed(plan, left, self.budget)) is not None:
            plan, left = one.applied(one.draw(self.bought, self.bought, SECRET)), one.left
        self.ended = unseen(plan) or plan.counted.selected == ()
        if not self.ended:
            self._price(plan, left)

    def _price(self, plan: Plan, left: Amount) -> Priced:
        """Its noise, with statements that are written once."""
        priced = price(plan, left)
        steps = priced.steps(SECRET)
        object.__setattr__(priced, "steps", lambda _: steps)
        self.priced = priced
        return priced


def _numbers(mechanism: object, value: object) -> Numbers:
    if isinstance(mechanism, KeySelection):
        return {(tuple(map(repr, key)), 0): int(units) for key, units in value.items() if units}
    return {
        (group, place): int(number)
        for group, row in enumerate(value)
        for place, number in enumerate(row)
        if number
    }


def moved(before: Sequence[Heard], after: Sequence[Heard], units: int) -> float:
    """The worst movement over what is charged for so many units; a breach where it is above 1."""
    if [each.mechanism for each in before] != [each.mechanism for each in after]:
        raise Breach("neighbours are noised differently")
    worst = 0.0
    for one, two in zip(before, after, strict=True):
        far = difference(one.numbers, two.numbers)
        ratio = _ratio(one.mechanism, far, units)
        if ratio > 1:
            raise Breach(f"{one.mechanism} moves {ratio:.6g} times what is charged: {_few(far)}")
        worst = max(worst, float(ratio))
    return worst


def added_up(
    before: Sequence[Heard], after: Sequence[Sequence[Heard]], alone: Sequence[Heard]
) -> None:
    """What groups of units add, one at a time, is together what all of them give alone."""
    for place, (one, given) in enumerate(zip(before, alone, strict=True)):
        if not one.additive:
            continue
        apart = given.numbers
        for each in after:
            apart = difference(difference(one.numbers, each[place].numbers), apart)
        if apart:
            raise Breach(f"{one.mechanism}: others' numbers move by {_few(apart)}")


def difference(one: Numbers, two: Numbers) -> Numbers:
    """Two less one, where that is not 0."""
    found = {place: two.get(place, 0) - one.get(place, 0) for place in one.keys() | two.keys()}
    return {place: number for place, number in found.items() if number}


def _few(numbers: Numbers) -> dict:
    return dict(list(numbers.items())[:3])


def _ratio(mechanism: object, far: Numbers, units: int) -> float:
    """How far something moved, in the norm and the bound of its mechanism; exact where it is 1."""
    if isinstance(mechanism, KeySelection):
        norm = math.isqrt(sum(number**2 for number in far.values()))
        return max(norm / (units * WEIGHT), len(far) / (units * mechanism.max_groups))
    if isinstance(mechanism, GridQuantile):
        groups = dict[object, int]()
        for (group, _), number in far.items():
            groups[group] = groups.get(group, 0) + abs(number)
        sizes = list(groups.values())
    else:
        assert isinstance(mechanism, JointNoise)
        sizes = [abs(number) * mechanism.weights[place] for (_, place), number in far.items()]
    bound = units * mechanism.bound
    if mechanism.norm == "l1":
        return _over(sum(sizes), bound)
    return _root(_over(sum(size * size for size in sizes), bound * bound))


def _over(number: int, most: int) -> float:
    """Above 1 just where the whole number is above the other."""
    found = number / most
    return found if (found > 1) == (number > most) else math.nextafter(1.0, 2 * (number > most))


def _root(ratio: float) -> float:
    found = math.sqrt(ratio)
    return found if (found > 1) == (ratio > 1) else math.nextafter(1.0, 2.0)
