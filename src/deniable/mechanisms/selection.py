"""Choosing the best candidate, nearly: exponential mechanism, permute and flip, top k."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from deniable.errors import ParameterError, ParameterTypeError, PrivateValueError
from deniable.lazy import lazy
from deniable.mechanisms.base import Pairs, Plain
from deniable.mechanisms.gaps import Gap, largest, misshapen, real_moves
from deniable.mechanisms.values import read_real, read_reals
from deniable.mechanisms.weights import relative_weights, weights_to_probabilities
from deniable.privacy.composition import repeat
from deniable.privacy.exact import Number, positive, probability, whole
from deniable.privacy.losses.base import Loss, ratio
from deniable.privacy.losses.generic import PureLoss
from deniable.privacy.losses.selection import ExponentialLoss
from deniable.privacy.parameters import Parameter, Related, flag, parameter, parameters
from deniable.privacy.units import Relation, read_relation
from deniable.randomness.categorical import CategoricalSampler, ScoreList, permute_and_flip
from deniable.randomness.source import SECURE
from deniable.trace import traced

Candidate = TypeVar("Candidate")

_MOST_EXACT = 24


@dataclass(frozen=True, repr=False)
class Scores:
    """Public candidates, and a private score for each."""

    candidates: Sequence[Any]
    scores: Any

    def __repr__(self) -> str:
        return "Scores(...)"  # which are private


@parameters
class Selection(ABC):
    """A choice by scores: its public parameters, and how scores are read and compared.

    `release` takes `Scores(candidates, scores)` and gives a candidate. It takes scores alone too,
    and gives the place of the one that was chosen.
    """

    epsilon: Parameter[Number, Fraction] = parameter(ratio)
    sensitivity: Parameter[Number, Fraction] = parameter(positive)
    monotone: Parameter[bool, bool] = parameter(flag, default=False)
    relation: Related = parameter(read_relation, default=Relation.ADD_REMOVE)

    @property
    @abstractmethod
    def loss(self) -> Loss:
        """What one choice costs."""

    @abstractmethod
    def _place(self, scores: ScoreList) -> int:
        """The place of the score that is chosen."""

    @property
    def factor(self) -> Fraction:
        """What a score is multiplied by before it is exponentiated: ε/2Δ, or ε/Δ if monotone."""
        return self.epsilon / self.sensitivity / (1 if self.monotone else 2)

    @traced
    def release(self, value: Any) -> Any:
        """Choose a candidate by `Scores`, or a place by scores alone."""
        if type(value) is not Scores:
            return self._place(read_scores(value))
        scores = read_scores(value.scores, value.candidates)
        return value.candidates[self._place(scores)]

    def choose(self, candidates: Sequence[Candidate], scores: Any) -> Candidate:
        """Choose a candidate: `release(Scores(candidates, scores))`."""
        chosen: Candidate = self.release(Scores(candidates, scores))
        return chosen

    def view(self, value: Any, plain: Plain) -> Any:
        """The scores, and candidates as they are compared."""
        if type(value) is not Scores:
            return value
        return Scores((plain(list(value.candidates)),), value.scores)

    def gap(self, x: Any, y: Any) -> Gap:
        """The largest move of a score; candidates are public."""
        public = [each.candidates if type(each) is Scores else None for each in (x, y)]
        if public[0] != public[1]:
            return Gap(1.0, 0.0, "candidates, which are public", ok=False)
        before, after = (each.scores if type(each) is Scores else each for each in (x, y))
        moves = real_moves(exact_scores(before), exact_scores(after))
        if moves is None:
            return misshapen("scores")
        return largest(moves, self.sensitivity, "each score", monotone=self.monotone)

    def neighbours(self) -> Pairs:
        """Three scores, as far apart as is charged for."""
        moved = float(self.sensitivity)
        if self.monotone:
            return [([moved, 0.0, 0.0], [0.0, 0.0, 0.0]), ([moved, moved, 0.0], [moved] * 3)]
        return [([moved, 0.0, 0.0], [0.0, moved, moved])]


@parameters
class Exponential(Selection):
    """Choose a with probability proportional to exp(ε·score(a)/(2·sensitivity)).

    Formal guarantee. For scores each of which moves by at most `sensitivity` between neighbours
    under `relation`, the candidates being public:

    * one choice is ε-DP (McSherry & Talwar 2007, Thm 6) and has bounded range ε, hence ε²/8-zCDP;
    * with `monotone=True` the weights are exp(ε·score/sensitivity): ε-DP if one person's data move
      all scores the same way (none up while another goes down);
    * the probabilities are exactly these, for any finite scores: no overflow, no underflow, no
      float decides;
    * with probability 1 - β the chosen score is within `utility_bound` of the best.

    A bare choice is unledgered: the caller keeps the budget.
    """

    @lazy
    def loss(self) -> ExponentialLoss:
        return ExponentialLoss(bound=self.epsilon, relation=self.relation)

    def _place(self, scores: ScoreList) -> int:
        return int(CategoricalSampler(scores, self.factor).sample(1, SECURE)[0])

    def probabilities(self, scores: Any) -> list[Fraction]:
        """The probability of each candidate, to 200 bits. These are private."""
        return weights_to_probabilities(read_scores(scores), self.factor)

    def utility_bound(self, *, candidates: int, beta: Number) -> float:
        """The loss of score exceeded with probability `beta` at most: (ln|A| + ln(1/β))/factor.

        That is (2·sensitivity/ε)(ln|A| + ln(1/β)) (McSherry & Talwar 2007, Thm 8).
        """
        miss = probability(beta, "beta")
        logs = math.log(whole(candidates, "candidates")) - math.log(miss)
        return float(min(Fraction(logs) / self.factor, Fraction(10) ** 300))


@parameters
class PermuteAndFlip(Selection):
    """Go through the candidates in random order; take one with probability exp(-factor·deficit).

    Formal guarantee. For scores each of which moves by at most `sensitivity` between neighbours
    under `relation`, the candidates being public, factor = ε/(2·sensitivity), or ε/sensitivity for
    monotone scores:

    * one choice is ε-DP (McKenna & Sheldon 2020, Thm 1), and never worse in expected score than the
      exponential mechanism (Thm 2 there);
    * it is the law of the noisy maximum with exponential noise (Ding et al. 2021);
    * it has no bounded range: its ρ is that of any ε-DP mechanism;
    * the probabilities are exactly these, for any finite scores.

    A bare choice is unledgered: the caller keeps the budget.
    """

    @lazy
    def loss(self) -> PureLoss:
        return PureLoss(bound=self.epsilon, relation=self.relation)

    def _place(self, scores: ScoreList) -> int:
        return permute_and_flip(scores, self.factor, SECURE)

    def probabilities(self, scores: Any) -> list[Fraction]:
        """The probability of each of up to 24 candidates, to 200 bits. These are private."""
        read = read_scores(scores)
        if len(read) > _MOST_EXACT:
            raise ParameterError("scores", len(read), f"{_MOST_EXACT} candidates are the most here")
        return flip_probabilities(relative_weights(read, self.factor))


def flip_probabilities(weights: Sequence[Fraction]) -> list[Fraction]:
    """P(i) = w_i ∫_0^1 Π_{j≠i} (1 - w_j + w_j t) dt: one of the heads, uniformly."""
    every = list(weights)
    return [own * _integral(every[:i] + every[i + 1 :]) for i, own in enumerate(every)]


def _integral(weights: Sequence[Fraction]) -> Fraction:
    """∫_0^1 Π (1 - w + w t) dt: the mean of 1/(1 + number of heads)."""
    heads = [Fraction(1)]  # heads[k] = P(k heads)
    for w in weights:
        tails_up = [p * (1 - w) for p in heads] + [Fraction(0)]
        heads_up = [Fraction(0)] + [p * w for p in heads]
        heads = [a + b for a, b in zip(tails_up, heads_up, strict=True)]
    return sum((p / (k + 1) for k, p in enumerate(heads)), Fraction(0))


@dataclass(frozen=True)
class TopK:
    """The best k, one after another: choose, remove, choose again.

    Formal guarantee. k choices cost what composition says of k of them; the order of the answer is
    the order of choice, and safe to show (peeling; Durfee & Rogers 2019, section 3).

    A bare choice is unledgered: the caller keeps the budget.
    """

    selector: Selection
    k: int

    def __post_init__(self) -> None:
        whole(self.k, "k")
        if not isinstance(self.selector, Selection):
            raise ParameterTypeError(
                "selector",
                type(self.selector).__name__,
                "must choose by scores: Exponential, PermuteAndFlip or ReportNoisyMax",
            )

    @property
    def loss(self) -> Loss:
        """k times the selector's loss."""
        return repeat(self.selector.loss, self.k)

    @traced
    def release(self, value: Any) -> list[Any]:
        """Choose k different candidates by `Scores`, or k places by scores alone."""
        named = type(value) is Scores
        read = read_scores(*((value.scores, value.candidates) if named else (value,)))
        if self.k > len(read):
            raise ParameterError("k", self.k, f"there are only {len(read)} candidates")
        left, chosen = list(range(len(read))), []
        for _ in range(self.k):
            remaining = read[left] if isinstance(read, np.ndarray) else [read[i] for i in left]
            chosen.append(left.pop(self.selector.release(remaining)))
        return [value.candidates[place] for place in chosen] if named else chosen

    def choose(self, candidates: Sequence[Candidate], scores: Any) -> list[Candidate]:
        """Choose k different candidates: `release(Scores(candidates, scores))`."""
        return self.release(Scores(candidates, scores))

    def view(self, value: Any, plain: Plain) -> Any:
        return self.selector.view(value, plain)

    def gap(self, x: Any, y: Any) -> Gap:
        return self.selector.gap(x, y)

    def neighbours(self) -> Pairs:
        return self.selector.neighbours()


