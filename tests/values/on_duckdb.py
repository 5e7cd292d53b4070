"""The battery on DuckDB, without any TRY: what is total needs none."""

import duckdb
import pyarrow as pa
from sqlglot import exp

from deniable.engines.leaves import CellReader, projection
from deniable.query.read.columns import Column
from deniable.query.read.values.operators import condition
from deniable.tables import SQL_TYPES, Schema
from values.battery import KINDS, Run, groups, other, parsed, places, samples
from values.extremes import EXTREMES, B, I, T, column

SETTINGS = (
    "SET disabled_optimizers = 'common_subexpressions'",
    "SET ieee_floating_point_ops = true",
    "SET integer_division = false",
    "SET TimeZone = 'UTC'",
    "SET threads = 1",
)
_KINDS = {name: kind for kind, name in SQL_TYPES.items()}


class OnDuckDB(Run):
    """An engine with the extremes in it: all of a type, each alone, and two by two."""

    errors = (duckdb.Error, ValueError, OverflowError)

    def __init__(self, given=None):
        super().__init__()
        self.groups = groups(samples() if given is None else given)
        self.engine = duckdb.connect()
        self.tables = {}
        for setting in SETTINGS:
            self.engine.execute(setting)
        for kind, cells in EXTREMES.items():
            held = pa.table({"n": range(len(cells)), "v": column(kind)})
            self.engine.register(f"arrow_{kind}", held)
            # Raw where it can be stored, so that statistics have the extreme.
            stored = leaves(kind, f"arrow_{kind}") if kind == T else f"FROM arrow_{kind}"
            self._make(f"all_{kind}", stored)
            name = next(name for name in KINDS if KINDS[name] == kind)
            for n in range(len(cells)):
                for size, rows in (("one", (n,)), ("two", (n, *other((n,), name)))):
                    kept = f"WHERE n IN ({', '.join(map(str, rows))})"
                    self._make(f"{size}_{kind}_{n}", f"SELECT n, v FROM all_{kind} {kept}")

    def _make(self, name, select):
        self.engine.execute(f"CREATE TABLE {name} AS {select}")

    def run(self, *, thin):
        """All that the battery asserts; `thin` gives each extreme its turn, and not all pairs."""
        for columns, listed in self.groups.items():
            self.tables = {name: f"all_{KINDS[name]}" for name in columns}
            known = self.compared(listed, columns, None, "together")
            self._kept(known, columns)
            self.tables = {name: f"arrow_{KINDS[name]}" for name in columns}
            self.compared(listed, columns, known, "on Arrow")
            for turn, place in enumerate(places(columns, thin=thin or len(columns) > 2)):
                for size, what in (("one", "alone"), ("two", "in company")):
                    if thin and size == "two" and turn % 4:
                        continue
                    self.tables = {
                        name: f"{size}_{KINDS[name]}_{n}"
                        for name, n in zip(columns, place, strict=True)
                    }
                    self.compared(listed, columns, known, what)
        return self

    def known(self):
        """What comes out of everything together."""
        found = {}
        for columns, listed in self.groups.items():
            self.tables = {name: f"all_{KINDS[name]}" for name in columns}
            found.update(self.found(listed, columns, "together"))
        return found

    def fetch(self, listed, columns):
        keys = [f"n_{name}" for name in columns]
        values = [sample.value.sql.sql("duckdb") for sample in listed]
        made = self.engine.execute(f"SELECT {', '.join((*keys, *values))} {self._from()}")
        kinds = [_KINDS.get(str(each[1])) for each in made.description][len(keys) :]
        return made.fetchall(), kinds

    def _kept(self, known, columns):
        """A condition keeps the rows where it is true; on an engine's way to it, too."""
        keys = ", ".join(f"n_{name}" for name in columns)
        for sample, results in known.items():
            if sample.kind != B or not columns:
                continue
            kept = condition(parsed(sample.text), lambda each: Column(KINDS[each.name]), "WHERE")
            where = kept.transform(_bare).sql("duckdb")
            try:
                rows = self.engine.execute(f"SELECT {keys} {self._from()} WHERE {where}").fetchall()
            except self.errors as error:
                self.fault(sample, "as a condition", f"raised: {str(error)[:200]}")
                continue
            self.cases += len(results)
            if set(rows) != {place for place, result in results.items() if result}:
                self.fault(sample, "as a condition", "differs")

    def _from(self):
        """Each column out of a table of its own."""
        listed = ", ".join(
            f"(SELECT n AS n_{name}, v AS {name} FROM ({leaves(KINDS[name], table)}) AS l) "
            f"AS t_{name}"
            for name, table in self.tables.items()
        )
        return f"FROM {listed}" if listed else ""


def _bare(node):
    """Without the TRY that other engines need."""
    tried = isinstance(node, exp.Anonymous) and node.name == "TRY"
    return node.expressions[0] if tried else node


def leaves(kind, table):
    """A stored column as a canonical one, as engines read it."""
    reader = CellReader.MEMORY if table.startswith("arrow") else CellReader.DATABASE
    found = {"n": "BIGINT", "v": SQL_TYPES[kind]}
    return projection(Schema({"n": I, "v": kind}), found, table, reader, None)
