"""Must-hold cases 39 and 40: groups of one, and the library audited by itself."""

import math

import pyarrow as pa
import pytest
from scipy import stats

import deniable as dp
from auditing.faults import FAULTS, audited
from chance import FALSE_ALARM
from deniable.auditing.self_audit import FULL, mechanism_subjects, own_subjects, self_audit
from deniable.cli.audited import learning_subjects
from deniable.mechanisms.keys import WEIGHT, KeySelection

DELTA = 1e-3
RUNS = 10_000  # ten times 1/δ
QUESTION = "SELECT g, COUNT(*) AS n FROM t GROUP BY g"


def singletons(selection: KeySelection, runs: int) -> int:
    """How often a group of one unit is named: many at once, each with noise of its own."""
    counts = dict.fromkeys(range(runs), WEIGHT)
    return len(selection.release(counts))


def test_case_39_a_group_of_one_shows_with_a_chance_of_delta():
    selection = KeySelection(rho=1, delta=DELTA, max_groups=1)
    seen = singletons(selection, RUNS)
    assert stats.binom.sf(seen - 1, RUNS, DELTA) > FALSE_ALARM
    loose = KeySelection(rho=1, delta=0.2, max_groups=1)
    assert stats.binom.sf(singletons(loose, RUNS) - 1, RUNS, DELTA) < FALSE_ALARM  # power


@pytest.mark.soak
def test_case_39_no_group_of_one_shows_in_a_tenth_of_one_over_delta():
    """0 of N at N = 1/(10 δ) has a chance of 0.9 or more; ten such runs are expected to see one."""
    delta = 1e-6
    selection = KeySelection(rho=0.1, delta=delta, max_groups=1)
    seen = singletons(selection, int(0.1 / delta))
    print(f"groups of one that show at δ = {delta}: {seen} of {0.1 / delta:,.0f}")
    assert stats.binom.sf(seen - 1, int(0.1 / delta), delta) > FALSE_ALARM


def groups(names):
    table = dp.PrivateTable(
        pa.table({"who": list(range(len(names))), "g": names}),
        unit="who",
        population="p",
        max_rows=1,
        max_groups=1,
    )
    with (
        dp.Ledger(key=bytes(32)) as ledger,
        dp.Session({"t": table}, budget=dp.ApproxDP(100, 1e-6), ledger=ledger) as session,
    ):
        return session.sql(QUESTION, epsilon=20)


def test_case_39_rows_and_columns_come_in_an_order_of_their_own():
    many = ["z"] * 60 + ["a"] * 50 + ["m"] * 40
    answers = [groups(names) for names in (many, many[::-1], [*many, "alone"], sorted(many))]
    for answer in answers:
        assert list(answer.columns) == ["g", "n"]
        assert list(answer["g"]) == ["a", "m", "z"]


def test_case_40_every_planted_fault_is_caught_and_named():
    """One run of the cheap ones here; all of them in tests/auditing, fifty times in the soak."""
    for name in ("geometric x 0.9", "keys without a threshold"):
        assert any(audited(FAULTS[name]).violated for _ in range(3)), name


def test_case_40_the_mechanisms_pass_their_own_audit():
    certificate = self_audit(mechanism_subjects(), n=400, confidence=1 - FALSE_ALARM)
    assert certificate.ok
    names = {name for _, name, _ in certificate.reports}
    names |= {each.name for each in learning_subjects()}  # audited in tests/cli
    exported = {
        name
        for name in dp.__all__
        if isinstance(getattr(dp, name), type) and hasattr(getattr(dp, name), "release")
    }
    assert exported - {"Gate"} <= names


@pytest.mark.soak
def test_case_40_the_whole_library_passes_its_own_audit():
    certificate = self_audit(own_subjects(), n=FULL)
    for layer, name, report in certificate.reports:
        print(
            f"{layer:10} {name:24} {report.verdict}, {report.claim.sign} >= {report.lower:.3g}, "
            f"ceiling {report.ceiling:.3g}"
        )
    assert certificate.ok
    assert all(math.isfinite(report.ceiling) for _, _, report in certificate.reports)
