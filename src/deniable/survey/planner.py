"""Before the survey: people, margin, ε and number of questions against each other.

All margins are half-widths of normal intervals and include sampling error: people are drawn at
random from a large population.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Literal

from deniable.errors import ParameterError
from deniable.mechanisms.base import exactly_one
from deniable.mechanisms.design import Design, read_design
from deniable.mechanisms.labels import read_answer
from deniable.mechanisms.share_intervals import quantile
from deniable.privacy.exact import Number, positive, probability, whole
from deniable.survey import designs
from deniable.survey.reading import read_share
from deniable.survey.sentences import suspicion

Share = Number | Mapping[Hashable, Number]

_HALF = Fraction(1, 2)
_LEAST = 1e-12  # what is left to the coins below this is the rounding of a quantile


def variance(design: Design, share: Share = _HALF, answer: Hashable = True) -> Fraction:
    """The exact variance of one report's part in the estimated share: n times that of the share.

    With θ the share and A < B the two weights of reports it is (θ - A)(B - θ); for yes/no coins
    that is θ(1-θ) + pq/(p-q)², sampling and coins. Where reports have more than two weights it
    depends on all shares: give them as {answer: share}.
    """
    weights = read_design(design).inverse[read_answer(design.answers, answer)]
    if isinstance(share, Mapping):
        return _full_variance(design, share, weights)
    theta = read_share(share)
    if len(set(weights)) != 2:
        raise ParameterError("share", "one number", "this design needs {answer: share} for all")
    return (theta - min(weights)) * (max(weights) - theta)


def _full_variance(
    design: Design, shares: Mapping[Hashable, Number], weights: Sequence[Fraction]
) -> Fraction:
    read = [read_share(shares.get(answer, 0)) for answer in design.answers]
    if set(shares) - set(design.answers) or sum(read) != 1:
        raise ParameterError("share", len(shares), "must give shares of the answers that sum to 1")
    rows = design.channel.rows
    seen = [sum(t * row[j] for t, row in zip(read, rows, strict=True)) for j in range(len(weights))]
    mean = sum(w * s for w, s in zip(weights, seen, strict=True))
    return Fraction(sum(w * w * s for w, s in zip(weights, seen, strict=True)) - mean * mean)


def margin(
    design: Design,
    n: int,
    *,
    share: Share = _HALF,
    answer: Hashable = True,
    confidence: Number = 0.95,
) -> float:
    """The half-width that n people give."""
    spread = float(variance(design, share, answer) / whole(n, "n"))
    return quantile(confidence) * math.sqrt(spread)


def sample_size(
    design: Design,
    *,
    margin: Number | None = None,
    rmse: Number | None = None,
    share: Share = _HALF,
    answer: Hashable = True,
    confidence: Number = 0.95,
) -> int:
    """The least n for a margin; or for a root mean squared error among those very people.

    `rmse` leaves sampling error out: the people asked are the population, the coins the only noise.
    """
    name, wanted = exactly_one(margin=margin, rmse=rmse)
    spread, goal = variance(design, share, answer), positive(wanted, name)
    if name == "rmse":
        own = share.get(answer, 0) if isinstance(share, Mapping) else share
        return max(1, math.ceil((spread - read_share(own) * (1 - read_share(own))) / goal**2))
    return max(1, math.ceil(Fraction(quantile(confidence)) ** 2 * spread / goal**2))


def sample_size_to_compare(
    design: Design,
    first: Number,
    second: Number,
    *,
    power: Number = 0.8,
    answer: Hashable = True,
    confidence: Number = 0.95,
) -> int:
    """People in each of two groups, so that shares this far apart are told apart so often."""
    gap = read_share(first) - read_share(second)
    if gap == 0:
        raise ParameterError("second", second, "must differ from the first share")
    reach = quantile(confidence) + NormalDist().inv_cdf(float(probability(power, "power")))
    spread = variance(design, first, answer) + variance(design, second, answer)
    return max(1, math.ceil(Fraction(reach) ** 2 * spread / gap**2))


def epsilon_for(
    n: int,
    margin: Number,
    *,
    share: Number = _HALF,
    categories: int = 2,
    confidence: Number = 0.95,
) -> float:
    """The least ε with which n people give this margin, by k-ary randomised response.

    Rounded up at the sixth decimal. With u = 1/(e^ε - 1) the variance is
    θ(1-θ) + (1 + (k-2)θ) u + (k-1) u², which is solved for u.
    """
    k, theta = whole(categories, "categories", least=2), read_share(share)
    allowed = whole(n, "n") * (positive(margin, "margin") / Fraction(quantile(confidence))) ** 2
    left = float(allowed - theta * (1 - theta))
    if left < _LEAST:
        raise ParameterError(
            "margin", margin, f"even a direct question of {n} people does not reach it; ask more"
        )
    slope = float(1 + (k - 2) * theta)
    u = 2 * left / (slope + math.sqrt(slope * slope + 4 * (k - 1) * left))
    return math.ceil(math.log1p(1 / u) * 10**6) / 10**6


@dataclass(frozen=True)
class PlanRow:
    """One ε and what it asks for."""

    epsilon: float
    truth: float
    suspicion: float
    n: int
    times_direct: float


def planning_table(
    epsilons: Sequence[Number],
    *,
    margin: Number,
    share: Number,
    prior: Number = Fraction(1, 10),
    confidence: Number = 0.95,
) -> tuple[PlanRow, ...]:
    """For each ε: how often the truth is sent, what a YES makes of a suspicion, and the people.

    `times_direct` compares with asking directly, without any protection.
    """
    theta = read_share(share)
    direct = math.ceil(
        Fraction(quantile(confidence)) ** 2 * theta * (1 - theta) / positive(margin, "margin") ** 2
    )
    rows = []
    for epsilon in epsilons:
        design = designs.randomized_response(epsilon=epsilon)
        n = sample_size(design, margin=margin, share=share, confidence=confidence)
        truth = float(design.channel.probability(True, True))
        after = float(suspicion(design, True, prior=prior))
        rows.append(PlanRow(design.epsilon, truth, after, n, n / max(1, direct)))
    return tuple(rows)


@dataclass(frozen=True)
class QuestionsPlan:
    """Several yes/no questions under one ε for each person.

    "all": everyone answers every question, at an equal part of ε. "one": everyone answers a single
    question, drawn at random, at all of ε; answers can then not be crossed.
    """

    strategy: Literal["all", "one"]
    people: int
    epsilon_each: float
    answers_each: int
    margins: tuple[tuple[str, float], ...]

    @property
    def worst(self) -> float:
        """The widest margin."""
        return max(width for _, width in self.margins)


def plan_questions(
    shares: Mapping[str, Number],
    *,
    epsilon: Number,
    n: int | None = None,
    margin: Number | None = None,
    confidence: Number = 0.95,
) -> tuple[QuestionsPlan, QuestionsPlan]:
    """Both ways to ask several questions, the better one first.

    `shares` names the questions, with the shares expected. Given n, better is the smaller widest
    margin; given a margin that all must reach, fewer people.
    """
    if not shares:
        raise ParameterError("shares", 0, "must name one question or more")
    exactly_one(n=n, margin=margin)
    budget, count = positive(epsilon, "epsilon"), len(shares)
    # ε/count is cut at the twentieth digit, downwards, so that the parts never exceed the whole.
    part = Fraction(math.floor(budget / count * 10**20), 10**20)
    ways: tuple[tuple[Literal["all", "one"], Fraction, int], ...]
    ways = (("all", part, 1), ("one", budget, count))
    plans = []
    for strategy, each, groups in ways:
        design = designs.randomized_response(epsilon=each)
        answers = (
            whole(n, "n") // groups
            if n is not None
            else max(
                sample_size(design, margin=margin, share=share, confidence=confidence)
                for share in shares.values()
            )
        )
        widths = _margins(design, answers, shares, confidence)
        plans.append(QuestionsPlan(strategy, answers * groups, design.epsilon, answers, widths))
    best = sorted(plans, key=lambda plan: (plan.people, plan.worst) if n is None else plan.worst)
    return best[0], best[1]


def _margins(
    design: Design, answers: int, shares: Mapping[str, Number], confidence: Number
) -> tuple[tuple[str, float], ...]:
    if answers < 1:
        raise ParameterError("n", answers, "must be at least one person for each question")
    return tuple(
        (name, margin(design, answers, share=share, confidence=confidence))
        for name, share in shares.items()
    )
