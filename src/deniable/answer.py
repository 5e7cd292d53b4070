"""Answers: a table of released numbers, each with the interval in which the exact one lies."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table as RichTable
from rich.text import Text

from deniable import plots
from deniable.errors import MissingExtraError, ParameterError
from deniable.intervals import (
    Ends,
    Floats,
    Holding,
    Interval,
    Mended,
    Normal,
    normal_quantile,
    same,
)
from deniable.privacy.exact import Number, probability
from deniable.privacy.price import Price

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 50
_Z95 = normal_quantile(0.95)


@dataclass(frozen=True, eq=False)
class Answer:
    """A released table. Everything about it may be shown, stored and computed with.

    It is data: it pickles, copies, is equal to another with the same parts, gives its rows one by
    one as dicts, and is taken as a table by whatever reads Arrow (pandas, polars, DuckDB, ...).

    `data` are its columns, named as the question names them. `noise` holds what the intervals of
    noisy columns are made of, `truth` the same with what a bound on people's rows took away, where
    that bound was estimated privately, `total` where the owner promised a bound. `cost` is what
    it was charged, `number` and `head` name its entry in the ledger,
    `repeated` says that it was given before and cost nothing now, `labels` what else to know.
    """

    data: dict[str, list[Any]]
    noise: dict[str, Ends] = field(repr=False)
    truth: dict[str, Ends] = field(repr=False, default_factory=dict, kw_only=True)
    total: dict[str, Ends] = field(repr=False, default_factory=dict, kw_only=True)
    cost: Price
    number: int
    head: str
    repeated: bool = False
    labels: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(self.data)

    @property
    def numbers(self) -> tuple[str, ...]:
        """The columns that hold noisy numbers."""
        return tuple(name for name in self.columns if name in self.noise)

    def __eq__(self, other: object) -> bool:
        return same(self, other)

    def __hash__(self) -> int:
        return hash((self.head, self.number, self.columns))

    def __len__(self) -> int:
        return len(next(iter(self.data.values()), []))

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, from column to value."""
        for row in zip(*self.data.values(), strict=True):
            yield dict(zip(self.data, row, strict=True))

    def __getitem__(self, name: str) -> list[Any]:
        """The values of a column; its name is found whatever its case, as in SQL."""
        found = _called(name, self.columns)
        if found is None:
            raise ParameterError("column", name, f"the answer has {', '.join(self.columns)}")
        return list(self.data[found])

    @property
    def table(self) -> pa.Table:
        """The numbers as an Arrow table."""
        return _arrow(self.data)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """The numbers as an Arrow stream, for whatever takes one."""
        return self.table.__arrow_c_stream__(requested_schema)

    def intervals(self, confidence: Number = 0.95, kind: str = "truth") -> pa.Table:
        """Every number with the ends of its interval, as `name`, `name_low` and `name_high`.

        Where the answer has a column of such a name itself, a `_` is put behind that of the end.
        Each interval holds with about this probability by itself. It is about the truth: what plain
        SQL gives on values clamped to their bounds. Noise and what a bound on people's rows took
        away are in it together, be that bound estimated or declared; an end that nothing supports
        is infinite, and labels say what upper ends rest on.

        With kind="noise", it is about the number before noise, rows being cut as they were. Counts
        and sums have the exact interval of the noise's law, means and ratios Fieller's, other
        arithmetic a linearised one.

        With kind="total", it holds for sure if no unit has more rows than the table's `cap_rows`
        promises. Without that promise, or for other numbers than counts, sums and means, everything
        is possible.
        """
        level = float(probability(confidence, "confidence"))
        if kind not in {"truth", "noise", "total"}:
            raise ParameterError("kind", kind, "must be 'truth', 'noise' or 'total'")
        return _arrow(self._with_ends(level, kind))

    def interval_of(
        self, name: str, confidence: float = 0.95, kind: str = "truth"
    ) -> Interval | None:
        """The ends of one column's intervals, as arrays; None where it holds no noisy numbers."""
        if name not in self.noise:
            return None
        if kind == "total" and name not in self.total:  # everything is possible
            return np.full(len(self), -math.inf), np.full(len(self), math.inf)
        known = {"truth": self._about(name), "noise": self.noise[name]} | (
            {"total": self.total[name]} if name in self.total else {}
        )
        return known[kind].at(confidence)

    def _about(self, name: str) -> Ends:
        """What the intervals about the truth are made of."""
        return self.truth.get(name, self.noise[name])

    def _with_ends(self, level: float, kind: str = "truth") -> dict[str, list[Any]]:
        columns: dict[str, list[Any]] = {}
        taken = {name.lower() for name in self.columns}
        for name, values in self.data.items():
            columns[name] = values
            ends = self.interval_of(name, level, kind)
            if ends is not None:
                for which, end in zip(("low", "high"), ends, strict=True):
                    columns[_free(f"{name}_{which}", taken)] = end.tolist()
        return columns

    def consistent(self, *, non_negative: bool = False, integer: bool = False) -> Answer:
        """The same numbers made to look like counts: cut at 0, or rounded; labelled as such.

        Post-processing, and so free. Intervals are cut and rounded outwards likewise; they cover
        the exact value as often as before where that is a count. Numbers cut at 0 are biased.
        """
        noise = {name: Mended(ends, non_negative, integer) for name, ends in self.noise.items()}
        truth = {name: Mended(ends, non_negative, integer) for name, ends in self.truth.items()}
        data = self.data | {
            name: ends.cut(self._floats(name), np.round).tolist() for name, ends in noise.items()
        }
        given = [("non-negative", non_negative), ("integer", integer)]
        labels = tuple(label for label, wanted in given if wanted)
        return replace(
            self, data=data, noise=dict(noise), truth=dict(truth), labels=self.labels + labels
        )

    def summing_to(self, total: Answer) -> tuple[Answer, Answer]:
        """Parts and a total made to agree: both moved by as little as their noise allows.

        `total` is an answer of one row about the same rows, asked apart. Each column that both have
        (whatever the case of its name) is adjusted by generalised least squares, which is
        post-processing, and free. Intervals of noise shrink accordingly, and rest on normal noise.
        Where a bound took something away, intervals about the truth stay as they were: what is
        lost of parts and of their total is no noise that averages out.
        """
        if len(total) != 1:
            raise ParameterError("total", len(total), "must be an answer of one row")
        pairs = [(name, _called(name, total.numbers)) for name in self.numbers]
        shared = [(name, other) for name, other in pairs if other is not None]
        if not shared:
            raise ParameterError("total", total.columns, "has no number in common with the parts")
        parts, whole = self, total
        for name, other in shared:
            parts, whole = _agreed(parts, whole, name, other)
        return parts, whole

    def _floats(self, name: str) -> Floats:
        return np.array(self.data[name], dtype=np.float64)

    def _deviation(self, name: str) -> Floats:
        low, high = self.noise[name].at(0.95)
        return np.asarray((high - low) / 2 / _Z95)

    def _moved(self, name: str, by: Floats, deviation: Floats) -> Answer:
        """The same answer with a column moved by so much, of normal noise."""
        low, high = self.noise[name].at(0.95)
        values = self._floats(name) + by
        data = {**self.data, name: values.tolist()}
        noise = {**self.noise, name: Normal((low + high) / 2 + by, deviation)}
        truth = dict(self.truth)
        if name in truth:
            truth[name] = Holding(truth[name], values)
        label = f"{name} sums to its total"
        return replace(self, data=data, noise=noise, truth=truth, labels=(*self.labels, label))

    def to_arrow(self) -> pa.Table:
        """The table itself."""
        return self.table

    def to_pandas(self) -> Any:
        """A pandas table; needs pandas."""
        try:
            import pandas  # noqa: PLC0415, F401  (optional)
        except ImportError:
            raise MissingExtraError("pandas tables", "pandas") from None
        return self.table.to_pandas()

    def to_polars(self) -> Any:
        """A polars table; needs polars."""
        try:
            import polars  # noqa: PLC0415  (optional)
        except ImportError:
            raise MissingExtraError("polars tables", "polars") from None
        return polars.from_arrow(self.table)

    def to_json(self) -> str:
        """Rows with their intervals, the cost and the ledger's entry."""
        columns = self._with_ends(0.95)
        rows = zip(*columns.values(), strict=True)
        plain = [dict(zip(columns, map(_plain, row), strict=True)) for row in rows]
        told = {"rows": plain, "confidence": 0.95, "cost": self.cost.to_json(), "entry": self.head}
        return json.dumps({**told, "repeated": self.repeated, "labels": self.labels}, indent=2)

    def to_csv(self) -> str:
        """Rows with their 95 % intervals."""
        columns = self._with_ends(0.95)
        lines = [",".join(map(_cell, columns))]
        lines += [",".join(map(_cell, row)) for row in zip(*columns.values(), strict=True)]
        return "\n".join(lines) + "\n"

    def plot(self, path: str | Path, *, column: str | None = None) -> Path:
        """Bars with their 95 % intervals; a line with a band where the first column is a date.

        An end that is open reaches to the edge of the picture.
        """
        numbers = self.numbers
        chosen = next(iter(numbers), None) if column is None else _called(column, numbers)
        if chosen is None:
            raise ParameterError("column", column, f"choose one of {', '.join(numbers) or 'none'}")
        ends, values = self._about(chosen).at(0.95), self._floats(chosen)
        keys = [name for name in self.columns if name not in numbers]
        labels = [", ".join(_clean(_key(row[key])) for key in keys) for row in self]
        title = f"{chosen}{' by ' + ', '.join(keys) if keys else ''}, 95 % intervals"
        if keys and all(isinstance(value, date) for value in self.data[keys[0]]):
            return plots.line_with_band(
                labels, values, ends, title=title, y_label=chosen, path=path
            )
        return plots.bars_between(labels, values, ends, title=title, path=path)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console, options
        yield self._rich()
        again = ["given before, free"] if self.repeated else []
        yield Text("; ".join(["± 95 %", f"cost {self.cost}", *self.labels, *again]))

    def _rich(self) -> RichTable:
        made = RichTable()
        for name in self.columns:
            made.add_column(Text(_clean(name)), justify="right" if name in self.numbers else "left")
        for row in self._texts()[:_SHOWN]:
            made.add_row(*map(Text, row))
        if len(self) > _SHOWN:
            made.add_row(*["..." for _ in self.columns])
        return made

    def _texts(self) -> list[list[str]]:
        texts = []
        for name in self.columns:
            values = self.data[name]
            ends = self.interval_of(name, 0.95)
            if ends is None:
                texts.append([_clean(_key(value)) for value in values])
            else:
                texts.append(
                    [_with_error(v, lo, hi) for v, lo, hi in zip(values, *ends, strict=True)]
                )
        return [list(row) for row in zip(*texts, strict=True)]

    def __str__(self) -> str:
        console = Console(width=100, no_color=True, legacy_windows=False)
        with console.capture() as capture:
            console.print(self)
        return capture.get().rstrip()

    def _repr_html_(self) -> str:
        """For notebooks."""
        import html  # noqa: PLC0415  (notebooks only)

        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._texts()[:_SHOWN]
        )
        return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"


