"""From a question to its price: whatever is wrong with it is found before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sqlglot import exp

from deniable.engines.base import Engine, Step
from deniable.errors import ParameterError, QueryError
from deniable.ledger.amounts import read_amount
from deniable.ledger.filters import Budget
from deniable.privacy.amount import Amount, Kind
from deniable.privacy.guarantees import PureDP
from deniable.query.plan.plan import Plan
from deniable.query.price.estimate import PrivateEstimate
from deniable.query.price.needed import chain
from deniable.query.price.price import amount_for_error, price
from deniable.query.price.room import check_room
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_resolved
from deniable.query.read.resolve import resolved
from deniable.query.show.shape import check_shape

_MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class Asked:
    """A question with its price: what is estimated before it, and what is left for it."""

    plan: Plan
    amount: Amount
    """What all of it may cost."""
    estimates: tuple[PrivateEstimate, ...]
    """What is estimated privately first, one after the other, with made-up results."""
    assumed: Plan
    """The plan with made-up results where something is still to be estimated."""
    left: Amount
    """What is left for the question itself."""
    steps: tuple[Step, ...]
    """The statements of the question itself, with made-up bounds where none are known yet."""
    new_keys: bool = False
    """Whether keys are selected again, whatever is known."""


@dataclass(frozen=True)
class Planner:
    """Plans questions about the tables of a session. Reads nothing private, and spends nothing."""

    catalogue: Catalogue
    engine: Engine
    budget: Budget

    def asked(self, tree: exp.Expr, options: Options, spend: Spend) -> Asked:
        """A question with its price, tried on public rows."""
        plan = compile_resolved(resolved(tree, self.catalogue), self.catalogue, options)
        amount = self._amount(plan, spend)
        cells = math.prod(len(group.keys or (None,)) for group in plan.counted.groups)
        if cells > _MOST_CELLS:
            raise QueryError(f"{cells:,} groups are too many; declare fewer keys")
        self.catalogue.neighbours(plan.tables)
        check_shape(plan)
        estimates, assumed, left = chain(plan, amount, self.budget)
        steps = tuple(price(assumed, left).steps("").values())
        all_steps = [*steps, *(step for each in estimates for step in each.steps())]
        check_room(plan, self.catalogue, self.engine, all_steps)
        self.engine.check(all_steps)
        return Asked(plan, amount, estimates, assumed, left, steps, options.new_keys)

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
        return amount_for_error(
            plan, self.budget, kind, error, lambda amount: chain(plan, amount, self.budget)[1:]
        )
