"""The guarantee of a budget, from the numbers that name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deniable.errors import ParameterError
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, Guarantee, PureDP

AMOUNTS = ("epsilon", "delta", "rho", "mu")


def read_guarantee(values: Mapping[str, Any], argument: str = "epsilon") -> Guarantee:
    """The guarantee that these numbers name; others beside them are not looked at."""
    given = {name: values[name] for name in AMOUNTS if values.get(name) is not None}
    match list(given):
        case ["epsilon"]:
            return PureDP(given["epsilon"])
        case ["epsilon", "delta"]:
            return ApproxDP(given["epsilon"], given["delta"])
        case ["rho"]:
            return ZCDP(given["rho"])
        case ["mu"]:
            return GDP(given["mu"])
    wanted = "give epsilon, epsilon with delta, rho alone, or mu alone"
    raise ParameterError(argument, values.get("epsilon"), wanted)
