"""Oblivious mechanisms K = H∘f: the answer f first, then noise H that sees nothing but the answer.

Privacy is read from the composed channel; utility is what a user with a prior gets out of it, who
reads each output in the best way for her (Alvim, Andrés, Chatzikokolakis & Palamidessi 2011).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from deniable.auditing.exact.verification import Adjacency, Verified, verify_channel
from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.channel import Channel
from deniable.privacy.exact import Number, exact, log_float, not_negative

Cost = Callable[[Any, Any], Number]

_MOST_UNKNOWNS = 4_000


@dataclass(frozen=True)
class Oblivious:
    """A query on finitely many databases, and a channel from its answers to outputs."""

    databases: tuple[Hashable, ...]
    answers: tuple[Hashable, ...]
    noise: Channel

    @property
    def channel(self) -> Channel:
        """K: from databases to outputs."""
        rows = tuple(self.noise.row(answer) for answer in self.answers)
        return Channel(self.databases, self.noise.outputs, rows)

    def verify(self, adjacency: Adjacency | None = None) -> Verified:
        """The exact privacy of K between neighbouring databases."""
        return verify_channel(self.channel, adjacency)

    def expected_loss(self, prior: Sequence[Number], cost: Cost) -> Fraction:
        """E cost(answer, best reading of the output), under a prior on the databases."""
        reading = self.best_remap(prior, cost)
        return sum(
            (
                joint * exact(cost(answer, reading[output]), "cost")
                for answer, output, joint in self._joint(prior)
            ),
            Fraction(0),
        )

    def best_remap(self, prior: Sequence[Number], cost: Cost) -> dict[Hashable, Hashable]:
        """For each output the answer with the least expected cost, given that output."""
        guesses = tuple(dict.fromkeys(self.answers))
        weight: dict[Hashable, dict[Hashable, Fraction]]
        weight = {output: defaultdict(Fraction) for output in self.noise.outputs}
        for answer, output, joint in self._joint(prior):
            weight[output][answer] += joint
        return {
            output: min(guesses, key=lambda guess: _expected(known, guess, cost))
            for output, known in weight.items()
        }

    def mutual_information(self, prior: Sequence[Number]) -> float:
        """How much an output tells of the answer, in bits."""
        joint: dict[tuple[Hashable, Hashable], Fraction] = defaultdict(Fraction)
        of_answer: dict[Hashable, Fraction] = defaultdict(Fraction)
        of_output: dict[Hashable, Fraction] = defaultdict(Fraction)
        for answer, output, chance in self._joint(prior):
            joint[answer, output] += chance
            of_answer[answer] += chance
            of_output[output] += chance
        terms = [
            float(chance)
            * log_float(chance / (of_answer[answer] * of_output[output]))
            / math.log(2)
            for (answer, output), chance in joint.items()
            if chance
        ]
        return max(0.0, math.fsum(terms))

    def _joint(self, prior: Sequence[Number]) -> list[tuple[Hashable, Hashable, Fraction]]:
        weights = _read_prior(prior, len(self.databases))
        return [
            (answer, output, weight * chance)
            for weight, answer in zip(weights, self.answers, strict=True)
            for output, chance in zip(self.noise.outputs, self.noise.row(answer), strict=True)
        ]


def oblivious(
    query: Callable[[Any], Hashable], mechanism: Any, databases: Sequence[Hashable]
) -> Oblivious:
    """Compose a query with a mechanism, or a `Channel`, that sees only its answer."""
    if not callable(query):
        raise ParameterTypeError("query", type(query).__name__, "must be callable on a database")
    several: object = databases
    given = tuple(databases) if isinstance(several, Iterable) else ()
    if len(given) < 2:
        raise ParameterError("databases", len(given), "give two databases or more")
    answers = tuple(query(database) for database in given)
    try:
        hash((given, answers))
    except TypeError:
        raise ParameterTypeError(
            "databases", "lists", "databases and answers must be hashable: give tuples"
        ) from None
    if isinstance(mechanism, Channel):
        return Oblivious(given, answers, mechanism)
    if not callable(getattr(mechanism, "channel", None)):
        raise ParameterTypeError(
            "mechanism", type(mechanism).__name__, "must be a Channel, or have one: finite outputs"
        )
    return Oblivious(given, answers, mechanism.channel(tuple(dict.fromkeys(answers))))


def least_expected_loss(prior: Sequence[Number], cost: Cost, *, epsilon: Number) -> float:
    """The least expected loss of any ε-DP mechanism for counts 0, ..., n, by linear programming.

    The geometric mechanism reaches it, read in the best way, for every prior and every cost that
    rises with the distance (Ghosh, Roughgarden & Sundararajan 2009, Thm 1.1).
    """
    from scipy.optimize import linprog  # noqa: PLC0415  (slow to import, and used here alone)

    weights = [float(p) for p in _read_prior(prior, None)]
    n = len(weights)
    if not 2 <= n * n <= _MOST_UNKNOWNS:
        raise ParameterError("prior", n, "counts from 0 to 1 at least, and to 62 at most")
    shrink = math.exp(-float(not_negative(epsilon, "epsilon")))
    costs = [float(exact(cost(i, z), "cost")) * weights[i] for i in range(n) for z in range(n)]
    limits = []
    for i, j in pairwise(range(n)):
        for x, y in ((i, j), (j, i)):
            for z in range(n):  # e^-ε P(z | x) <= P(z | y)
                row = np.zeros(n * n)
                row[x * n + z], row[y * n + z] = shrink, -1.0
                limits.append(row)
    sums = np.kron(np.eye(n), np.ones(n))
    solved = linprog(
        costs, A_ub=np.array(limits), b_ub=np.zeros(len(limits)), A_eq=sums, b_eq=np.ones(n)
    )
    if solved.fun is None:
        raise ParameterError("cost", "too large", "the linear program found no answer; rescale it")
    return float(solved.fun)


def _expected(known: dict[Hashable, Fraction], guess: Hashable, cost: Cost) -> Fraction:
    return sum(
        (weight * exact(cost(answer, guess), "cost") for answer, weight in known.items()),
        Fraction(0),
    )


def _read_prior(prior: Sequence[Number], length: int | None) -> list[Fraction]:
    given: object = prior
    if not isinstance(given, Iterable):
        raise ParameterTypeError("prior", type(given).__name__, "must be a list of probabilities")
    weights = [not_negative(p, "prior") for p in prior]
    if length is not None and len(weights) != length:
        raise ParameterError("prior", len(weights), f"must have {length} entries, one a database")
    if sum(weights) != 1:
        raise ParameterError("prior", float(sum(weights)), "must sum to exactly 1")
    return weights
