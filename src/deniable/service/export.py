"""What leaves the survey: reports, codebook, and how to estimate in R and Python.

Reports lie in the order of their random keys. A stranger with these files needs nothing else.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence

from deniable.service.document import SurveyDocument
from deniable.service.item import FormItem
from deniable.survey.codebook import Codebook, csv_text

Reports = Sequence[tuple[int, ...]]

_FORMULA = "=+-@\uff1d\uff0b\uff0d\uff20"  # the last four are the wide ones


def export(document: SurveyDocument, reports: Reports) -> Mapping[str, str]:
    """All files by name."""
    books = [
        codebook_of(item, [each[at] for each in reports]) for at, item in enumerate(document.items)
    ]
    return {
        "survey.json": document.text + "\n",
        "reports.csv": reports_csv(document, reports),
        "codebook.json": _codebook_json(document, books),
        "codebook.csv": _codebook_csv(document, books),
        "estimate.py": _PYTHON,
        "estimate.R": _R,
    }


def codebook_of(item: FormItem, reports: Sequence[int]) -> Codebook:
    """A question's channel, weights and counts; of a number its two bounds."""
    counts = Counter(reports)
    seen = tuple(counts[place] for place in range(item.reports)) if reports else None
    return Codebook(item.text[0][1], item.design, seen)


def reports_csv(document: SurveyDocument, reports: Reports) -> str:
    """One line for each submission: the places of the reports, as in the codebook."""
    return csv_text([item.id for item in document.items], reports)


def _codebook_json(document: SurveyDocument, books: Sequence[Codebook]) -> str:
    data = {
        "survey": document.id,
        "name": document.name,
        "wave": document.wave,
        "epsilon": float(document.epsilon),
        "relation": "replace",
        "questions": {
            item.id: {
                **book.as_dict(),
                "kind": item.kind,
                "values": None if item.values is None else [float(v) for v in item.values],
                "law": json.loads(item.wire.text),
            }
            for item, book in zip(document.items, books, strict=True)
        },
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def _codebook_csv(document: SurveyDocument, books: Sequence[Codebook]) -> str:
    lines = []
    for item, book in zip(document.items, books, strict=True):
        design = book.design
        for i, answer in enumerate(design.answers):
            value = "" if item.values is None else repr(float(item.values[i]))
            label = no_formula(str(answer))
            for j in range(len(design.reports)):
                chance, weight = float(design.channel.rows[i][j]), float(design.inverse[i][j])
                lines.append([item.id, label, value, j, repr(chance), repr(weight)])
    return csv_text(["question", "answer", "value", "report", "probability", "weight"], lines)


def no_formula(text: str) -> str:
    """Text that a spreadsheet does not take for a formula; a whole number stays one."""
    first = text.lstrip()[:1]
    is_formula = first != "" and first in _FORMULA and not text.removeprefix("-").isdecimal()
    return f"'{text}" if is_formula or text[:1] in ("\t", "\r", "\n") else text


_PYTHON = '''"""Shares of the true answers from randomised reports: python estimate.py"""

import csv
import json
from fractions import Fraction
from pathlib import Path

here = Path(__file__).parent
codebook = json.loads((here / "codebook.json").read_text(encoding="utf-8"))
with (here / "reports.csv").open(encoding="utf-8", newline="") as file:
    rows = list(csv.DictReader(file))
if not rows:
    raise SystemExit("no reports yet")

for name, question in codebook["questions"].items():
    reports = [int(row[name]) for row in rows]
    shares = []
    for answer, weights in zip(question["answers"], question["weights"]):
        told = [float(Fraction(weights[report])) for report in reports]
        share = sum(told) / len(told)
        error = (sum((each - share) ** 2 for each in told) / len(told) ** 2) ** 0.5
        shares.append(share)
        # A normal margin means nothing where few have answered.
        margin = f" +- {1.96 * error:.4f}" if len(told) >= 100 else ""
        print(f"{name}: {answer}: {share:.4f}{margin}")
    if question["values"] is not None:
        mean = sum(value * share for value, share in zip(question["values"], shares))
        print(f"{name}: mean: {mean:.4f}")
'''

_R = """# Shares of the true answers from randomised reports: Rscript estimate.R
reports <- read.csv("reports.csv", check.names = FALSE)
codebook <- read.csv("codebook.csv", colClasses = c(answer = "character"), na.strings = "")
codebook$answer[is.na(codebook$answer)] <- ""
if (nrow(reports) == 0) stop("no reports yet")
for (name in names(reports)) {
  question <- codebook[codebook$question == name, ]
  mean_value <- 0
  for (answer in unique(question$answer)) {
    rows <- question[question$answer == answer, ]
    told <- rows$weight[match(reports[[name]], rows$report)]
    share <- mean(told)
    error <- sqrt(mean((told - share)^2) / length(told))
    # A normal margin means nothing where few have answered.
    margin <- if (length(told) >= 100) sprintf(" +- %.4f", 1.96 * error) else ""
    cat(sprintf("%s: %s: %.4f%s\\n", name, answer, share, margin))
    mean_value <- mean_value + rows$value[1] * share
  }
  if (!is.na(mean_value)) cat(sprintf("%s: mean: %.4f\\n", name, mean_value))
}
"""
