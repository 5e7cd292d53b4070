"""Laplace noise: `Geometric` on the integers, `Laplace` on the lattice of real numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from deniable.errors import ParameterError
from deniable.mechanisms.additive import Additive, IntegerNoise, RealNoise, scale_of
from deniable.mechanisms.laws import Norm
from deniable.privacy.exact import Number, positive
from deniable.privacy.parameters import Parameter, keep, parameter, parameters
from deniable.privacy.units import Relation


@parameters
class ByScale(Additive):
    """Laplace noise, given by its scale or by the ε that it keeps."""

    norm: ClassVar[Norm] = Norm.L1
    scale: Parameter[Number, Fraction] = parameter(positive)

    def __init__(
        self,
        *,
        epsilon: Number | None = None,
        scale: Number | None = None,
        sensitivity: Number,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        spread = scale_of(epsilon, scale, sensitivity)
        keep(self, scale=spread, sensitivity=sensitivity, relation=relation)

    @property
    def spread(self) -> Fraction:
        return self.scale


class Geometric(ByScale, IntegerNoise):
    """Two-sided geometric noise on integers: P(z) proportional to exp(-|z|/scale).

    Formal guarantee. For integer values, or integer vectors, that move by at most `sensitivity` in
    L1 between neighbours under `relation`:

    * one release is ε-DP with ε = sensitivity/scale (Ghosh, Roughgarden & Sundararajan 2009);
    * no smaller ε holds;
    * the noise has exactly this law, is symmetric, and is independent of everything else;
    * 64-bit arrays saturate instead of wrapping, which is post-processing.

    A bare release is unledgered: the caller keeps the budget.
    """

    def __post_init__(self) -> None:
        super().__post_init__()  # which reads the parameters
        if self.sensitivity.denominator != 1:
            raise ParameterError(
                "sensitivity", self.sensitivity, "integers move by whole numbers; round it up"
            )


class Laplace(ByScale, RealNoise):
    """Laplace noise on real numbers: density proportional to exp(-|z|/scale).

    Formal guarantee. For real values, or vectors, that move by at most `sensitivity` in L1 between
    neighbours under `relation`:

    * one release is ε-DP with ε = sensitivity/scale (Dwork, McSherry, Nissim & Smith 2006,
      Prop. 1), exactly, in machine arithmetic;
    * what is drawn is discrete Laplace noise on a lattice of 2^k, 2^30 steps to the scale or more;
      rounding to it is charged: for ε of 1e-4 or more the scale grows by a share of at most 2^-39
      for a number and d/2^39 for a vector of d coordinates, and by more for smaller ε, where the
      lattice is coarser; ε never grows;
    * every output is a multiple of the lattice's step, so its low-order bits tell nothing;
    * `loss` is the lattice law's own. For vectors the law is finer: its ε is the same, its ρ no
      larger, its δ(ε) at most 2^-50 larger for ε up to 10.

    A bare release is unledgered: the caller keeps the budget. NaN and infinities are errors;
    results beyond the largest double saturate.
    """
