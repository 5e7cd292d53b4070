"""What a recorded answer is found by: all that it depends on, but its price and the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations

from deniable.query.plan.plan import Plan
from deniable.query.price.estimate import PrivateEstimate
from deniable.query.read.catalogue import Catalogue
from deniable.query.read.fan import conjuncts
from deniable.tables import label_of

_MOST_PARTS = 4  # of WHERE, all subsets of which are tried


def digest_of(plan: Plan, catalogue: Catalogue) -> dict[str, object]:
    """What an answer depends on."""
    return {
        "sql": plan.text,
        "rows": [plan.contribution.rows, plan.contribution.norm],
        "max_groups": plan.contribution.max_groups,
        **({"left_out": list(plan.contribution.left_out)} if plan.contribution.left_out else {}),
        "keys": [[repr(key) for key in group.keys or ()] for group in plan.counted.groups],
        **(
            {"selected": [*map(repr, plan.counted.selected)]}
            if plan.counted.selected is not None
            else {}
        ),
        "statistics": [each.text for each in plan.counted.statistics],
        "weights": list(plan.weights) if plan.counted.statistics else [],
        "distinct": [each.sql("duckdb") for each in plan.counted.distinct],
        "ranks": [
            [plan.counted.grids[rank.grid].sql.sql("duckdb"), str(rank.share)]
            for rank in plan.counted.ranks
        ],
        "tables": {name: catalogue.private[name].describe() for name in plan.tables},
        **facts_of(catalogue),
    }


def facts_of(catalogue: Catalogue) -> dict[str, object]:
    """What every question depends on: the public tables, and the types of all columns."""
    return {
        "public": {
            name: [label_of(table.source), table.version]
            for name, table in catalogue.public.items()
        },
        "types": {
            name: {column: str(kind) for column, kind in schema.columns.items()}
            for name, schema in catalogue.schemas.items()
        },
    }


def digest_of_estimate(estimate: PrivateEstimate, catalogue: Catalogue) -> dict[str, object]:
    """What is estimated depends on: the rows, whose they are, what they are grouped by.

    Not on what is made of it: other aggregates of the same groups find the same keys.
    """
    plan = estimate.plan
    found = digest_of(plan, catalogue)
    apart = {"distinct", "ranks"}
    if not estimate.by_statistics:
        apart |= {"statistics", "weights"}
    selects = "keys" in estimate.parts
    if selects:  # however many rows of a person count later
        apart |= {"rows"}
    for name in apart:
        del found[name]
    source: dict[str, object] = {"sql": plan.counted.source.sql("duckdb")}
    if selects:  # the rows before WHERE, and its parts in an order of their own
        rows = plan.counted.source.copy()
        where = rows.args.pop("where", None)
        parts = {part.sql("duckdb") for part in conjuncts(None if where is None else where.this)}
        source = {"sql": rows.sql("duckdb"), "where": sorted(parts)}
    return {
        **found,
        **source,
        "unit": plan.counted.unit.sql("duckdb"),
        "estimated": list(estimate.parts),
        **({"subject": estimate.subject} if estimate.subject else {}),
        "sets": [list(each) for each in plan.counted.sets],
        "groups": [group.sql.sql("duckdb") for group in plan.counted.groups],
    }


def wider(digest: Mapping[str, object]) -> Iterator[dict[str, object]]:
    """The digests of the same keys of more rows: some parts of WHERE are left out."""
    parts = digest["where"]
    assert isinstance(parts, list)
    for many in range(len(parts) if len(parts) <= _MOST_PARTS else 1):
        for some in combinations(parts, many):
            yield {**digest, "where": list(some)}
