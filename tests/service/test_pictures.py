"""Every page has its picture, on a phone and on a desktop."""

import re
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
MOST_BYTES = 120_000


def test_every_page_is_in_the_docs_twice_and_small():
    taken = set(re.findall(r'take\(page, "(\w+)", size\)', (DOCS / "screenshots.py").read_text()))
    files = {file.name: file for file in (DOCS / "survey_pages").iterdir()}
    assert files.keys() == {f"{name}_{size}.png" for name in taken for size in ("phone", "desktop")}
    assert max(file.stat().st_size for file in files.values()) < MOST_BYTES
    # Each of the operator's and the respondents' templates is on one of them at least.
    assert len(taken) >= len(list((DOCS / "../src/deniable/service/templates").glob("*.html")))
