"""What a recorded answer is found by: all that it depends on, but its price and the data."""

from __future__ import annotations

from collections.abc import Mapping

from deniable.query.plan.plan import Plan
from deniable.query.price.estimate import Estimate
from deniable.query.read.catalogue import Catalogue


def digest_of(plan: Plan, catalogue: Catalogue, public: Mapping[str, object]) -> dict[str, object]:
    """What an answer depends on; `public` is what public tables are."""
    return {
        "sql": plan.text,
        "rows": [plan.rows, plan.norm],
        "max_groups": plan.max_groups,
        **({"left_out": list(plan.left_out)} if plan.left_out else {}),
        "keys": [[repr(key) for key in group.keys or ()] for group in plan.groups],
        **({"selected": [*map(repr, plan.selected)]} if plan.selected is not None else {}),
        "statistics": [each.sql.sql("duckdb") for each in plan.statistics],
        "weights": list(plan.weights) if plan.statistics else [],
        "distinct": [each.sql("duckdb") for each in plan.distinct],
        "ranks": [
            [plan.grids[rank.grid].sql.sql("duckdb"), str(rank.share)] for rank in plan.ranks
        ],
        "tables": {name: catalogue.private[name].describe() for name in plan.tables},
        **facts_of(catalogue, public),
    }


def facts_of(catalogue: Catalogue, public: Mapping[str, object]) -> dict[str, object]:
    """What every question depends on: the public tables, and the types of all columns."""
    return {
        "public": dict(public),
        "types": {
            name: {column: str(kind) for column, kind in schema.columns.items()}
            for name, schema in catalogue.schemas.items()
        },
    }


def digest_of_estimate(
    estimate: Estimate, catalogue: Catalogue, public: Mapping[str, object]
) -> dict[str, object]:
    """What is estimated depends on: the rows, whose they are, what they are grouped by.

    Not on what is made of it: other aggregates of the same groups find the same keys.
    """
    plan = estimate.plan
    found = digest_of(plan, catalogue, public)
    for name in () if "norms" in estimate.parts else ("statistics", "weights"):
        del found[name]
    for name in ("distinct", "ranks"):
        del found[name]
    return {
        **found,
        "sql": plan.source.sql("duckdb"),
        "unit": plan.unit.sql("duckdb"),
        "estimated": list(estimate.parts),
        "sets": [list(each) for each in plan.sets],
        "groups": [group.sql.sql("duckdb") for group in plan.groups],
    }