def _agreed(parts: Answer, total: Answer, name: str, other: str) -> tuple[Answer, Answer]:
    """x + r σ²/(Σσ² + τ²) for parts, T - r τ²/(Σσ² + τ²) for the total, r what is missing."""
    x, t = parts._floats(name), total._floats(other)
    square, tau = parts._deviation(name) ** 2, total._deviation(other) ** 2
    missing, all_noise = t[0] - x.sum(), square.sum() + tau[0]
    left = np.sqrt(square * (1 - square / all_noise))
    return (
        parts._moved(name, missing * square / all_noise, left),
        total._moved(other, -missing * tau / all_noise, np.sqrt(tau * (1 - tau / all_noise))),
    )


def _called(name: object, columns: tuple[str, ...]) -> str | None:
    """The column of this name, whatever its case; no two differ by case only."""
    small = name.lower() if isinstance(name, str) else None
    return next((each for each in columns if each.lower() == small), None)


def _free(name: str, taken: set[str]) -> str:
    """A name that no column has yet, whatever its case: with as many _ behind it as that takes."""
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name


def _arrow(data: Mapping[str, list[Any]]) -> pa.Table:
    """An Arrow table; an empty column holds text, so that tables of no rows have types too."""
    import pyarrow  # noqa: PLC0415  (slow to import, and not needed to look at an answer)

    text = pyarrow.string()
    arrays = {n: pyarrow.array(v) if v else pyarrow.array([], type=text) for n, v in data.items()}
    return pyarrow.table(arrays)


def _with_error(value: object, low: float, high: float) -> str:
    if not isinstance(value, int | float):
        return "?" if value is None else str(value)
    if math.isnan(value):
        return "?"
    if high == math.inf and math.isfinite(low):
        return f"≥ {_number(low, max(abs(value - low), abs(low) / 100))}"
    if not math.isfinite(high - low):
        return f"{_number(value, abs(value))} ± ?"
    wide = max(high - value, value - low)
    return f"{_number(value, wide)} ± {_number(wide, wide)}"


def _key(value: object) -> str:
    """Midnights as dates."""
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return str(value)


def _clean(text: str) -> str:
    """Without what could steer a terminal."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def _number(value: float, wide: float) -> str:
    """As many digits as the interval leaves room for."""
    if wide == 0 or not math.isfinite(wide):
        return f"{value:,.6g}"
    digits = max(0, 1 - math.floor(math.log10(wide)))
    return f"{round(value, digits):,.{digits}f}" if digits < 12 else f"{value:.6g}"


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, int | float | str | bool | None) else str(value)


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    if text[:1] in {"=", "+", "@"} and not isinstance(value, int | float):
        text = "'" + text  # a spreadsheet must not run it
    return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n\r') else text
