"""What a data frame of Spark reads: rows as they are stored, or what is computed.

Behind a frame may stand any code: a function over an RDD, a source that somebody wrote. So what
counts as stored is a closed list: one file in a format that has its types and that one line cannot
end, tables that Spark manages, Delta or Iceberg. Whatever else a plan is made of is as a view is.

Several files, folders, external tables, JSON and rows in memory need their owner's promise. What a
folder means Spark decides by all that lies there: a folder `day=1` of one person is a column for
everybody, and files outside of such folders are not read any more; a list where others have numbers
ends the question. JSON that is read without a schema, and tables of pandas, have types that follow
their cells; a plan does not tell. CSV and XML are as views are: Spark gives up the rest of a file,
other people's rows, after a line of too many cells or a record that does not close.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from pyspark.sql import DataFrame

_ROWS = frozenset({"LocalRelation", "Range", "SubqueryAlias"})
"""Nodes that hand out rows of the plan itself, or give them a name."""


class Form(StrEnum):
    """How rows are stored."""

    MEMORY = "memory"
    PARQUET = "parquet"
    ORC = "orc"
    AVRO = "avro"
    JSON = "json"
    TEXT = "text"


_SPARK = "org.apache.spark.sql."
_FILES = f"{_SPARK}execution.datasources."
_BUILT_IN = {"Parquet": Form.PARQUET, "Orc": Form.ORC, "Json": Form.JSON, "Text": Form.TEXT}
_FORMATS = {
    **{f"{_FILES}{form}.{name}FileFormat": form for name, form in _BUILT_IN.items()},
    f"{_SPARK}avro.AvroFileFormat": Form.AVRO,
}
"""How files are read in Spark's first way."""
_DELTA = f"{_SPARK}delta.DeltaParquetFileFormat"
_TABLES = {
    **{f"{_FILES}v2.{form}.{name}Table": form for name, form in _BUILT_IN.items()},
    f"{_SPARK}v2.avro.AvroTable": Form.AVRO,
}
"""Tables of files, in its second way."""
_KEPT_ELSEWHERE = {
    f"{_SPARK}delta.catalog.DeltaTableV2": Form.PARQUET,
    "org.apache.iceberg.spark.source.SparkTable": Form.PARQUET,
}
"""Tables whose own logs say what is in which folder."""

_FAILING = {
    "mode": {"failfast"},
    "ignorecorruptfiles": {"false"},
    "ignoremissingfiles": {"false"},
    "multiline": {"true"},
    "datetimerebasemode": {"exception", "legacy"},
}
"""Options of files under which one line or cell ends a question, or the rest of its file."""
_SIGNS = frozenset("*?[]{}\\")
"""What Spark takes for signs of a pattern."""
_CHOOSING = frozenset({"pathglobfilter", "modifiedbefore", "modifiedafter", "recursivefilelookup"})
"""Options by which names and times of files decide which are read."""
_READING = {
    "spark.sql.parquet.enableVectorizedReader": "true",  # the other one counts digits of decimals
    "spark.sql.parquet.datetimeRebaseModeInRead": "corrected",
    "spark.sql.avro.datetimeRebaseModeInRead": "corrected",
}
"""Settings that nothing of the kind needs. The session that made a frame reads its files, whoever
asks."""


@dataclass(frozen=True)
class StoredRows:
    """Rows as they are stored, and the columns whose values stand in the names of folders."""

    form: Form
    folders: frozenset[str] = frozenset()
    several: bool = False
    """Whether one file, or one cell, of them may change what the others mean."""


def stored(frame: DataFrame) -> StoredRows | None:
    """How its rows are stored; None if they are computed. A temporary view is seen through."""
    plan = node = frame._jdf.queryExecution().analyzed()
    meant: dict[int, int] = {}  # the columns that others are new names of
    while _hands_on(node, meant):
        children = node.children()
        if not children.size():
            found = _leaf(frame, node, _named(plan.output()), meant)
            return None if found and found.form != Form.MEMORY and _gives_up(frame) else found
        node = children.apply(0)
    return None


def _gives_up(frame: DataFrame) -> bool:
    """Whether the settings under which its files are read let one cell end the rest of a file."""
    known = frame.sparkSession.conf
    return any((known.get(name) or "").lower() != value for name, value in _READING.items())


