"""The library audits itself: every mechanism, the SQL path, and whatever registers beside them.

A subject is something to audit and its claim. Mechanisms and the SQL path are listed here; layers
that this one does not know are handed in by whoever calls `self_audit`.
"""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from deniable.auditing.report import page, save
from deniable.auditing.sampled.audits import audit
from deniable.auditing.sampled.outcomes import Several
from deniable.auditing.sampled.targets import Progress
from deniable.auditing.sampled.verdict import AuditReport
from deniable.errors import ParameterError
from deniable.ledger.ledger import Ledger
from deniable.mechanisms.base import read_confidence
from deniable.mechanisms.gaussian import DiscreteGaussian, Gaussian
from deniable.mechanisms.histogram import Histogram, StabilityHistogram
from deniable.mechanisms.keys import KeySelection
from deniable.mechanisms.laplace import Geometric, Laplace
from deniable.mechanisms.metric import MetricExponential
from deniable.mechanisms.noisy_max import ReportNoisyMax
from deniable.mechanisms.planar import PlanarLaplace
from deniable.mechanisms.propose_test_release import ProposeTestRelease
from deniable.mechanisms.quantile import Quantile
from deniable.mechanisms.response import RandomizedResponse
from deniable.mechanisms.selection import Exponential, PermuteAndFlip, TopK
from deniable.mechanisms.sparse_vector import SparseVector
from deniable.mechanisms.subsample import SubsampleAggregate
from deniable.mechanisms.truncated import TruncatedGeometric
from deniable.privacy.exact import Number
from deniable.privacy.guarantees import GDP, ApproxDP, PureDP
from deniable.session import Session
from deniable.tables import PrivateTable

QUICK, FULL = 1_000, 50_000

_LINE = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
_WORLDS = 250
_SCALES = {"1": 1, "10": 10, "1,000": 1000, "10^6": 10**6, "2^20": 2**20, "2^40": 2**40}
_DELTA = 1e-6


@dataclass(frozen=True, eq=False)
class Subject:
    """Something to audit: by name, with its claim, and with neighbours where it suggests none.

    `share` of the calls are made where one call takes long.
    """

    layer: str
    name: str
    mechanism: Any
    claim: Any
    pairs: list[tuple[Any, Any]] | None = None
    share: float = 1.0


@dataclass(frozen=True)
class Certificate:
    """What the audits of many subjects found.

    Formal guarantee. If all claims hold, some audit says "violated" by a sampled event with
    probability 1 - `confidence` at most: each spends an equal part of it.
    """

    reports: tuple[tuple[str, str, AuditReport], ...]
    confidence: float

    @property
    def ok(self) -> bool:
        """Whether no claim was refuted."""
        return not any(report.violated for _, _, report in self.reports)

    def rows(self) -> list[dict[str, object]]:
        """One line for each subject."""
        return [
            {"layer": layer, "subject": name, **report.to_dict()}
            for layer, name, report in self.reports
        ]

    def to_json(self) -> str:
        """The table for machines."""
        table = {"ok": self.ok, "confidence": self.confidence, "subjects": self.rows()}
        return json.dumps(table, indent=2, ensure_ascii=False)

    def to_html(self) -> str:
        """The table as a page, with the report and pictures of each subject below."""
        say = html.escape
        body = "".join(
            f"<tr><td>{say(layer)}</td><td>{say(name)}</td><td>{say(each.claim.text)}</td>"
            f'<td class="{"bad" if each.violated else "good"}">{say(each.verdict)}</td>'
            f"<td>{each.claim.sign} ≥ {each.lower:.3g}</td><td>{each.ceiling:.3g}</td>"
            f"<td>{each.n:,}</td></tr>"
            for layer, name, each in self.reports
        )
        details = "".join(
            f"<details><summary>{say(layer)}: {say(name)}</summary><pre>{say(str(each))}</pre>"
            f"{''.join(each.pictures())}</details>"
            for layer, name, each in self.reports
        )
        heads = ("layer", "subject", "claim", "verdict", "at least", "ceiling", "calls")
        head = "".join(f"<th>{name}</th>" for name in heads)
        verdict = "no violation found" if self.ok else "a claim was refuted"
        return page(
            "Self-audit",
            f"<p><strong>{verdict}</strong>, at confidence {self.confidence:g} for all together</p>"
            f"<table><tr>{head}</tr>{body}</table>{details}",
        )

    def save(self, path: str | Path) -> Path:
        """Write it to a file: .html or .json."""
        return save(path, {".html": self.to_html}, self.to_json)


def self_audit(
    subjects: Iterable[Subject],
    *,
    n: int = QUICK,
    confidence: Number = 0.95,
    progress: Callable[[Subject], Progress] | None = None,
) -> Certificate:
    """Audit all subjects, each at an equal part of 1 - confidence."""
    listed = list(subjects)
    if not listed:
        raise ParameterError("subjects", "empty", "name one subject or more")
    part = 1 - (1 - read_confidence(confidence)) / len(listed)
    reports = tuple(
        (
            each.layer,
            each.name,
            audit(
                each.mechanism,
                each.claim,
                each.pairs,
                max(40, int(n * each.share)),
                part,
                progress=None if progress is None else progress(each),
                time_limit=60,
            ),
        )
        for each in listed
    )
    return Certificate(reports, float(read_confidence(confidence)))


