"""Subsample and aggregate: any function, run on blocks, its answers combined privately."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from deniable.errors import ParameterError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.laplace import Laplace
from deniable.mechanisms.quantile import Quantile
from deniable.privacy.exact import Number, exact, positive, show, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.bernoulli import uniform_below
from deniable.randomness.source import SECURE


class Aggregate(StrEnum):
    """How the answers of the blocks are combined."""

    MEAN = "mean"
    MEDIAN = "median"


@dataclass(frozen=True, init=False, repr=False)
class SubsampleAggregate:
    """Split the records at random into blocks, run a function on each, release a mean or median.

    Formal guarantee (Nissim, Raskhodnikova & Smith 2007; Smith 2011). For any function of a block
    whatsoever:

    * one release is ε-DP: each record goes to `reach` blocks, drawn without looking at it, so one
      record alters at most `reach` of the answers, each clamped to the public `bounds`;
    * the mean has Laplace noise for reach·width/blocks; the median is the exponential mechanism
      with `reach` answers exchanged;
    * an exception, a NaN, a value that is no number and, with `timeout`, an overlong run all count
      as the public `default`: they show in nothing else;
    * reach > 1 is bootstrapping: overlapping blocks, paid for by their overlap.

    Fewer records than blocks are refused, as a NaN is elsewhere. With a timeout the function runs
    in a forked child for each block. A bare release is unledgered:
    the caller keeps the budget.
    """

    epsilon: Fraction
    blocks: int
    aggregate: Aggregate
    bounds: tuple[Fraction, Fraction]
    default: Fraction
    reach: int
    timeout: float | None
    relation: Relation

    def __init__(
        self,
        *,
        epsilon: Number,
        blocks: int,
        aggregate: Aggregate | str,
        bounds: tuple[Number, Number],
        default: Number,
        reach: int = 1,
        timeout: float | None = None,
        relation: Relation | str = Relation.ADD_REMOVE,
    ) -> None:
        low, high = (exact(end, "bounds") for end in bounds)
        if low >= high:
            raise ParameterError("bounds", bounds, "must rise from low to high")
        object.__setattr__(self, "epsilon", positive(epsilon, "epsilon"))
        object.__setattr__(self, "blocks", whole(blocks, "blocks"))
        object.__setattr__(self, "aggregate", _read_aggregate(aggregate))
        object.__setattr__(self, "bounds", (low, high))
        object.__setattr__(self, "default", exact(default, "default"))
        object.__setattr__(self, "reach", whole(reach, "reach"))
        object.__setattr__(
            self, "timeout", None if timeout is None else float(positive(timeout, "timeout"))
        )
        object.__setattr__(self, "relation", read_relation(relation))
        if not low <= self.default <= high:
            raise ParameterError("default", default, "must lie within the bounds")
        if self.reach > self.blocks:
            raise ParameterError("reach", reach, f"a record cannot reach more than {blocks} blocks")
        _ = self._combiner

    def __repr__(self) -> str:
        numbers = f"epsilon={show(self.epsilon)}, blocks={self.blocks}, reach={self.reach}"
        return f"SubsampleAggregate({numbers}, aggregate={str(self.aggregate)!r})"

    @lazy
    def _combiner(self) -> Laplace | Quantile:
        low, high = self.bounds
        if self.aggregate == Aggregate.MEAN:
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
        """What one release costs."""
        return replace(self._combiner.loss, relation=self.relation)

    def release(self, value: Sequence[Any], function: Callable[[list[Any]], float]) -> float:
        """Run the function on blocks of the records and release what they agree on."""
        if not callable(function):
            raise ParameterError("function", function, "must be callable on a list of records")
        if not isinstance(value, list | tuple | np.ndarray):
            raise PrivateValueError("records are given as a list or an array")
        records = list(value)
        if len(records) < self.blocks:
            raise PrivateValueError(f"{self.blocks} blocks are more than there are records")
        answers = [self._answer(function, block) for block in self._split(records)]
        if self.aggregate == Aggregate.MEDIAN:
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
        for record in records:
            for block in self._blocks_of_one():
                blocks[block].append(record)
        return blocks

    def _blocks_of_one(self) -> set[int]:
        chosen: set[int] = set()
        while len(chosen) < self.reach:
            chosen.add(int(uniform_below(self.blocks, 1, SECURE)[0]))
        return chosen

    def _answer(self, function: Callable[[list[Any]], float], block: list[Any]) -> Fraction:
        run = _guarded if self.timeout is None else self._in_child
        found = run(function, block)
        low, high = self.bounds
        return self.default if found is None else min(max(Fraction(found), low), high)

    def _in_child(self, function: Callable[[list[Any]], float], block: list[Any]) -> float | None:
        context = multiprocessing.get_context("fork")
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_run_in_child, args=(function, block, theirs))
        child.start()
        theirs.close()
        try:
            found = ours.recv() if ours.poll(self.timeout) else None
        except (EOFError, OSError):
            found = None
        finally:
            child.kill()
            child.join()
            ours.close()
        return found if isinstance(found, float) else None


def _guarded(function: Callable[[list[Any]], float], block: list[Any]) -> float | None:
    """The function's answer as a finite float; None for whatever else it does."""
    try:
        found = float(function(block))
    except Exception:  # a fault that depends on private records must not show
        return None
    return found if math.isfinite(found) else None


def _run_in_child(
    function: Callable[[list[Any]], float], block: list[Any], answer: Connection
) -> None:
    answer.send(_guarded(function, block))
    answer.close()


def _read_aggregate(value: Aggregate | str) -> Aggregate:
    try:
        return Aggregate(value)
    except ValueError:
        raise ParameterError("aggregate", value, "must be 'mean' or 'median'") from None
