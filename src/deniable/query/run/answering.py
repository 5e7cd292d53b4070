"""Questions answered through the gate: what is recorded, and what is drawn."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from deniable.answer import Answer
from deniable.engines.base import LazySnapshot
from deniable.errors import BudgetError, NotAnsweredError
from deniable.ledger.ledger import Ledger
from deniable.ledger.reservation import Second
from deniable.privacy.amount import Amount
from deniable.privacy.composition import compose
from deniable.privacy.losses.base import Loss
from deniable.privacy.price import Price
from deniable.query.plan.digest import digest_of, digest_of_estimate, wider
from deniable.query.plan.plan import Plan
from deniable.query.plan.planner import Asked, Planner
from deniable.query.price.estimate import Keys, PrivateEstimate, in_words, to_hold
from deniable.query.price.needed import needed, unseen
from deniable.query.price.price import price
from deniable.query.price.rows import RowsAbove
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Options
from deniable.query.read.fan import Counts
from deniable.query.run.changes import Changes
from deniable.query.run.drawing import draw
from deniable.query.show.explain import Explanation, Unknown, explain
from deniable.query.show.shown import nothing, shown
from deniable.release import Door, Gate, Release

EARLIER = 'keys from an earlier question about more rows; keys="new" selects again'


@dataclass(frozen=True)
class Ready:
    """How far a question is: its plan with what is estimated so far, and what is left for it."""

    plan: Plan
    left: Amount
    done: int = 0
    """How many estimates there are."""
    paid: Price | None = None
    """What was spent on them now."""
    last: Release | None = None
    missing: PrivateEstimate | None = None
    """What the ledger does not know."""

    @property
    def ended(self) -> bool:
        """Whether nothing comes after: nobody is seen, or no group is shown."""
        return unseen(self.plan) or self.plan.counted.selected == ()

    def after(
        self, estimate: PrivateEstimate, value: object, last: Release | None = None, told: str = ""
    ) -> Ready:
        """The same, with one more."""
        plan = estimate.applied(value)
        if told:
            plan = replace(plan, shown=replace(plan.shown, notes=(*plan.shown.notes, told)))
        return Ready(plan, estimate.left, self.done + 1, self.paid, last)


@dataclass(frozen=True)
class Answering:
    """Answers questions for one analyst. Every number passes the gate."""

    planner: Planner
    ledger: Ledger
    who: str
    counts: Counts
    changes: Changes

    def answer(self, tree: exp.Expr, options: Options, spend: Spend) -> Answer:
        """The answer: recorded, or drawn now."""
        asked = self.planner.asked(tree, options, spend)
        ready = self._known_so_far(asked)
        estimates = [step for each in asked.estimates[ready.done :] for step in each.steps()]
        counts = self.counts.about(asked.steps)
        reads = [*counts, *estimates, *asked.steps]
        tables = [*asked.plan.tables, *self.planner.catalogue.public]
        with LazySnapshot(self.planner.engine, reads, set(tables)) as snapshot:
            found: Door | Release | None = None
            while ready.missing is not None:
                if isinstance(found, Release):  # somebody else asked meanwhile
                    ready, found = self._known_so_far(asked, ready), None
                else:
                    ready, found = self._estimated(asked, ready, snapshot, found)
            plan = ready.plan
            if unseen(plan):
                raise self._not_answered(ready)
            if plan.counted.selected == ():
                assert ready.last is not None
                answer = nothing(plan, ready.last, ready.paid)
            else:
                priced, digest = price(plan, ready.left), self._digest(plan)
                if found is None:
                    gate, purpose = self._gate(plan), _purpose(plan)
                    found = gate.open(priced.loss, purpose=purpose, question=digest)
                if isinstance(found, Door):
                    with found:
                        self.counts.confirm(counts, snapshot)
                        found = found.close(draw(priced, snapshot, found, self._secret(digest)))
                self.changes.note(found, tables)
                answer = shown(priced, found, ready.paid)
        return replace(answer, cost=self.planner.budget.named(answer.cost))

    def explain(self, tree: exp.Expr, options: Options, spend: Spend) -> Explanation:
        """What it would cost and how wrong it would be."""
        return self._explanation(self.planner.asked(tree, options, spend))

    def unpaid(self, tree: exp.Expr, options: Options, spend: Spend) -> tuple[Loss, ...]:
        """What a question would be charged; nothing where it was answered before."""
        asked = self.planner.asked(tree, options, spend)
        known = self._known_so_far(asked)
        if known.ended or (known.missing is None and self._recorded(known) is not None):
            return ()
        return self._losses(asked, known)

    def _losses(self, asked: Asked, known: Ready) -> tuple[Loss, ...]:
        """What is still to be paid."""
        estimates = asked.estimates[known.done :]
        if not estimates:
            return (price(asked.assumed, asked.left).loss,)
        return (*(each.loss for each in estimates), _held(estimates[-1]))

    def _gate(self, plan: Plan) -> Gate:
        return Gate(self.ledger, plan.population, self.who)

    def _digest(self, plan: Plan) -> dict[str, object]:
        return digest_of(plan, self.planner.catalogue)

    def _digest_of(self, estimate: PrivateEstimate) -> dict[str, object]:
        return digest_of_estimate(estimate, self.planner.catalogue)

    def _known_so_far(self, asked: Asked, ready: Ready | None = None) -> Ready:
        """What the ledger knows of what is estimated first, up to what it does not know."""
        ready = Ready(asked.plan, asked.amount) if ready is None else ready
        while (estimate := needed(ready.plan, ready.left, self.planner.budget)) is not None:
            found = self._kept(asked, estimate)
            if found is None:
                return replace(ready, missing=estimate)
            recorded, told = found
            ready = ready.after(estimate, recorded.value, recorded, told)
        return replace(ready, missing=None)

    def _kept(self, asked: Asked, estimate: PrivateEstimate) -> tuple[Release, str] | None:
        """What the ledger knows of one estimate, and what is to be said of it.

        Of selections, the first that cost as much, so that a repeated question finds its own. One
        of more rows will do, where this question has a further WHERE: what was released is public.
        """
        gate, digest = self._gate(estimate.plan), self._digest_of(estimate)
        if not isinstance(estimate, Keys):
            known = gate.known(estimate.loss, digest)
            return None if known is None else (known, "")
        if asked.new_keys:
            return None
        found = [(each, "") for each in gate.selected(digest)]
        for question in wider(digest):
            found += [(each, EARLIER) for each in gate.selected(question)]
        enough = [each for each in found if each[0].cost.rho >= estimate.loss.price.rho]
        return min(enough, key=lambda each: each[0].number, default=None)

    def _recorded(self, ready: Ready) -> Release | None:
        loss = price(ready.plan, ready.left).loss
        return self._gate(ready.plan).known(loss, self._digest(ready.plan))

    def _explanation(self, asked: Asked) -> Explanation:
        ready = self._known_so_far(asked)
        if unseen(ready.plan):
            raise self._not_answered(ready)
        unknown, missing = list[Unknown](), ready.missing
        plan, left = (asked.assumed, asked.left) if ready.ended else (ready.plan, ready.left)
        if missing is not None:
            unknown = [
                Unknown(each.parts, self._whole(each), not isinstance(each, RowsAbove))
                for each in asked.estimates[ready.done :]
            ]
            plan, left = asked.assumed, asked.left
        size = self.planner.catalogue.private[plan.tables[0]].size
        told = explain(
            price(plan, left),
            self.planner.budget,
            self.planner.engine.write,
            size=size,
            unknown=unknown,
            keys=None
            if not isinstance(missing, Keys)
            else missing.at(self._whole(missing).price.delta),
        )
        if missing is None and not ready.ended and self._recorded(ready) is not None:
            return replace(told, free=True)
        losses, population = self._losses(asked, ready), plan.population
        try:
            self.ledger.afford(population, losses, who=self.who)
        except BudgetError:
            return replace(told, covered=False, more=0)
        more = self.ledger.balance(population).more(compose(*losses).price)
        return replace(told, covered=True, more=more)

    def _whole(self, estimate: PrivateEstimate) -> Loss:
        """What an estimate would cost now: of a selection, its turn of δ included."""
        if not isinstance(estimate, Keys):
            return estimate.loss
        return self.ledger.selection(estimate.plan.population, estimate.loss, who=self.who)

    def _not_answered(self, ready: Ready) -> NotAnsweredError:
        """Nobody stands out of the noise; said by released numbers alone."""
        spent = "nothing now" if ready.paid is None else str(ready.paid)
        reaches = ready.plan.contribution.reaches.values()
        for reach in reaches:
            if not reach.seen:
                return NotAnsweredError(
                    f"not answered: how far the values of {reach.name} reach cannot be told at "
                    f"this price: it takes about {reach.needed:,.0f} people whose values differ. "
                    f"Charged: {spent}. Declare bounds={{'{reach.name}': (low, high)}} (then "
                    "nothing is estimated of it), or ask with a larger epsilon"
                )
        profile = ready.plan.contribution.profile or ready.plan.contribution.by_rows
        assert profile is not None
        least, most = 4 * profile.deviation, 4 * profile.deviation * (len(profile.bins) + 1) ** 0.5
        free = dict.fromkeys(each.name for each in reaches if each.usual is not None)
        declare = " and ".join(
            [*(f"bounds={{'{name}': (low, high)}}" for name in free), "max_rows="]
        )
        return NotAnsweredError(
            f"not answered: at this price fewer than about {least:,.0f} people (up to {most:,.0f}, "
            f"if they differ much) cannot be told from none. Charged: {spent}. Declare {declare} "
            "(then no bound is estimated), or ask with a larger epsilon"
        )

    def _estimated(
        self, asked: Asked, ready: Ready, snapshot: LazySnapshot, door: Door | None
    ) -> tuple[Ready, Door | Release | None]:
        """The same with what is missing: recorded, or drawn now; and the door of what follows.

        The first that is drawn holds the price of all the rest, and every released value decides
        what becomes of that: whoever could not pay all of it pays nothing.
        """
        estimate = ready.missing
        assert estimate is not None
        gate, digest, reached = self._gate(estimate.plan), self._digest_of(estimate), list[Ready]()

        def make(door: Door) -> object:
            return estimate.draw(door, snapshot, self._secret(digest))

        def then(value: object) -> Second | None:
            reached.append(self._known_so_far(asked, ready.after(estimate, value)))
            return self._next(reached[-1])

        if door is None:
            first = self._part(estimate)
            assert first.hold is not None
            selects = isinstance(estimate, Keys)
            recorded, found = gate.answer_in_two(
                first.loss, first.hold, digest, make, then, purpose=first.purpose, selects=selects
            )
        else:
            assert not isinstance(estimate, Keys)  # these come first, and take their turn of δ
            recorded, found = gate.go_on(door, make, then)
        after = reached[-1]
        paid = ready.paid
        if not recorded.repeated:
            paid = recorded.cost if paid is None else paid + recorded.cost
        return replace(after, paid=paid, last=after.last or recorded), found

    def _next(self, ready: Ready) -> Second | None:
        """What is drawn next: another estimate, or the answer, unless there is none."""
        if ready.missing is not None:
            return self._part(ready.missing)
        if ready.ended:
            return None
        loss = price(ready.plan, ready.left).loss
        return Second(loss, self._digest(ready.plan), _purpose(ready.plan))

    def _part(self, estimate: PrivateEstimate) -> Second:
        """An estimate as a part of a question, with what is held for those after it."""
        rest = _held(estimate)
        purpose = f"sql: estimates {in_words(estimate.parts)}"
        return Second(estimate.loss, self._digest_of(estimate), purpose, rest)

    def _secret(self, digest: Mapping[str, object]) -> str:
        """The key of the hash by which groups of heavy units are kept: secret, and lasting."""
        return hmac.new(self.ledger.key, repr(digest).encode(), hashlib.sha256).hexdigest()[:32]


def _held(estimate: PrivateEstimate) -> Loss:
    """What is held for all that comes after an estimate.

    Where bounds are declared it is known to the last digit, its μ included: whoever lies beyond
    them widens intervals, and changes no noise.
    """
    if isinstance(estimate, RowsAbove):
        return price(estimate.assumed(), estimate.left).loss
    return to_hold(estimate.left)


def _purpose(plan: Plan) -> str:
    listed = ", ".join(output.name for output in plan.shown.outputs)
    plain = unicodedata.normalize("NFC", listed)
    return ("sql: " + "".join(char for char in plain if char.isprintable())[:140]).strip()
