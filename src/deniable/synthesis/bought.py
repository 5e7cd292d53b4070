"""What nobody declared about a table, bought: values of text columns, bounds of numbers, rows.

Each is found by a question of its own, like those of SQL, with noise: private key selection for
values, histograms of units for bounds and for the number of rows that one unit has. What is made of
the answers is post-processing. All of it is part of the price of the synthesis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from deniable.errors import ParameterError, ReleaseFailedError
from deniable.privacy.amount import Amount
from deniable.privacy.losses.base import Loss
from deniable.privacy.price import GRID, Price
from deniable.query.price.estimate import RowsOfUnits
from deniable.release import Door
from deniable.session import Session
from deniable.synthesis.ranges import UnboundedColumn, seen_cells
from deniable.synthesis.run import SynthesisRun
from deniable.tables import NUMERIC, Bounds, ColumnType, PrivateTable, Schema, read_keys, unfit

_EACH, _MOST = Fraction(1, 20), Fraction(1, 2)
_ROUNDED = 16 * GRID  # the ledger rounds every draw of a question up


@dataclass(frozen=True)
class Bought:
    """What was found, what is left of the price, and what was paid for what."""

    left: Amount
    keys: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    bounds: Mapping[str, Bounds] = field(default_factory=dict)
    receipt: tuple[tuple[str, Price], ...] = ()


def placeholders(schema: Schema, discover: Sequence[str], amount: Amount) -> Bought:
    """Made-up values and bounds, to see what is wrong with everything else first."""
    kinds = {schema.find(name): schema.columns[schema.find(name)] for name in discover}
    for name, kind in kinds.items():
        if kind not in (ColumnType.TEXT, *NUMERIC):
            raise ParameterError(
                "discover", name, f"holds {kind}; only text and numbers are found privately"
            )
    return Bought(
        amount,
        keys={name: ("?",) for name, kind in kinds.items() if kind == ColumnType.TEXT},
        bounds={
            name: (Fraction(0), Fraction(1)) for name, kind in kinds.items() if kind in NUMERIC
        },
    )


def discovered(
    session: Session, table: str, owner: PrivateTable, discover: Sequence[str], amount: Amount
) -> Bought:
    """Buy the values or bounds of columns, each for a twentieth of the price or less.

    If the whole price could not be paid, nothing is bought.
    """
    found = Bought(amount)
    if not discover:
        return found
    schema = session.parts.catalogue.schemas[table]
    texts = [name for name in discover if schema.columns[schema.find(name)] == ColumnType.TEXT]
    if amount.is_stated and texts:
        raise ParameterError(
            "guarantee", texts[0], "finding its values takes a δ beside it; say epsilon= or rho="
        )
    names = list(dict.fromkeys(schema.find(name) for name in discover))
    share = amount.part(min(_EACH, _MOST / len(names))).on_grid()
    asked = {name: _questions(table, owner, schema, name) for name in names}
    prices = {
        name: share.part(Fraction(1, len(each))).on_grid().value for name, each in asked.items()
    }

    def words(name: str) -> tuple[Fraction | None, Fraction | None]:
        share = amount.of(prices[name])
        return share.epsilon, share.rho

    losses: list[Loss] = []
    for name, each in asked.items():
        epsilon, rho = words(name)
        for text, keys in each:
            losses += session.unpaid(text, epsilon=epsilon, rho=rho, keys=keys)
    if losses:
        spent = sum(prices[name] * len(each) for name, each in asked.items())
        rest = amount.less(spent + _ROUNDED * len(names)).loss
        session.parts.ledger.afford(owner.population, [*losses, rest], who=session.parts.who)
    for name, each in asked.items():
        epsilon, rho = words(name)
        answers = [session.sql(t, epsilon=epsilon, rho=rho, keys=keys) for t, keys in each]
        paid = sum((answer.cost for answer in answers[1:]), answers[0].cost)
        found = replace(found, left=found.left.less(prices[name] * len(each) + _ROUNDED))
        if schema.columns[name] == ColumnType.TEXT:
            found_values = answers[0].to_arrow().column("value").to_pylist()
            values = [v for v in found_values if not unfit(ColumnType.TEXT, v)]
            if not values:
                raise ReleaseFailedError(
                    f"no value of {name} was found that many units share. What was charged to look "
                    f"for them stays charged; declare them, keys={{'{name}': [...]}}, or pay more"
                )
            found = replace(found, keys={**found.keys, name: read_keys(values)})
            what = f"values of {name}"
        else:
            ends = _range(table, owner, schema, name).bounds([*map(seen_cells, answers)])
            found = replace(found, bounds={**found.bounds, name: ends})
            what = f"bounds of {name}"
        found = replace(found, receipt=(*found.receipt, (what, paid)))
    return found


def _questions(
    table: str, owner: PrivateTable, schema: Schema, name: str
) -> list[tuple[str, Mapping[str, Any] | None]]:
    """The questions that find what is to know about a column, and the keys of each."""
    if schema.columns[name] == ColumnType.TEXT:
        quoted = '"' + name.replace('"', '""') + '"'
        text = f'SELECT {quoted} AS value, COUNT(*) AS n FROM "{table}" GROUP BY {quoted}'  # noqa: S608
        return [(text, None)]
    ends = _range(table, owner, schema, name).questions()
    return [(tree.sql("duckdb"), options.keys) for tree, options in ends]


def _range(table: str, owner: PrivateTable, schema: Schema, name: str) -> UnboundedColumn:
    unit = owner.unit.lower() if isinstance(owner.unit, str) else None
    return UnboundedColumn(table, name.lower(), schema.columns[name], unit)


def with_rows(run: SynthesisRun) -> tuple[SynthesisRun, tuple[tuple[str, Price], ...]]:
    """The run with a number of rows that one unit counts with: declared, or bought.

    It is bought as a question in SQL buys it, by a noisy histogram of the rows of units.
    """
    with run.snapshot() as snapshot:
        plan = run.data(snapshot).plan(())
        if not plan.buys_rows:
            return run, ()
        bought = RowsOfUnits.of(plan, run.amount)
        rest = bought.left.on_grid()
        rank = RowsOfUnits.of(plan, rest.part(Fraction(1, len(run.domain)))).rank
        question: dict[str, object] = {
            "bought": "rows of a unit",
            "columns": [each.inside() for each in run.coded],
            "tables": {run.table: run.owner.describe()},
        }
        ledger, population = run.parts.ledger, run.owner.population
        if ledger.recorded(population, bought.loss, question) is None:
            ledger.afford(population, [bought.loss, rest.loss], who=run.parts.who)

        def estimate(door: Door) -> object:
            return bought.draw(door, snapshot, "")

        found = run.gate.answer(
            bought.loss, question, estimate, purpose="synthesis: rows of a unit"
        )
    rows = replace(bought, rank=rank).applied(found.value).contribution.rows
    price = bought.loss.price
    return replace(run.counting(rows), amount=rest), (("rows of a unit", price),)
