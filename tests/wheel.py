"""The wheel, built from this folder and tried in an empty environment.

python tests/wheel.py      leaves it in dist/
"""

import subprocess
import sys
import tempfile
import venv
import zipfile
from pathlib import Path

HOME = Path(__file__).parents[1]
DIST, SOURCE = HOME / "dist", HOME / "src"
PIP = ("-m", "pip", "--quiet", "--disable-pip-version-check")
SMOKE = """
import pathlib, sys
import deniable as dp, pyarrow as pa

assert pathlib.Path(dp.__file__).is_relative_to(sys.prefix), dp.__file__
print(dp.__version__, "released", dp.Geometric(epsilon=1, sensitivity=1).release(41))
rows = pa.table({"who": range(1000), "ill": [n % 4 == 0 for n in range(1000)]})
table = dp.PrivateTable(rows, unit="who", population="p", max_rows=1, keys={"ill": [True, False]})
with dp.Session({"t": table}, budget=dp.ApproxDP(1, 1e-6), ledger=dp.Ledger()) as session:
    answer = session.sql("SELECT ill, COUNT(*) AS n FROM t GROUP BY ill", epsilon=1)
print("asked", answer["n"])
assert len(answer["n"]) == 2
"""


def built():
    """The wheel, which has every file of the package."""
    for old in DIST.glob("*.whl"):
        old.unlink()
    subprocess.run([sys.executable, *PIP, "wheel", "--no-deps", "-w", DIST, HOME], check=True)
    (wheel,) = DIST.glob("*.whl")
    files = (each for each in (SOURCE / "deniable").rglob("*") if "__pycache__" not in each.parts)
    wanted = {each.relative_to(SOURCE).as_posix() for each in files if each.is_file()}
    missing = wanted - set(zipfile.ZipFile(wheel).namelist())
    assert not missing, f"left out of the wheel: {sorted(missing)}"
    return wheel


def main():
    """Build, install with nothing beside it, and try from another folder."""
    wheel = built()
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        binaries = Path(folder) / "bin"
        install = (*PIP, "install", "-c", HOME / "constraints.txt", wheel)
        subprocess.run([binaries / "python", *install], check=True)
        for command in (("python", "-I", "-c", SMOKE), ("deniable", "--help")):
            subprocess.run([binaries / command[0], *command[1:]], check=True, cwd=folder)
    print(wheel.name, f"{wheel.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
