"""README and docs are executed; what they print is what they show.

A statement with the comment "noisy" is run too, and its output compared in shape only: every
number in it may differ.
"""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
NOISY = doctest.register_optionflag("NOISY")
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[+-]?\d+)?")


class Checker(doctest.OutputChecker):
    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        if optionflags & NOISY:
            want, got = (re.sub(r"\s+", "", NUMBER.sub("#", text)) for text in (want, got))
        return super().check_output(want, got, optionflags)


def failures(text: str, name: str) -> int:
    test = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    for example in test.examples:
        example.options[NOISY] = "# noisy" in example.source
    runner = doctest.DocTestRunner(Checker(), optionflags=doctest.NORMALIZE_WHITESPACE)
    return runner.run(test).failed


def code(page: Path) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_the_page_says_what_happens(page, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where pictures and ledgers go
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))  # where keys go
    assert failures(code(page), page.name) == 0, capsys.readouterr().out


def test_the_readme_holds_a_session():
    assert code(ROOT / "README.md").count(">>>") >= 8


def test_the_checker_notices_a_wrong_page():
    assert failures(">>> 1 + 1\n3\n", "wrong") == 1
    assert failures(">>> 'a5'  # noisy\n'b7'\n", "misshapen") == 1
    assert failures(">>> 'a5'  # noisy\n'a7'\n", "right") == 0