def _hands_on(node: Any, meant: dict[int, int]) -> bool:
    """Whether a node of a plan gives rows on as they are; a leaf is looked at apart."""
    kind = node.getClass().getSimpleName()
    if kind == "View":
        return bool(node.isTempViewStoringAnalyzedPlan())
    if kind == "Project":
        return _only_names(node.projectList(), meant)
    return kind in {*_ROWS, "LogicalRelation", "DataSourceV2Relation"}


def _leaf(
    frame: DataFrame, node: Any, named: Mapping[str, int], meant: Mapping[int, int]
) -> StoredRows | None:
    """What stands at the end of a plan."""
    kind = node.getClass().getSimpleName()
    if kind in _ROWS:
        return StoredRows(Form.MEMORY, several=kind != "Range")
    if kind == "LogicalRelation":
        relation = node.relation()
        if _class(relation) != f"{_FILES}HadoopFsRelation":
            return None
        options, files = _options(relation.options()), relation.location()
        if _class(relation.fileFormat()) == _DELTA:
            return None if _can_fail(options) else StoredRows(Form.PARQUET)
        form, managed = _FORMATS.get(_class(relation.fileFormat())), _is_managed(node)
    else:
        table, options = node.table(), dict(node.options())
        if _class(table) in _KEPT_ELSEWHERE:
            return None if _can_fail(options) else StoredRows(_KEPT_ELSEWHERE[_class(table)])
        form, managed = _TABLES.get(_class(table)), False
        files = None if form is None else table.fileIndex()
    if form is None or _can_fail(options):
        return None
    written = {name.lower() for name in files.partitionSchema().fieldNames()}
    numbers = {number for name, number in _named(node.output()).items() if name.lower() in written}
    return StoredRows(
        form=form,
        folders=frozenset(n for n, number in named.items() if _is(number, meant) in numbers),
        several=not (managed or (form != Form.JSON and _is_one_file(frame, files, options))),
    )


def _is_managed(node: Any) -> bool:
    """Whether it is a table whose files Spark alone has written."""
    known = node.catalogTable()
    return bool(known.isDefined()) and str(known.get().tableType().name()) == "MANAGED"


def _is_one_file(frame: DataFrame, files: Any, options: Mapping[str, str]) -> bool:
    """Whether all rows are in one file, named by itself; one that is gone has no rows.

    A pattern is none, though it finds one file now: Spark keeps what was said in an option, but
    for statements that name files in place of a table.
    """
    given = {name.lower(): value for name, value in options.items()}
    places = files.rootPaths()
    if _SIGNS & set(given.get("path", "*")) or _CHOOSING & given.keys() or places.size() != 1:
        return False
    place = places.apply(0)
    known = frame.sparkSession._jsparkSession.sessionState().newHadoopConf()
    system = place.getFileSystem(known)
    return not (system.exists(place) and system.getFileStatus(place).isDirectory())


def _is(number: int, meant: Mapping[int, int]) -> int:
    """The stored column that one is."""
    while number in meant:
        number = meant[number]
    return number


def _named(output: Any) -> dict[str, int]:
    """Spark's numbers of columns, by their names."""
    each = (output.apply(place) for place in range(output.size()))
    return {str(column.name()): int(column.exprId().id()) for column in each}


def _options(listed: Any) -> dict[str, str]:
    each, options = listed.iterator(), dict[str, str]()
    while each.hasNext():
        option = each.next()
        options[option._1()] = option._2()
    return options


def _can_fail(options: Mapping[str, str]) -> bool:
    given = {name.lower(): value.lower() for name, value in options.items()}
    return any(given.get(name) in values for name, values in _FAILING.items())


def _class(thing: Any) -> str:
    return str(thing.getClass().getName())


def _only_names(listed: Any, meant: dict[int, int]) -> bool:
    """Whether columns are chosen and renamed, and none is computed."""
    for place in range(listed.size()):
        each = column = listed.apply(place)
        if each.getClass().getSimpleName() == "Alias":
            column = each.child()
        if column.getClass().getSimpleName() != "AttributeReference":
            return False
        if column is not each:
            meant[int(each.exprId().id())] = int(column.exprId().id())
    return True
