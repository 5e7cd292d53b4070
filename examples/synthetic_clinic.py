"""A clinic's table made synthetic: what independent columns lose, what a tree of pairs keeps."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import deniable as dp


def visits(count: int = 6000) -> pa.Table:
    """Visits of patients; urgent ones cost more, and one ward has most of them."""
    number = np.arange(count)
    ward = np.array(["heart", "eyes", "skin"])[number * 7 % 10 % 3]
    urgent = (ward == "heart") & (number % 5 > 0)
    cost = np.where(urgent, 500 + number * 13 % 500, number * 29 % 500)
    return pa.table({"patient": number // 2, "ward": ward, "urgent": urgent, "cost": cost})


def main() -> None:
    """Synthesise twice for one ε each, and ask both the same question."""
    table = dp.PrivateTable(
        visits(),
        unit="patient",
        population="clinic/patient",
        max_rows=2,
        keys={"ward": ["heart", "eyes", "skin"]},
        bounds={"cost": (0, 1000)},
    )
    budget, ledger = dp.ApproxDP(4.0, 1e-6), dp.Ledger(key=bytes(32))
    with dp.Session({"visits": table}, budget=budget, ledger=ledger) as session:
        for method in ("independent", "mst"):
            made = dp.synthesize(session, "visits", epsilon=1.0, method=method, bins={"cost": 4})
            far = dp.synthesis.evaluate(session, "visits", made, epsilon=0.5)
            found = made.answer({"ward": "heart", "urgent": True})
            print(f"{method}: about {float(found.values):,.0f} urgent visits of the heart ward")
            print("  total variation by columns:", {way: f"{tv:.3f}" for way, tv in far.items()})
        print(made.sample(3).to_pylist())


if __name__ == "__main__":
    main()
