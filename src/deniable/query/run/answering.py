"""Questions answered through the gate: what is recorded, and what is drawn."""

from __future__ import annotations

import hashlib
import hmac
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sqlglot import exp

from deniable.answer import Answer
from deniable.engines.base import LazySnapshot
from deniable.ledger.ledger import Ledger
from deniable.privacy.losses.base import Loss
from deniable.query.plan.asked import Asked, Unknown
from deniable.query.plan.digest import digest_of, digest_of_bounds
from deniable.query.plan.plan import Plan
from deniable.query.plan.planner import Planner
from deniable.query.price.price import Priced, price
from deniable.query.price.profile import Purchase, bounded, buy, placeholder
from deniable.query.price.ranges import Offered, label, seen_cells, with_bounds
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Options
from deniable.query.read.fan import Counts
from deniable.query.run.changes import Changes
from deniable.query.run.drawing import draw
from deniable.query.show.explain import Explanation, explain
from deniable.query.show.shown import shown
from deniable.release import Answer as Recorded
from deniable.release import Door, Gate


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
        unknown = asked.unknown(known, self.planner.budget)
        if unknown is not None:
            self._afford(asked.main, unknown.loss)
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
        unknown = asked.unknown(known, self.planner.budget)
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
        if asked.bought is not None:
            known = self._known_bounds(asked.bought)
            if known is None:
                return asked.bought.loss, self._priced(placeholder(asked.plan), asked).loss
            asked = replace(asked, plan=bounded(asked.bought, known))
        return () if self._known(asked) is not None else (self._priced(asked.plan, asked).loss,)

    def _priced(self, plan: Plan, asked: Asked) -> Priced:
        return price(plan, self.planner.budget, asked.amount)

    def _gate(self, plan: Plan) -> Gate:
        return Gate(self.ledger, plan.population, self.who)

    def _digest(self, plan: Plan) -> dict[str, object]:
        return digest_of(plan, self.planner.catalogue, self.public)

    def _digest_of_bounds(self, bought: Purchase) -> dict[str, object]:
        return digest_of_bounds(bought, self.planner.catalogue, self.public)

    def _known(self, asked: Asked) -> Answer | None:
        """The answer to a question that was asked before, if it was."""
        priced = self._priced(asked.plan, asked)
        found = self._gate(asked.plan).known(priced.loss, self._digest(asked.plan))
        return None if found is None else shown(priced, found)

    def _known_bounds(self, bought: Purchase) -> dict[str, Any] | None:
        found = self._gate(bought.plan).known(bought.loss, self._digest_of_bounds(bought))
        if found is None:
            return None
        assert isinstance(found.value, dict)
        return found.value

    def _explanation(self, asked: Asked, ranges: Unknown | None = None) -> Explanation:
        catalogue, engine = self.planner.catalogue, self.planner.engine
        plan, bought = asked.plan, asked.bought
        unknown = [] if ranges is None else [ranges]
        if bought is not None:
            known = self._known_bounds(bought)
            if known is not None and ranges is None:
                plan = bounded(bought, known)
            else:
                plan = placeholder(plan)
                unknown.append(Unknown(bought.parts, bought.loss))
        size = catalogue.private[plan.tables[0]].size
        priced = self._priced(plan, asked)
        return explain(priced, self.planner.budget, engine.write, size=size, unknown=unknown)

    def _answer(self, asked: Asked) -> Answer:
        bought = asked.bought
        known = None if bought is None else self._known_bounds(bought)
        steps = [] if bought is None or known is not None else bought.steps()
        counts = self.counts.about(asked.steps)
        with LazySnapshot(self.planner.engine, [*counts, *steps, *asked.steps]) as snapshot:
            plan, paid = asked.plan, None
            if bought is not None:
                if known is None:
                    self._afford(asked)
                    stored = self._bounds(bought, snapshot)
                    assert isinstance(stored.value, dict)
                    known, paid = stored.value, None if stored.repeated else bought.loss
                plan = bounded(bought, known)
            priced, digest = self._priced(plan, asked), self._digest(plan)

            def make(door: Door) -> object:
                self.counts.confirm(counts, snapshot)
                return draw(priced, snapshot, door, self._secret(digest))

            gate = self._gate(plan)
            found = gate.answer(priced.loss, digest, make, purpose=_purpose(plan))
            self.changes.note(found, [*plan.tables, *self.public])
            return shown(priced, found, paid)

    def _bounds(self, bought: Purchase, snapshot: LazySnapshot) -> Recorded:
        """What was estimated privately about the contributions of units."""
        return self._gate(bought.plan).answer(
            bought.loss,
            self._digest_of_bounds(bought),
            lambda door: buy(bought, door, snapshot),
            purpose="sql: contribution bounds",
        )

    def _afford(self, asked: Asked, *first: Loss) -> None:
        """Refuse a question whose bounds could be paid, but not the rest."""
        losses = [*first, self._priced(placeholder(asked.plan), asked).loss]
        if asked.bought is not None:
            losses.append(asked.bought.loss)
        self.ledger.afford(asked.plan.population, losses, who=self.who)

    def _secret(self, digest: Mapping[str, object]) -> str:
        """The key of the hash by which groups of heavy units are kept: secret, and lasting."""
        return hmac.new(self.ledger.key, repr(digest).encode(), hashlib.sha256).hexdigest()[:32]


def _purpose(plan: Plan) -> str:
    listed = ", ".join(output.name for output in plan.outputs)
    plain = unicodedata.normalize("NFC", listed)
    return ("sql: " + "".join(char for char in plain if char.isprintable())[:140]).strip()
