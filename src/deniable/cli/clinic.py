"""A made-up clinic: visits of patients, the same on every run, for the demo."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

PATIENTS, VISITS = 20_000, 200_000
WARDS = ("A", "B", "C", "D", "E")
MOST = 5_000  # what a visit costs at most, as the clinic's price list says
_DIAGNOSES = ("asthma", "diabetes", "fracture", "hypertension", "influenza", "migraine")
_SEED = 20_250_101


def clinic() -> pa.Table:
    """Visits, most of them by few patients: the numbers per patient have a heavy tail."""
    # The seed is for made-up data; released noise is never seeded.
    chance = np.random.default_rng(_SEED)
    weights = chance.pareto(2.5, PATIENTS) + 1
    patient = np.sort(chance.choice(PATIENTS, VISITS, p=weights / weights.sum()))
    young = chance.random(PATIENTS) < 0.6
    age = np.where(young, chance.normal(34, 14, PATIENTS), chance.normal(71, 11, PATIENTS))
    ward = chance.choice(len(WARDS), VISITS, p=(0.3, 0.25, 0.2, 0.15, 0.1))
    cost = chance.lognormal(5.5 + 0.15 * ward, 0.8).clip(0, MOST).round(2)
    day = np.datetime64("2025-01-01") + (365 * chance.beta(1.3, 1.1, VISITS)).astype(np.int64)
    return pa.table(
        {
            "patient_id": patient,
            "ward": np.array(WARDS)[ward],
            "age": age.clip(0, 104).astype(np.int64)[patient],
            "cost": cost,
            "diagnosis": chance.choice(_DIAGNOSES, VISITS),
            "visited": day,
        }
    )


def write_clinic(path: Path) -> Path:
    """Write the visits as a Parquet file."""
    pq.write_table(clinic(), path)
    return path
