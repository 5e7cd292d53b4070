"""Statements about many columns that are alike: translated for one, they say the same of all."""

from dataclasses import replace

import pytest

from deniable.engines.alike import added
from deniable.engines.postgres_sql import PostgresWriter
from deniable.engines.spark_sql import SparkWriter
from deniable.learning.pushed import LearningSource, pushed
from deniable.learning.rows import Ranges
from deniable.learning.sums import GroupSums, Moments
from deniable.tables import ColumnType, Schema
from learning.sources import chosen

WIDTH = 14  # 136 second moments: their squares are added in brackets
SCHEMA = Schema(
    {
        "who": ColumnType.INTEGER,
        "ward": ColumnType.TEXT,
        **{f"x{n}": ColumnType.NUMBER for n in range(WIDTH)},
        "y": ColumnType.INTEGER,
    }
)
SUMS = {
    "moments": (Moments(0.6**0.5, 0.1**0.5, 0.3**0.5), {"y": "y", "y_ends": (0.0, 1.0)}),
    "groups": (
        GroupSums(2, 0.2**0.5, 0.4**0.5, 0.4**0.5),
        {"y": "ward", "classes": ("a", "b"), "y_ends": None},
    ),
}


def step_of(name, *, l2=True):
    sums, labels = SUMS[name]
    selected = chosen(SCHEMA, unit="who", rows=2)
    box = Ranges((0.0,) * WIDTH, (1.0,) * WIDTH, WIDTH**0.5)
    given = {"classes": (), "y_ends": None, **labels}
    names = tuple(f"x{n}" for n in range(WIDTH))
    return pushed(sums, LearningSource(selected, names, ranges=box, l2=l2, **given)).step


def written(writer, step, alike):
    made = writer({"people": SCHEMA}, {})
    found = made.write(step.select, step.tables, alike)
    texts = [found] if isinstance(found, str) else [*found.kept.values(), found.select]
    return [text.replace("(", "").replace(")", "") for text in texts]


@pytest.mark.parametrize("l2", [True, False])
@pytest.mark.parametrize("name", SUMS)
@pytest.mark.parametrize("writer", [PostgresWriter, SparkWriter])
def test_one_column_repeated_is_all_of_them_but_for_brackets(writer, name, l2):
    step = step_of(name, l2=l2)
    assert step.alike is not None
    assert len(step.alike.names) > 2 * WIDTH
    found = written(writer, step, step.alike)
    assert found == written(writer, step, None)
    forgotten = replace(step.alike, names=step.alike.names[:-1])
    assert written(writer, step, forgotten) != found


@pytest.mark.parametrize("writer", [PostgresWriter, SparkWriter])
def test_columns_of_two_types_are_translated_one_by_one(writer):
    step = step_of("groups")
    rows = step.alike.rows.replace(" AS t1,", "::HUGEINT AS t1,")
    assert rows != step.alike.rows
    unlike = replace(step.alike, rows=rows)
    assert written(writer, step, unlike) == written(writer, step, None)


def test_many_parts_are_added_in_brackets():
    parts = [f"x{n}" for n in range(1000)]
    text = added(parts)
    assert text.replace("(", "").replace(")", "").split(" + ") == parts
    assert max(text[:n].count("(") - text[:n].count(")") for n in range(len(text))) == 4
