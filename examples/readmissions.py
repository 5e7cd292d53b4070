"""Who comes back: a private model of rows that a SELECT makes, joined, filtered and computed."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import deniable as dp

SQL = """
    SELECT age / 100 AS age, nights / beds AS crowding, readmitted
    FROM visits JOIN wards ON visits.ward = wards.ward
    WHERE nights > 0
"""


def visits(count: int = 40_000) -> pa.Table:
    """Visits of patients, some of them often; the old ones come back."""
    source = np.random.default_rng(2)
    age, nights = source.integers(18, 95, count), source.integers(0, 15, count)
    back = age / 100 + nights / 60 + source.normal(0, 0.15, count) > 0.7
    ward = source.choice(["heart", "eyes", "skin"], count)
    patient = (count / 3 * source.random(count) ** 2).astype(np.int64)
    names = ["patient", "age", "nights", "ward", "readmitted"]
    return pa.table([patient, age, nights, ward, back], names=names)


def main() -> None:
    """Fit twice, of all rows and of one row a patient; the same SELECT again is free."""
    private = dp.PrivateTable(
        visits(),
        unit="patient",
        population="clinic/patient",
        max_rows=4,
        bounds={"age": (0, 100), "nights": (0, 14)},
        keys={"readmitted": [False, True]},
    )
    wards = dp.PublicTable(pa.table({"ward": ["heart", "eyes", "skin"], "beds": [20, 10, 10]}))
    budget, ledger = dp.ApproxDP(4.0, 1e-6), dp.Ledger(key=bytes(32))
    with dp.Session({"visits": private, "wards": wards}, budget=budget, ledger=ledger) as session:
        asked = dp.learning.LogisticRegression(epsilon=1.0, bounds=([0, 0], [1, 1.4]), classes=None)
        model = dp.fit(session, asked, SQL, y="readmitted")
        for name, weight in zip(("age", "crowding"), model.coef_[0], strict=True):
            print(f"{name}: {weight:+.1f}")
        print("cost:", model.cost())
        often = "SELECT MAX(age) AS age, SUM(nights) AS nights FROM visits GROUP BY patient"
        counts = dp.learning.KMeans(2, epsilon=1.0, bounds=([0, 0], [100, 60]))
        print("patients:", dp.fit(session, counts, often).cluster_centers_.round())
        dp.fit(session, asked, SQL, y="readmitted")
        left = session.remaining["clinic/patient"]
        print(f"{left.releases} fits were charged; ε = {left.largest_epsilon:.1f} is left for one")


if __name__ == "__main__":
    main()
