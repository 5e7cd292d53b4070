"""What a data frame of Spark reads: rows as they are stored, or what is computed.

Behind a frame may stand any code: a function over an RDD, a source that somebody wrote. So what
counts as stored is a closed list: files in formats that come with Spark, Delta or Iceberg, and rows
in memory. Whatever else a plan is made of is as a view is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame

_ROWS = frozenset({"LocalRelation", "Range", "SubqueryAlias"})
"""Nodes that hand out rows of the plan itself, or give them a name."""

_FORMATS = "org.apache.spark.sql."  # those of Spark, and those of Delta, which lie there too
_FILES = f"{_FORMATS}execution.datasources."
_TABLES = frozenset(
    {f"{_FILES}v2.{each}.{each.capitalize()}Table" for each in ("parquet", "orc", "json", "text")}
    | {f"{_FILES}v2.csv.CSVTable", f"{_FORMATS}v2.avro.AvroTable"}
    | {f"{_FORMATS}delta.catalog.DeltaTableV2", "org.apache.iceberg.spark.source.SparkTable"}
)
"""Tables of files."""

_FAILING = {"mode": "failfast", "ignorecorruptfiles": "false", "ignoremissingfiles": "false"}
"""Options of files under which one of them, or one line, makes a question fail."""


def is_stored(frame: DataFrame) -> bool:
    """Whether its rows are stored as they are; a temporary view is seen through."""
    waiting = [frame._jdf.queryExecution().analyzed()]
    while waiting:
        node = waiting.pop()
        if not _hands_on(node):
            return False
        children = node.children()
        waiting += [children.apply(place) for place in range(children.size())]
    return True


def _hands_on(node: Any) -> bool:
    """Whether a node of a plan gives rows on as they are."""
    kind = node.getClass().getSimpleName()
    if kind == "View":
        return bool(node.isTempViewStoringAnalyzedPlan())
    if kind == "Project":
        return _only_names(node.projectList())
    if kind == "LogicalRelation":
        return _is_files(node.relation())
    if kind == "DataSourceV2Relation":
        return _class(node.table()) in _TABLES and not _can_fail(dict(node.options()))
    return kind in _ROWS


def _is_files(relation: Any) -> bool:
    """Whether it reads files, in a format of Spark's, and fails on none of them."""
    if _class(relation) != f"{_FILES}HadoopFsRelation":
        return False
    listed, options = relation.options().iterator(), dict[str, str]()
    while listed.hasNext():
        option = listed.next()
        options[option._1()] = option._2()
    return _class(relation.fileFormat()).startswith(_FORMATS) and not _can_fail(options)


def _can_fail(options: Mapping[str, str]) -> bool:
    given = {name.lower(): value.lower() for name, value in options.items()}
    return any(given.get(name) == value for name, value in _FAILING.items())


def _class(thing: Any) -> str:
    return str(thing.getClass().getName())


def _only_names(listed: Any) -> bool:
    """Whether columns are chosen and renamed, and none is computed."""
    for place in range(listed.size()):
        each = listed.apply(place)
        if each.getClass().getSimpleName() == "Alias":
            each = each.child()
        if each.getClass().getSimpleName() != "AttributeReference":
            return False
    return True
