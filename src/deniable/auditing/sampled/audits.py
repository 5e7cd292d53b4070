"""The black-box audit: call a mechanism on neighbours, and see whether its claim can stand.

In this order: one replayed pair of runs, the exact channel where there is one, noise that repeats
in forked children, and sampled events: of the fixed battery, half-lines of every number, and what
is learned. Each may end the audit.

Soundness. Calls come in three parts. On the first, features are fitted and events of the battery
proposed; from the first two, each strategy chooses one pair, one event and one direction, and how
α is shared among them. Given these, all of that is fixed, and the third part, made afterwards and
independent of them, is a sample of independent coins: Clopper & Pearson's bounds hold at their
level, whatever was tried before. The levels of the tests sum to α, so that by the union bound all
hold together with probability 1 - α, and then none exceeds what a true claim allows. Replay and
exact channels draw no sample and spend nothing; whether children are forked is decided by calls
that are thrown away.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, overload

import numpy as np

from deniable.auditing.exact.finite import exact_channel
from deniable.auditing.replay.neighbours import NeighbourPair
from deniable.auditing.replay.replayed import decisive
from deniable.auditing.replay.replays import Factory, Replay, replay
from deniable.auditing.sampled.bounds import EventCounts, perfect
from deniable.auditing.sampled.claims import (
    Claim,
    ConcentratedClaim,
    lower_bound,
    read_claim,
    refuted,
)
from deniable.auditing.sampled.curves import Curves, curves
from deniable.auditing.sampled.divergence import LearnedRatio
from deniable.auditing.sampled.events import (
    Candidate,
    Coming,
    battery,
    best,
    best_again,
)
from deniable.auditing.sampled.forks import EVENT, repeated_noise
from deniable.auditing.sampled.learned import half_lines, learned, learned_score, telling
from deniable.auditing.sampled.one_run import OneRunReport, Train, one_run_audit
from deniable.auditing.sampled.outcomes import GONE, RAISES, Outcomes, Sides
from deniable.auditing.sampled.power import power
from deniable.auditing.sampled.sampling import Call, Sampled, sample
from deniable.auditing.sampled.targets import Pair, Progress, many_calls, one_call, read_pairs
from deniable.auditing.sampled.verdict import (
    NOTHING,
    VIOLATED,
    AuditReport,
    AuditWitness,
    Tested,
)
from deniable.errors import ParameterError, ParameterTypeError
from deniable.mechanisms.base import read_confidence
from deniable.privacy.channel import Channel
from deniable.privacy.exact import Number, positive, whole

_FORKED = 1 / 8  # of α, where children are forked
_PART = 1 / 5  # of the calls; two such parts choose, the others test
_BATTERY, _HALF_LINE, _LEARNED = "battery", "half-line", "learned"
_DIVERGENCE = "divergence"
Pairs = Iterable[tuple[Any, Any] | NeighbourPair]
_FAVOURED = 3  # times as much of α for the event that looks best
_REHEARSALS = 12  # calls on each side that are thrown away
_LOSSY = 400  # calls, where they cost a process each
_REPLAYED, _REPEATED = 20, 7
_LEAST, _MOST = 40, 100_000_000
_LEAST_PART = 10
_LAST_ATTEMPT = 60


@overload
def audit(
    mechanism: Any,
    claim: Any,
    pairs: Pairs | None = None,
    n: int = 50_000,
    confidence: Number = 0.95,
    *,
    attempt: int = 0,
    factory: Factory | None = None,
    time_limit: Number = 10,
    progress: Progress | None = None,
    one_run: Literal[False] = False,
) -> AuditReport: ...


@overload
def audit(
    mechanism: Train,
    claim: Any,
    *,
    confidence: Number = 0.95,
    attempt: int = 0,
    one_run: Literal[True],
    canaries: int = 1_000,
) -> OneRunReport: ...


def audit(
    mechanism: Any,
    claim: Any,
    pairs: Pairs | None = None,
    n: int = 50_000,
    confidence: Number = 0.95,
    *,
    attempt: int = 0,
    factory: Factory | None = None,
    time_limit: Number = 10,
    progress: Progress | None = None,
    one_run: bool = False,
    canaries: int = 1_000,
) -> AuditReport | OneRunReport:
    """Try to refute a claim about anything that can be called.

    Formal guarantee. If the claim holds for all pairs that are given and calls are independent, the
    verdict is "violated" by a sampled event with probability 1 - confidence at most. A replayed
    breach says that a pipeline of this library's mechanisms is not private as it charges.

    `mechanism` is a function of the data, a mechanism of this library, or a `Channel`; `claim` a
    guarantee, a loss (its whole curve) or a channel (to tell no more than it does). `pairs` are
    neighbours under the claim's relation; mechanisms of this library suggest their own. `n` calls
    are made on each side, two fifths of them to choose events, spread over the pairs, the others to
    test. A session is made by `factory(data, ledger)`, each time with a fresh ledger in memory.

    Audits that are repeated until one of them finds something are numbered: `attempt=k` spends
    (1 - confidence)/2^k, so that all attempts 1, 2, 3, ... together stay within 1 - confidence.

    Calls happen in child processes. One that takes longer than `time_limit` seconds ends the audit
    of its pair and is a finding; how long calls take is reported and not judged. What is printed
    or warned of, exceptions and ended processes are outputs like others.

    With `one_run`, `mechanism(included)` trains once, on made-up units (`canaries`) of which it
    puts in those that the list says, and gives a score for each; see `sampled/one_run.py`.
    """
    alpha = float(1 - read_confidence(confidence)) / 2 ** _attempt(attempt)
    if one_run:
        if pairs is not None or factory is not None or not callable(mechanism):
            raise ParameterTypeError(
                "one_run", one_run, "takes a callable on a list of coins, and no pairs or factory"
            )
        level = float(read_confidence(confidence))
        return one_run_audit(mechanism, claim, canaries, level, alpha)
    if progress is not None and not callable(progress):
        raise ParameterTypeError("progress", progress, "must be callable: (stage, share) -> None")
    single = None if isinstance(mechanism, Channel) else one_call(mechanism, factory)
    plan = _Plan(
        claim=read_claim(claim),
        pairs=read_pairs(mechanism, pairs),
        n=_calls(n),
        confidence=float(read_confidence(confidence)),
        alpha=alpha,
        time_limit=_limit(time_limit),
        progress=progress or (lambda _stage, _share: None),
    )
    if single is None:
        _check_inputs(mechanism, plan.pairs)
        return _Audit(plan, mechanism, None, None).exactly()
    fast = single if factory is not None else many_calls(mechanism, single)
    return _Audit(plan, mechanism, single, fast).run(factory)


def _check_inputs(channel: Channel, pairs: list[Pair]) -> None:
    for pair in pairs:
        if pair.data not in channel.inputs or pair.neighbour not in channel.inputs:
            raise ParameterError("pairs", pair.name, "must be two inputs of the channel")


def _calls(n: int) -> int:
    if not _LEAST <= whole(n, "n") <= _MOST:
        raise ParameterError("n", n, f"must be {_LEAST} to {_MOST:,} calls on each side")
    return n


def _attempt(attempt: int) -> int:
    if isinstance(attempt, bool) or not isinstance(attempt, int | np.integer):
        raise ParameterTypeError("attempt", attempt, "must be a whole number")
    if not 0 <= attempt <= _LAST_ATTEMPT:
        raise ParameterError("attempt", attempt, f"0 for a single audit, 1 to {_LAST_ATTEMPT} else")
    return int(attempt)


def _limit(seconds: Number) -> float:
    found = float(positive(seconds, "time_limit"))
    if found > 10**6:
        raise ParameterError("time_limit", seconds, "must be 1e6 seconds or less")
    return found


@dataclass(frozen=True)
class _Plan:
    claim: Claim
    pairs: list[Pair]
    n: int
    confidence: float
    alpha: float
    time_limit: float
    progress: Progress

    @property
    def tests(self) -> int:
        """The calls that test, on each side of the pair that was chosen."""
        return self.n - 2 * int(self.n * _PART)

    @property
    def favoured(self) -> float:
        """The level of the event that looks best, where no children are forked."""
        return self.alpha * _FAVOURED / (_FAVOURED + 2 + isinstance(self.claim, ConcentratedClaim))


@dataclass(frozen=True)
class _Chosen:
    """What one strategy chose, and the calls that it was chosen on."""

    strategy: str
    candidate: Candidate
    pair: Pair
    first: Sides


class _Audit:
    """One audit on its way."""

    def __init__(self, plan: _Plan, mechanism: Any, single: Call | None, fast: Call | None) -> None:
        self._plan, self._mechanism, self._single, self._fast = plan, mechanism, single, fast
        self._tests: list[Tested] = []
        self._findings: list[str] = []
        self._lossy: set[str] = set()
        self._several = False  # one call makes many releases, on as many neighbours at once
        self._forked = 0.0  # of α
        self._seconds: tuple[float, float] | None = None
        self._curves: Curves | None = None

    def exactly(self) -> AuditReport:
        """A channel is its own law: nothing is sampled."""
        return self._report(self._channels())

    def run(self, factory: Factory | None) -> AuditReport:
        """Strategy by strategy, until one finds something."""
        pairs = self._rehearsed()
        if not pairs:
            return self._report(None)
        found = None if self._several else self._replays(pairs, factory)
        if found is None and factory is None:
            found = self._channels()
        if found is None and not self._several:
            found = self._forks(pairs[0])
        return self._report(found if found is not None else self._sampled(pairs))

    def _rehearsed(self) -> list[Pair]:
        """The pairs on which calls end; a few calls on each, which are thrown away, tell."""
        ready = []
        for pair in self._plan.pairs:
            sides = [
                self._sample(given, _REHEARSALS, watch=True)
                for given in (pair.data, pair.neighbour)
            ]
            if any(side.hung for side in sides):
                self._hung(pair, sides)
                continue
            self._several |= self._fast is self._single and any(side.several for side in sides)
            self._noted(pair, sides)
            ready.append(pair)
        return ready

    def _noted(self, pair: Pair, sides: list[Sampled]) -> None:
        if any(side.starts for side in sides):
            self._find("calls start threads or processes; what those release is not seen")
        forms = [form for side in sides for form in side.outcomes.forms.tolist()]
        if any(form.startswith(GONE) for form in forms):
            self._lossy.add(pair.name)
            self._find(
                f"{pair.name}: calls end their process; so {_LOSSY} of them are made at most"
            )
        if all(form.startswith(RAISES) for form in forms):
            self._find(f"{pair.name}: every call {forms[0]}; is this what the mechanism takes?")

    def _find(self, text: str) -> None:
        if text not in self._findings:
            self._findings.append(text)

    def _hung(self, pair: Pair, sides: list[Sampled]) -> None:
        names = [n for n, s in zip(("data", "neighbour"), sides, strict=True) if s.hung]
        self._find(
            f"{pair.name}: a call on the {' and the '.join(names)} did not end in "
            f"{self._plan.time_limit:g} s; this pair was not judged"
        )

    def _sample(
        self,
        given: object,
        count: int,
        *,
        stage: str | None = None,
        watch: bool = False,
        skip: int = 0,
    ) -> Sampled:
        assert self._fast is not None
        done = 0

        def tick(more: int) -> None:
            nonlocal done
            if stage is not None and (done + more) * 50 // count > done * 50 // count:
                self._plan.progress(stage, min(1.0, (done + more) / count))
            done += more

        return sample(
            self._fast,
            given,
            count,
            time_limit=self._plan.time_limit,
            tick=tick,
            watch=watch,
            skip=skip,
        )

    def _replays(self, pairs: list[Pair], factory: Factory | None) -> Tested | None:
        replayed = self._mechanism if factory is not None else self._single
        assert replayed is not None
        for pair in pairs[:_REPLAYED]:
            self._plan.progress("replay", 0.0)

            def again(pair: Pair = pair) -> Replay:
                return replay(
                    replayed,
                    pair.data,
                    pair.neighbour,
                    factory=factory,
                    time_limit=min(3 * self._plan.time_limit, 10**6),
                )

            seen = again()
            breach = decisive(seen, self._plan.claim)
            if breach is not None and not all(
                decisive(again(), self._plan.claim) for _ in range(_REPEATED)
            ):
                breach = None  # noise made by hand may look alike in two runs, not in so many
            for each in seen.findings if seen.releases else ():
                self._find(f"replay, {pair.name}: {each.kind}: {each.where}: {each.message}")
            if breach is not None:
                witness = AuditWitness(
                    "replay", f"{breach.kind}: {breach.message}", pair.name, "either side"
                )
                return Tested(witness, 0.0, 0.0, 0.0, violated=True)
        return None

    def _channels(self) -> Tested | None:
        found = None
        for pair in self._plan.pairs[:_REPLAYED]:
            exact = exact_channel(self._mechanism, pair, self._plan.claim)
            if exact is None:
                continue
            witness = AuditWitness(
                "exact channel",
                exact.event,
                pair.name,
                "the data" if exact.forward else "the neighbour",
                probabilities=(exact.more, exact.less),
            )
            allowed = self._allowed(exact.less)
            tested = Tested(witness, exact.lower, allowed, 0.0, exact.refuted)
            if exact.refuted:
                return self._keep(tested)
            found = tested if found is None or tested.lower > found.lower else found
        return None if found is None else self._keep(found)

    def _forks(self, pair: Pair) -> Tested | None:
        assert self._single is not None
        self._plan.progress("forked children", 0.0)
        level = self._plan.alpha * _FORKED
        limit = self._plan.time_limit
        counted = repeated_noise(self._single, pair, self._plan.claim, level, limit)
        if counted is None:
            return None
        self._forked = level
        return self._judged("forked children", EVENT, pair, True, counted)

    def _sampled(self, pairs: list[Pair]) -> Tested | None:
        chosen = self._chosen(pairs)
        levels = self._levels(chosen)
        tests: dict[str, Sides] = {}
        for each in sorted(chosen, key=lambda each: -each.candidate.margin):
            if each.pair.name not in tests:
                done = 2 * len(each.first)
                fresh = self._part(each.pair, self._plan.tests, "testing", skip=done)
                if fresh is None:
                    continue
                tests[each.pair.name] = fresh
            fresh = tests[each.pair.name]
            candidate, level = each.candidate, levels[each.strategy]
            self._curves = curves(candidate, fresh)
            counted = candidate.count(fresh, level)
            event = str(candidate.event)
            found = self._judged(each.strategy, event, each.pair, candidate.forward, counted)
            if found is not None:
                return found
            if each.strategy == _LEARNED and isinstance(self._plan.claim, ConcentratedClaim):
                found = self._divergence(self._plan.claim.rho, each, fresh, levels[_DIVERGENCE])
                if found is not None:
                    return found
        return None

    def _chosen(self, pairs: list[Pair]) -> list[_Chosen]:
        """For each strategy the clearest event of all pairs."""
        plan = self._plan
        coming = Coming(plan.claim, plan.favoured, plan.tests)
        found: dict[str, _Chosen] = {}
        for pair in pairs:
            both = self._part(pair, 2 * self._share(_PART, pairs), f"choosing on {pair.name}")
            if both is None:
                continue
            self._time(both)
            first, second = both.halves()
            for strategy, candidate in (
                (_BATTERY, best_again(battery(first), first, second, coming)),
                (_HALF_LINE, best(half_lines(both), both, coming)),
                (_LEARNED, best(learned(first), second, coming)),
            ):
                known = found.get(strategy)
                if candidate and (not known or candidate.margin > known.candidate.margin):
                    found[strategy] = _Chosen(strategy, candidate, pair, first)
        return list(found.values())

    def _levels(self, chosen: list[_Chosen]) -> dict[str, float]:
        """What is left of α, most of it for what looks best before the tests."""
        weights = {each.strategy: 1 for each in chosen}
        if _LEARNED in weights and isinstance(self._plan.claim, ConcentratedClaim):
            weights[_DIVERGENCE] = 1
        if chosen:
            clearest = max(chosen, key=lambda each: each.candidate.margin)
            weights[clearest.strategy] = _FAVOURED
        left, total = self._plan.alpha - self._forked, sum(weights.values())
        return {strategy: left * weight / total for strategy, weight in weights.items()}

    def _divergence(self, rho: float, chosen: _Chosen, fresh: Sides, level: float) -> Tested | None:
        """For zCDP: all outputs at once, by a log ratio that the first part teaches."""
        ratio = LearnedRatio(learned_score(chosen.first, telling(chosen.first)))
        lower, forward = ratio.divergence_at_least(fresh.data, fresh.neighbour, level)
        side = "the data" if forward else "the neighbour"
        event = f"the mean of a learned log ratio over {len(fresh):,} calls on each side"
        witness = AuditWitness(_DIVERGENCE, event, chosen.pair.name, side)
        return self._keep(Tested(witness, lower, rho, level, lower > rho))

    def _time(self, seen: Sides) -> None:
        if self._seconds is None:
            self._seconds = (
                float(np.median(seen.data.seconds)),
                float(np.median(seen.neighbour.seconds)),
            )

    def _share(self, of_calls: float, pairs: list[Pair]) -> int:
        return max(_LEAST_PART, int(self._plan.n * of_calls) // len(pairs))

    def _part(self, pair: Pair, count: int, stage: str, *, skip: int = 0) -> Sides | None:
        if pair.name in self._lossy:
            count = min(count, _LOSSY)
        sides = []
        for given, side in ((pair.data, "data"), (pair.neighbour, "neighbour")):
            sides.append(self._sample(given, count, stage=f"{stage}, {side}", skip=skip))
            if sides[-1].hung:
                self._hung(pair, [*sides, *[Sampled(Outcomes(()))] * (2 - len(sides))])
                return None
        return Sides(sides[0].outcomes, sides[1].outcomes)

    def _judged(
        self, strategy: str, event: str, pair: Pair, forward: bool, counted: EventCounts
    ) -> Tested | None:
        more, less = counted.sure_more, counted.at_most_less
        witness = AuditWitness(
            strategy,
            event,
            pair.name,
            "the data" if forward else "the neighbour",
            ((counted.more, counted.trials), (counted.less, counted.trials)),
        )
        claim = self._plan.claim
        tested = Tested(
            witness,
            lower_bound(claim, more, less),
            self._allowed(less),
            counted.level,
            refuted(claim, more, less),
            power(claim, *counted.shares, counted.trials, counted.level),
        )
        return self._keep(tested)

    def _keep(self, tested: Tested) -> Tested | None:
        self._tests.append(tested)
        return tested if tested.violated else None

    def _allowed(self, less: float) -> float:
        """What the claim allows, in its own parameter, at this probability."""
        claim = self._plan.claim
        most = float(claim.allowed(np.array([less]))[0])
        return lower_bound(claim, most, less)

    def _report(self, found: Tested | None) -> AuditReport:
        plan = self._plan
        ceiling = lower_bound(plan.claim, *perfect(plan.tests, plan.favoured))
        exact = any(each.level == 0.0 and math.isinf(each.lower) for each in self._tests)
        return AuditReport(
            verdict=NOTHING if found is None else VIOLATED,
            claim=plan.claim,
            lower=max((each.lower for each in self._tests), default=0.0),
            ceiling=math.inf if exact else ceiling,
            witness=None if found is None else found.witness,
            tests=tuple(self._tests),
            findings=tuple(self._findings),
            n=plan.n,
            pairs=len(plan.pairs),
            confidence=plan.confidence,
            alpha=plan.alpha,
            alpha_spent=sum(each.level for each in self._tests),
            seconds=self._seconds,
            curves=self._curves,
        )
