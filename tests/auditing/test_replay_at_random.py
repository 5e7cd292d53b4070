"""Replay on random pipelines: silent on the correct, loud on every planted fault."""

import random

import pytest

import deniable as dp
from auditing.pipelines import FAULTS, bare, gated, random_pair, random_pipeline, robust_median

CHUNK, FEW, MANY = 25, 2, 40


def session(data, ledger):
    ledger.open("people", dp.Budget(dp.ApproxDP(1000, 0.5)), who="owner")
    return data, dp.Gate(ledger, "people", "analyst")


def replayed(pipeline, pair, *, through_the_gate):
    """Bare, or through a gate; gates hold one relation, so replacements are run bare."""
    if through_the_gate:
        return dp.replay(
            lambda made: pipeline.run(made[0], gated(made[1])),
            *pair,
            factory=session,
            time_limit=None,
        )
    return dp.replay(lambda data: pipeline.run(data, bare), *pair, time_limit=None)


@pytest.mark.parametrize(
    "chunk",
    [
        pytest.param(chunk, marks=() if chunk < FEW else pytest.mark.soak)
        for chunk in range(FEW + MANY)
    ],
)
def test_correct_pipelines_have_no_finding_and_each_fault_is_found(chunk):
    rng = random.Random(chunk)
    for number in range(CHUNK):
        pipeline = random_pipeline(rng)
        pair = random_pair(rng, pipeline.relation)
        gate = number % 2 == 0 and pipeline.relation == "add_remove"
        found = replayed(pipeline, pair, through_the_gate=gate)
        assert found.ok, (pipeline, str(found))
        assert found.ended == "with an output", (pipeline, found.ended)
        assert found.releases >= 1 or set(pipeline.steps) == {robust_median}
        for fault in FAULTS:
            broken = pipeline.with_fault(fault, rng.randrange(4))
            caught = replayed(broken, pair, through_the_gate=gate)
            assert not caught.ok, (fault.__name__, broken)
