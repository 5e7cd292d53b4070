"""A made-up clinic: visits of patients, the same on every run, for the demo."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.special import ndtri

PATIENTS, VISITS = 20_000, 200_000
WARDS = ("A", "B", "C", "D", "E")
MOST = 5_000  # what a visit costs at most, as the clinic's price list says
_DIAGNOSES = ("asthma", "diabetes", "fracture", "hypertension", "influenza", "migraine")


def clinic() -> pa.Table:
    """Visits, most of them by few patients: the numbers per patient have a heavy tail."""
    weights = np.cumsum(_uniform("visits of a patient", PATIENTS) ** -0.4)
    patient = np.sort(np.searchsorted(weights / weights[-1], _uniform("patient", VISITS)))
    young = _uniform("young", PATIENTS) < 0.6
    spread = ndtri(_uniform("age", PATIENTS))
    age = np.where(young, 34 + 14 * spread, 71 + 11 * spread)
    ward = np.searchsorted(np.cumsum((0.3, 0.25, 0.2, 0.15)), _uniform("ward", VISITS))
    cost = np.exp(5.5 + 0.15 * ward + 0.8 * ndtri(_uniform("cost", VISITS))).clip(0, MOST).round(2)
    days = (365 * _uniform("day", VISITS) ** 0.8).astype(np.int64)
    illness = (len(_DIAGNOSES) * _uniform("diagnosis", VISITS)).astype(np.int64)
    return pa.table(
        {
            "patient_id": patient,
            "ward": np.array(WARDS)[ward],
            "age": age.clip(0, 104).astype(np.int64)[patient],
            "cost": cost,
            "diagnosis": np.array(_DIAGNOSES)[illness],
            "visited": np.datetime64("2025-01-01") + days,
        }
    )


def _uniform(what: str, count: int) -> npt.NDArray[np.float64]:
    """Numbers between 0 and 1 that follow from a name: made-up data, the same on every run."""
    words = np.frombuffer(hashlib.shake_256(what.encode()).digest(8 * count), dtype="<u8")
    return ((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53


def write_clinic(path: Path) -> Path:
    """Write the visits as a Parquet file."""
    pq.write_table(clinic(), path)
    return path
