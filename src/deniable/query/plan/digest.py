"""What a recorded answer is found by: all that it depends on, but its price and the data."""

from __future__ import annotations

from collections.abc import Mapping

from deniable.query.plan.plan import Plan
from deniable.query.price.profile import Purchase
from deniable.query.read.catalogue import Catalogue


def digest_of(plan: Plan, catalogue: Catalogue, public: Mapping[str, object]) -> dict[str, object]:
    """What an answer depends on; `public` is what public tables are."""
    return {
        "sql": plan.text,
        "rows": [plan.rows, plan.floor, plan.norm, plan.top],
        "max_groups": plan.max_groups,
        **({"left_out": list(plan.left_out)} if plan.left_out else {}),
        "keys": [[repr(key) for key in group.keys or ()] for group in plan.groups],
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


def digest_of_bounds(
    bought: Purchase, catalogue: Catalogue, public: Mapping[str, object]
) -> dict[str, object]:
    """What the bounds of a plan depend on."""
    plan = bought.plan
    return {
        **digest_of(plan, catalogue, public),
        "sql": plan.source.sql("duckdb"),
        "bought": list(bought.parts),
        "groups": [group.sql.sql("duckdb") for group in plan.groups],
    }
