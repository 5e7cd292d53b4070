"""Subsample and aggregate: any function, run on blocks, its answers combined privately."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import StrEnum
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Plain
from deniable.mechanisms.children import bytes_in_child
from deniable.mechanisms.gaps import Gap, records_apart
from deniable.mechanisms.laplace import Laplace
from deniable.mechanisms.quantile import Quantile
from deniable.privacy.exact import Number, exact, positive, read_bounds, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.parameters import Parameter, Related, one_of, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE
from deniable.trace import traced

_ANSWER = struct.Struct("<d")
_LONGEST = 10**6


class Combination(StrEnum):
    """How the answers of the blocks are combined."""

    MEAN = "mean"
    MEDIAN = "median"


BlockFunction = Callable[[list[Any]], float]


def _read_function(function: BlockFunction, argument: str) -> BlockFunction:
    if not callable(function):
        raise ParameterError(argument, function, "must be callable on a list of records")
    return function


def _read_timeout(timeout: Number, argument: str) -> float:
    if positive(timeout, argument) > _LONGEST:
        raise ParameterError(argument, timeout, f"must be {_LONGEST} seconds or less")
    return float(timeout)


@parameters
class SubsampleAggregate:
    """Split the records at random into blocks, run a function on each, release a mean or median.

    Formal guarantee (Nissim, Raskhodnikova & Smith 2007; Smith 2011). For any function of a block
    whatsoever:

    * one release is ε-DP, however many records there are (of few, blocks are empty): each record
      goes to `reach` blocks, drawn without looking at it, so one record alters at most `reach` of
      the answers, each clamped to the public `bounds`;
    * the mean has Laplace noise for reach·width/blocks; the median is the exponential mechanism
      with `reach` answers exchanged;
    * the function runs in a forked child of its own for each block, silent and for `timeout`
      seconds at most, and whatever it starts ends with it, so that nothing passes from one block to
      another;
    * whatever it does but return a finite number (an exception, an exit, a NaN, text, an overlong
      run) counts as the public `default`, and shows in nothing else but running time;
    * reach > 1 is bootstrapping: overlapping blocks, paid for by their overlap.

    A bare release is unledgered: the caller keeps the budget.
    """

    epsilon: Parameter[Number, Fraction] = parameter(positive)
    blocks: Parameter[int, int] = parameter(whole)
    aggregate: Parameter[Combination | str, Combination] = parameter(one_of(Combination))
    bounds: Parameter[tuple[Number, Number], tuple[Fraction, Fraction]] = parameter(read_bounds)
    default: Parameter[Number, Fraction] = parameter(exact)
    function: Parameter[BlockFunction, BlockFunction] = parameter(_read_function)
    reach: Parameter[int, int] = parameter(whole, default=1)
    timeout: Parameter[Number, float] = parameter(_read_timeout, default=60)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    def __post_init__(self) -> None:
        if not self.bounds[0] <= self.default <= self.bounds[1]:
            raise ParameterError("default", self.default, "must lie within the bounds")
        if self.reach > self.blocks:
            raise ParameterError(
                "reach", self.reach, f"a record cannot reach more than {self.blocks} blocks"
            )
        _ = self._combiner

    @lazy
    def _combiner(self) -> Laplace | Quantile:
        low, high = self.bounds
        if self.aggregate == Combination.MEAN:
            moved = self.reach * (high - low) / self.blocks
            return Laplace(epsilon=self.epsilon, sensitivity=moved, relation=self.relation)
        return Quantile(
            epsilon=self.epsilon,
            share=Fraction(1, 2),
            bounds=self.bounds,
            reach=self.reach,
            relation=Relation.REPLACE,  # answers are exchanged; their number is public
        )

    @lazy
    def loss(self) -> Loss:
        return replace(self._combiner.loss, relation=self.relation)

    @traced
    def release(self, value: Sequence[Any]) -> float:
        """Run the function on blocks of the records and release what they agree on."""
        if type(value) not in (list, tuple, np.ndarray):
            raise PrivateValueError("records are given as a list or an array")
        records = list(value)
        answers = [self._answer(block) for block in self._split(records)]
        if self.aggregate == Combination.MEDIAN:
            assert isinstance(self._combiner, Quantile)
            return self._combiner.release([float(answer) for answer in answers])
        # The mean of exact rationals, so that its sensitivity holds in machine arithmetic.
        mean = sum(answers, Fraction(0)) / self.blocks
        released = self._combiner.release(mean)
        assert isinstance(released, float)
        return released

    def _split(self, records: list[Any]) -> list[list[Any]]:
        """Each record to `reach` different blocks, uniformly, whatever it holds."""
        blocks: list[list[Any]] = [[] for _ in range(self.blocks)]
        # Floyd's way to draw a set: column j is uniform on 0, ..., blocks - reach + j.
        columns = [
            uniform_below(top + 1, len(records), SECURE).tolist()
            for top in range(self.blocks - self.reach, self.blocks)
        ]
        for record, *drawn in zip(records, *columns, strict=True):
            chosen: set[int] = set()
            for top, place in enumerate(drawn, start=self.blocks - self.reach):
                chosen.add(top if place in chosen else place)
            for block in chosen:
                blocks[block].append(record)
        return blocks

    def _answer(self, block: list[Any]) -> Fraction:
        found = run_in_child(self.function, block, self.timeout)
        low, high = self.bounds
        return self.default if found is None else min(max(Fraction(found), low), high)

    def view(self, value: Sequence[Any], plain: Plain) -> list[Any]:
        return [plain(record) for record in value]

    def without_code(self) -> SubsampleAggregate:
        """With a function of Python's own in place of the caller's."""
        return replace(self, function=len)

    def gap(self, x: list[Any], y: list[Any]) -> Gap:
        """How many records are added or removed, or exchanged; the function is public."""
        return records_apart(x, y, self.relation, 1, "records")

    def neighbours(self) -> None:
        """What records are is the caller's to say."""


def run_in_child(function: BlockFunction, block: list[Any], timeout: float) -> float | None:
    """The function's answer as a finite float; None for whatever else it does, or fails to do."""

    def answer() -> bytes:
        found: object = function(block)
        number = isinstance(found, int | float | np.number) and not isinstance(found, bool)
        return _ANSWER.pack(float(found)) if number else b""  # type: ignore[arg-type]

    said = bytes_in_child(answer, _ANSWER.size, timeout)
    if said is None:
        return None
    (found,) = _ANSWER.unpack(said)
    return float(found) if math.isfinite(found) else None
