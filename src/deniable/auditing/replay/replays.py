"""Record a pipeline on one data set, replay its outputs on a neighbour, compare (Re:cord-play).

Given the released values, everything else a private pipeline does must be the same on two
neighbours: which mechanisms it calls, with what parameters, at what price, what it raises, warns
of, prints and returns. And what reaches each mechanism may move by no more than is charged. One
pair of runs shows a breach that black-box statistics would need thousands for.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from deniable.auditing.replay.findings import Finding, FindingKind, compare
from deniable.auditing.replay.recorder import Call, Recorder, Replayer
from deniable.auditing.replay.runs import Run, observe
from deniable.auditing.report import Report, Reported
from deniable.auditing.sampled.isolation import Ended, in_child
from deniable.errors import DoorError, ParameterError, ParameterTypeError
from deniable.ledger.ledger import Ledger
from deniable.privacy.exact import Number, positive
from deniable.privacy.losses.base import Loss

Factory = Callable[[Any, Ledger], Any]

_STAGES = ("on the data", "again on the data", "on the neighbour")
# Of ledgers that live for one run: equal entries look alike in all of them.
_KEY, _CLOCK = bytes(32), datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Replay(Reported):
    """What one pair of runs showed. No finding means: none on this pair, not "private".

    A report tells how far private values moved: it is for those who may see the data.
    """

    findings: tuple[Finding, ...]
    releases: int
    ended: str = "with an output"
    losses: tuple[Loss, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.ok

    def _none(self, *kinds: FindingKind) -> bool:
        return not any(finding.kind in kinds for finding in self.findings)

    @property
    def sensitivity_ok(self) -> bool:
        """Whether all inputs of mechanisms moved by what is charged at most."""
        return self._none(FindingKind.SENSITIVITY, FindingKind.UNKNOWN, FindingKind.NOISE)

    @property
    def budget_equal(self) -> bool:
        """Whether both runs cost the same."""
        return self._none(FindingKind.PRICE, FindingKind.CONTROL_FLOW)

    @property
    def report(self) -> Report:
        return Report(
            title="Replay on a neighbour",
            good=self.ok,
            verdict=self._verdict(),
            facts={"releases compared": self.releases, "both runs ended": self.ended},
            columns=("what", "where", "finding"),
            rows=[(str(each.kind), each.where, each.message) for each in self.findings],
        )

    def _verdict(self) -> str:
        count = f"{len(self.findings)} finding{'s' * (len(self.findings) > 1)}"
        if self.ok:
            return "no finding on this pair of neighbours"
        if all(finding.kind in _UNTOLD for finding in self.findings):
            return f"{count}: the pipeline cannot be compared, and was not shown to be private"
        return f"{count}: the pipeline is not private as charged"


def replay(
    pipeline: Callable[[Any], object],
    data: object,
    neighbour: object,
    *,
    factory: Factory | None = None,
    time_limit: Number | None = 60,
) -> Replay:
    """Run a pipeline on two neighbours, with the same released values, and tell what differs.

    `data` and `neighbour` differ in one unit, under the relation that the mechanisms state.
    `factory(data, ledger)` makes what the pipeline is given, a session for instance, each time with
    a fresh ledger in memory; without it the pipeline is given the data. A replay is told exact
    values, so sessions, ledgers and doors that were opened outside of a run are refused in it.

    Each run happens in a child process of its own, so that nothing is remembered from one to the
    next; all end after `time_limit` seconds. With `time_limit=None` they happen here, which data
    need that cannot cross a fork (an open connection); then nothing ends a pipeline that hangs, and
    what it remembers between runs may hide a difference.

    The pipeline runs once more on the data, to see that it does the same twice. What its threads
    and processes release is not listened to, and such are findings.
    """
    (found,) = replays(pipeline, data, (neighbour,), factory=factory, time_limit=time_limit)
    return found


def replays(
    pipeline: Callable[[Any], object],
    data: object,
    neighbours: Sequence[object],
    *,
    factory: Factory | None = None,
    time_limit: Number | None = 60,
) -> list[Replay]:
    """The same on several neighbours of one data set, on which the pipeline runs twice in all.

    Each neighbour is given the released values of the one recorded run.
    """
    for name, given in (("pipeline", pipeline), ("factory", factory)):
        if not callable(given) and not (name == "factory" and given is None):
            raise ParameterTypeError(name, type(given).__name__, "must be callable")
    if time_limit is None:
        return _compared(lambda run: run(whole_process=False), pipeline, data, neighbours, factory)
    seconds = float(positive(time_limit, "time_limit"))
    if seconds > 10**6:
        raise ParameterError("time_limit", time_limit, "must be 1e6 seconds or less, or None")
    end = time.monotonic() + seconds

    def alone(run: Callable[..., Run]) -> Run | Ended:
        found = in_child(lambda: run(whole_process=True), end)
        assert isinstance(found, Run | Ended)
        return found

    return _compared(alone, pipeline, data, neighbours, factory)


def _compared(
    perform: Callable[[Callable[..., Run]], Run | Ended],
    pipeline: Callable[[Any], object],
    data: object,
    neighbours: Sequence[object],
    factory: Factory | None,
) -> list[Replay]:
    def run(given: object, recorder: Recorder, *, whole_process: bool) -> Run:
        if factory is None:
            return observe(pipeline, given, recorder, whole_process=whole_process)
        make = factory

        def with_ledger(subject: object) -> object:
            """The ledger is made while this run is listened to: no other one is used in it."""
            with Ledger(key=_KEY, clock=lambda: _CLOCK, nonce=lambda: "replay") as ledger:
                return pipeline(make(subject, ledger))

        return observe(with_ledger, given, recorder, whole_process=whole_process)

    first = perform(partial(run, data, Recorder()))
    if isinstance(first, Ended):
        return [_ended_early(first, _STAGES[0])] * len(neighbours)
    again = perform(partial(run, data, Replayer(first.events)))
    if isinstance(again, Ended):
        return [_ended_early(again, _STAGES[1])] * len(neighbours)
    releases = sum(isinstance(event, Call) for event in first.events)
    charged = _charged(first)
    twice = compare(first, again, same_data=True)
    alone = [each for each in twice if each.kind in _OF_ONE_RUN]
    if first.raised is not None and not releases:
        outside = _OUTSIDE if first.raised.kind.endswith(DoorError.__name__) else ""
        alone.append(
            Finding(FindingKind.CRASH, _STAGES[0], _NOTHING.format(first.raised.kind) + outside)
        )
    unlike = [each for each in twice if each.kind not in _OF_ONE_RUN]
    if unlike:
        reasons = "; ".join(f"{each.kind} at {each.where}" for each in unlike[:3])
        alone.append(Finding(FindingKind.DETERMINISM, _STAGES[1], _UNLIKE.format(reasons)))
        found = Replay(tuple(dict.fromkeys(alone)), releases, _ended(first), charged)
        return [found] * len(neighbours)

    def on(neighbour: object) -> Replay:
        second = perform(partial(run, neighbour, Replayer(first.events)))
        if isinstance(second, Ended):
            return _ended_early(second, _STAGES[2])
        found = tuple(dict.fromkeys(alone + compare(first, second)))
        return Replay(found, releases, _ended(first, second), charged)

    return [on(each) for each in neighbours]


def _charged(run: Run) -> tuple[Loss, ...]:
    """What the mechanisms of a run cost; a stream once."""
    calls = [event for event in run.events if isinstance(event, Call)]
    streams = {call.stream: call for call in calls if call.stream is not None}
    once = [call for call in calls if call.stream is None] + list(streams.values())
    losses = [getattr(call.subject, "loss", None) for call in once]
    return tuple(loss for loss in losses if isinstance(loss, Loss))


def _ended_early(ended: Ended, stage: str) -> Replay:
    kind = FindingKind.TIME if ended.late else FindingKind.CRASH
    return Replay((Finding(kind, stage, f"the pipeline {ended.how}"),), 0, "not at all")


def _ended(*runs: Run) -> str:
    ends = {"an output" if run.raised is None else run.raised.kind for run in runs}
    if any(run.diverged for run in runs):
        return "differently"
    return f"with {ends.pop()}" if len(ends) == 1 else "differently"


# Found on any run, however alike two are.
_OF_ONE_RUN = (FindingKind.NOISE, FindingKind.UNKNOWN, FindingKind.STARTED)
_UNTOLD = (
    FindingKind.DETERMINISM,
    FindingKind.TIME,
    FindingKind.CRASH,
    FindingKind.STARTED,
    FindingKind.UNKNOWN,
)
_UNLIKE = (
    "the pipeline does not do the same twice on the same data and released values ({}); "
    "randomness, clocks, threads and state kept between runs must be arguments"
)
_NOTHING = "ends with {} before anything is released: nothing was compared"
_OUTSIDE = "; sessions and doors are made in factory=, those from outside of the replay are refused"
