"""The designs of the literature, each as its exact channel.

Numbers are read exactly: 0.1 is one tenth, and `Fraction(1, 6)` is a face of a die. Yes/no designs
have the answers False and True; the sensitive answer is True.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from fractions import Fraction

from deniable.errors import ParameterError
from deniable.mechanisms.base import read_labels
from deniable.mechanisms.response import RandomizedResponse
from deniable.privacy.channel import Channel, read_rows
from deniable.privacy.exact import Number, probability
from deniable.survey.design import Design

_NO_YES = (False, True)


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
    channel = Channel(made.categories, made.categories, made.rows)
    design = Design("randomized response", channel, (("truth", made.rows[0][0]),))
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
    half = Fraction(1, 2)
    return _yes_no(
        "two coins", (("truth", half),), if_yes=half + half * half, if_no=(1 - half) * half
    )


def forced_response(*, truth: Number, yes: Number, no: Number) -> Design:
    """A die says: answer truthfully, say YES, or say NO, with these probabilities.

    Lopsided dice cost more than they seem to: ε is that of the rarer forced answer (Boruch 1971).
    """
    told, always, never = (
        probability(value, name) for name, value in (("truth", truth), ("yes", yes), ("no", no))
    )
    if told + always + never != 1:
        raise ParameterError(
            "truth, yes, no",
            float(told + always + never),
            "must sum to 1 exactly; write thirds and sixths as Fraction(1, 6)",
        )
    parameters = (("truth", told), ("yes", always), ("no", never))
    return _yes_no("forced response", parameters, if_yes=told + always, if_no=always)


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
    rows = [[Fraction(i == j) for j in range(len(labels))] for i in range(len(labels))]
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
    return Design(method, Channel(truths, sent, read_rows(matrix)), not_private=not_private)


def agrees(design: Design) -> bool:
    """Whether a design's method and parameters, where known here, give its channel."""
    given = dict(design.parameters)
    hidden = design.not_private
    makers: dict[str, Callable[[], Design]] = {
        "randomized response": lambda: randomized_response(**given, categories=design.answers),
        "warner": lambda: warner(**given),
        "two coins": two_coins,
        "forced response": lambda: forced_response(**given),
        "unrelated question": lambda: unrelated_question(**given),
        "crosswise": lambda: crosswise(**given),
        "triangular": lambda: triangular(**given, not_private=hidden),
        "mangat": lambda: mangat(**given, not_private=hidden),
        "open question": lambda: open_question(design.answers, not_private=hidden),
    }
    if design.method not in makers:
        return True
    try:
        made = makers[design.method]()
    except (TypeError, ParameterError):  # parameters of another method, or out of range
        return False
    return (made.channel, made.parameters) == (design.channel, design.parameters)


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
