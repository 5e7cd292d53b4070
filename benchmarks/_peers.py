"""Other libraries, in a virtual environment of their own: they pin versions of their own."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
ENVIRONMENT = ROOT / ".venv-peers"
SCRIPTS = Path(__file__).parent / "peer_scripts"
PINS = SCRIPTS / "constraints.txt"


def run_peer(
    script: str, package: str, arguments: list[str], *, alone: str = ""
) -> dict[str, Any] | None:
    """Run a peer's script and read the JSON it prints; None, said aloud, if it cannot be had.

    `package` may name several, apart by spaces. A peer that stands `alone` has an environment and
    versions of that name for itself.
    """
    environment = ROOT / f".venv-{alone}" if alone else ENVIRONMENT
    pins = SCRIPTS / f"{alone}.txt" if alone else PINS
    python = environment / "bin" / "python"
    if not python.exists():
        venv.create(environment, with_pip=True)
    install = [str(python), "-m", "pip", "install", "-q", "-c", str(pins), *package.split()]
    if subprocess.run(install, check=False, capture_output=True).returncode != 0:
        print(f"peer {package}: cannot be installed here, so it is not measured", file=sys.stderr)
        return None
    command = [str(python), str(SCRIPTS / script), *arguments]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer
