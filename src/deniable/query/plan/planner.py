"""From a question to its price: whatever is wrong with it is found before anything is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from deniable.engines.base import Engine
from deniable.errors import ParameterError, QueryError
from deniable.ledger.amounts import read_amount
from deniable.ledger.filters import Budget
from deniable.privacy.amount import Amount, Kind
from deniable.privacy.guarantees import PureDP
from deniable.query.plan.asked import Asked
from deniable.query.plan.moments import Centres
from deniable.query.plan.plan import Plan
from deniable.query.price.needed import chain
from deniable.query.price.price import amount_for_error, price
from deniable.query.price.profile import Recentre
from deniable.query.price.ranges import Offered, planned, price_of_end
from deniable.query.price.room import check_room
from deniable.query.read.build import Spend
from deniable.query.read.catalogue import Catalogue, Options
from deniable.query.read.compile import compile_tree
from deniable.query.show.shape import check_shape

_MOST_CELLS = 1_000_000


@dataclass(frozen=True)
class Planner:
    """Plans questions about the tables of a session. Reads nothing private, and spends nothing."""

    catalogue: Catalogue
    engine: Engine
    budget: Budget

    def asked(self, tree: exp.Expr, options: Options, spend: Spend | Amount) -> Asked | Offered:
        """A question with its price; where columns lack bounds, with what would find those."""
        plan, ranges = planned(tree, self.catalogue, options)
        if not ranges:
            return self._priced(plan, self._amount(plan, spend), self._recentre(tree, options))
        if isinstance(spend, Spend) and spend.error is not None:
            listed = ", ".join(each.column for each in ranges)
            raise ParameterError("error", "given", f"needs the bounds of {listed}")
        amount = self._amount(plan, spend)
        each = price_of_end(ranges, amount)
        ends = {one: [self._end(*asked, each) for asked in one.questions()] for one in ranges}
        rest = amount.less(each.value * sum(map(len, ends.values())))
        return Offered(ends, rest, self._priced(plan, rest, lambda _: plan))

    def _end(self, tree: exp.Expr, options: Options, amount: Amount) -> Asked:
        plan = compile_tree(tree, self.catalogue, options)
        return self._priced(plan, amount, self._recentre(tree, options))

    def _recentre(self, tree: exp.Expr, options: Options) -> Recentre:
        return partial(_centred, tree, self.catalogue, options)

    def _priced(self, plan: Plan, amount: Amount, centred: Recentre) -> Asked:
        """A plan with its price, tried on public rows."""
        self._check(plan)
        estimates = tuple(chain(plan, amount, self.budget, centred))
        asked = Asked(plan, amount, centred, estimates, ())
        steps = tuple(price(asked.assumed, asked.left).steps("").values())
        self.engine.check([*steps, *(step for each in estimates for step in each.steps())])
        return replace(asked, steps=steps)

    def _check(self, plan: Plan) -> None:
        cells = math.prod(len(group.keys or (None,)) for group in plan.groups)
        if cells > _MOST_CELLS:
            raise QueryError(f"{cells:,} groups are too many; declare fewer keys")
        self.catalogue.neighbours(plan.tables)
        check_shape(plan)
        if all(self.catalogue.private[name].most_rows is not None for name in plan.tables):
            check_room(plan, self.catalogue.private, self.engine.room())

    def _amount(self, plan: Plan, spend: Spend | Amount) -> Amount:
        if isinstance(spend, Amount):
            return spend
        error = spend.error
        if error is None:
            return read_amount(
                self.budget, epsilon=spend.epsilon, rho=spend.rho, guarantee=spend.guarantee
            )
        if not (spend.epsilon is None and spend.rho is None and spend.guarantee is None):
            raise ParameterError("error", dict(error), "goes without epsilon=, rho=, guarantee=")
        if plan.buys_rows or plan.buys_groups:
            raise ParameterError(
                "error", dict(error), "needs max_rows=, and max_groups= where groups are selected"
            )
        pure = isinstance(self.budget.guarantee, PureDP)
        kind = Kind.EPSILON if pure else Kind.RHO
        return amount_for_error(plan, self.budget, kind, error)


def _centred(tree: exp.Expr, catalogue: Catalogue, options: Options, centres: Centres) -> Plan:
    """The plan with columns centred elsewhere; as it was where that is too wide."""
    try:
        return compile_tree(tree, catalogue, replace(options, centres=centres))
    except QueryError:
        return compile_tree(tree, catalogue, options)
