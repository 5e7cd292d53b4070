"""What an audit found: the verdict, its witness, the bound, and what was spent on it."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from deniable.auditing.report import Report, save
from deniable.auditing.sampled.claims import Claim
from deniable.auditing.sampled.curves import Curves
from deniable.errors import MissingExtraError
from deniable.plots import lines

VIOLATED, NOTHING = "violated", "no violation found"


@dataclass(frozen=True)
class AuditWitness:
    """The event that tells two neighbours apart: where, and how often on which side.

    `counts` are hits and calls, on the side where the event is likelier and on the other; they are
    empty where no calls were needed.
    """

    strategy: str
    event: str
    pair: str
    likelier_on: str
    counts: tuple[tuple[int, int], tuple[int, int]] | None = None
    probabilities: tuple[float, float] | None = None


@dataclass(frozen=True)
class Tested:
    """One event, tested on calls that had no part in choosing it.

    `power` is the chance that as many new calls would refute the claim, were the event as likely as
    it was seen: an estimate, not a bound. None where no events are counted.
    """

    witness: AuditWitness
    lower: float
    allowed: float
    level: float
    violated: bool
    power: float | None = None


@dataclass(frozen=True)
class AuditReport:
    """The outcome of an audit.

    Formal guarantee. If the claim holds for every pair that was given, and calls are independent of
    each other, the verdict is "violated" by a sampled event with probability `alpha` at most, and
    `lower` exceeds the true parameter with probability `alpha` at most, over all events together.
    "No violation found" never means "private": no number of calls can show more than `ceiling`.

    A report tells how outputs depend on private values: it is for those who may see the data.
    """

    verdict: str
    claim: Claim
    lower: float
    ceiling: float
    witness: AuditWitness | None
    tests: tuple[Tested, ...]
    findings: tuple[str, ...]
    n: int
    pairs: int
    confidence: float
    alpha: float
    alpha_spent: float
    seconds: tuple[float, float] | None = None
    curves: Curves | None = None

    @property
    def violated(self) -> bool:
        """Whether the claim was refuted."""
        return self.verdict == VIOLATED

    @property
    def report(self) -> Report:
        """The outcome, to be shown."""
        return self._report(())

    def _report(self, pictures: Sequence[str]) -> Report:
        sign = self.claim.sign
        facts: dict[str, object] = {"claim": self.claim.text}
        if self.witness is not None:
            facts |= _described(self.witness)
        facts[f"{sign} is at least"] = f"{self.lower:.4g}, with confidence {self.confidence:g}"
        facts[f"{sign} that this n can certify at most"] = f"{self.ceiling:.4g}"
        facts["calls on each side"] = f"{self.n:,}, two fifths of them to choose events"
        facts["pairs of neighbours"] = self.pairs
        facts["α"] = f"{self.alpha_spent:.4g} spent of {self.alpha:.4g}"
        if self.seconds is not None:
            on_data, on_neighbour = (f"{each * 1e6:.3g} µs" for each in self.seconds)
            facts["median time of a call"] = (
                f"{on_data} on the data, {on_neighbour} on the neighbour; reported, not judged"
            )
        rows = [
            (
                each.witness.strategy,
                each.witness.event,
                "; ".join(
                    part
                    for part in (
                        _counts(each.witness),
                        f"{sign} >= {each.lower:.4g}, allowed {each.allowed:.4g}",
                        "" if each.power is None else f"power {each.power:.2f}",
                    )
                    if part
                ),
            )
            for each in self.tests
        ]
        rows += [("finding", text, "") for text in self.findings]
        return Report(
            "Audit of a mechanism",
            not self.violated,
            self.verdict if self.violated else f"{self.verdict} at this n; this proves nothing",
            facts,
            ("strategy", "event", "result"),
            rows,
            pictures,
        )

    def __str__(self) -> str:
        return self.report.text()

    def to_dict(self) -> dict[str, object]:
        """Everything, as plain values."""
        seen = self.witness
        return {
            "verdict": self.verdict,
            "claim": self.claim.text,
            "parameter": self.claim.sign,
            "lower": _number(self.lower),
            "ceiling": _number(self.ceiling),
            "witness": None
            if seen is None
            else {
                "strategy": seen.strategy,
                "event": seen.event,
                "pair": seen.pair,
                "likelier_on": seen.likelier_on,
                "counts": seen.counts,
                "probabilities": seen.probabilities,
            },
            "tests": [
                {
                    "strategy": each.witness.strategy,
                    "event": each.witness.event,
                    "pair": each.witness.pair,
                    "counts": each.witness.counts,
                    "lower": _number(each.lower),
                    "allowed": _number(each.allowed),
                    "level": each.level,
                    "power": each.power,
                }
                for each in self.tests
            ],
            "findings": list(self.findings),
            "n": self.n,
            "pairs": self.pairs,
            "confidence": self.confidence,
            "alpha": self.alpha,
            "alpha_spent": self.alpha_spent,
            "seconds": self.seconds,
        }

    def to_json(self) -> str:
        """The report for machines."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_html(self) -> str:
        """The report as a page, with pictures where the `plot` extra is installed."""
        return self._report(self.pictures()).html()

    def pictures(self) -> list[str]:
        """The trade-off that was seen beside the one that is allowed, and the outputs, as SVG."""
        if self.curves is None:
            return []
        seen, grid = self.curves, np.linspace(0, 1, 101)
        allowed = self.claim.chosen_by(grid)
        found = np.interp(grid, seen.less, seen.more)
        try:
            return [
                _svg(
                    grid.tolist(),
                    {
                        "no information": grid.tolist(),
                        "the claim allows": allowed.tolist(),
                        "seen by the test": found.tolist(),
                    },
                    "What an observer can tell",
                    "probability of an event on one side",
                    "on the other",
                ),
                _svg(
                    seen.places,
                    {"the data": seen.on_data, "the neighbour": seen.on_neighbour},
                    "Outputs of the calls that test",
                    "the feature that was tested",
                    "share of calls",
                ),
            ]
        except MissingExtraError:
            return []

    def save(self, path: str | Path) -> Path:
        """Write the report to a file, by the ending of its name: .html, .json, or text."""
        return save(path, {".html": self.to_html, ".json": self.to_json}, self.__str__)


def _described(witness: AuditWitness) -> dict[str, object]:
    found: dict[str, object] = {
        "found by": witness.strategy,
        "event": witness.event,
        "pair": witness.pair,
        "likelier on": witness.likelier_on,
    }
    return found | ({"counts": counts} if (counts := _counts(witness)) else {})


def _counts(witness: AuditWitness) -> str:
    if witness.counts is not None:
        (more, calls), (less, others) = witness.counts
        return f"{more:,} of {calls:,} against {less:,} of {others:,}"
    if witness.probabilities is not None:
        more_likely, less_likely = witness.probabilities
        return f"probability {more_likely:.6g} against {less_likely:.6g}"
    return ""


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _svg(
    x: Sequence[float], curves: dict[str, Sequence[float]], title: str, x_label: str, y_label: str
) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = lines(
            x, curves, title=title, x_label=x_label, y_label=y_label, path=Path(folder) / "p.svg"
        )
        text = path.read_text(encoding="utf-8")
    return text[text.index("<svg") :]
