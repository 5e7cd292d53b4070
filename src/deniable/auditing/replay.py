"""Record a pipeline on one data set, replay its outputs on a neighbour, compare (Re:cord-play).

Given the released values, everything else a private pipeline does must be the same on two
neighbours: which mechanisms it calls, with what parameters, at what price, what it raises, warns
of, prints and returns. And what reaches each mechanism may move by no more than is charged. One
pair of runs shows a breach that black-box statistics would need thousands for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.auditing.findings import Finding, Kind, compare
from deniable.auditing.isolation import Ended, in_child
from deniable.auditing.recorder import Call, Recorder, Replayer
from deniable.auditing.report import Report
from deniable.auditing.runs import Run, observe
from deniable.errors import ParameterError, ParameterTypeError
from deniable.ledger.ledger import Ledger
from deniable.privacy.exact import Number, positive

Factory = Callable[[Any, Ledger], Any]

_STAGES = ("on the data", "again on the data", "on the neighbour")
_KEY = bytes(32)  # of ledgers that live for one run


@dataclass(frozen=True)
class Replay:
    """What one pair of runs showed. No finding means: none on this pair, not "private".

    A report tells how far private values moved: it is for those who may see the data.
    """

    findings: tuple[Finding, ...]
    releases: int
    ended: str = "with an output"

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __bool__(self) -> bool:
        return self.ok

    def _none(self, *kinds: Kind) -> bool:
        return not any(finding.kind in kinds for finding in self.findings)

    @property
    def sensitivity_ok(self) -> bool:
        """Whether all inputs of mechanisms moved by what is charged at most."""
        return self._none(Kind.SENSITIVITY, Kind.UNKNOWN, Kind.NOISE)

    @property
    def control_flow_equal(self) -> bool:
        """Whether both runs took the same path."""
        return self._none(Kind.CONTROL_FLOW)

    @property
    def budget_equal(self) -> bool:
        """Whether both runs cost the same."""
        return self._none(Kind.PRICE, Kind.CONTROL_FLOW)

    @property
    def exceptions_equal(self) -> bool:
        """Whether both runs raised the same, or nothing."""
        return self._none(Kind.EXCEPTION)

    @property
    def report(self) -> Report:
        """The findings, to be shown."""
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

    def __str__(self) -> str:
        return self.report.text()

    def to_json(self) -> str:
        """The report for machines."""
        return self.report.json()

    def to_html(self) -> str:
        """The report as a page."""
        return self.report.html()

    def save(self, path: str | Path) -> Path:
        """Write the report to a file, by the ending of its name: .html, .json, or text."""
        return self.report.save(path)


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
    a fresh ledger in memory; without it the pipeline is given the data. All runs happen in a child
    process, killed after `time_limit` seconds; with `time_limit=None` they happen here, which data
    need that cannot cross a fork (an open connection), and nothing ends a pipeline that hangs.

    The pipeline runs once more on the data, to see that it does the same twice. Threads that it
    starts are not listened to.
    """
    for name, given in (("pipeline", pipeline), ("factory", factory)):
        if not callable(given) and not (name == "factory" and given is None):
            raise ParameterTypeError(name, type(given).__name__, "must be callable")
    if time_limit is None:
        return _three_runs(pipeline, data, neighbour, factory, lambda _: None)
    seconds = float(positive(time_limit, "time_limit"))
    if seconds > 10**6:
        raise ParameterError("time_limit", time_limit, "must be 1e6 seconds or less, or None")
    found = in_child(
        lambda say: _three_runs(pipeline, data, neighbour, factory, say), time_limit=seconds
    )
    if isinstance(found, Ended):
        kind = Kind.TIME if "within" in found.how else Kind.CRASH
        where = found.stage or _STAGES[0]
        return Replay((Finding(kind, where, f"the pipeline {found.how}"),), 0, "not at all")
    assert isinstance(found, Replay)
    return found


def _three_runs(
    pipeline: Callable[[Any], object],
    data: object,
    neighbour: object,
    factory: Factory | None,
    say: Callable[[str], None],
) -> Replay:
    def run(given: object, stage: str, recorder: Recorder) -> Run:
        say(stage)
        if factory is None:
            return observe(pipeline, given, recorder)
        made = factory
        with Ledger(key=_KEY) as ledger:
            return observe(lambda subject: pipeline(made(subject, ledger)), given, recorder)

    first = run(data, _STAGES[0], Recorder())
    again = run(data, _STAGES[1], Replayer(list(first.events)))
    releases = sum(isinstance(event, Call) for event in first.events)
    alone = [each for each in compare(first, again) if each.kind in _OF_ONE_RUN]
    unlike = [each for each in compare(first, again) if each.kind not in _OF_ONE_RUN]
    if first.forked:
        alone.append(Finding(Kind.FORK, "processes", _FORKED))
    if unlike:
        reasons = "; ".join(f"{each.kind} at {each.where}" for each in unlike[:3])
        alone.append(Finding(Kind.DETERMINISM, _STAGES[1], _UNLIKE.format(reasons)))
        return Replay(tuple(dict.fromkeys(alone)), releases, _ended(first))
    second = run(neighbour, _STAGES[2], Replayer(list(first.events)))
    findings = compare(first, second)
    if second.forked:
        findings.append(Finding(Kind.FORK, "processes", _FORKED))
    return Replay(tuple(dict.fromkeys(alone + findings)), releases, _ended(first, second))


def _ended(*runs: Run) -> str:
    ends = {"an output" if run.raised is None else run.raised.kind for run in runs}
    if any(run.diverged for run in runs):
        return "differently"
    return f"with {ends.pop()}" if len(ends) == 1 else "differently"


# Found on any run, however alike two are.
_UNTOLD = (Kind.DETERMINISM, Kind.TIME, Kind.CRASH, Kind.FORK, Kind.UNKNOWN)
_OF_ONE_RUN = (Kind.NOISE, Kind.UNKNOWN)
_UNLIKE = (
    "the pipeline does not do the same twice on the same data and released values ({}); "
    "randomness, clocks, threads and state kept between runs must be arguments"
)
_FORKED = "the pipeline starts processes of its own; what they release is not compared"
