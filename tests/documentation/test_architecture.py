import re
import tomllib
from collections import Counter
from pathlib import Path

from deniable.query.stages import STAGES

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
CLASS = re.compile(r"^class (\w+)", re.MULTILINE)
PLACE = re.compile(r"\b((?:[a-z_]+/)+[a-z_]*(?:\.py)?|(?:release|answer)\.py)")


def test_every_place_it_names_is_there():
    named = {each for each in PLACE.findall(PAGE) if not each.startswith(("src/", "decisions/"))}
    assert len(named) > 40
    for each in named:
        below = ROOT if each.startswith("tests/") else ROOT / "src" / "deniable"
        assert (below / each).exists(), each


def test_the_layers_are_those_that_are_enforced():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    enforced = project["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = PAGE.split("```")[1]
    layers = [line.strip() for line in enforced]
    lines = [line.strip() for line in drawn.strip().splitlines()]
    assert len(lines) == len(layers)
    for line, layer in zip(lines, layers, strict=True):
        for name in re.findall(r"[a-z]+", line.partition("  ")[0]):
            assert name in layer


def test_the_way_of_a_question_passes_its_stages():
    drawn = PAGE.split("## The way of a question")[1].split("```")[1]
    files = {each.__module__.removeprefix("deniable.").replace(".", "/") + ".py" for each in STAGES}
    elsewhere = {"query/run/answering.py", "query/plan/planner.py"}
    assert all(each in drawn for each in files - elsewhere)


def test_no_class_name_stands_for_two_things():
    files = (ROOT / "src").rglob("*.py")
    names = [name for file in files for name in CLASS.findall(file.read_text())]
    assert len(names) > 300
    assert [name for name, times in Counter(names).items() if times > 1] == []
