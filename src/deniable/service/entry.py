"""Reports from paper, typed in or read from a file."""

from __future__ import annotations

import csv
import io

from deniable.errors import ReportError
from deniable.service.document import SurveyDocument
from deniable.service.item import Item, said

_MOST_SHEETS = 100_000


def read_sheets(document: SurveyDocument, text: str) -> list[tuple[int, ...]]:
    """One sheet to a line: a report for each question, as its text or its number, by commas.

    All are checked before the first is stored.
    """
    sheets = []
    for number, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        if not any(cell.strip() for cell in row):
            continue
        if len(row) != len(document.items):
            raise ReportError(f"line {number} must have {len(document.items)} reports, by commas")
        sheets.append(
            tuple(
                _report(item, cell.strip(), number)
                for item, cell in zip(document.items, row, strict=True)
            )
        )
    if not 1 <= len(sheets) <= _MOST_SHEETS:
        raise ReportError(f"a batch has 1 to {_MOST_SHEETS:,} sheets")
    return sheets


def _report(item: Item, cell: str, number: int) -> int:
    names = {str(place): place for place in range(item.reports)}
    if item.kind == "yes/no":
        names = {"no": 0, "yes": 1, "0": 0, "1": 1}
    else:  # a scale's own numbers and an option's text come before places
        for place in range(item.reports):
            for language, _ in item.text:
                names[str(item.option(place, language)).lower()] = place
    if item.kind == "scale":
        names = {str(label): place for place, label in enumerate(item.labels)}
    if cell.lower() not in names:
        raise ReportError(
            f"line {number}: {said(item.text, item.text[0][0])[:40]!r} has no such report"
        )
    return names[cell.lower()]
