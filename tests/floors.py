"""The lowest versions that `pyproject.toml` names, in an environment of their own.

python tests/floors.py      installs them into .venv-floors, and runs a smoke suite there
"""

import subprocess
import sys
import tomllib
import venv
from pathlib import Path

HOME = Path(__file__).parents[1]
FOLDER = HOME / ".venv-floors"
PYTHON = FOLDER / "bin" / "python"
EXTRAS = ("postgres", "spark", "learn", "serve", "plot", "pandas", "polars")
TOOLS = ("pytest>=9", "hypothesis>=6.100", "mpmath>=1.3", "markdown-it-py>=3")
"""Of the tests themselves: any version that works."""
SMOKE = (
    "tests/test_public_surface.py",
    "tests/contracts/test_catalogue.py",
    "tests/ledger/test_ledger.py",
    "tests/query/test_session.py",
    "tests/engines/test_postgres_values.py",
    "tests/learning/test_contract.py",
    "tests/synthesis/test_synthesize.py",
    "tests/cli/test_query.py",
)


def lowest(project):
    """What is required, each at its lowest version."""
    extras = project["optional-dependencies"]
    required = [*project["dependencies"], *(each for extra in EXTRAS for each in extras[extra])]
    return [each.replace(">=", "==") for each in required]


def main():
    """Install and run; the exit code is that of the tests."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    if not PYTHON.exists():
        venv.create(FOLDER, with_pip=True)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = lowest(project)
    print(*pins, sep="\n", flush=True)
    subprocess.run([*pip, *pins, *TOOLS], check=True)
    subprocess.run([*pip, "--no-deps", "--editable", HOME], check=True)
    # Old versions may warn of what newer ones have settled.
    command = [PYTHON, "-m", "pytest", "-q", "-W", "default", "-p", "no:cacheprovider", *SMOKE]
    return subprocess.run(command, check=False, cwd=HOME).returncode


if __name__ == "__main__":
    sys.exit(main())
