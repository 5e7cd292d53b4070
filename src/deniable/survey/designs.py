"""The designs of the literature, each as its exact channel.

Numbers are read exactly: 0.1 is one tenth, and `Fraction(1, 6)` is a face of a die. Yes/no designs
have the answers False and True; the sensitive answer is True.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from fractions import Fraction
from functools import reduce
from itertools import product
from typing import Any

from deniable.errors import ParameterError, ParameterTypeError
from deniable.mechanisms.base import read_labels
from deniable.mechanisms.design import Design
from deniable.mechanisms.inverse import kronecker, symmetric
from deniable.mechanisms.response import RandomizedResponse, forced_rows
from deniable.privacy.channel import Channel, read_rows, worst_of_all
from deniable.privacy.exact import Number, probability

_NO_YES = (False, True)
_MOST = 32
_MOST_JOINT = 256


def randomized_response(
    *,
    epsilon: Number | None = None,
    truth: Number | None = None,
    categories: Sequence[Hashable] = _NO_YES,
) -> Design:
    """The truth with some probability, each other category equally often otherwise.

    Made from `epsilon`, the probability is e^ε/(e^ε + k - 1), rounded down at the thirtieth digit:
    ε is never exceeded (Warner 1965 for two; k-ary: Kairouz, Bonawitz & Ramage 2016). An ε that
    thirty digits cannot come near, above 60 or so, is refused.
    """
    made = RandomizedResponse(epsilon=epsilon, truth=truth, categories=categories)
    design = Design("randomized response", small(made.channel()), (("truth", made.rows[0][0]),))
    if epsilon is not None and design.epsilon < 0.999 * float(epsilon):
        raise ParameterError(
            "epsilon", epsilon, f"probabilities have thirty digits: {design.epsilon:g} is reached"
        )
    return design


def warner(*, truth: Number) -> Design:
    """A spinner chooses the statement "I do" (with probability `truth`) or "I do not".

    The respondent says whether the chosen statement is true (Warner 1965).
    """
    told = probability(truth, "truth")
    return _yes_no("warner", (("truth", told),), if_yes=told, if_no=1 - told)


def two_coins() -> Design:
    """Heads: the truth. Tails: a second coin says YES or NO. Exactly ln 3."""
    parameters = (("truth", Fraction(1, 2)),)
    return _yes_no("two coins", parameters, if_yes=Fraction(3, 4), if_no=Fraction(1, 4))


def forced_response(*, truth: Number, yes: Number, no: Number) -> Design:
    """A die says: answer truthfully, say YES, or say NO, with these probabilities.

    Lopsided dice cost more than they seem to: ε is that of the rarer forced answer (Boruch 1971).
    """
    (_, if_no), (_, if_yes) = forced_rows(truth, yes, no)
    given = (("truth", truth), ("yes", yes), ("no", no))
    parameters = tuple((name, probability(value, name)) for name, value in given)
    return _yes_no("forced response", parameters, if_yes=if_yes, if_no=if_no)


def unrelated_question(*, asked: Number, prevalence: Number) -> Design:
    """The sensitive question with probability `asked`, otherwise a harmless one.

    `prevalence` is the known share who say YES to the harmless question (Greenberg et al. 1969).
    For an unknown one see `deniable.survey.two_samples`.
    """
    put, harmless = probability(asked, "asked"), probability(prevalence, "prevalence")
    other = (1 - put) * harmless
    return _yes_no(
        "unrelated question",
        (("asked", put), ("prevalence", harmless)),
        if_yes=put + other,
        if_no=other,
    )


def crosswise(*, prevalence: Number) -> Design:
    """Two statements, one sensitive, one harmless: are both or neither true ("same"), or one?

    `prevalence` is the known share for whom the harmless statement is true (Yu, Tian & Tang 2008).
    The channel is Warner's.
    """
    harmless = probability(prevalence, "prevalence")
    return _yes_no(
        "crosswise",
        (("prevalence", harmless),),
        if_yes=harmless,
        if_no=1 - harmless,
        reports=("different", "same"),
    )


def triangular(*, prevalence: Number, not_private: bool = False) -> Design:
    """As crosswise, but the answer is "neither" or "one or both" (Yu, Tian & Tang 2008).

    "neither" proves that the sensitive statement is false: ε is infinite.
    """
    harmless = probability(prevalence, "prevalence")
    return _yes_no(
        "triangular",
        (("prevalence", harmless),),
        if_yes=Fraction(1),
        if_no=harmless,
        reports=("neither", "one or both"),
        not_private=not_private,
    )


def mangat(*, truth: Number, not_private: bool = False) -> Design:
    """Who has it says YES; all others use Warner's spinner (Mangat 1994).

    NO proves that the respondent does not have it: ε is infinite.
    """
    told = probability(truth, "truth")
    return _yes_no(
        "mangat",
        (("truth", told),),
        if_yes=Fraction(1),
        if_no=1 - told,
        not_private=not_private,
    )


def open_question(categories: Sequence[Hashable] = _NO_YES, *, not_private: bool = False) -> Design:
    """Asked directly: the report is the answer, and nothing protects it.

    For columns that are not sensitive, and for what a design costs beside it.
    """
    labels = read_labels(categories, "categories", least=2)
    rows = symmetric(Fraction(1), len(labels))
    return from_matrix(rows, labels, method="open question", not_private=not_private)


def from_matrix(
    matrix: Sequence[Sequence[Number]],
    answers: Sequence[Hashable],
    reports: Sequence[Hashable] | None = None,
    *,
    method: str = "channel",
    not_private: bool = False,
) -> Design:
    """Any channel: row = true answer, column = report; reports are the answers unless named."""
    truths = read_labels(answers, "answers", least=2)
    sent = truths if reports is None else read_labels(reports, "reports", least=2)
    channel = small(Channel(truths, sent, read_rows(matrix)))
    return Design(method, channel, not_private=not_private)


def small(channel: Channel) -> Channel:
    """Refuse a channel whose exact inverse would take long."""
    answers, reports = len(channel.inputs), len(channel.outputs)
    if not 2 <= answers <= _MOST or reports > _MOST:
        raise ParameterError(
            "channel",
            f"{answers} answers, {reports} reports",
            f"a design has from 2 to {_MOST} of each; more need a protocol for large domains",
        )
    return channel


def joint(*designs: Design) -> Design:
    """Several items answered by the same people, each with its own coins.

    Answers and reports are tuples, the channel is the Kronecker product, and the loss is the sum:
    ε = ε₁ + ε₂ + … exactly, since the worst reports can meet.
    """
    if len(designs) < 2 or not all(isinstance(each, Design) for each in designs):
        raise ParameterTypeError("designs", len(designs), "must be two designs or more")
    size = math.prod(len(each.answers) for each in designs)
    if max(size, math.prod(len(each.reports) for each in designs)) > _MOST_JOINT:
        raise ParameterError(
            "designs", size, f"a table has at most {_MOST_JOINT} cells; merge categories"
        )
    rows = reduce(kronecker, (each.channel.rows for each in designs))
    answers, reports = (
        tuple(product(*labels))
        for labels in ((each.answers for each in designs), (each.reports for each in designs))
    )
    return Design(
        "joint",
        Channel(answers, reports, rows),
        not_private=worst_of_all(rows) == math.inf,  # each part has said so itself
        parts=designs,
    )


def agrees(design: Design) -> bool:
    """Whether a design's method and parameters, where known here, give its channel."""
    make = _MAKERS.get(design.method)
    if make is None:
        return True
    more: dict[str, Any] = {} if make is two_coins else {**dict(design.parameters)}
    if design.method in ("randomized response", "open question"):
        more["categories"] = design.answers
    if design.method in ("triangular", "mangat", "open question"):
        more["not_private"] = design.not_private
    try:
        made = make(**more)
    except (TypeError, ParameterError):  # parameters of another method, or out of range
        return False
    return (made.channel, made.parameters) == (design.channel, design.parameters)


_MAKERS: Mapping[str, Callable[..., Design]] = {
    "randomized response": randomized_response,
    "warner": warner,
    "two coins": two_coins,
    "forced response": forced_response,
    "unrelated question": unrelated_question,
    "crosswise": crosswise,
    "triangular": triangular,
    "mangat": mangat,
    "open question": open_question,
}


def _yes_no(
    method: str,
    parameters: tuple[tuple[str, Fraction], ...],
    *,
    if_yes: Fraction,
    if_no: Fraction,
    reports: tuple[Hashable, Hashable] = _NO_YES,
    not_private: bool = False,
) -> Design:
    """The design with these probabilities of the second report."""
    rows = ((1 - if_no, if_no), (1 - if_yes, if_yes))
    return Design(method, Channel(_NO_YES, reports, rows), parameters, not_private)
