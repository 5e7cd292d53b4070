"""Reports: the same facts as text, JSON and HTML."""

from __future__ import annotations

import html
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from deniable.errors import ParameterError, ParameterTypeError

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;"
    "color:#1f2933}table{border-collapse:collapse;width:100%}th,td{text-align:left;"
    "padding:.3rem .6rem;border-bottom:1px solid #d9e2ec;vertical-align:top}"
    ".good{color:#2f6b3a}.bad{color:#a8321c}svg{max-width:100%;height:auto}"
)


def page(title: str, body: str) -> str:
    """A page of this title, with its style inside."""
    said = html.escape(title)
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{said}</title>'
        f"<style>{_STYLE}</style><h1>{said}</h1>{body}</html>"
    )


@dataclass(frozen=True)
class Report:
    """A title, a verdict, facts by name, a table, and pictures as SVG."""

    title: str
    good: bool
    verdict: str
    facts: Mapping[str, object]
    columns: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    pictures: Sequence[str] = ()

    def text(self) -> str:
        """For a terminal."""
        lines = [self.title, f"  {self.verdict}"]
        lines += [f"  {name}: {value}" for name, value in self.facts.items()]
        for row in self.rows:
            first, *rest = row
            lines.append(f"  - {first}: " + ": ".join(cell for cell in rest if cell))
        return "\n".join(lines)

    def json(self) -> str:
        """For machines."""
        table = [dict(zip(self.columns, row, strict=True)) for row in self.rows]
        return json.dumps(
            {
                "title": self.title,
                "good": self.good,
                "verdict": self.verdict,
                "facts": {name: str(value) for name, value in self.facts.items()},
                "rows": table,
            },
            indent=2,
            ensure_ascii=False,
        )

    def html(self) -> str:
        """A page that needs nothing else."""
        say = html.escape
        facts = "".join(
            f"<tr><th>{say(name)}</th><td>{say(str(value))}</td></tr>"
            for name, value in self.facts.items()
        )
        head = "".join(f"<th>{say(column)}</th>" for column in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{say(cell)}</td>" for cell in row) + "</tr>" for row in self.rows
        )
        table = f"<table><tr>{head}</tr>{body}</table>" if self.rows else ""
        mood = "good" if self.good else "bad"
        verdict = f'<p class="{mood}"><strong>{say(self.verdict)}</strong></p>'
        return page(self.title, f"{verdict}<table>{facts}</table>{table}{''.join(self.pictures)}")


class Reported(ABC):
    """What is shown by its report: as text, as JSON, as a page."""

    @property
    @abstractmethod
    def report(self) -> Report:
        """The figures, to be shown."""

    def __str__(self) -> str:
        return self.report.text()

    def to_json(self) -> str:
        """The report for machines."""
        return self.report.json()

    def to_html(self) -> str:
        """The report as a page."""
        return self.report.html()

    def save(self, path: str | Path) -> Path:
        """Write it to a file, by the ending of its name: .html, .json, or text."""
        return save(path, {".html": self.to_html, ".json": self.to_json}, self.__str__)


def save(
    path: str | Path, forms: Mapping[str, Callable[[], str]], otherwise: Callable[[], str]
) -> Path:
    """Write a report in the form that the ending of the file's name asks for."""
    if not isinstance(path, str | Path):
        raise ParameterTypeError("path", path, "must be a path")
    target = Path(path)
    try:
        target.write_text(forms.get(target.suffix, otherwise)(), encoding="utf-8")
    except OSError as error:
        reason = error.strerror or "it cannot be written"
        raise ParameterError("path", str(path), f"{reason}: give a file that can be made") from None
    return target
