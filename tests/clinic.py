"""A small clinic: a population, a request of the ledger, visits and their metadata."""

import numpy as np
import pyarrow as pa

import deniable as dp

TENTH = dp.losses.PureLoss(bound=0.1)
CLINIC = "clinic/patient"


def reserve(ledger, population, loss=TENTH, **more):
    return ledger.reserve(population, loss, who="ana", purpose="test", **more)


METADATA = """
population = "clinic/patient"
ledger = "ledger.db"

[budget]
epsilon = 3
delta = 1e-6

[tables.visits]
source = "visits.parquet"
unit = "patient_id"
max_rows = 5
cap_rows = 5
max_groups = 3
bounds = { cost = [0, 100] }
keys = { ward = ["A", "B", "C"] }
"""


def visits(patients=400, rows=2000):
    """Visits of a small clinic; the same every time."""
    number = np.arange(rows)
    return pa.table(
        {
            "patient_id": number % patients,
            "ward": np.array(["A", "B", "C"])[number % 3],
            "floor": number % 2,
            "cost": (number % 50) * 2.0,
            "visited": np.datetime64("2025-01-01") + number % 300,
        }
    )
