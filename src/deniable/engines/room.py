"""How much room DuckDB has: its settings, as numbers of bytes."""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

import duckdb as driver

from deniable.engines.statements import set_to

_UNITS = {
    **{f"{prefix}iB": 1 << (10 * power) for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
    **dict.fromkeys(("byte", "bytes"), 1),
}


@dataclass(frozen=True)
class Room:
    """The bytes that questions may take in memory, and in the folder to which DuckDB spills.

    They are read once, when a connection opens. A share of what is free on a disk would follow what
    others write there, questions among them: it becomes a fixed number, a power of two.
    """

    memory: int
    disk: int
    is_share: bool

    @staticmethod
    def of(connection: driver.DuckDBPyConnection) -> Room:
        """As a connection has it now."""
        memory, size, folder = (
            str(connection.execute("SELECT current_setting(?)", [name]).fetchall()[0][0] or "")
            for name in ("memory_limit", "max_temp_directory_size", "temp_directory")
        )
        share = re.match(r"(\d+)% of available", size)
        if share is None:
            return Room(_bytes(memory), _bytes(size) if folder else 0, is_share=False)
        free = _free(folder) * int(share[1]) // 100 if folder else 0
        return Room(_bytes(memory), 1 << (free.bit_length() - 1) if free else 0, is_share=True)

    @property
    def bytes(self) -> int:
        return self.memory + self.disk

    def take(self, connection: driver.DuckDBPyConnection) -> None:
        """Have a connection keep to it."""
        if self.is_share:
            set_to(connection, "max_temp_directory_size", f"{self.disk >> 10}KiB")


def _free(folder: str) -> int:
    place = Path(folder).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free


def _bytes(size: str) -> int:
    """18.8 GiB; what is not understood is no room."""
    found = re.fullmatch(r"([\d.]+) ?(\w+)", size.strip())
    if found is None or found[2] not in _UNITS:
        return 0
    return int(float(found[1]) * _UNITS[found[2]])
