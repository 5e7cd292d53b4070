"""The codebook: everything a stranger needs to redo the estimate from the reports.

Probabilities and estimator weights are exact fractions. What is read back is checked against what
would be written: a codebook that contradicts itself is refused. The parameters of a method of
`deniable.survey.designs` are checked against the channel too; those of others are not known here.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, cast

from deniable.errors import ParameterError, ParameterTypeError, ReportError
from deniable.mechanisms.design import Design
from deniable.privacy.channel import Channel
from deniable.survey.designs import agrees, small
from deniable.survey.estimates import ResponseEstimate, estimate_counts
from deniable.survey.wire import load

FORMAT, VERSION = "deniable survey codebook", 1
_LONGEST = 10**7
# As fractions are written; an exponent of a few digits would take minutes to work out.
_FRACTION = re.compile(r"-?[0-9]{1,500}(/[0-9]{1,500})?")


@dataclass(frozen=True)
class Codebook:
    """One question, its design, and how often each report came in (if the survey is over)."""

    question: str
    design: Design
    counts: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        for label in (*self.design.answers, *self.design.reports):
            if not isinstance(label, bool | int | str):
                raise ParameterTypeError(
                    "design",
                    type(label).__name__,
                    "labels must be text, whole numbers or booleans; crossed items have one "
                    "codebook each",
                )
        if self.counts is not None:
            self.estimate()

    def estimate(self) -> ResponseEstimate:
        """The estimate again, from the counts."""
        if self.counts is None:
            raise ParameterError("counts", None, "the codebook holds no counts yet")
        if len(self.counts) != len(self.design.reports):
            raise ParameterError("counts", len(self.counts), "must be one for each report")
        return estimate_counts(
            self.design, dict(zip(self.design.reports, self.counts, strict=True))
        )

    def as_dict(self) -> dict[str, Any]:
        """Plain data. `epsilon` is null where no ε holds."""
        design = self.design
        return {
            "format": FORMAT,
            "version": VERSION,
            "question": self.question,
            "method": design.method,
            "parameters": {name: str(value) for name, value in design.parameters},
            "answers": list(design.answers),
            "reports": list(design.reports),
            "channel": [[str(p) for p in row] for row in design.channel.rows],
            "weights": [[str(w) for w in row] for row in design.inverse],
            "epsilon": _finite(design.epsilon),
            "epsilon_by_report": [_finite(design.epsilon_of(each)) for each in design.reports],
            "relation": "replace",
            "not_private": design.warning is not None,
            "counts": None if self.counts is None else list(self.counts),
            "how": (
                "channel: one row for each answer, one column for each report. Share of an answer "
                "= sum over reports of weight * share of that report."
            ),
        }

    def to_json(self) -> str:
        """Canonical JSON."""
        return json.dumps(self.as_dict(), ensure_ascii=False, indent=1)

    def to_csv(self) -> str:
        """A line for each answer and report: probability and weight as fractions, and the count."""
        counts = self.counts or [""] * len(self.design.reports)
        rows, inverse = self.design.channel.rows, self.design.inverse
        return csv_text(
            ["question", "answer", "report", "probability", "weight", "count"],
            (
                [self.question, answer, report, rows[i][j], inverse[i][j], counts[j]]
                for i, answer in enumerate(self.design.answers)
                for j, report in enumerate(self.design.reports)
            ),
        )


def csv_text(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as CSV."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([heads, *rows])
    return out.getvalue()


def codebook(
    design: Design, *, question: str, estimate: ResponseEstimate | None = None
) -> Codebook:
    """The codebook of a question, with the counts of an estimate made without weights."""
    if estimate is None:
        return Codebook(question, design)
    if estimate.design != design or estimate.weighting is not None:
        raise ParameterError(
            "estimate", "another one", "must be made by this design, without weights"
        )
    return Codebook(question, design, estimate.counts)


def read_codebook(text: str) -> Codebook:
    """Read what `to_json` wrote.

    Raises:
        ParameterError: it is no codebook, or some entry is not what its channel implies.
    """
    given: object = text
    if not isinstance(given, str) or len(given) > _LONGEST:
        raise ParameterTypeError("text", type(given).__name__, "must be a codebook as JSON text")
    try:
        written = load(given)
        read = _read(cast("dict[str, Any]", written))
        # As text: true is not 1, and 1.0 is not 1.
        same = _text(read.as_dict()) == _text(written)
    except ParameterError:
        raise
    except (
        ReportError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
        ZeroDivisionError,
        OverflowError,
    ):
        raise ParameterError(
            "text", "unreadable", f"must be a {FORMAT}, version {VERSION}"
        ) from None
    if not same or not agrees(read.design):
        raise ParameterError(
            "text", "inconsistent", "an entry is missing, unknown or not what the channel implies"
        )
    return read


def _read(given: dict[str, Any]) -> Codebook:
    answers: tuple[Hashable, ...] = tuple(given["answers"])
    rows = tuple(tuple(_fraction(p) for p in row) for row in given["channel"])
    parameters = tuple((str(n), _fraction(value)) for n, value in given["parameters"].items())
    counts = given["counts"]
    design = Design(
        str(given["method"]),
        small(Channel(answers, tuple(given["reports"]), rows)),
        parameters,
        given["not_private"] is True,
    )
    return Codebook(str(given["question"]), design, None if counts is None else tuple(counts))


def _fraction(text: object) -> Fraction:
    if not isinstance(text, str) or not _FRACTION.fullmatch(text):
        raise ValueError("not a fraction")
    return Fraction(text)


def _text(data: object) -> str:
    return json.dumps(data, sort_keys=True)


def _finite(value: float) -> float | None:
    return None if value == math.inf else value
