"""The battery on Spark."""

import pyarrow as pa
import sqlglot
from py4j.protocol import Py4JError
from pyarrow import parquet
from pyspark.errors import PySparkException

from deniable.engines.spark import _SETTINGS
from deniable.engines.spark_leaves import NATIVE, leaf
from deniable.engines.spark_sql import SparkWriter
from deniable.errors import QueryError
from deniable.query.read.values.value import finished
from deniable.tables import Schema
from values.battery import KINDS, Run, groups, places, samples
from values.extremes import EXTREMES, B, D, F, I, S, T, column
from values.on_postgres import agree

_TYPES = {I: "bigint", F: "double", T: "string", B: "boolean", D: "date", S: "timestamp_ntz"}


class OnSpark(Run):
    """A session with one view for each column, of all extremes or of one, out of Parquet."""

    errors = (PySparkException, Py4JError, ValueError, OverflowError)

    def __init__(self, session, folder, given=None):
        super().__init__()
        self.engine, self.folder = session.newSession(), folder
        for name, value in _SETTINGS.items():
            self.engine.conf.set(name, value)
        self.schemas, self.sources, self.refused = {}, {}, {}
        for kind in EXTREMES:
            cells = column(kind)
            cells = cells.view(pa.binary()) if kind == T else cells
            table = pa.table({"n": pa.array(range(len(cells)), pa.int64()), "v": cells})
            parquet.write_table(table, f"{folder}/{kind}.parquet", row_group_size=1)
        for name, kind in KINDS.items():
            read = leaf("v", NATIVE[kind]).sql("spark")
            read = f"SELECT n AS n_{name}, {read} AS {name} FROM raw_{name}"
            self.schemas[f"t_{name}"] = Schema({f"n_{name}": I, name: kind})
            self.sources[f"t_{name}"] = sqlglot.parse_one(read, read="spark")
        self.writer = SparkWriter(self.schemas, self.sources)
        listed = samples() if given is None else given
        self.groups = groups([sample for sample in listed if self._is_taken(sample)])

    def _is_taken(self, sample):
        try:
            self._write([sample], sample.columns)
        except QueryError as error:
            self.refused[sample] = str(error)
        return sample not in self.refused

    def run(self, known, *, thin):
        """Together as on DuckDB, but for NULL; and alone as together."""
        for columns, listed in self.groups.items():
            self._fill(columns, None)
            together = self.compared(listed, columns, None, "together")
            self.agree(together, known, agree)
            for place in places(columns, thin=True) if len(columns) == 1 and not thin else ():
                self._fill(columns, place)
                self.compared(listed, columns, together, "alone")
        return self

    def _fill(self, columns, place):
        for number, name in enumerate(columns):
            frame = self.engine.read.parquet(f"{self.folder}/{KINDS[name]}.parquet")
            kept = frame if place is None else frame.where(f"n = {place[number]}")
            kept.createOrReplaceTempView(f"raw_{name}")

    def _write(self, listed, columns):
        keys = [f"n_{name}" for name in columns]
        values = [
            f"{finished(sample.value).sql('duckdb')} AS x_{n}" for n, sample in enumerate(listed)
        ]
        tables = ", ".join(f"t_{name}" for name in columns)
        select = f"SELECT {', '.join((*keys, *values))}" + f" FROM {tables}" * bool(tables)
        return self.writer.write(select, {}).select

    def fetch(self, listed, columns):
        frame = self.engine.sql(self._write(listed, columns))
        kinds = [field.dataType.simpleString() for field in frame.schema.fields]
        known = {native: kind for kind, native in _TYPES.items()}
        rows = [tuple(row) for row in frame.collect()]
        return rows, [known.get(kind) for kind in kinds[len(columns) :]]
