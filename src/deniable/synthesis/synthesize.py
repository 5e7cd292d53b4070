"""`dp.synthesize`: a synthetic table of a session's private one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from deniable.closed import read_names
from deniable.ledger.amounts import read_amount
from deniable.privacy.exact import Number, whole
from deniable.privacy.guarantees import Guarantee
from deniable.session import Session
from deniable.shield import of_caller, shielded
from deniable.synthesis.bought import Bought, discovered, placeholders, with_rows
from deniable.synthesis.chosen import Listed, read_method
from deniable.synthesis.columns import Bins, Coding, codings, read_bins, read_declared
from deniable.synthesis.evaluate import private_table
from deniable.synthesis.method import Method, Progress, silent
from deniable.synthesis.run import SynthesisRun
from deniable.synthesis.synthetic import SyntheticTable
from deniable.synthesis.workload import Workload


@shielded
def synthesize(
    session: Session,
    table: str,
    *,
    epsilon: Number | None = None,
    rho: Number | None = None,
    guarantee: Guarantee | None = None,
    method: str | Listed = "aim",
    columns: Sequence[str] | None = None,
    bins: Mapping[str, Bins] | None = None,
    keys: Mapping[str, Sequence[Any]] | None = None,
    missing: Sequence[str] = (),
    discover: Sequence[str] = (),
    workload: int | Iterable[Sequence[str]] | None = None,
    max_megabytes: Number | None = None,
    max_rows: int | None = None,
    journal: str | Path | None = None,
    progress: Progress | None = None,
) -> SyntheticTable:
    """A synthetic table with about the marginals of a private one.

    Formal guarantee. The whole synthesis costs its `epsilon` or `rho`, as a question in SQL would,
    reserved before anything is read; it is private for the units of the table, with all their rows
    (`Draws`). Domain, bins and workload are declared, or bought as a part of the price, which the
    receipt shows; the number of rows is estimated, not read. The same synthesis again is free: it
    is made of the measurements in the ledger.

    Args:
        session: where the table and its budget are.
        table: its name.
        epsilon: the price; or `rho`.
        rho: the price under a budget without δ.
        guarantee: the price, as a guarantee that the synthesis has by itself.
        method: "aim", "mst", "mwem" (all records must fit into memory), "fixed" (measures the
            workload) or "independent"; or an object, `dp.synthesis.MST(iterations=1000)`, which
            says its own workload and room.
        columns: which columns; all but the unit unless said.
        bins: a number of bins for numeric columns (16 unless said), or edges, also of dates.
        keys: declared values of columns, beside those of the table; None means missing.
        missing: columns in which missing is a value of its own. NaN and infinities are missing
            too. Rows without a value in another column, or with one that is not declared, are
            counted nowhere.
        discover: text columns whose values, and numeric columns whose bounds, are found privately,
            each for a twentieth of the price or less.
        workload: the number of columns of marginals that matter, 2 unless said, or a list of them.
        max_megabytes: how large a model may become; 1 for "aim" and 80 for others unless said.
        max_rows: how many rows of one unit count; bought where neither this nor the table says it.
        journal: a file that keeps what was drawn; an interrupted run goes on from it.
        progress: told the part that is done.
    """
    parts, owner = session.parts, private_table(session, table)
    name, schema = table.lower(), parts.catalogue.schemas[table.lower()]
    amount = read_amount(parts.budget, epsilon=epsilon, rho=rho, guarantee=guarantee).on_grid()
    declared = read_declared(keys)
    named = None if columns is None else read_names(columns, "columns")
    absent, sought = read_names(missing, "missing"), read_names(discover, "discover")
    edges = read_bins(bins)
    limit = None if max_rows is None else whole(max_rows, "max_rows")
    chosen = read_method(method, workload, max_megabytes)

    def coded(known: Bought) -> tuple[Coding, ...]:
        return codings(
            owner,
            schema,
            columns=named,
            bins=edges,
            keys={**known.keys, **declared},
            bounds=known.bounds,
            missing=absent,
        )

    def planned(found: tuple[Coding, ...]) -> tuple[SynthesisRun, Workload, Method]:
        run = SynthesisRun.of(parts, name, found, amount, limit)
        wanted, made = chosen.on(run.domain)
        made.check(run.domain)
        return run, wanted, made

    # What is wrong with anything is told before values are bought.
    run, wanted, maker = planned(coded(placeholders(schema, sought, amount)))
    run.counting(limit or owner.max_rows or 1).check()
    known = discovered(session, name, owner, sought, amount)
    if sought:
        run, wanted, maker = planned(coded(known))
    run, rows = with_rows(replace(run, amount=known.left))
    tell = of_caller(progress or silent)
    made = run.synthesized(maker, chosen.name, wanted, journal, tell)
    return replace(made, receipt=(*known.receipt, *rows, *made.receipt))
