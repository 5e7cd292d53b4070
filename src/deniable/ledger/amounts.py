"""What a person may say that something costs, as an amount of a budget; and back in their words."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from deniable.errors import ParameterError
from deniable.ledger.filters import Budget, rho_at
from deniable.privacy.amount import Amount, Kind
from deniable.privacy.exact import Number, positive
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP, read_guarantee


def read_amount(
    budget: Budget,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    guarantee: Guarantee | None = None,
) -> Amount:
    """What is spent, said in one of three ways.

    `epsilon=` is an ε under a PureDP budget, and under an ApproxDP budget the ρ that converts to
    (ε, δ_c); `rho=` is that ρ; with a guarantee, the release alone has it.
    """
    _check_one(epsilon, rho, guarantee)
    if guarantee is not None:
        return replace(_of_guarantee(budget, guarantee), is_stated=True)
    if rho is not None:
        return _rho(budget, positive(rho, "rho"))
    assert epsilon is not None
    asked = positive(epsilon, "epsilon")
    if isinstance(budget.guarantee, PureDP):
        return Amount(Kind.EPSILON, asked, budget.relation, asked)
    if not isinstance(budget.guarantee, ApproxDP):
        raise ParameterError("epsilon", epsilon, "a budget without δ is spent in rho=")
    return Amount(Kind.RHO, budget.rho_for(asked), budget.relation, asked)


def read_alone(
    *, epsilon: Number | None = None, rho: Number | None = None, guarantee: Guarantee | None = None
) -> Guarantee:
    """What a release keeps by itself, said in the same ways, where no budget gives ε a meaning.

    `epsilon=` is pure, `rho=` is concentrated, a guarantee is itself.
    """
    _check_one(epsilon, rho, guarantee)
    if epsilon is not None:
        return PureDP(epsilon)
    return ZCDP(rho) if rho is not None else _read(guarantee)


def _check_one(*ways: object) -> None:
    given = [each for each in ways if each is not None]
    if len(given) != 1:
        raise ParameterError(
            "epsilon",
            None if not given else "several",
            "say what it may cost, in one way: epsilon=, rho= or guarantee=",
        )


def _read(guarantee: object) -> Guarantee:
    return read_guarantee(guarantee, "guarantee", "must be one, as dp.ZCDP(0.1)")


def _of_guarantee(budget: Budget, guarantee: Guarantee) -> Amount:
    match wanted := _read(guarantee):
        case PureDP():
            return Amount(Kind.EPSILON, wanted.epsilon, budget.relation, wanted.epsilon)
        case ApproxDP():
            return _rho(budget, rho_at(wanted.epsilon, wanted.delta), wanted.epsilon)
        case ZCDP():
            return _rho(budget, wanted.rho)
        case GDP():
            raise ParameterError(
                "guarantee", str(wanted), "a question is priced in PureDP, ApproxDP or ZCDP"
            )


def _rho(budget: Budget, rho: Fraction, asked: Fraction | None = None) -> Amount:
    if isinstance(budget.guarantee, PureDP):
        raise ParameterError("rho", float(rho), "a PureDP budget is spent in epsilon=")
    return Amount(Kind.RHO, rho, budget.relation, asked)
