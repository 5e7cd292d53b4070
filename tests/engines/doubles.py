"""Doubles that are hard to round, and how DuckDB rounds them."""

import math
import random
import struct

import duckdb
import pyarrow as pa

PLACES = range(-15, 16)
ROUNDED = ", ".join(["ROUND(x)", *(f"ROUND(x, {places})" for places in PLACES)])


def doubles(many=3_000):
    """Ends, odd whole numbers beyond 2^52, neighbours of halves, and any bits; all finite."""
    draw = random.Random(5)
    known = [0.0, 5e-324, 0.49999999999999994, 0.285, 1.005, 2.675, 1e308, 1.79e308]
    known += [math.nextafter(math.inf, 0), *(2.0**n + k for n in range(50, 55) for k in (1, 3))]
    known += [math.nextafter(math.inf, 0) / 10**places for places in range(1, 16)]
    known += [9007199254740991.0, 6755399441055745.0, 4503599627370495.5]
    halves = [draw.randrange(10**6) + 0.5 for _ in range(many // 3)]
    drawn = [math.nextafter(half, draw.choice((0, half, math.inf))) for half in halves]
    drawn += [draw.randrange(10**9) / 10 ** draw.randrange(9) for _ in range(many // 3)]
    drawn += struct.unpack(f"{many // 3}d", draw.randbytes(many // 3 * 8))
    finite = filter(math.isfinite, (*known, *drawn))
    return pa.table({"x": pa.array([sign * x for x in finite for sign in (1, -1)], pa.float64())})


def rounded_by_duckdb(table):
    """For each double what it rounds to, place by place; -0.0 is 0.0."""
    duckdb_ = duckdb.connect()
    duckdb_.register("t", table)
    return told(duckdb_.execute(f"SELECT x, {ROUNDED} FROM t").fetchall())


def told(rows):
    return {row[0]: [value + 0.0 for value in row[1:]] for row in rows}
