"""What the auditor finds: planted faults, correct mechanisms, and other libraries.

    python benchmarks/audit.py [--check] [--only PART] [--runs N] [--peers]

Faults (`_audited.py`) are written as a stranger would write them, at whole, rational and float
outputs and scales from 1 to a million. Of those whose best event Clopper and Pearson's bounds find
with probability 0.9 at n = 50,000 on each side, if it is known beforehand, nine in ten are to be
found, in 5 CPU seconds each. Correct mechanisms are audited N times each at n = 2,000 and accused
in at most a share α of the runs. `--peers` lets the auditor loose on diffprivlib and python-dp, as
their users call them: Laplace noise and KMeans of diffprivlib and one mechanism of python-dp are to
be refuted. They have an environment of their own: diffprivlib needs an older scikit-learn.
"""

from __future__ import annotations

import argparse
import os
import resource
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from _audited import Fault, correct, faults
from _peers import ROOT, run_peer
from rich.console import Console
from rich.table import Table

import deniable as dp
from deniable.auditing.sampled.claims import read_claim
from deniable.auditing.sampled.power import power

N, SMALL_N, RUNS, ALPHA = 50_000, 2_000, 4, 0.05
POWER, SHARE, SECONDS = 0.9, 0.9, 5.0
NEEDED = "numpy scipy cryptography sqlalchemy"
PEERS = {"diffprivlib": "diffprivlib", "pydp": "python-dp"}


def cpu_seconds(action: Callable[[], Any]) -> tuple[Any, float]:
    """What it gives, and what it cost with all its children."""

    def spent() -> float:
        own, theirs = (
            resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        return own.ru_utime + own.ru_stime + theirs.ru_utime + theirs.ru_stime

    begun = spent()
    found = action()
    return found, spent() - begun


def faulty(only: str) -> list[str]:
    """Audit every fault; what falls short."""
    table = Table("fault", "outputs", "scale", "best event", "power", "verdict", "by", "CPU s")
    due = found = 0
    slow, missed = [], []
    for fault in faults():
        if only not in fault.name:
            continue
        chance = power(read_claim(fault.claim), *fault.best, N, ALPHA)
        report, seconds = cpu_seconds(partial(audited, fault))
        due += chance >= POWER
        found += chance >= POWER and report.violated
        if chance >= POWER and not report.violated:
            missed.append(f"{fault.name} ({fault.kind}, scale {fault.scale:g})")
        if seconds > SECONDS:
            slow.append(f"{fault.name} took {seconds:.1f} CPU s")
        table.add_row(
            fault.name,
            fault.kind,
            f"{fault.scale:g}",
            f"{fault.best[0]:.4g} : {fault.best[1]:.4g}",
            f"{chance:.3f}",
            report.verdict,
            ""
            if report.witness is None
            else f"{report.witness.strategy}: {report.witness.event}"[:48],
            f"{seconds:.1f}",
        )
    Console(width=170).print(table)
    print(f"{found} of {due} faults found whose best event has power {POWER:g}; not: {missed}")
    return slow + ([f"{due - found} of {due} not found"] if found < SHARE * due else [])


def audited(fault: Fault) -> dp.auditing.AuditReport:
    """As a user would."""
    return dp.audit(fault.call, fault.claim, fault.pairs, N)


def accused(only: str, runs: int) -> list[str]:
    """How often correct mechanisms are called violated."""
    table = Table("correct mechanism", "runs", "accused")
    alarms = total = 0
    for each in correct():
        if only not in each.name:
            continue
        count = sum(
            dp.audit(each.call, each.claim, each.pairs, SMALL_N).violated for _ in range(runs)
        )
        alarms, total = alarms + count, total + runs
        table.add_row(each.name, str(runs), str(count))
    Console(width=100).print(table)
    print(f"{alarms} of {total} audits of correct mechanisms accused one; α = {ALPHA:g}")
    return [f"{alarms} false alarms in {total}"] if alarms > ALPHA * total else []


def peer_reports() -> dict[str, dict[str, Any]]:
    """The reports of each library that can be installed."""
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    found = {}
    for library, package in PEERS.items():
        answer = run_peer("audit_peers.py", f"{package} {NEEDED}", [library], alone="peers-audit")
        if answer is not None:
            found[f"{package} {answer['version']}"] = answer["reports"]
    return found


def our_reports() -> dict[str, Any]:
    """The same noise of ours, as often."""
    claims: list[tuple[str, Any, Any]] = [
        ("Laplace", dp.Laplace(epsilon=1, sensitivity=1), dp.PureDP(1)),
        ("Gaussian", dp.Gaussian(epsilon=1, delta=1e-6, sensitivity=1), dp.ApproxDP(1, 1e-6)),
    ]
    return {
        name: dp.audit(mechanism, claim, n=10_000, confidence=0.999).to_dict()
        for name, mechanism, claim in claims
    }


def peers() -> list[str]:
    """Other libraries, each against the claim of its own documentation."""
    reports = peer_reports() | {"deniable": our_reports()}
    table = Table("library", "mechanism", "claim", "verdict", "at least", "by", "event")
    refuted = set()
    for library, each in reports.items():
        for name, report in each.items():
            witness = report["witness"] or {"strategy": "", "event": ""}
            bound = f"{report['parameter']} {report['lower']:.3g}"
            row = [library, name, report["claim"], report["verdict"], bound]
            table.add_row(*row, witness["strategy"], witness["event"])
            if report["verdict"] == "violated":
                refuted.add(f"{library.split()[0]} {name}")
    Console(width=160).print(table)
    missed = [
        f"{name} was not refuted"
        for name in ("diffprivlib Laplace", "diffprivlib KMeans")
        if name not in refuted
    ]
    if not refuted & {"python-dp LaplaceMechanism", "python-dp GaussianMechanism"}:
        missed.append("python-dp was not refuted")
    return missed + sorted(f"{name} was refuted" for name in refuted if name.startswith("deniable"))


def main() -> int:
    """Print the tables; with --check, exit non-zero where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit non-zero below a bar")
    parser.add_argument("--only", default="", help="faults and mechanisms whose name holds this")
    parser.add_argument("--runs", type=int, default=RUNS, help="of each correct mechanism")
    parser.add_argument("--peers", action="store_true", help="other libraries as well")
    arguments = parser.parse_args()
    begun = time.monotonic()
    missed = faulty(arguments.only) + accused(arguments.only, arguments.runs)
    if arguments.peers:
        missed += peers()
    for miss in missed:
        print("missed:", miss)
    print(
        f"audit: {'all bars met' if not missed else 'BARS MISSED'}, "
        f"in {time.monotonic() - begun:.0f} s"
    )
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
