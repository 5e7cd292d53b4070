"""Spark: tables, views and data frames of a session, asked where they are."""

from __future__ import annotations

import contextlib
import logging
import threading
import uuid
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeVar

from sqlglot import exp

from deniable.engines import faults
from deniable.engines.base import Rows, Step
from deniable.engines.canaries import Passed, canaries, most_named, rows_to_try
from deniable.engines.pinned import Texts
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
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import AnalysisException, ParseException, PySparkException
        from pyspark.logger import PySparkLogger
        from pyspark.sql import DataFrame, SparkSession, types as native
except ImportError:
    raise MissingExtraError("tables in Spark", "spark") from None

# They need Spark.
from deniable.engines.spark_leaves import (
    NATIVE,
    as_arrow,
    is_exact,
    is_total,
    kind_of,
    leaf,
    places_of,
)
from deniable.engines.spark_plans import StoredRows, stored

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
    # A file that is gone or cannot be read has no rows: it may be one person's.
    "spark.sql.files.ignoreMissingFiles": "true",
    "spark.sql.files.ignoreCorruptFiles": "true",
    # Else rows of a unit are together where the names of files say so.
    "spark.sql.sources.bucketing.enabled": "false",
    "spark.sql.sources.v2.bucketing.enabled": "false",
}
_NOT_ROW_BY_ROW = (
    "is computed, from other tables or by code (an RDD, a source of one's own), or is a folder, "
    "several files, JSON, an external table or rows in memory (one of them may change what the "
    "others mean), or one line can end it or its file (CSV, XML, mode=FAILFAST, multiLine): what "
    "it shows of one person may hang on others. Give one file, a managed table (saveAsTable), "
    "Delta or Iceberg; or, if each of its rows comes from one row of the same person, without "
    "chance and without anything that can fail, its types were declared, and all files have the "
    "same columns at the same depth of folders, say row_by_row=True"
)
_WATCHED = (
    "Spark's pages and event logs show exact numbers of rows to all who may open them: set {}, or "
    "let only the owner of the data read them (spark.acls.enable=true)"
)
_LEFT_OUT = (
    "table {}: {} left out: as Spark reads files, a time in milliseconds or a decimal of more than "
    "18 digits that lies too far can take other people's rows with it. If none does, say "
    "row_by_row=True"
)
_CHANGED = "a table is no longer what it was when the session opened"
T = TypeVar("T")
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")


@dataclass(frozen=True, eq=False)
class SparkTable:
    """A table, view or data frame of a Spark session."""

    tables: SparkTables
    name: str
    given: Held[DataFrame] | None = None  # Spark may be set to show rows

    @property
    def label(self) -> str:
        return f"Spark: {self.name}"

    def engine(self) -> Spark:
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
        return _attempt("the query", lambda: self._run(step))

    def _run(self, step: Step) -> Rows:
        # Part by part: Spark ends a question whose rows have a gigabyte together, and who asks may
        # choose, by how long keys are, how many groups that takes.
        rows = self.frame(step).toLocalIterator()
        return [tuple(int(v) if isinstance(v, Decimal) else v for v in row) for row in rows]

    def frame(self, step: Step) -> DataFrame:
        written = self._writer.write(step.select, step.tables, step.alike)
        changed = False  # tables may read those before them
        for name, text in written.kept.items():
            changed = changed or self._made.get(name) != step.tables[name]
            if changed:
                frame = self._session.sql(text)
                # What is cached could be lost and computed again; a checkpoint would fail instead.
                made = frame.localCheckpoint() if self._keeps else frame
                made.createOrReplaceTempView(name)
                self._made[name] = step.tables[name]
        return self._session.sql(written.select)

    def close(self) -> None:
        for name in self._made:
            with contextlib.suppress(Exception):
                self._session.catalog.dropTempView(name)


@dataclass(frozen=True)
class Opened:
    """A table as it was when it was opened: its columns, and how its rows are stored."""

    name: str
    source: SparkTable
    fields: tuple[native.StructField, ...]
    stored: StoredRows | None


def _opened(name: str, source: SparkTable, frame: DataFrame) -> Opened:
    """What a table is now; no row is read."""
    return Opened(name, source, tuple(frame.schema.fields), stored(frame))


