"""Rows of a table in an engine, as a fit selects them."""

import deniable as dp
from deniable.query.read.catalogue import Catalogue
from deniable.query.read.compile import compile_rows, table_rows
from deniable.query.read.resolve import parse


def chosen(schema, *, table="people", unit=dp.ROW, rows=1, sql=None):
    """All rows of a table, or those of a SELECT; `rows` of one unit count in full."""
    given = {} if unit is dp.ROW else {"max_rows": rows}
    private = dp.PrivateTable("people.parquet", unit=unit, population="p", **given)
    catalogue = Catalogue({table: schema}, {table: private})
    return table_rows(table, catalogue) if sql is None else compile_rows(parse(sql), catalogue)
