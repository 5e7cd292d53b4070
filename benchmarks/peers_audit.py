"""Other libraries under our auditor, which is told a callable, a claim and two neighbours.

    python benchmarks/peers_audit.py [--check]

diffprivlib's Laplace and Gaussian noise and its KMeans, and python-dp's Laplace and Gaussian noise,
each against the claim of its own documentation; beside them the same noise of ours. The auditor
runs in the peers' environment, apart from that of the other benchmarks: diffprivlib needs an older
scikit-learn. Bars: diffprivlib's Laplace and KMeans and one of python-dp's two are refuted, ours
are not.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from _peers import ROOT, run_peer
from rich.console import Console
from rich.table import Table

import deniable as dp

NEEDED = "numpy scipy cryptography sqlalchemy"
PEERS = {"diffprivlib": "diffprivlib", "pydp": "python-dp"}


def peer_reports() -> dict[str, dict[str, Any]]:
    """The reports of each library that can be installed."""
    os.environ["PYTHONPATH"] = str(ROOT / "src")
    found = {}
    for library, package in PEERS.items():
        answer = run_peer(
            "audit_peers.py",
            f"{package} {NEEDED}",
            [library],
            alone="peers-audit",
        )
        if answer is not None:
            found[f"{package} {answer['version']}"] = answer["reports"]
    return found


def our_reports() -> dict[str, Any]:
    """The same noise of ours, as often."""
    laplace = dp.Laplace(epsilon=1, sensitivity=1)
    gaussian = dp.Gaussian(epsilon=1, delta=1e-6, sensitivity=1)
    claims: list[tuple[str, Any, Any]] = [
        ("Laplace", laplace, dp.PureDP(1)),
        ("Gaussian", gaussian, dp.ApproxDP(1, 1e-6)),
    ]
    return {
        name: dp.audit(mechanism, claim, n=10_000, confidence=0.999).to_dict()
        for name, mechanism, claim in claims
    }


def main() -> int:
    """Print the table; with --check, exit non-zero where a bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="exit non-zero below a bar")
    arguments = parser.parse_args()
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
    missed += sorted(f"{name} was refuted" for name in refuted if name.startswith("deniable"))
    for miss in missed:
        print("missed:", miss)
    peers = [name for name in reports if name != "deniable"]
    count = sum(not name.startswith("deniable") for name in refuted)
    print(
        f"peers_audit: {count} mechanisms of {' and '.join(peers) or 'no peer'} refuted without "
        f"hints, none of ours; {'all bars met' if not missed else 'BARS MISSED'}"
    )
    return 1 if arguments.check and missed else 0


if __name__ == "__main__":
    sys.exit(main())
