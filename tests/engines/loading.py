"""Arrow tables as tables of a Postgres database."""

import psycopg
import pyarrow as pa

_TYPES = {
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE PRECISION",
    pa.string(): "TEXT",
    pa.bool_(): "BOOLEAN",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP",
}


def to_postgres(url: str, name: str, table: pa.Table) -> None:
    """Make a table, anew."""
    columns = ", ".join(f'"{field.name}" {_TYPES[field.type]}' for field in table.schema)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f'DROP TABLE IF EXISTS "{name}"')
        connection.execute(f'CREATE TABLE "{name}" ({columns})')
        with connection.cursor().copy(f'COPY "{name}" FROM STDIN') as copy:
            for row in table.to_pylist():
                copy.write_row(tuple(row.values()))
