"""The lowest versions that `pyproject.toml` names, in an environment of their own.

python tests/floors.py      installs them into .venv-floors, and runs a smoke suite there
"""

import os
import re
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

HOME = Path(__file__).parents[1]
FOLDER = HOME / ".venv-floors"
PYTHON = FOLDER / "bin" / "python"
EXTRAS = ("postgres", "learn", "serve", "plot", "pandas", "polars")
TOOLS = ("pytest>=9", "hypothesis>=6.100", "mpmath>=1.3", "markdown-it-py>=3")
"""Of the tests themselves: any version that works."""
SMOKE = (
    "tests/test_public_surface.py",
    "tests/contracts",
    "tests/ledger/test_ledger.py",
    "tests/query/test_session.py",
    "tests/query/test_answer.py",
    "tests/engines/test_postgres_values.py",
    "tests/learning/test_contract.py",
    "tests/synthesis/test_synthesize.py",
    "tests/cli/test_query.py",
)


def lowest(project: dict[str, object]) -> list[str]:
    """What is required, each at its lowest version."""
    required = [*project["dependencies"]]
    for extra in EXTRAS:
        required += project["optional-dependencies"][extra]
    return [re.sub(r">=", "==", each) for each in required]


def main() -> int:
    """Install and run; the exit code is that of the tests."""
    project = tomllib.loads((HOME / "pyproject.toml").read_text())["project"]
    if not PYTHON.exists():
        venv.create(FOLDER, with_pip=True)
    pip = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pins = lowest(project)
    print(*pins, sep="\n", flush=True)
    subprocess.run([*pip, *pins, *TOOLS], check=True)
    subprocess.run([*pip, "--no-deps", "--editable", HOME], check=True)
    command = [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", *SMOKE]
    return subprocess.run(command, check=False, cwd=HOME, env={**os.environ}).returncode


if __name__ == "__main__":
    sys.exit(main())
