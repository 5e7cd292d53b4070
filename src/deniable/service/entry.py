"""Reports from paper, typed in or read from a file."""

from __future__ import annotations

import csv
import io

from deniable.errors import ReportError
from deniable.service.document import SurveyDocument
from deniable.service.item import FormItem, said

_MOST_SHEETS = 100_000


def read_sheets(document: SurveyDocument, text: str) -> list[tuple[int, ...]]:
    """One sheet to a line: a report for each question, as its text or its number, by commas.

    All are checked before the first is stored.
    """
    sheets = []
    try:
        rows = list(csv.reader(io.StringIO(text)))
    except csv.Error:
        raise ReportError("sheets are lines of reports, by commas; this cannot be read") from None
    for number, row in enumerate(rows, start=1):
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


def _report(item: FormItem, cell: str, number: int) -> int:
    found = _names(item).get(cell.casefold(), set())
    if len(found) != 1:
        why = "could mean two reports; write its place" if found else "has no such report"
        raise ReportError(f"line {number}: {said(item.text, item.text[0][0])[:40]!r} {why}")
    return next(iter(found))


def _names(item: FormItem) -> dict[str, set[int]]:
    """What may be written for which reports: texts in all languages, and places where free.

    A scale's own numbers and an option's text come before places. Two options that differ in
    capitals alone are told apart by their places only.
    """
    if item.kind == "yes/no":
        return {"no": {0}, "yes": {1}, "0": {0}, "1": {1}}
    names: dict[str, set[int]] = {}
    for place in range(item.reports):
        for language, _ in item.text:
            names.setdefault(str(item.option(place, language)).casefold(), set()).add(place)
    if item.kind != "scale":
        for place in range(item.reports):
            names.setdefault(str(place), {place})
    return names
