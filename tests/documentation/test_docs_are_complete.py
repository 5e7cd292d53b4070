import re
from pathlib import Path

import pytest

import deniable as dp
from deniable import errors

ROOT = Path(__file__).parents[2]
MARKDOWN = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")]


def test_every_error_is_documented():
    page = (ROOT / "docs" / "errors.md").read_text()
    missing = [name for name in errors.__all__ if f"## `{name}`" not in page]
    assert not missing, f"describe these in docs/errors.md: {missing}"


def test_every_error_is_in_the_tree():
    assert all(name in errors.__doc__ for name in errors.__all__)


def test_every_mechanism_is_in_the_readme():
    page = (ROOT / "README.md").read_text()
    for name in dp.__all__:
        if hasattr(getattr(dp, name), "release"):
            assert f"`{name}`" in page


@pytest.mark.parametrize("page", MARKDOWN, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_constraints_name_versions_only():
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pinned = [line for line in lines if line and not line.startswith("#")]
    assert pinned
    assert all(re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9.+!]+", line) for line in pinned)
