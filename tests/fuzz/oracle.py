"""What must hold of every question, whatever the schema, the text and the data.

An answer, or a refusal by one of our errors before anything is charged; never another exception,
never a mark of a person, never an exact number, never a neighbour told apart.
"""

import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from scipy import stats

import deniable as dp
from chance import FALSE_ALARM
from deniable.answer import Answer
from deniable.mechanisms.joint import JointNoise
from deniable.query.plan.measures import Linear
from deniable.query.plan.plan import SCALE
from deniable.query.price.price import Priced
from deniable.query.run import answering
from deniable.session import Session
from fuzz.grammar import Query
from fuzz.hostile import MARKS, World, neighbour

REFUSALS = (dp.QueryError, dp.ParameterError, dp.errors.CalibrationError)
NEAR = 1e-3  # of the 95 % half-width: noise comes so close to nothing in at most 1 % of draws
OFTEN = 0.01
QUESTIONS_A_SESSION = 10  # choosing groups spends a tenth of the δ that is meant for it


class Breach(AssertionError):  # noqa: N818  (what it is, not an error of the library)
    """Something that must hold does not; the message tells the question and how to see it again."""


@dataclass
class Tally:
    """What happened in a run, and how often numbers were close to the exact ones."""

    answered: int = 0
    refused: int = 0
    replayed: int = 0
    near: int = 0
    near_by_chance: float = 0.0
    reasons: dict[str, int] = field(default_factory=dict)

    def check_noise(self) -> None:
        """More near hits than noise has by chance, at FALSE_ALARM, are exact values."""
        if stats.poisson.sf(self.near - 1, max(self.near_by_chance, 1e-12)) < FALSE_ALARM:
            raise Breach(
                f"{self.near} numbers are as good as exact; {self.near_by_chance:.1f} are by chance"
            )


@dataclass
class Heard:
    """What one question was priced at, and the exact tables that its noise was added to."""

    priced: Priced | None = None
    tables: list[tuple[JointNoise, np.ndarray]] = field(default_factory=list)

    def statistics(self) -> np.ndarray:
        """The exact numbers where the noisy ones stand; what is not heard of is not a number."""
        assert self.priced is not None
        joint, distinct = [], []
        waiting = list(enumerate(self.priced.distinct))
        for mechanism, table in self.tables:  # a door draws with copies, in order
            if mechanism == self.priced.joint and not joint:
                joint.append(table)
                continue
            place = next((each for each in waiting if each[1] == mechanism), None)
            if place is not None:
                waiting.remove(place)
                distinct.append((place[0], table))
            elif mechanism == self.priced.joint:
                joint.append(table)
        rows = sum(map(len, joint or [table for _, table in distinct[:1]]))  # groupings in a row
        exact = np.full((rows, len(self.priced.noise)), np.nan)
        first = len(self.priced.plan.counted.statistics)
        if joint:
            exact[:, :first] = np.concatenate(joint).astype(float) / SCALE
        for place, table in distinct:
            exact[:, first + place] = table[:, 0].astype(float)
        return exact


@contextmanager
def listening() -> Iterator[Heard]:
    """Hear what reaches the noise, which nobody may see released."""
    heard, release, shown = Heard(), JointNoise.release, answering.shown

    def heard_release(mechanism: JointNoise, value: object) -> object:
        heard.tables.append((mechanism, np.array(value, dtype=object)))
        return release(mechanism, value)

    def heard_shown(priced: Priced, *recorded: object) -> Answer:
        heard.priced = priced
        return shown(priced, *recorded)

    JointNoise.release, answering.shown = heard_release, heard_shown
    try:
        yield heard
    finally:
        JointNoise.release, answering.shown = release, shown


def asked(ask: Callable[[], object]) -> object:
    """The answer, or the refusal; whatever else is raised is a breach."""
    try:
        return ask()
    except dp.DeniableError as refusal:
        shown = "".join(traceback.format_exception(refusal))
        _no_mark(shown, "a message")
        return refusal
    except Exception as error:
        raise Breach(f"{type(error).__name__} is raised, which is no error of ours") from error


def check(world: World, session: Session, query: Query, tally: Tally, *, closely: bool) -> None:
    """Ask one question, and hold everything that is seen against what must hold."""
    before = _entries(session)
    told = (
        asked(lambda: session.explain(query.sql, **world.spend, **query.options))
        if closely
        else None
    )
    if _entries(session) != before:
        raise Breach("explain changes the ledger")
    with listening() as heard:
        answer = asked(lambda: session.sql(query.sql, **world.spend, **query.options))
    charged = _entries(session) - before
    if isinstance(answer, Answer):
        tally.answered += 1
        _check_answer(answer, charged, told, closely=closely)
        _check_noise(answer, heard, tally)
        return
    tally.refused += 1
    reason = f"{type(answer).__name__}: {answer}"[:60]
    tally.reasons[reason] = tally.reasons.get(reason, 0) + (not query.broken)
    if isinstance(answer, dp.NotAnsweredError):
        return  # what was estimated is charged, and tells nothing
    if not isinstance(answer, REFUSALS):
        raise Breach(f"the question fails with {answer!r}, which depends on data")
    if charged:
        raise Breach("a refused question is charged")
    if told is not None and str(told) != str(answer):
        raise Breach(f"explain gives {told!r}, sql {answer!r}")


