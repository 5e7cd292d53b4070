"""What two runs of a pipeline on neighbours must not differ in."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from deniable.auditing.gaps import directions_of, gap
from deniable.auditing.replay.recorder import BARE_NOISE, Call, Event, Fact
from deniable.auditing.replay.runs import Run
from deniable.auditing.replay.tree import difference, opaque
from deniable.mechanisms.gaps import Gap


class FindingKind(StrEnum):
    """What is wrong."""

    SENSITIVITY = "sensitivity"
    PARAMETERS = "parameters"
    PRICE = "price"
    CONTROL_FLOW = "control flow"
    EXCEPTION = "exception"
    WARNING = "warning"
    PRINT = "print"
    OUTPUT = "output"
    NOISE = "noise"
    UNKNOWN = "unknown mechanism"
    DETERMINISM = "determinism"
    STARTED = "threads or processes"
    TIME = "time"
    CRASH = "crash"


@dataclass(frozen=True)
class Finding:
    """One thing that tells the two data sets apart, or keeps them from being compared."""

    kind: FindingKind
    where: str
    message: str
    moved: float | None = None
    allowed: float | None = None


def compare(first: Run, second: Run, *, same_data: bool = False) -> list[Finding]:
    """All that differs between the run on the data and the replay on the neighbour.

    On the `same_data` nothing may move at all.
    """
    found = [*_events(first.events, second.events, same_data=same_data), *_alone(first, second)]
    same_path = not second.diverged and len(first.events) == len(second.events)
    if not second.diverged and not same_path and first.raised == second.raised:
        found.append(_more_or_less(first, second))
    if second.diverged and not found:
        found.append(_left(first.events, second.events))
    if not second.diverged:
        found += _shown(first, second)
    return found


def _alone(first: Run, second: Run) -> Iterator[Finding]:
    """What keeps runs from being compared at all."""
    for what in sorted(first.started | second.started):
        yield Finding(
            FindingKind.STARTED,
            what,
            f"the pipeline starts {what}; what they release is not compared",
        )
    for run in (first, second):
        hidden = None if run.output is None else opaque(run.output)
        if hidden is not None:
            message = f"it holds a {hidden}, which cannot be compared; return plain values"
            yield Finding(FindingKind.UNKNOWN, "the output", message)


def _events(
    first: tuple[Event, ...], second: tuple[Event, ...], *, same_data: bool
) -> Iterator[Finding]:
    streams: dict[int, list[Gap]] = defaultdict(list)
    for number, (one, other) in enumerate(zip(first, second, strict=False), start=1):
        where = f"event {number}, {one.name}"
        if one.name != other.name:
            yield _left(first, second)
            return
        if one.name == BARE_NOISE:
            yield Finding(
                FindingKind.NOISE,
                where,
                "noise is drawn outside of any mechanism, so that nobody knows for what "
                "sensitivity; let a mechanism add it",
            )
        elif isinstance(one, Fact) and isinstance(other, Fact):
            yield from _facts(one, other, where)
        elif isinstance(one, Call) and isinstance(other, Call):
            yield from _calls(one, other, where, streams, same_data=same_data)
    for stream, gaps in streams.items():
        if len(directions_of(gaps)) > 1:
            yield Finding(
                FindingKind.SENSITIVITY,
                f"stream {stream + 1}",
                "some values rise while others fall, though monotone=True was promised",
            )


def _calls(
    one: Call, other: Call, where: str, streams: dict[int, list[Gap]], *, same_data: bool
) -> Iterator[Finding]:
    if one.price != other.price:
        yield Finding(FindingKind.PRICE, where, "the price depends on the data; fix it beforehand")
    elif one.parameters != other.parameters:
        part = difference(one.parameters, other.parameters, "")
        named = part.where.lstrip(".") if part else "something"
        yield Finding(
            FindingKind.PARAMETERS,
            where,
            f"the public parameter {named} depends on the data; declare it, or buy it",
        )
    if (one.raised is None) != (other.raised is None):
        side = "the data" if one.raised else "the neighbour"
        yield Finding(
            FindingKind.EXCEPTION, where, f"raises on {side} only; clamp or default such values"
        )
        return
    if one.raised is None:
        yield from _moved(one, other, where, streams, same_data=same_data)


def _moved(
    one: Call, other: Call, where: str, streams: dict[int, list[Gap]], *, same_data: bool
) -> Iterator[Finding]:
    try:
        apart = gap(one.subject, one.arguments, other.arguments)
    except Exception:  # whatever it says may quote private values
        apart = None
    if apart is None:
        yield Finding(
            FindingKind.UNKNOWN,
            where,
            "what reaches it cannot be compared; give it a method gap(x, y) that tells how far two "
            "values lie apart, and neighbours()",
        )
        return
    if one.stream is not None:
        streams[one.stream].append(apart)
    if same_data and apart.moved > 0:
        yield Finding(FindingKind.SENSITIVITY, where, "what reaches it is not the same twice")
    elif not apart.ok:
        message = (
            f"what reaches it moves by {apart.moved:g} ({apart.measure}), {apart.allowed:g} is "
            "charged"
        )
        if apart.moved <= apart.allowed * (1 + 2.0**-30):
            message = (
                f"what reaches it moves by a rounding more than the {apart.allowed:g} that is "
                "charged: sums of floats are not exact; add whole numbers or fractions"
            )
        yield Finding(FindingKind.SENSITIVITY, where, message, apart.moved, apart.allowed)


def _facts(one: Fact, other: Fact, where: str) -> Iterator[Finding]:
    part = difference(one.content, other.content, "")
    if part is None:
        return
    if one.name == "answer":
        yield Finding(FindingKind.OUTPUT, where, f"the recorded answer differs in {part.what}")
    elif part.where.startswith("[0]") or one.name == "stream opened":
        yield Finding(FindingKind.PRICE, where, "the price depends on the data; fix it beforehand")
    else:
        yield Finding(FindingKind.CONTROL_FLOW, where, "the question depends on the data")


def _left(first: tuple[Event, ...], second: tuple[Event, ...]) -> Finding:
    at = next(
        (i for i, (a, b) in enumerate(zip(first, second, strict=False)) if a.name != b.name), None
    )
    at = min(len(first), len(second) - 1) if at is None else at
    here = first[at].name if at < len(first) else "nothing more"
    there = second[at].name if at < len(second) else "nothing more"
    advice = (
        "replay a session from factory=, which gives each run a fresh ledger"
        if "stored answer" in here + there
        else "what is released must not hang on exact values"
    )
    return Finding(
        FindingKind.CONTROL_FLOW,
        f"event {at + 1}",
        f"the data lead to {here}, the neighbour to {there}; {advice}",
    )


def _more_or_less(first: Run, second: Run) -> Finding:
    more = "the data" if len(first.events) > len(second.events) else "the neighbour"
    at = min(len(first.events), len(second.events))
    longer = first.events if len(first.events) > len(second.events) else second.events
    return Finding(
        FindingKind.CONTROL_FLOW,
        f"event {at + 1}",
        f"{longer[at].name} happens on {more} only; release it for empty groups too",
    )


def _shown(first: Run, second: Run) -> Iterator[Finding]:
    if first.raised != second.raised:
        yield Finding(FindingKind.EXCEPTION, "the end", _raised(first, second))
    elif first.output is not None and second.output is not None:
        part = difference(first.output, second.output)
        if part:
            yield Finding(
                FindingKind.OUTPUT,
                part.where,
                f"differs in {part.what}, though all released values are the same: something "
                "private reaches it without noise",
            )
    if first.warned != second.warned:
        yield Finding(FindingKind.WARNING, "warnings", "the two runs warn of different things")
    if first.printed != second.printed:
        yield Finding(FindingKind.PRINT, "standard streams", "the two runs print different things")


def _raised(first: Run, second: Run) -> str:
    if first.raised is None or second.raised is None:
        error = first.raised or second.raised
        assert error is not None
        side = "the data" if first.raised else "the neighbour"
        return f"{error.kind} is raised on {side} only"
    if first.raised.kind != second.raised.kind:
        return f"{first.raised.kind} is raised on the data, {second.raised.kind} on the neighbour"
    return f"the message of {first.raised.kind} depends on the data"