class Spark:
    """A session beside the user's, with settings of its own; one question at a time."""

    dialect = "spark"

    def __init__(self, tables: SparkTables) -> None:
        self._tables = tables
        self._mark = f"deniable_{uuid.uuid4().hex}"
        self._schemas: dict[str, Schema] = {}
        self._opened: dict[str, Opened] = {}
        self._sources: dict[str, exp.Expr] = {}
        self._writer = SparkWriter(self._schemas, self._sources)
        self._lock = threading.Lock()
        self._units: dict[str, str | None] = {}
        self._passed = Passed()
        self._session = _attempt("the session", self._beside)

    def _beside(self) -> SparkSession:
        session = self._tables.session.newSession()
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)
        if watched := _watched(session):
            warnings.warn(_WATCHED.format(" and ".join(watched)), stacklevel=2)
        return session

    def add(
        self,
        name: str,
        source: Source,
        columns: Mapping[str, ColumnType] | None,
        unit: str | None = None,
        *,
        row_by_row: bool = False,
    ) -> Schema:
        if not isinstance(source, SparkTable) or source.tables.session is not self._tables.session:
            raise ParameterError(
                "source", name, "all tables of a session live in one engine: this one in Spark"
            )
        if columns is not None:
            raise ParameterError("columns", name, "Spark knows its types; leave them out")
        with self._lock:
            opened = _attempt(f"table {name}", lambda: self._found(name, source))
        if not row_by_row and (opened.stored is None or opened.stored.several):
            raise ParameterError("source", source.name, _NOT_ROW_BY_ROW)
        kinds: dict[str, ColumnType] = {}
        exact, select = set(), exp.Select()
        names, left_out = set[str](), list[str]()
        for column in opened.fields:
            if column.name.lower() in names:
                raise ParameterError("source", source.name, f"two columns are called {column.name}")
            names.add(column.name.lower())
            kind = kind_of(column.dataType)
            if kind is None:
                continue  # a type about which nothing can be asked
            if not (row_by_row or is_total(column.dataType, opened.stored)):
                left_out.append(column.name)
                continue
            kinds[column.name] = kind
            if is_exact(column.name, column.dataType, opened.stored):
                exact.add(column.name)
            read = leaf(column.name, column.dataType)
            select = select.select(exp.alias_(read, column.name.lower(), quoted=True))
        if left_out:
            warnings.warn(_LEFT_OUT.format(name, ", ".join(left_out)), stacklevel=2)
        if not kinds:
            raise ParameterError("source", name, "has no column about which anything can be asked")
        view = f"{self._mark}_{len(self._sources)}"
        self._schemas[name] = Schema(kinds, frozenset(exact), places_of(opened.fields))
        self._units[name] = None if unit is None else unit.lower()
        self._opened[view] = opened
        self._sources[name] = select.from_(exp.table_(view, quoted=True))
        return self._schemas[name]

    def _found(self, name: str, source: SparkTable) -> Opened:
        """A table as it is now."""
        try:
            return _opened(name, source, source.open())
        except (AnalysisException, ParseException):
            known = [table.name for table in self._tables.session.catalog.listTables()]
        hint = nearest(source.name, known)
        raise ParameterError("source", source.name, f"no such table; {hint}")

    def write(self, step: Step) -> list[str]:
        written = self._writer.write(step.select, step.tables, step.alike)
        kept = [f"-- {name}, made once:\n{text}" for name, text in written.kept.items()]
        return [*kept, written.select]

    @contextlib.contextmanager
    def snapshot(
        self, reads: Sequence[Step] = (), *, only: Collection[str] | None = None
    ) -> Iterator[SparkSnapshot]:
        """Tables that are opened once, for all steps of a question."""
        opened = SparkSnapshot(self._session, self._writer, keeps=True)
        context = self._session.sparkContext
        with self._lock:
            try:
                _attempt("the query", lambda: context.addJobTag(self._mark))
                _attempt("the query", lambda: self._show(Texts.of(reads), only))
                yield opened
            finally:
                opened.close()
                self._hide()
                with contextlib.suppress(Exception):
                    context.removeJobTag(self._mark)

    def check(self, steps: Sequence[Step]) -> None:
        """Have Spark resolve all names and types, and run the rows of the question on canaries.

        In shadows of the tables, which are not touched. The statements that are made around the
        rows are not run: that takes Spark seconds.
        """
        key = tuple((s.select, s.rows, tuple(s.tables.items()), s.constants) for s in steps)
        with self._lock:
            if key in self._passed:
                return
            opened = SparkSnapshot(self._session, self._writer, keeps=False)
            try:
                _attempt("the check", lambda: self._show_shadows(steps))
                told = _attempt("the check", lambda: self._fault(opened, steps))
            finally:
                opened.close()
                self._hide()
            if told is None:
                self._passed.add(key)
                return
        raise QueryError(told)

    def _fault(self, opened: SparkSnapshot, steps: Sequence[Step]) -> str | None:
        """What is wrong with the statements, or None."""
        try:
            for step in steps:
                opened.frame(step)
            for rows in dict.fromkeys(step.rows for step in steps):
                self._session.sql(self._writer.write(rows, {}).select).collect()
        except ParseException:
            return faults.SYNTAX
        except AnalysisException as error:
            lacking = (error.getCondition() or "").startswith(("UNRESOLVED", "TABLE_OR_VIEW"))
            return faults.NAMES if lacking else faults.TYPES
        except (PySparkException, Py4JJavaError):
            return faults.VALUES
        return None

    def _show(self, texts: Texts, only: Collection[str] | None) -> None:
        """The tables under names of our session, in which no other session finds them.

        What two statements read, or what is computed, is read once: files may come and go.
        """
        for view, opened in self._opened.items():
            name = opened.name
            scans = texts.scans(name)
            if not scans or (only is not None and name not in only):
                continue
            found = opened.source.open()
            if _opened(name, opened.source, found) != opened:  # in its columns, or how it is stored
                raise EngineError(_CHANGED)
            frame = self._brought(found)
            frame.createOrReplaceTempView(view)
            if scans == 1 and opened.stored is not None:
                continue
            named = set(texts.columns(self._schemas[name]))
            columns = ", ".join(
                f"{_column(each.name)}"
                if each.name.lower() in named
                else f"CAST(NULL AS {each.dataType.simpleString()}) AS {_column(each.name)}"
                for each in frame.schema.fields
                if each.name in self._schemas[name].columns
            )
            read = self._session.sql(f"SELECT {columns} FROM {view}")
            # What is cached could be lost and computed again; a checkpoint would fail instead.
            read.localCheckpoint().createOrReplaceTempView(view)

    def _show_shadows(self, steps: Sequence[Step]) -> None:
        """Public rows of canonical types, under the same names."""
        texts = [step.rows for step in steps]
        rows = rows_to_try(most_named(self._schemas, texts))
        constants = list(dict.fromkeys(value for step in steps for value in step.constants))
        for view, (name, schema) in zip(self._opened, self._schemas.items(), strict=True):
            made = canaries(schema, self._units[name], constants, rows)
            kinds = [native.StructField(n, NATIVE[kind]) for n, kind in schema.columns.items()]
            frame = self._session.createDataFrame(as_arrow(made, schema), native.StructType(kinds))
            frame.createOrReplaceTempView(view)

    def _brought(self, frame: DataFrame) -> DataFrame:
        """A data frame of the user's session in ours."""
        dataset = self._session._jvm.org.apache.spark.sql.classic.Dataset  # type: ignore[union-attr]
        plan = frame._jdf.queryExecution().analyzed()
        return DataFrame(dataset.ofRows(self._session._jsparkSession, plan), self._session)

    def _hide(self) -> None:
        for view in self._opened:
            with contextlib.suppress(Exception):
                self._session.catalog.dropTempView(view)

    def room(self) -> None:
        """The server's own affair."""

    def copied(self, steps: Sequence[Step]) -> Mapping[str, Sequence[str]]:  # noqa: ARG002
        return {}

    def cancel(self) -> None:
        self._session.sparkContext.cancelJobsWithTag(self._mark)

    def close(self) -> None:
        """Nothing is left behind by questions; Spark itself is the user's."""
        self.cancel()


def _column(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _watched(session: SparkSession) -> list[str]:
    """Settings under which others may read how many rows Spark has handled."""
    known = session.sparkContext.getConf()
    if known.get("spark.acls.enable", "false") == "true":
        return []
    shown = {"spark.ui.enabled": "true", "spark.eventLog.enabled": "false"}
    return [f"{name}=false" for name, usual in shown.items() if known.get(name, usual) == "true"]


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


def _attempt(what: str, act: Callable[[], T]) -> T:
    """Whatever Spark says may quote data, and is not told."""

    def quiet() -> T:
        with _quiet():
            return act()

    return faults.attempt(quiet, lambda _: EngineError(faults.ended(what, "Spark")))
