import subprocess
import sys
from pathlib import Path

import deniable as dp

ROOT = Path(__file__).parents[2]


def test_the_documentation_builds_with_every_public_name():
    subprocess.run([sys.executable, ROOT / "docs" / "build.py"], check=True, capture_output=True)
    built = ROOT / "build" / "docs"
    page = (built / "reference.html").read_text()
    assert all(f"<code>{name}</code>" in page for name in dp.__all__)
    assert (built / "histogram.png").stat().st_size > 5_000
    assert "reference.html" in (built / "index.html").read_text()
    assert (built / "PROOF.html").exists()
