"""Spark: tables, views and data frames of a session, asked where they are."""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from sqlglot import exp

from deniable.engines.base import Rows, Step
from deniable.engines.spark_sql import SparkWriter
from deniable.errors import (
    EngineError,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
    QueryError,
)
from deniable.held import Held
from deniable.tables import ColumnType, Schema, Source, nearest

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the versions of pandas that PySpark knows
        from py4j.protocol import Py4JError
        from pyspark.errors import AnalysisException, ParseException, PySparkException
        from pyspark.logger import PySparkLogger
        from pyspark.sql import DataFrame, SparkSession
        from pyspark.sql import types as native
except ImportError:
    raise MissingExtraError("tables in Spark", "spark") from None

_TYPES: dict[type[native.DataType], tuple[ColumnType, str]] = {
    native.ByteType: (ColumnType.INTEGER, "BIGINT"),
    native.ShortType: (ColumnType.INTEGER, "BIGINT"),
    native.IntegerType: (ColumnType.INTEGER, "BIGINT"),
    native.LongType: (ColumnType.INTEGER, ""),
    native.FloatType: (ColumnType.NUMBER, "DOUBLE"),
    native.DoubleType: (ColumnType.NUMBER, ""),
    native.DecimalType: (ColumnType.NUMBER, "DOUBLE"),
    native.StringType: (ColumnType.TEXT, "STRING"),
    native.VarcharType: (ColumnType.TEXT, "STRING"),
    native.CharType: (ColumnType.TEXT, "STRING"),
    native.BooleanType: (ColumnType.BOOLEAN, ""),
    native.DateType: (ColumnType.DATE, ""),
    native.TimestampType: (ColumnType.TIMESTAMP, "TIMESTAMP_NTZ"),
    native.TimestampNTZType: (ColumnType.TIMESTAMP, ""),
}
_ROUNDED = (native.FloatType, native.DecimalType, native.TimestampType)
# What a question means must not follow the settings of the session or of the cluster.
_SETTINGS = {
    "spark.sql.ansi.enabled": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timestampType": "TIMESTAMP_LTZ",
    "spark.sql.caseSensitive": "false",
    "spark.sql.groupByOrdinal": "false",
    "spark.sql.variable.substitute": "false",
    "spark.sql.parser.escapedStringLiterals": "false",
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.exponentLiteralAsDecimal.enabled": "false",
    "spark.sql.legacy.decimal.retainFractionDigitsOnTruncate": "false",
    "spark.sql.legacy.interval.enabled": "false",
    "spark.sql.legacy.timeParserPolicy": "CORRECTED",
    "spark.sql.legacy.ctePrecedencePolicy": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.avro.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.adaptive.enabled": "true",
}
_GLOBAL = "global_temp"
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@dataclass(frozen=True, eq=False)
class SparkTable:
    """A table, view or data frame of a Spark session."""

    tables: SparkTables
    name: str
    given: Held[DataFrame] | None = None  # Spark may be set to show rows

    @property
    def label(self) -> str:
        """Which table it is, for the ledger."""
        return f"Spark: {self.name}"

    def engine(self) -> Spark:
        """A session of our own on the same Spark."""
        return Spark(self.tables)

    def open(self) -> DataFrame:
        """The rows as the user's session knows them; none is read."""
        return self.tables.session.table(self.name) if self.given is None else self.given.open()


@dataclass(frozen=True, eq=False, repr=False)
class SparkTables:
    """What a Spark session can read."""

    session: SparkSession

    def table(self, name: str) -> SparkTable:
        """A table of the catalogue or a temporary view: "visits", or "clinic.visits"."""
        named: object = name
        if not (isinstance(named, str) and named):
            raise ParameterTypeError("name", name, "must be the name of a table or view")
        return SparkTable(self, name)

    def frame(self, frame: DataFrame) -> SparkTable:
        """A data frame of the session; what it computes is computed under the user's settings."""
        given: object = frame
        if not isinstance(given, DataFrame):
            raise ParameterTypeError("frame", type(frame).__name__, "must be a Spark DataFrame")
        return SparkTable(self, "a data frame", Held(frame, "a data frame"))


def spark(session: SparkSession) -> SparkTables:
    """A Spark session whose tables, views and data frames can be opened to questions."""
    given: object = session
    if not isinstance(given, SparkSession):
        raise ParameterTypeError("session", type(session).__name__, "must be a SparkSession")
    return SparkTables(session)


class SparkSnapshot:
    """The steps of one question: rows that are needed first are made once, and never again."""

    def __init__(self, session: SparkSession, writer: SparkWriter, *, keeps: bool) -> None:
        self._session, self._writer, self._keeps = session, writer, keeps
        self._made: dict[str, str] = {}

    def run(self, step: Step) -> Rows:
        """The rows of a step."""
        rows = self.frame(step).collect()
        return [tuple(int(v) if isinstance(v, Decimal) else v for v in row) for row in rows]

    def frame(self, step: Step) -> DataFrame:
        """A step that is ready to run."""
        written = self._writer.write(step.select, step.tables)
        for name, text in written.kept.items():
            if self._made.get(name) != step.tables[name]:
                frame = self._session.sql(text)
                # What is cached could be lost and computed again; a checkpoint would fail instead.
                made = frame.localCheckpoint() if self._keeps else frame
                made.createOrReplaceTempView(name)
                self._made[name] = step.tables[name]
        return self._session.sql(written.select)

    def close(self) -> None:
        """Let go of what was kept."""
        for name in self._made:
            self._session.catalog.dropTempView(name)


class Spark:
    """A session beside the user's, with settings of its own; one question at a time."""

    dialect = "spark"

    def __init__(self, tables: SparkTables) -> None:
        self._tables = tables
        self._mark = f"deniable_{uuid.uuid4().hex}"
        self._schemas: dict[str, Schema] = {}
        self._opened: dict[str, SparkTable] = {}
        self._sources: dict[str, exp.Expr] = {}
        self._writer = SparkWriter(self._schemas, self._sources)
        self._lock = threading.Lock()
        with _told("the session"):
            self._session = tables.session.newSession()
            for name, value in _SETTINGS.items():
                self._session.conf.set(name, value)

    def add(self, name: str, source: Source, columns: Mapping[str, ColumnType] | None) -> Schema:
        """Find a table and the types of its columns; no row is read."""
        if not isinstance(source, SparkTable) or source.tables.session is not self._tables.session:
            raise ParameterError(
                "source", name, "all tables of a session live in one engine: this one in Spark"
            )
        if columns is not None:
            raise ParameterError("columns", name, "Spark knows its types; leave them out")
        with self._lock, _told(f"table {name}"):
            try:
                fields = source.open().schema.fields
            except (AnalysisException, ParseException):
                known = [table.name for table in self._tables.session.catalog.listTables()]
                hint = nearest(source.name, known)
                raise ParameterError("source", source.name, f"no such table; {hint}") from None
        kinds: dict[str, ColumnType] = {}
        exact, select = set(), exp.Select()
        for column in fields:
            found = _TYPES.get(type(column.dataType))
            if found is None:
                continue  # a type about which nothing can be asked
            if column.name.lower() in {known.lower() for known in kinds}:
                raise ParameterError("source", source.name, f"two columns are called {column.name}")
            kinds[column.name] = found[0]
            if not isinstance(column.dataType, _ROUNDED):
                exact.add(column.name)
            read = _read_column(column.name, found[1])
            select = select.select(exp.alias_(read, column.name.lower(), quoted=True))
        view = f"{self._mark}_{len(self._sources)}"
        self._schemas[name] = Schema(kinds, frozenset(exact))
        self._opened[view] = source
        self._sources[name] = select.from_(exp.table_(view, db=_GLOBAL, quoted=True))
        return self._schemas[name]

    def write(self, step: Step) -> list[str]:
        """The statements that Spark runs for a step."""
        written = self._writer.write(step.select, step.tables)
        kept = [f"-- {name}, made once:\n{text}" for name, text in written.kept.items()]
        return [*kept, written.select]

    @contextlib.contextmanager
    def snapshot(self) -> Iterator[SparkSnapshot]:
        """Tables that are opened once, for all steps of a question."""
        with self._lock, _told("the query"), self._views():
            self._session.sparkContext.addJobTag(self._mark)
            opened = SparkSnapshot(self._session, self._writer, keeps=True)
            try:
                yield opened
            finally:
                opened.close()
                self._session.sparkContext.removeJobTag(self._mark)

    def check(self, steps: Sequence[Step]) -> None:
        """Have Spark resolve names and types, which reads no row."""
        with self._lock, _told("the tables"), self._views():
            opened = SparkSnapshot(self._session, self._writer, keeps=False)
            try:
                for step in steps:
                    opened.frame(step)
            except (AnalysisException, ParseException) as error:
                told = error.getMessage() or type(error).__name__
                first = told.strip().splitlines()[0][:200]
                raise QueryError(f"the engine does not take this: {first}") from None
            finally:
                opened.close()

    @contextlib.contextmanager
    def _views(self) -> Iterator[None]:
        """The tables under names that sessions share, which is how another session finds views."""
        try:
            for view, source in self._opened.items():
                source.open().createOrReplaceGlobalTempView(view)
            yield
        finally:
            for view in self._opened:
                self._session.catalog.dropGlobalTempView(view)

    def room(self) -> None:
        """The server's own affair."""

    def cancel(self) -> None:
        """End what is running."""
        self._session.sparkContext.cancelJobsWithTag(self._mark)

    def close(self) -> None:
        """Nothing is left behind by questions; Spark itself is the user's."""
        self.cancel()


def _read_column(name: str, cast: str) -> exp.Expr:
    """A column as its canonical type; text that is not in UTF-8 is NULL."""
    column = exp.column(name, quoted=True)
    if cast == "STRING":
        return exp.Anonymous(this="TRY_VALIDATE_UTF8", expressions=[exp.cast(column, "TEXT")])
    return exp.cast(column, cast, dialect="spark") if cast else column


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """PySpark logs errors with the values that they quote; not those of our questions."""
    ours = threading.get_ident()

    def of_others(record: logging.LogRecord) -> bool:
        return record.thread != ours

    loggers = [PySparkLogger.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(of_others)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(of_others)


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever Spark says may quote data; its kind does not."""
    try:
        with _quiet():
            yield
    except (PySparkException, Py4JError, OSError) as error:
        if isinstance(error, ParameterError | QueryError):
            raise
        kind = type(error).__name__
    else:
        return
    raise EngineError(f"{what}: Spark ended with {kind}; see its log")
