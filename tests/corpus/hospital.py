"""Two private tables of one population, a public one, and the corpus of questions about them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from functools import cache
from pathlib import Path

import numpy as np
import pyarrow as pa

import deniable as dp

HERE = Path(__file__).parent
PATIENTS, VISITS, PRESCRIPTIONS = 600, 5_000, 2_400
FIRST_DAY = date(2024, 1, 1)

WARDS = ("cardiology", "emergency", "geriatrics", "oncology", "surgery")
DIAGNOSES = ("asthma", "diabetes", "fracture", "influenza")
DRUGS = ("aspirin", "insulin", "morphine", "statin")
CITIES = ("Bath", "Leeds", "York")
POPULATION = "hospital/patient"

VISIT_TYPES = {
    "patient_id": pa.int64(),
    "ward": pa.string(),
    "cost": pa.float64(),
    "age": pa.int64(),
    "visited": pa.date32(),
    "diagnosis": pa.string(),
    "urgent": pa.bool_(),
}
PRESCRIPTION_TYPES = {
    "patient_id": pa.int64(),
    "drug": pa.string(),
    "price": pa.float64(),
    "day": pa.date32(),
}


@cache
def visits() -> pa.Table:
    rng = np.random.default_rng(20240101)
    patient = rng.integers(1, PATIENTS + 1, VISITS)
    ward = rng.choice(WARDS, VISITS, p=(0.25, 0.3, 0.15, 0.1, 0.2))
    cost = np.round(rng.gamma(2.0, 120.0, VISITS).clip(1, 1990), 2)
    age = (patient * 7 % 88 + 3).astype(np.int64)
    days = rng.integers(0, 366, VISITS)
    diagnosis = rng.choice((*DIAGNOSES, ""), VISITS, p=(0.2, 0.25, 0.2, 0.2, 0.15))
    return pa.table(
        {
            "patient_id": pa.array(patient, pa.int64()),
            "ward": pa.array(ward.tolist(), pa.string()),
            "cost": pa.array(cost, pa.float64(), mask=rng.random(VISITS) < 0.07),
            "age": pa.array(age, pa.int64()),
            "visited": pa.array([_day(n) for n in days], pa.date32()),
            "diagnosis": pa.array([name or None for name in diagnosis.tolist()], pa.string()),
            "urgent": pa.array(rng.random(VISITS) < 0.3, pa.bool_()),
        }
    )


@cache
def prescriptions() -> pa.Table:
    rng = np.random.default_rng(20240102)
    return pa.table(
        {
            "patient_id": pa.array(rng.integers(1, PATIENTS + 1, PRESCRIPTIONS), pa.int64()),
            "drug": pa.array(rng.choice(DRUGS, PRESCRIPTIONS).tolist(), pa.string()),
            "price": pa.array(np.round(rng.uniform(1, 99, PRESCRIPTIONS), 2), pa.float64()),
            "day": pa.array([_day(n) for n in rng.integers(0, 366, PRESCRIPTIONS)], pa.date32()),
        }
    )


@cache
def wards() -> pa.Table:
    return pa.table(
        {
            "ward": pa.array(WARDS[:4], pa.string()),  # surgery has no public line
            "city": pa.array(["Bath", "Leeds", "York", "Leeds"], pa.string()),
            "beds": pa.array([40, 25, 60, 30], pa.int64()),
        }
    )


def _day(number: int) -> date:
    return FIRST_DAY + timedelta(days=int(number))


def session(
    *,
    budget: object = None,
    ledger: object = None,
    seen: pa.Table | None = None,
    given: pa.Table | None = None,
    keys: dict | None = None,
    max_groups: int | None = None,
    max_rows: tuple[int, int] = (24, 12),
    more: dict | None = None,
) -> dp.Session:
    """The hospital opened to questions; nobody has more rows than count in full."""
    declared = {"ward": WARDS, "diagnosis": DIAGNOSES} if keys is None else keys
    private = dp.PrivateTable(
        visits() if seen is None else seen,
        unit="patient_id",
        population=POPULATION,
        bounds={"cost": (0, 2000), "age": (0, 120)},
        keys=declared,
        max_rows=max_rows[0],
        cap_rows=24 if max_rows == (24, 12) else None,
        max_groups=max_groups,
    )
    other = dp.PrivateTable(
        prescriptions() if given is None else given,
        unit="patient_id",
        population=POPULATION,
        bounds={"price": (0, 100)},
        keys={} if keys == {} else {"drug": DRUGS},
        max_rows=max_rows[1],
        cap_rows=12 if max_rows == (24, 12) else None,
        max_groups=max_groups,
    )
    return dp.Session(
        {
            "visits": private,
            "prescriptions": other,
            "wards": dp.PublicTable(wards()),
            **(more or {}),
        },
        budget=dp.ApproxDP(1e6, 1e-6) if budget is None else budget,
        ledger=dp.Ledger(key=bytes(32)) if ledger is None else ledger,
    )


def table_of(rows: Iterable[dict], types: dict[str, pa.DataType]) -> pa.Table:
    """Rows as a table of declared types: a cell that does not fit its column is NULL."""
    rows = list(rows)
    return pa.table(
        {name: pa.array(_column(rows, name, kind), kind) for name, kind in types.items()}
    )


def _column(rows: list[dict], name: str, kind: pa.DataType) -> list:
    known: dict = {}
    for value in (row.get(name) for row in rows):
        if (mark := (type(value), str(value)[:500])) not in known:
            known[mark] = _cell(value, kind)
    return [known[type(v), str(v)[:500]] for v in (row.get(name) for row in rows)]


def _cell(value: object, kind: pa.DataType) -> object:
    if isinstance(value, str) and pa.types.is_integer(kind):
        value = _number_of(value)
    if isinstance(value, float) and pa.types.is_integer(kind) and not value.is_integer():
        return None
    if isinstance(value, bool) != pa.types.is_boolean(kind):
        return None
    try:
        return pa.array([value], kind)[0].as_py()
    except (pa.ArrowException, OverflowError, TypeError, ValueError):
        return None


def _number_of(name: str) -> int | None:
    """Names of units, u0 to u19 and new, as whole numbers."""
    if name == "new":
        return 1_000_000
    return int(name[1:]) if re.fullmatch(r"u\d+", name) else None


@dataclass(frozen=True)
class Question:
    """One entry of a corpus file: its name, its SQL and its comment lines."""

    name: str
    sql: str
    notes: dict[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict:
        made: dict = {}
        if "bounds" in self.notes:
            made["bounds"] = {
                name: tuple(float(end) for end in ends.split(":"))
                for name, _, ends in _parts(self.notes["bounds"])
            }
        if "keys" in self.notes:
            made["keys"] = {name: keys_of(listed) for name, _, listed in _parts(self.notes["keys"])}
        for name in ("max_rows", "max_groups"):
            if name in self.notes:
                made[name] = int(self.notes[name])
        return made


def _parts(text: str) -> list[tuple[str, str, str]]:
    return [part.strip().partition("=") for part in text.split(";")]


def keys_of(text: str) -> list:
    """0..9 (whole numbers), months (of 2024), days of the week's start, or words between commas."""
    text = text.strip()
    if text == "months":
        return [date(2024, month, 1) for month in range(1, 13)]
    if text == "month_times":
        return [datetime(2024, month, 1) for month in range(1, 13)]
    if re.fullmatch(r"-?\d+\.\.-?\d+", text):
        low, high = text.split("..")
        return list(range(int(low), int(high) + 1))
    words = [word.strip() for word in text.split(",")]
    return [None if word == "NULL" else int(word) if word.isdigit() else word for word in words]


def read_questions(name: str) -> list[Question]:
    """The entries of a corpus file, in order."""
    found = []
    for entry in re.split(r"^-- name:", (HERE / name).read_text(), flags=re.MULTILINE)[1:]:
        first, *lines = entry.splitlines()
        notes = dict(
            match.groups() for line in lines if (match := re.match(r"-- (\w+): (.*)", line))
        )
        sql = "\n".join(line for line in lines if not line.startswith("--")).strip()
        found.append(Question(first.strip(), sql.removesuffix(";"), notes))
    return found
