"""What other layers give to the self-audit: here all of them meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.auditing.outcomes import Several
from deniable.auditing.self_audit import Subject
from deniable.privacy.guarantees import PureDP

_AT_ONCE = 250
_ENDS = [(0, 1)]


def survey_subjects() -> list[Subject]:
    """Every protocol of the local model at ε = 1: two answers are neighbours."""
    from deniable import survey  # noqa: PLC0415  (only where it is asked for)

    plain = (
        survey.KaryResponse(k=4, epsilon=1),
        survey.UnaryEncoding(k=4, epsilon=1),
        survey.SubsetSelection(k=4, epsilon=1),
        survey.BitFlip(k=4, epsilon=1, bits=4),
        survey.OneBitMean(epsilon=1, bounds=(0, 1)),
        survey.PiecewiseMean(epsilon=1, bounds=(0, 1)),
        survey.HybridMean(epsilon=1, bounds=(0, 1)),
        survey.SquareWave(epsilon=1, bounds=(0, 1)),
    )
    hashed = (survey.LocalHashing(k=4, epsilon=1), survey.HadamardResponse(k=4, epsilon=1))
    found = [
        Subject("survey", type(each).__name__, _reports(each), PureDP(1), _ENDS) for each in plain
    ]
    found += [
        Subject("survey", type(each).__name__, _shares(each), PureDP(1), _ENDS) for each in hashed
    ]
    two_coins = survey.designs.two_coins()
    return [*found, Subject("survey", "two coins", _said(two_coins), two_coins.loss, _ENDS)]


def _reports(protocol: Any) -> Callable[[int], Several]:
    """Many clients at once, each of whom sends a report of its own."""
    return lambda value: Several(protocol.randomize(np.full(_AT_ONCE, value)).tolist())


def _shares(protocol: Any) -> Callable[[int], Several]:
    """What each report alone says for every answer: seeds that are all different say nothing."""

    def ask(value: int) -> Several:
        reports = protocol.randomize(np.full(_AT_ONCE, value))
        return Several(
            [
                tuple(protocol.aggregate(reports[place : place + 1]).estimate().shares)
                for place in range(_AT_ONCE)
            ]
        )

    return ask


def _said(design: Any) -> Callable[[int], Several]:
    return lambda value: Several([str(r) for r in design.randomize([bool(value)] * _AT_ONCE)])
