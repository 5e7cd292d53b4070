"""The battery on Postgres, as it is written there: with guards where its arithmetic raises."""

import contextlib
from datetime import date, datetime, timedelta

import psycopg
import sqlglot

from deniable.engines.postgres_leaves import leaf
from deniable.engines.postgres_sql import PostgresWriter, rows_of
from deniable.errors import QueryError
from deniable.query.read.values.value import finished
from deniable.tables import Schema
from values.battery import KINDS, Run, groups, places, samples
from values.extremes import EXTREMES, B, D, F, I, S, T, is_utf8

_TYPES = {I: "int8", F: "float8", T: "text", B: "bool", D: "date", S: "timestamp"}
_ENDS = {
    D: (date(1970, 1, 1), timedelta(days=1), "4713-01-01 BC", "5874897-12-31"),
    S: (datetime(1970, 1, 1), timedelta(microseconds=1), "4713-01-01 BC", "294276-12-31"),
}
SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
    "SET standard_conforming_strings = on",
    "SET jit = off",
)


class OnPostgres(Run):
    """A server with one table for each column; it holds all extremes, or one."""

    errors = (psycopg.Error, ValueError, OverflowError)

    def __init__(self, url, given=None):
        super().__init__()
        self.engine = psycopg.connect(url, autocommit=True)
        for setting in SETTINGS:
            self.engine.execute(setting)
        self.schemas, self.sources, self.written, self.refused = {}, {}, {}, {}
        for name, kind in KINDS.items():
            self.engine.execute(f"CREATE TEMP TABLE all_{name} (n int8, v {_TYPES[kind]})")
            self.engine.execute(f"CREATE TEMP TABLE raw_{name} (n int8, v {_TYPES[kind]})")
            for n, cell in enumerate(EXTREMES[kind]):
                self.engine.execute(
                    f"INSERT INTO all_{name} VALUES (%s, CAST(%s AS {_TYPES[kind]}))",
                    (n, _written(kind, cell)),
                )
            read = f"SELECT n AS n_{name}, {leaf('v', _TYPES[kind])} AS {name} FROM raw_{name}"
            self.schemas[f"t_{name}"] = Schema({f"n_{name}": I, name: kind})
            self.sources[f"t_{name}"] = sqlglot.parse_one(read, read="postgres")
        listed = samples() if given is None else given
        self.groups = groups([sample for sample in listed if self._is_taken(sample)])

    def close(self):
        self.engine.close()

    def _is_taken(self, sample):
        try:
            self._write((sample,), sample.columns)
        except QueryError as error:
            self.refused[sample] = str(error)
        return sample not in self.refused

    def run(self, known, *, thin):
        """Together as on DuckDB, but for NULL; and alone as together."""
        for columns, listed in self.groups.items():
            self._fill(columns, None)
            together = self.compared(listed, columns, None, "together")
            self.agree(together, known, agree)
            for place in places(columns, thin=thin or len(columns) > 2)[:: 3 if thin else 1]:
                self._fill(columns, place)
                self.compared(listed, columns, together, "alone")
        return self

    def _fill(self, columns, place):
        """Statistics are those of what is in the table."""
        for number, name in enumerate(columns):
            kept = "" if place is None else f"WHERE n = {place[number]}"
            self.engine.execute(f"DELETE FROM raw_{name}")
            self.engine.execute(f"INSERT INTO raw_{name} SELECT * FROM all_{name} {kept}")
            if place is None:
                self.engine.execute(f"ANALYZE raw_{name}")

    def _write(self, listed, columns):
        if listed not in self.written:
            keys = [f"n_{name}" for name in columns]
            values = [
                f"{finished(sample.value).sql('duckdb')} AS x_{n}"
                for n, sample in enumerate(listed)
            ]
            tables = ", ".join(f"t_{name}" for name in columns)
            writer = PostgresWriter(self.schemas, self.sources)
            select = f"SELECT {', '.join((*keys, *values))}" + f" FROM {tables}" * bool(tables)
            self.written[listed] = (*writer_of(writer, select),)
        return self.written[listed]

    def fetch(self, listed, columns):
        *functions, text = self._write(tuple(listed), columns)
        with contextlib.closing(self.engine.cursor()) as cursor:
            for function in functions:
                cursor.execute(function)
            rows = rows_of(cursor.execute(text).fetchall())
            kinds = [self.engine.adapters.types[each.type_code].name for each in cursor.description]
        known = {native: kind for kind, native in _TYPES.items()}
        # The number of a row stands first.
        return rows, [known.get(kind) for kind in kinds[1 + len(columns) :]]


def writer_of(writer, select):
    """The statement, after the functions that it calls."""
    text = writer.write(select, {})
    return [*writer.functions, text]


def agree(result, wanted):
    """The same, or NULL where this engine has none; doubles to the last digits."""
    if result is None or result == wanted:
        return True
    doubles = isinstance(result, float) and isinstance(wanted, float)
    return doubles and abs(result - wanted) <= 1e-14 * abs(wanted)


def _written(kind, cell):
    """A cell as the server can store it."""
    if cell is None or (kind == T and (b"\0" in cell or not is_utf8(cell))):
        return None
    if kind == T:
        return cell.decode()
    if kind not in _ENDS:
        return repr(cell) if kind == F else str(cell)
    start, step, first, last = _ENDS[kind]
    try:
        return str(start + cell * step)
    except OverflowError:
        far = abs(cell) >= 2**31 - 1
        return ("infinity" if far else last) if cell > 0 else ("-infinity" if far else first)
