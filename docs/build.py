"""Build the documentation into build/docs: pages, a reference from the docstrings, pictures."""

from __future__ import annotations

import html
import inspect
import sys
from pathlib import Path

import numpy as np
from markdown_it import MarkdownIt

import deniable as dp
from deniable import plots

HERE = Path(__file__).parent
TARGET = HERE.parent / "build" / "docs"
PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width">
<style>body{{max-width:46rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif}}
pre{{background:#f4f6f8;padding:.8rem;overflow-x:auto}}code{{font-size:.92em}}
table{{border-collapse:collapse}}td,th{{border:1px solid #ccd;padding:.3rem .6rem}}
img{{max-width:100%}}</style>{body}</html>"""


def write(name: str, title: str, body: str) -> None:
    """Write one page; its name may begin with a folder."""
    place = TARGET / f"{name}.html"
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(PAGE.format(title=html.escape(title), body=body))


def render(text: str) -> str:
    """Markdown to HTML; links between pages follow."""
    return str(MarkdownIt("commonmark").enable("table").render(text)).replace('.md"', '.html"')


def reference() -> str:
    """One section per public name, from its docstring."""
    sections = ["# Reference\n"]
    for name in dp.__all__:
        thing = getattr(dp, name)
        signature = ""
        if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception)):
            signature = str(inspect.signature(thing)).replace("deniable.privacy.", "")
        sections.append(f"## `{name}`\n\n`{name}{signature}`\n\n{inspect.getdoc(thing)}\n")
        sections += [f"- `{label}`: {text}" for label, text in members(thing)]
        sections.append("")
    return "\n".join(sections)


def members(thing: object) -> list[tuple[str, str]]:
    """The public methods and properties of a class, with their docstrings."""
    if not inspect.isclass(thing):
        return []
    found = {
        label: inspect.getdoc(member)
        for label, member in vars(thing).items()
        if not label.startswith("_") and (callable(member) or isinstance(member, property))
    }
    return [(label, text) for label, text in found.items() if text]


def pictures() -> str:
    """What the laws look like, and what a histogram with error bars looks like."""
    mechanism = dp.Geometric(epsilon=0.5, sensitivity=1)
    cells = np.array([120, 340, 290, 150, 60])
    noisy = np.asarray(mechanism.release(cells))
    width = float(mechanism.error(confidence=0.95))
    labels = ["18-29", "30-44", "45-59", "60-74", "75+"]
    plots.bars_between(
        labels,
        noisy,
        (noisy - width, noisy + width),
        title="A private histogram, ε = 0.5",
        path=TARGET / "histogram.png",
    )
    return '<p><img src="histogram.png" alt="a private histogram with error bars"></p>'


def main() -> int:
    """Build everything."""
    TARGET.mkdir(parents=True, exist_ok=True)
    proof = HERE.parent / "src" / "deniable" / "randomness" / "PROOF.md"
    for page in [*HERE.rglob("*.md"), proof]:
        text = page.read_text().replace("../src/deniable/randomness/PROOF.md", "PROOF.md")
        body = render(text) + (pictures() if page.stem == "mechanisms" else "")
        folder = page.parent.relative_to(HERE) if page != proof else Path()
        write(str(folder / page.stem), page.stem, body)
    write("reference", "reference", render(reference()))
    (TARGET / "index.html").write_text(
        (TARGET / "index.html")
        .read_text()
        .replace("Reference: built", '<a href="reference.html">Reference</a>: built')
    )
    print(f"documentation: {TARGET / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
