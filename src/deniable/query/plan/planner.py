"""From a question to its price: whatever is wrong with it is found before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from deniable.engines.base import Engine, Step
from deniable.errors import ParameterError, QueryError
from deniable.ledger.amounts import read_amount
from deniable.ledger.filters import Budget
from deniable.privacy.amount import Amount, Kind
from deniable.privacy.guarantees import PureDP
from deniable.query.plan.moments import Centres
from deniable.query.plan.plan import Plan
from deniable.query.plan.reach import Reaches
from deniable.query.price.estimate import PrivateEstimate
from deniable.query.price.needed import chain
from deniable.query.price.price import amount_for_error, price
from deniable.query.price.profile import Recompile
from deniable.query.price.room import check_room
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_resolved
from deniable.query.read.resolve import Resolved, resolved
from deniable.query.show.shape import check_shape

_MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class Asked:
    """A question with its price: what is estimated before it, and what is left for it."""

    plan: Plan
    amount: Amount
    """What all of it may cost."""
    compiled: Recompile
    estimates: tuple[PrivateEstimate, ...]
    """What is estimated privately first, one after the other, with made-up results."""
    steps: tuple[Step, ...]
    """The statements of the question itself, with made-up bounds where none are known yet."""
    new_keys: bool = False
    """Whether keys are selected again, whatever is known."""

    @property
    def assumed(self) -> Plan:
        """The plan with made-up results where something is still to be estimated."""
        return self.estimates[-1].assumed() if self.estimates else self.plan

    @property
    def left(self) -> Amount:
        """What is left for the question itself."""
        return self.estimates[-1].left if self.estimates else self.amount


@dataclass(frozen=True)
class Planner:
    """Plans questions about the tables of a session. Reads nothing private, and spends nothing."""

    catalogue: Catalogue
    engine: Engine
    budget: Budget

    def asked(self, tree: exp.Expr, options: Options, spend: Spend) -> Asked:
        """A question with its price, tried on public rows."""
        read = resolved(tree, self.catalogue)
        plan = compile_resolved(read, self.catalogue, options)
        amount = self._amount(plan, spend)
        compiled = partial(_compiled, read, self.catalogue, options)
        self._check(plan)
        estimates = tuple(chain(plan, amount, self.budget, compiled))
        asked = Asked(plan, amount, compiled, estimates, (), new_keys=options.new_keys)
        steps = tuple(price(asked.assumed, asked.left).steps("").values())
        all_steps = [*steps, *(step for each in estimates for step in each.steps())]
        check_room(plan, self.catalogue, self.engine, all_steps)
        self.engine.check(all_steps)
        return replace(asked, steps=steps)

    def _check(self, plan: Plan) -> None:
        cells = math.prod(len(group.keys or (None,)) for group in plan.counted.groups)
        if cells > _MOST_CELLS:
            raise QueryError(f"{cells:,} groups are too many; declare fewer keys")
        self.catalogue.neighbours(plan.tables)
        check_shape(plan)

    def _amount(self, plan: Plan, spend: Spend) -> Amount:
        error = spend.error
        if error is None:
            return read_amount(
                self.budget, epsilon=spend.epsilon, rho=spend.rho, guarantee=spend.guarantee
            )
        if not (spend.epsilon is None and spend.rho is None and spend.guarantee is None):
            raise ParameterError("error", dict(error), "goes without epsilon=, rho=, guarantee=")
        if plan.contribution.unbounded:
            listed = ", ".join(each.name for each in plan.contribution.unbounded)
            raise ParameterError("error", "given", f"needs the bounds of {listed}")
        if plan.buys_rows:
            raise ParameterError("error", dict(error), "needs max_rows=")
        pure = isinstance(self.budget.guarantee, PureDP)
        kind = Kind.EPSILON if pure else Kind.RHO

        def left(amount: Amount) -> tuple[Plan, Amount]:
            first = chain(plan, amount, self.budget, lambda *_: plan)
            return (first[-1].assumed(), first[-1].left) if first else (plan, amount)

        return amount_for_error(plan, self.budget, kind, error, left)


def _compiled(
    read: Resolved, catalogue: Catalogue, options: Options, centres: Centres, reaches: Reaches
) -> Plan:
    """The plan with what was found of columns; centred as it was where that is too wide."""
    known = replace(options, reaches=reaches)
    try:
        return compile_resolved(read, catalogue, replace(known, centres=centres))
    except QueryError:
        return compile_resolved(read, catalogue, known)
