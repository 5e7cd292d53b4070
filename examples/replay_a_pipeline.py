"""A pipeline with a hidden fault, caught by replaying it on nasty neighbours, and then mended."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import deniable as dp

WARDS = ["A", "B"]
Rows = list[dict[str, Any]]


def careless(rows: Rows) -> dict[str, Any]:
    """Total cost by ward: groups from the data, no clamp, any number of rows a patient."""
    totals: dict[str, float] = defaultdict(float)
    for row in rows:
        totals[row["ward"]] += row["cost"]
    noise = dp.Laplace(epsilon=1, sensitivity=100)
    return {ward: noise.release(total) for ward, total in totals.items()}


def careful(rows: Rows) -> dict[str, Any]:
    """The same with declared wards, whole pounds from 0 to 100, and one row a patient."""
    totals, seen = dict.fromkeys(WARDS, 0), set()
    for row in rows:
        cost, patient = row["cost"], row["patient"]
        usual = isinstance(cost, int | float) and 0 <= cost <= 100  # false for NaN too
        if usual and patient is not None and patient not in seen and row["ward"] in totals:
            totals[row["ward"]] += int(cost)
            seen.add(patient)
    released = dp.Geometric(epsilon=1, sensitivity=100).release(list(totals.values()))
    return dict(zip(WARDS, released, strict=True))  # type: ignore[arg-type]


def main() -> None:
    """Replay both on some forty pairs of neighbours."""
    pairs = list(
        dp.auditing.nasty_neighbours(
            bounds={"cost": (0, 100)}, keys={"ward": WARDS}, unit="patient"
        )
    )
    for pipeline in (careless, careful):
        found = [(pair.name, dp.replay(pipeline, pair.data, pair.neighbour)) for pair in pairs]
        broken = [(name, result) for name, result in found if not result]
        print(f"{pipeline.__name__}: {len(broken)} of {len(pairs)} pairs give a person away")
        for name, result in broken[:5]:
            print(f"  {name}: {result.findings[0].kind}, {result.findings[0].message}")


if __name__ == "__main__":
    main()
