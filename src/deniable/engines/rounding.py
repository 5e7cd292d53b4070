"""ROUND of doubles as DuckDB rounds, on other engines.

x is multiplied by a power of ten, or divided by one for places before the point; taken to the
nearest whole number, halves away from zero; and brought back. Where that is infinite or no number,
x stays as it is.
"""

from __future__ import annotations

import math
import sys

_LARGEST = sys.float_info.max


def in_plpgsql(places: int) -> str:
    """What a function of Postgres does that rounds `a0`; it raises for no double.

    Postgres's own ROUND takes halves to the even one, and its arithmetic raises where others give
    infinity, or zero for what is too small.
    """
    factor, most = _of_postgres(10.0 ** abs(places)), _of_postgres(_most(places))
    far = f"IF abs(a0) > {most} THEN RETURN a0; END IF;"
    # The fraction of a double is a double: the comparison with a half is exact.
    whole = "r := trunc(y); IF abs(y - r) >= 0.5 THEN r := r + sign(y); END IF;"
    if places >= 0:
        steps = f"{far} y := a0 * {factor}; {whole} RETURN r / {factor};"
    else:
        near = "IF abs(a0) < 1 THEN RETURN 0; END IF;"
        steps = f"{far} {near} y := a0 / {factor}; {whole} RETURN r * {factor};"
    return f"DECLARE y float8; r float8; BEGIN {steps} END"


def in_spark(places: int) -> str:
    """Spark's expression for :a; its ROUND reads the shortest decimal, where halves are exact."""
    up, down = ("*", "/") if places >= 0 else ("/", "*")
    made = f"ROUND(:a {up} 1e{abs(places)}, 0) {down} 1e{abs(places)}"
    return f"CASE WHEN ABS(:a) <= {_most(places)!r} THEN {made} ELSE :a END"


def _most(places: int) -> float:
    """The largest double that stays finite on its way; that far out all are whole numbers."""
    factor = 10.0 ** abs(places)
    found = _LARGEST if places < 0 else _LARGEST / factor
    while math.isinf(_carried(found, factor, places)):
        found = math.nextafter(found, 0)
    while found < _LARGEST and not math.isinf(
        _carried(math.nextafter(found, math.inf), factor, places)
    ):
        found = math.nextafter(found, math.inf)
    return found


def _carried(value: float, factor: float, places: int) -> float:
    return value * factor if places >= 0 else value / factor * factor


def _of_postgres(value: float) -> str:
    return f"'{value!r}'::float8"
