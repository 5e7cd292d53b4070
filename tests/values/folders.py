"""Hostile folders of files: types, orders, columns, partitions and damage as they come."""

import os
import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pyarrow
import pyarrow.csv
import pyarrow.parquet

COLUMNS = {
    "u": "text",
    "x": "number",
    "i": "integer",
    "s": "text",
    "d": "date",
    "b": "boolean",
    "day": "date",
}
_TEXTS = ("a", "b", "ß", "1", "1.5", "true", "2024-02-29", "nan", '"', "a,b", "", "x\ny", "0x1")
_NUMBERS = (0.0, -0.0, 1.5, 2.0, 1e300, -1e300, 3.0, float("nan"), float("inf"), 7.25)
_DAYS = (date(2024, 2, 29), date(1, 1, 1), date(9999, 12, 31), date(1999, 12, 31))


@dataclass(frozen=True)
class Folder:
    """A folder of files, and the pattern that finds them."""

    place: Path
    ending: str
    parted: bool

    @property
    def pattern(self) -> str:
        middle = "day=*/" if self.parted else ""
        return f"{self.place}/{middle}*.{self.ending}"

    def write(self, luck: random.Random, name: str, units: Sequence[str], *, rows: int) -> None:
        """One file, of whatever kind."""
        folder = self.place
        if self.parted:
            day = luck.choice(("2024-01-01", "2024-01-02", "unknown", "", "2024-13-01", "SW1"))
            folder /= f"day={day}"
        folder.mkdir(parents=True, exist_ok=True)
        place = folder / f"{name}.{self.ending}"
        kind = luck.random()
        if kind < 0.08:
            _damaged(luck, place)
            return
        table = _table(luck, units, rows)
        if self.ending == "parquet":
            pyarrow.parquet.write_table(table, place)
            if kind < 0.12:
                content = place.read_bytes()
                place.write_bytes(content[: luck.randrange(len(content))])
            elif kind < 0.16:
                content = bytearray(place.read_bytes())
                for _ in range(8):
                    content[luck.randrange(len(content))] = luck.randrange(256)
                place.write_bytes(bytes(content))
        else:
            _write_csv(luck, table, place)


def _damaged(luck: random.Random, place: Path) -> None:
    """What cannot be read as a file of its kind."""
    match luck.randrange(6):
        case 0:
            place.write_bytes(b"")
        case 1:
            place.write_bytes(luck.randbytes(luck.randrange(1, 400)))
        case 2:
            place.mkdir()
        case 3:
            place.symlink_to(place.parent / "nowhere")
        case 4:
            os.mkfifo(place)
        case _:
            place.write_bytes(b"PAR1" + luck.randbytes(50) + b"PAR1")


def _table(luck: random.Random, units: Sequence[str], rows: int) -> pyarrow.Table:
    owners = [luck.choice(units) for _ in range(rows)]
    columns = {"u": _units(luck, owners)}
    for name in COLUMNS:
        if name not in {"u", "day"} and luck.random() < 0.9:
            columns[name] = _column(luck, name, rows)
    if luck.random() < 0.2:
        columns["day"] = pyarrow.array(["2020-01-01"] * rows)
    if luck.random() < 0.2:
        columns["other"] = pyarrow.array([[1]] * rows)
    if luck.random() < 0.05:
        columns["X"] = pyarrow.array([9.0] * rows)
    if luck.random() < 0.05:
        del columns["u"]
    names = list(columns)
    if luck.random() < 0.5:
        luck.shuffle(names)
    return pyarrow.table({name: columns[name] for name in names})


def _units(luck: random.Random, owners: Sequence[str]) -> pyarrow.Array:
    if all(each.isdigit() for each in owners) and luck.random() < 0.5:
        return pyarrow.array([int(each) for each in owners], luck.choice(_WHOLES))
    if luck.random() < 0.1:
        return pyarrow.array(owners).dictionary_encode()
    return pyarrow.array(owners)


_WHOLES = (pyarrow.int64(), pyarrow.int32(), pyarrow.float64(), pyarrow.uint16())


def _column(luck: random.Random, name: str, rows: int) -> pyarrow.Array:
    usual = {"x": "number", "i": "whole", "s": "text", "d": "day", "b": "truth"}[name]
    kinds = ("number", "whole", "text", "day", "truth", "decimal", "time", "list", "nothing")
    kind = usual if luck.random() < 0.6 else luck.choice(kinds)
    made = [None if luck.random() < 0.1 else _cell(luck, kind) for _ in range(rows)]
    types = {
        "number": luck.choice((pyarrow.float64(), pyarrow.float32())),
        "whole": luck.choice((pyarrow.int64(), pyarrow.int16(), pyarrow.uint64())),
        "text": pyarrow.string(),
        "day": pyarrow.date32(),
        "truth": pyarrow.bool_(),
        "decimal": pyarrow.decimal128(10, 2),
        "time": luck.choice(
            (
                pyarrow.timestamp("us"),
                pyarrow.timestamp("ms"),
                pyarrow.timestamp("us", "UTC"),
                pyarrow.timestamp("ns"),
            )
        ),
        "list": pyarrow.list_(pyarrow.int64()),
        "nothing": pyarrow.null(),
    }
    return pyarrow.array(made, types[kind])


def _cell(luck: random.Random, kind: str) -> object:
    return {
        "number": lambda: luck.choice(_NUMBERS),
        "whole": lambda: luck.randrange(100),
        "text": lambda: luck.choice(_TEXTS),
        "day": lambda: luck.choice(_DAYS),
        "truth": lambda: luck.random() < 0.5,
        "decimal": lambda: Decimal(luck.randrange(-9999, 9999)) / 100,
        "time": lambda: datetime(2024, 1, luck.randrange(1, 29), tzinfo=UTC).replace(tzinfo=None),
        "list": lambda: [luck.randrange(5)],
        "nothing": lambda: None,
    }[kind]()


def _write_csv(luck: random.Random, table: pyarrow.Table, place: Path) -> None:
    flat = [
        name
        for name, kind in zip(table.column_names, table.schema.types, strict=True)
        if not pyarrow.types.is_nested(kind)
    ]
    pyarrow.csv.write_csv(table.select(flat), place)
    content = place.read_bytes()
    if luck.random() < 0.1:
        content += luck.choice((b",\n", b"\xff\xfe,1,2,3,4,5,6,7,8,9\n"))
    if luck.random() < 0.05:
        content = content.replace(b"\n", b"\r\n")
    place.write_bytes(content)


def copied(folder: Folder, place: Path) -> Folder:
    """The same files elsewhere; pipes and links as they are."""
    shutil.copytree(folder.place, place, symlinks=True, copy_function=_copy)
    return Folder(place, folder.ending, folder.parted)


def _copy(source: str, target: str) -> None:
    if Path(source).is_fifo():
        os.mkfifo(target)
    else:
        shutil.copyfile(source, target)
