"""Questions answered through the gate: what is recorded, and what is drawn."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from deniable.answer import Answer
from deniable.engines.base import LazySnapshot
from deniable.errors import NotAnsweredError
from deniable.ledger.ledger import Ledger
from deniable.ledger.reservation import Second
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.query.plan.asked import Asked, Unknown
from deniable.query.plan.digest import digest_of, digest_of_estimate
from deniable.query.plan.plan import Plan
from deniable.query.plan.planner import Planner
from deniable.query.price.estimate import Estimate, Keys, to_hold
from deniable.query.price.needed import needed, unseen
from deniable.query.price.price import price
from deniable.query.price.ranges import Offered, label, seen_cells, with_bounds
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Options
from deniable.query.read.fan import Counts
from deniable.query.run.changes import Changes
from deniable.query.run.drawing import draw
from deniable.query.show.explain import Explanation, explain
from deniable.query.show.shown import nothing, shown
from deniable.release import Answer as Recorded
from deniable.release import Door, Gate


@dataclass(frozen=True)
class Ready:
    """How far a question is: its plan with what is estimated so far, and what is left for it."""

    plan: Plan
    left: Amount
    done: int = 0
    """How many estimates there are."""
    paid: tuple[Loss, ...] = ()
    """What was spent on them now."""
    last: Recorded | None = None
    missing: Estimate | None = None
    """What the ledger does not know."""

    @property
    def ended(self) -> bool:
        """Whether nothing comes after: nobody is seen, or no group is shown."""
        return unseen(self.plan) or self.plan.selected == ()

    def after(self, estimate: Estimate, found: Recorded) -> Ready:
        """The same, with one more."""
        paid = self.paid if found.repeated else (*self.paid, estimate.loss)
        plan = estimate.applied(found.value)
        return Ready(plan, estimate.left, self.done + 1, paid, found)


@dataclass(frozen=True)
class Answering:
    """Answers questions for one analyst. Every number passes the gate."""

    planner: Planner
    ledger: Ledger
    who: str
    counts: Counts
    public: Mapping[str, object]
    """What public tables are, for the digests of questions."""
    changes: Changes

    def answer(self, tree: exp.Expr, options: Options, spend: Spend) -> Answer:
        """The answer: recorded, or drawn now."""
        answer = self._answered(tree, options, spend)
        return replace(answer, cost=self.planner.budget.named(answer.cost))

    def _answered(self, tree: exp.Expr, options: Options, spend: Spend) -> Answer:
        asked = self.planner.asked(tree, options, spend)
        if isinstance(asked, Asked):
            return self._answer(asked)
        known = {each: [*map(self._known, ends)] for each, ends in asked.ends.items()}
        unknown = asked.unknown(known)
        if unknown is not None:
            self._afford(asked.main, self._known_so_far(asked.main), unknown.loss)
        answers = {each: [self._answer(end) for end in ends] for each, ends in asked.ends.items()}
        ends = [end for each in answers.values() for end in each]
        bounds = {each: each.bounds([*map(seen_cells, found)]) for each, found in answers.items()}
        main = self.planner.asked(tree, with_bounds(options, bounds), asked.rest)
        assert isinstance(main, Asked)  # it lacks nothing any more
        answer = self._answer(main)
        paid = sum((end.cost for end in ends if not end.repeated), answer.cost)
        return replace(
            answer,
            cost=paid,
            repeated=answer.repeated and all(end.repeated for end in ends),
            labels=(label(bounds), *answer.labels),
        )

    def explain(self, tree: exp.Expr, options: Options, spend: Spend) -> Explanation:
        """What it would cost and how wrong it would be."""
        asked = self.planner.asked(tree, options, spend)
        if isinstance(asked, Asked):
            return self._explanation(asked)
        known = {each: [*map(self._known, ends)] for each, ends in asked.ends.items()}
        unknown = asked.unknown(known)
        if unknown is not None:
            return self._explanation(asked.main, unknown)
        bounds = {
            each: each.bounds([seen_cells(end) for end in found if end is not None])
            for each, found in known.items()
        }
        main = self.planner.asked(tree, with_bounds(options, bounds), asked.rest)
        assert isinstance(main, Asked)  # it lacks nothing any more
        return self._explanation(main)

    def unpaid(self, tree: exp.Expr, options: Options, spend: Spend) -> tuple[Loss, ...]:
        """What a question would be charged; nothing where it was answered before."""
        asked = self.planner.asked(tree, options, spend)
        if isinstance(asked, Offered):
            asked = asked.main
        known = self._known_so_far(asked)
        if known.ended or (known.missing is None and self._recorded(known) is not None):
            return ()
        return self._losses(asked, known)

    def _losses(self, asked: Asked, known: Ready) -> tuple[Loss, ...]:
        """What is still to be paid."""
        estimates = asked.estimates[known.done :]
        last = price(asked.assumed, asked.left).loss
        return (
            *(each.loss for each in estimates),
            to_hold(last, asked.left) if estimates else last,
        )

    def _gate(self, plan: Plan) -> Gate:
        return Gate(self.ledger, plan.population, self.who)

    def _digest(self, plan: Plan) -> dict[str, object]:
        return digest_of(plan, self.planner.catalogue, self.public)

    def _digest_of(self, estimate: Estimate) -> dict[str, object]:
        return digest_of_estimate(estimate, self.planner.catalogue, self.public)

    def _needed(self, asked: Asked, ready: Ready) -> Estimate | None:
        return needed(ready.plan, ready.left, self.planner.budget, asked.centred)

    def _known_so_far(self, asked: Asked) -> Ready:
        """What the ledger knows of what is estimated first, up to what it does not know."""
        ready = Ready(asked.plan, asked.amount)
        while (estimate := self._needed(asked, ready)) is not None:
            found = self._gate(ready.plan).known(estimate.loss, self._digest_of(estimate))
            if found is None:
                return replace(ready, missing=estimate)
            ready = ready.after(estimate, found)
        return ready

    def _known(self, asked: Asked) -> Answer | None:
        """The answer to a question that was asked before, if it was."""
        ready = self._known_so_far(asked)
        if ready.missing is not None or ready.ended:
            return None
        found = self._recorded(ready)
        return None if found is None else shown(price(ready.plan, ready.left), found)

    def _recorded(self, ready: Ready) -> Recorded | None:
        loss = price(ready.plan, ready.left).loss
        return self._gate(ready.plan).known(loss, self._digest(ready.plan))

    def _explanation(self, asked: Asked, ranges: Unknown | None = None) -> Explanation:
        ready = self._known_so_far(asked)
        if unseen(ready.plan):
            raise self._not_answered(ready)
        unknown = [] if ranges is None else [ranges]
        plan = asked.assumed if ready.ended else ready.plan
        if ready.missing is not None or ranges is not None:
            unknown += [Unknown(each.parts, each.loss) for each in asked.estimates[ready.done :]]
            plan = asked.assumed
        size = self.planner.catalogue.private[plan.tables[0]].size
        keys = next((each for each in asked.estimates if isinstance(each, Keys)), None)
        return explain(
            price(plan, asked.left),
            self.planner.budget,
            self.planner.engine.write,
            size=size,
            unknown=unknown,
            keys=keys,
        )

    def _answer(self, asked: Asked) -> Answer:
        ready = self._known_so_far(asked)
        estimates = [step for each in asked.estimates[ready.done :] for step in each.steps()]
        counts = self.counts.about(asked.steps)
        with LazySnapshot(self.planner.engine, [*counts, *estimates, *asked.steps]) as snapshot:
            if ready.missing is not None:
                self._afford(asked, ready)
            found: Door | Recorded | None = None
            while (estimate := self._needed(asked, ready)) is not None:
                last = ready.done + 1 == len(asked.estimates)
                recorded, found = self._estimated(estimate, snapshot, asked if last else None)
                ready = ready.after(estimate, recorded)
            plan = ready.plan
            if unseen(plan):
                raise self._not_answered(ready)
            if plan.selected == ():
                assert ready.last is not None
                return nothing(plan, ready.last, ready.paid)
            priced, digest = price(plan, ready.left), self._digest(plan)
            if found is None:
                gate, purpose = self._gate(plan), _purpose(plan)
                found = gate.open(priced.loss, purpose=purpose, question=digest)
            if isinstance(found, Door):
                with found:
                    self.counts.confirm(counts, snapshot)
                    found = found.close(draw(priced, snapshot, found, self._secret(digest)))
            self.changes.note(found, [*plan.tables, *self.public])
            return shown(priced, found, ready.paid)

    def _not_answered(self, ready: Ready) -> NotAnsweredError:
        """Nobody stands out of the noise; said by released numbers alone."""
        profile = ready.plan.profile
        assert profile is not None
        least, most = 4 * profile.deviation, 4 * profile.deviation * (len(profile.bins) + 1) ** 0.5
        spent = "nothing now" if not ready.paid else str(compose(*ready.paid).price)
        return NotAnsweredError(
            f"not answered: at this price fewer than about {least:,.0f} people (up to {most:,.0f}, "
            f"if they differ much) cannot be told from none. Charged: {spent}. Declare max_rows= "
            "(then nothing is estimated), or ask with a larger epsilon"
        )

    def _estimated(
        self, estimate: Estimate, snapshot: LazySnapshot, asked: Asked | None
    ) -> tuple[Recorded, Door | Recorded | None]:
        """What is recorded of it, or drawn now.

        The last one before the answer holds what that costs, and decides what becomes of it.
        """
        digest = self._digest_of(estimate)
        gate, purpose = self._gate(estimate.plan), f"sql: {' and '.join(estimate.parts)} of units"

        def make(door: Door) -> object:
            return estimate.draw(door, snapshot, self._secret(digest))

        if asked is None:
            return gate.answer(estimate.loss, digest, make, purpose=purpose), None
        return gate.answer_in_two(
            estimate.loss,
            to_hold(price(asked.assumed, asked.left).loss, asked.left),
            digest,
            make,
            partial(self._second, estimate),
            purpose=purpose,
        )

    def _second(self, estimate: Estimate, value: object) -> Second | None:
        """What comes after the last estimate: the answer, unless there is none."""
        plan = estimate.applied(value)
        if unseen(plan) or plan.selected == ():
            return None
        loss = price(plan, estimate.left).loss
        return Second(loss, self._digest(plan), _purpose(plan))

    def _afford(self, asked: Asked, ready: Ready, *first: Loss) -> None:
        """Refuse a question whose estimates could be paid, but not the rest."""
        losses = [*first, *self._losses(asked, ready)]
        self.ledger.afford(asked.plan.population, losses, who=self.who)

    def _secret(self, digest: Mapping[str, object]) -> str:
        """The key of the hash by which groups of heavy units are kept: secret, and lasting."""
        return hmac.new(self.ledger.key, repr(digest).encode(), hashlib.sha256).hexdigest()[:32]


def _purpose(plan: Plan) -> str:
    listed = ", ".join(output.name for output in plan.outputs)
    plain = unicodedata.normalize("NFC", listed)
    return ("sql: " + "".join(char for char in plain if char.isprintable())[:140]).strip()
