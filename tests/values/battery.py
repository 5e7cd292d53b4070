"""The battery: every operator on the extremes of its types, together, alone and in company.

Whatever stands beside a row must not change what comes out of it; no row raises; and what comes out
is canonical, of the type that our table says.
"""

import itertools
from collections import defaultdict
from dataclasses import dataclass
from functools import cache

import sqlglot
from sqlglot import exp

from deniable.query.read.columns import Column
from deniable.query.read.values.operators import read_column
from deniable.query.read.values.value import Value
from deniable.tables import ColumnType
from values.extremes import EXTREMES, B, D, F, I, S, T, is_canonical
from values.samples import SAMPLES

KINDS = dict(zip("ijfgtwdesrbc", (I, I, F, F, T, T, D, D, S, S, B, B), strict=True))


@dataclass(frozen=True, eq=False)
class Sample:
    """An expression, the columns that it has, and what it is read as."""

    text: str
    columns: str
    value: Value

    @property
    def kind(self) -> ColumnType:
        return self.value.kind


def parsed(text):
    return sqlglot.parse_one(f"SELECT {text} AS x", read="duckdb").selects[0].this


@cache
def samples() -> tuple[Sample, ...]:
    """Every expression of the table, once."""
    texts = dict.fromkeys(text for listed in SAMPLES.values() for text in listed)
    return tuple(_sample(text) for text in texts)


def _sample(text):
    node = parsed(text)
    named = {column.name for column in node.find_all(exp.Column)}
    value = read_column(node, lambda column: Column(KINDS[column.name]), "SELECT")
    return Sample(text, "".join(name for name in KINDS if name in named), value)


def groups(given) -> dict[str, list[Sample]]:
    """Samples by the columns that they have: these run together."""
    found = defaultdict(list)
    for sample in given:
        found[sample.columns].append(sample)
    return dict(found)


def places(columns, *, thin):
    """Which extremes stand in the columns together: all, or each in its turn."""
    sizes = [len(EXTREMES[KINDS[name]]) for name in columns]
    if not thin:
        return list(itertools.product(*map(range, sizes)))
    strides = (1, 5, 7, 11)
    return [
        tuple(n * stride % size for stride, size in zip(strides, sizes, strict=False))
        for n in range(max(sizes, default=0))
    ]


def other(place, columns):
    """Another extreme for each column."""
    sizes = (len(EXTREMES[KINDS[name]]) for name in columns)
    return tuple((3 * n + 1) % size for n, size in zip(place, sizes, strict=True))


class Run:
    """What was tried on an engine: cases, faults, and what the engine refuses."""

    errors: tuple[type[Exception], ...] = ()
    groups: dict[str, list[Sample]]

    def __init__(self):
        self.cases, self.faults, self.lost = 0, [], 0

    def fetch(self, listed, columns):
        """Rows of places and results, and the types of the results."""
        raise NotImplementedError

    def found(self, listed, columns, what):
        """Results by sample and place; if something raises, each sample by itself."""
        try:
            rows, kinds = self.fetch(listed, columns)
        except self.errors as error:
            if len(listed) > 1:
                parts = (self.found([sample], columns, what) for sample in listed)
                return {sample: results for part in parts for sample, results in part.items()}
            self.fault(listed[0], what, f"raised: {str(error)[:200]}")
            return {}
        for sample, kind in zip(listed, kinds, strict=True):
            if kind != sample.kind:
                self.fault(sample, what, f"is {kind}, not {sample.kind}")
        size = len(columns)
        return {
            sample: {tuple(row[:size]): row[size + place] for row in rows}
            for place, sample in enumerate(listed)
        }

    def compared(self, listed, columns, known, what):
        """Results; faults where they are not canonical, or not those known."""
        found = self.found(listed, columns, what)
        for sample, results in found.items():
            self.cases += len(results)
            for place, result in results.items():
                if not is_canonical(sample.kind, result):
                    self.fault(sample, what, f"not canonical at {place}: {str(result)[:40]}")
                elif known is not None and repr(result) != repr(
                    known.get(sample, {}).get(place, "-")
                ):
                    told = (
                        f"{str(result)[:40]}, not {str(known.get(sample, {}).get(place, '-'))[:40]}"
                    )
                    self.fault(sample, what, f"differs at {place}: {told}")
        return found

    def agree(self, together, known, alike):
        """As on DuckDB, or NULL; but for how letters beyond ASCII change their case."""
        for sample, results in together.items():
            for place, result in results.items():
                pairs = zip(sample.columns, place, strict=True)
                cells = [EXTREMES[KINDS[name]][n] for name, n in pairs]
                texts = [cell for cell in cells if isinstance(cell, bytes)]
                cased = sample.value.sql.find(exp.Lower, exp.Upper) is not None
                plain = all(map(bytes.isascii, (*texts, sample.text.encode())))
                if any(0 in cell for cell in texts) or (cased and not plain):
                    continue
                wanted = known[sample].get(place)
                self.lost += result is None and wanted is not None
                if not alike(result, wanted):
                    self.fault(sample, "beside DuckDB", f"at {cells}: {result!r}, not {wanted!r}")

    def fault(self, sample, what, told):
        self.faults.append(f"{sample.text}: {what}: {told}")

    def told(self, name):
        """One line about all of it."""
        tried = sum(map(len, self.groups.values()))
        return (
            f"{name}: {len(SAMPLES)} operators, {tried} expressions, {self.cases:,} cases, "
            f"{len(self.faults)} faults"
        )