def _check_answer(answer: Answer, charged: int, told: object, *, closely: bool) -> None:
    estimated = any("(estimated privately)" in label for label in answer.labels)
    right = range(0 if estimated else 2, 12)  # one a part, and one more; none if all was known
    if charged not in ({0} if answer.repeated else right):
        raise Breach(f"an answer makes {charged} entries in the ledger")
    if told is not None and not _foreseen(told, answer):
        raise Breach(f"explain gives {told!r}, the answer costs {answer.cost}")
    cells = [each for values in answer.data.values() for each in values]
    _no_mark(" ".join(str(each) for each in cells if not isinstance(each, float)), "a group")
    asked(answer.to_arrow)
    if closely:
        for made in (answer.intervals, answer.to_csv, answer.__str__):
            asked(made)
        json.loads(str(asked(answer.to_json)))
        json.loads(told.to_json())


def _foreseen(told: object, answer: Answer) -> bool:
    """What is not known yet may turn out to have been bought before: never for more."""
    if not hasattr(told, "cost"):
        return False
    if "are estimated" in str(told):
        return answer.cost.rho <= told.cost.rho and answer.cost.delta <= told.cost.delta
    return told.cost == answer.cost


def _check_noise(answer: Answer, heard: Heard, tally: Tally) -> None:
    """Count sums and counts that are released as they are, or nearly so."""
    if heard.priced is None or not heard.tables:
        return
    plan, noise = heard.priced.plan, heard.priced.noise
    if (
        plan.shown.having is not None
        or plan.shown.order
        or plan.shown.limit is not None
        or plan.shown.offset
    ):
        return
    exact = heard.statistics()
    if not len(exact):
        return  # no group is shown
    for output in plan.shown.outputs:
        measure = plan.shown.measure_of(output) if output.group is None else None
        if not isinstance(measure, Linear) or not measure.columns():
            continue
        wide = measure.half_width(noise, 0.95)
        apart = np.abs(np.array(answer.data[output.name]) - measure.value(exact))
        tally.near += int((apart <= NEAR * wide).sum())
        coarse = any(place >= len(plan.counted.statistics) for place in measure.columns())
        tally.near_by_chance += len(apart) * min(1.0, OFTEN + 2 / max(wide, 2) * coarse)


def check_exhausted(world: World, session: Session, query: Query) -> None:
    """Where nothing is left, nothing is answered."""
    answer = asked(lambda: session.sql(query.sql, **world.spend, **query.options))
    if not isinstance(answer, (*REFUSALS, dp.BudgetError)):
        raise Breach(f"an exhausted ledger lets through {answer!r}")


def check_alike(world: World, query: Query, session: Session, other: Session) -> None:
    """What is told beforehand is told of a neighbour in the same words.

    Neither session has answered anything: what one has released it may tell.
    """
    one, two = (
        asked(lambda session=each: session.explain(query.sql, **world.spend, **query.options))
        for each in (session, other)
    )
    if type(one) is not type(two) or str(one) != str(two):
        raise Breach(f"told of the data: {one!r}; of a neighbour: {two!r}")


def check_replayed(world: World, query: Query, tally: Tally) -> None:
    """Nothing but noisy numbers tells the world from its neighbour."""

    def pipeline(session: Session) -> object:
        with session:
            try:
                answer = session.sql(query.sql, **world.spend, **query.options)
            except dp.NotAnsweredError as refusal:
                return str(refusal)
            return repr(answer.intervals().to_pylist()), answer.columns, str(answer.cost)

    worlds = {"data": world, "neighbour": neighbour(world, query.seed)}
    found = dp.replay(
        pipeline,
        *worlds,
        factory=lambda name, ledger: worlds[name].session(ledger),
        time_limit=None,
    )
    tally.replayed += 1
    if not found.ok:
        raise Breach(f"a neighbour is told apart: {found}")


def exhausted(world: World) -> Session:
    """A session whose populations have spent all that they had."""
    budget = dp.Budget(_small(world), relation=world.budget.relation)
    session = world.session(budget=budget)
    for table in world.tables:
        if table.unit is not None:
            for _ in range(2):
                asked(lambda name=table.name: session.sql(_all(name), max_rows=1, **_whole(budget)))
    return session


def _small(world: World) -> dp.ApproxDP | dp.PureDP | dp.ZCDP:
    kinds = {dp.ApproxDP: dp.ApproxDP(0.01, 1e-9), dp.PureDP: dp.PureDP(0.01)}
    return kinds.get(type(world.budget.guarantee), dp.ZCDP(0.0001))


def _whole(budget: dp.Budget) -> dict[str, float]:
    return {"rho": 0.0001} if isinstance(budget.guarantee, dp.ZCDP) else {"epsilon": 0.01}


def _all(name: str) -> str:
    return f'SELECT COUNT(*) AS n FROM "{name}"'


def _entries(session: Session) -> int:
    return sum(len(entries) for entries in session.history.values())


def _no_mark(text: str, where: str) -> None:
    found = [mark for mark in MARKS if mark in text.lower()]
    if found:
        raise Breach(f"a private value, {found[0]}, is shown in {where}")
