"""How much room DuckDB has: its settings, as numbers of bytes."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import duckdb as driver

_UNITS = {
    **{f"{prefix}iB": 1 << (10 * power) for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
    **{f"{prefix}B": 1000**power for power, prefix in enumerate(("K", "M", "G", "T"), 1)},
    **dict.fromkeys(("byte", "bytes"), 1),
}


def room_of(connection: driver.DuckDBPyConnection) -> int:
    """The bytes that a question may take in memory, and in the folder to which DuckDB spills."""
    names = ("memory_limit", "max_temp_directory_size", "temp_directory")
    values = [
        str(connection.execute("SELECT current_setting(?)", [name]).fetchall()[0][0] or "")
        for name in names
    ]
    memory, disk, folder = values
    return _bytes(memory) + (_on_disk(disk, folder) if folder else 0)


def _on_disk(size: str, folder: str) -> int:
    share = re.match(r"(\d+)% of available", size)
    if share is None:
        return _bytes(size)
    place = Path(folder).absolute()
    while not place.exists():
        place = place.parent
    return shutil.disk_usage(place).free * int(share[1]) // 100


def _bytes(size: str) -> int:
    """18.8 GiB; what is not understood is no room."""
    found = re.fullmatch(r"([\d.]+) ?(\w+)", size.strip())
    if found is None or found[2] not in _UNITS:
        return 0
    return int(float(found[1]) * _UNITS[found[2]])