def mechanism_subjects() -> list[Subject]:
    """Every mechanism, against its own loss or the guarantee it is named by."""
    gaussian = Gaussian(sigma=1, sensitivity=1)
    made: list[tuple[Any, Any]] = [
        (Laplace(epsilon=1, sensitivity=1), PureDP(1)),
        (Geometric(epsilon=1, sensitivity=1), PureDP(1)),
        (gaussian, GDP(1)),
        (DiscreteGaussian(sigma=2, sensitivity=1), None),
        (TruncatedGeometric(epsilon=1, sensitivity=1, lower=0, upper=10), PureDP(1)),
        (PlanarLaplace(epsilon=1, sensitivity=1), None),
        (MetricExponential(epsilon=1, points="abc", distances=_LINE), None),
        (RandomizedResponse(epsilon=1), PureDP(1)),
        (Exponential(epsilon=1, sensitivity=1), PureDP(1)),
        (PermuteAndFlip(epsilon=1, sensitivity=1), PureDP(1)),
        (ReportNoisyMax(epsilon=1, sensitivity=1), PureDP(1)),
        (TopK(Exponential(epsilon=1, sensitivity=1), 2), None),
        (Quantile(epsilon=1, share=0.5, bounds=(0, 10)), None),
        (Histogram(epsilon=1, cells="ab"), None),
        (StabilityHistogram(epsilon=1, delta=0.01), None),
        (KeySelection(rho=0.1, delta=0.01, max_groups=1), None),
        (SparseVector(epsilon=1, threshold=0, sensitivity=1), PureDP(1)),
        (ProposeTestRelease(epsilon=1, delta=0.01, bound=1), None),
    ]
    cut = SubsampleAggregate(
        epsilon=1, blocks=2, aggregate="mean", bounds=(0, 10), default=0, function=_mean
    )
    few = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    return [
        *(
            Subject("mechanisms", type(each).__name__, each, claim or each.loss)
            for each, claim in made
        ),
        # Each block is a process of its own.
        Subject(
            "mechanisms", "SubsampleAggregate", cut, cut.loss, [(few, [*few, 10.0])], share=0.02
        ),
        *_wide_subjects(),
    ]


def _wide_subjects() -> list[Subject]:
    """Whole numbers with noise of every width that samplers build in another way."""
    found = []
    for name, scale in _SCALES.items():
        pairs = [(0, scale)]
        laplace = Geometric(scale=scale, sensitivity=scale)
        normal = DiscreteGaussian(sigma=scale, sensitivity=scale)
        found += [
            Subject("mechanisms", f"Geometric of scale {name}", laplace, PureDP(1), pairs),
            Subject("mechanisms", f"DiscreteGaussian of {name}", normal, normal.loss, pairs),
        ]
    return found


def _mean(records: list[float]) -> float:
    return sum(records) / len(records)


def sql_subjects() -> list[Subject]:
    """Questions to a table in DuckDB.

    Every group is a world of its own, with units and noise of its own: one question about many
    groups makes as many independent releases.
    """
    questions = {
        "COUNT": "SELECT g, COUNT(*) AS y FROM t GROUP BY g",
        "SUM": "SELECT g, SUM(x) AS y FROM t GROUP BY g",
        "AVG": "SELECT g, AVG(x) AS y FROM t GROUP BY g",
        "MEDIAN": "SELECT g, MEDIAN(x) AS y FROM t GROUP BY g",
    }
    pairs = [(False, True)]
    claim = ApproxDP(1, _DELTA)
    found = [
        Subject("sql", f"{name} by declared keys", _asking(text, keys=True), claim, pairs)
        for name, text in questions.items()
    ]
    count = _asking(questions["COUNT"], keys=False)
    # Half of the session's δ is for the choice of keys.
    chosen = ApproxDP(1, 2 * _DELTA)
    return [*found, Subject("sql", "COUNT by selected keys", count, chosen, pairs)]


def _asking(question: str, *, keys: bool) -> Callable[[bool], Several]:
    names = [f"g{number:04d}" for number in range(_WORLDS)]

    def ask(more: bool) -> Several:
        import pyarrow as pa  # noqa: PLC0415  (slow to import, and only for tables)

        units = 4 if keys else 25  # about as many as let a group be named
        rows = [(f"{g}/{u}", g, 2.0 + u % 8) for g in names for u in range(units)]
        if more:
            rows += [(f"{g}/more", g, 10.0) for g in names for _ in range(3)]
        who, group, number = (list(column) for column in zip(*rows, strict=True))
        table = PrivateTable(
            pa.table({"who": who, "g": group, "x": number}),
            unit="who",
            population="worlds",
            bounds={"x": (0, 10)},
            keys={"g": names} if keys else {},
            max_rows=2,
            max_groups=1,
        )
        with (
            Ledger(key=bytes(32)) as ledger,
            Session({"t": table}, budget=ApproxDP(1e6, 2 * _DELTA), ledger=ledger) as session,
        ):
            answer = session.sql(question, epsilon=1)
        shown = dict(zip(answer["g"], answer["y"], strict=True))
        return Several([shown.get(name) for name in names])

    return ask


def own_subjects() -> list[Subject]:
    """All subjects that this layer knows."""
    return [*mechanism_subjects(), *sql_subjects()]