def exact_scores(scores: Any) -> Any:
    """Scores as they are compared: an array, or fractions."""
    return scores if isinstance(scores, np.ndarray) else [Fraction(read_real(s)) for s in scores]


def read_scores(scores: Any, candidates: Sequence[Any] | None = None) -> ScoreList:
    """Read private scores exactly, one to a candidate."""
    if candidates is not None and not isinstance(candidates, Sequence | np.ndarray):
        raise ParameterTypeError("candidates", type(candidates).__name__, "must be a list")
    read = _read_list(scores) if isinstance(scores, list | tuple) else _read_array(scores)
    if candidates is not None and len(candidates) != len(read):
        raise ParameterError("candidates", len(candidates), f"must match the {len(read)} scores")
    return read


def _read_list(scores: Sequence[Any]) -> ScoreList:
    """Floats alone and 64-bit integers alone become arrays; whatever else is read as fractions."""
    if not scores:
        raise PrivateValueError("there are no scores to choose by")
    if all(type(score) is float for score in scores):
        return _read_array(np.array(scores))
    exact = [Fraction(read_real(score)) for score in scores]
    if all(score.denominator == 1 and abs(score) < 1 << 63 for score in exact):
        return np.array([int(score) for score in exact], dtype=np.int64)
    return exact


def _read_array(scores: Any) -> ScoreList:
    reals = read_reals(scores)
    if len(reals.shape) != 1:
        raise PrivateValueError("scores are a flat list, one score to a candidate")
    if reals.doubles is None:
        return reals.rationals
    return reals.doubles
