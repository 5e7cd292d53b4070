"""What other layers give to the self-audit: here all of them meet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from deniable.auditing.sampled.outcomes import Several
from deniable.auditing.self_audit import Subject
from deniable.ledger.filters import Budget
from deniable.ledger.ledger import Ledger
from deniable.privacy.guarantees import ZCDP, ApproxDP, PureDP
from deniable.release import Gate

_AT_ONCE = 250
_ENDS = [(0, 1)]
_ROWS = [(1, 2)]
_FEWER = 0.3  # a fit takes longer than a release


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


def learning_subjects() -> list[Subject]:
    """Every private estimator, with little noise: one row more, at a corner, is a neighbour."""
    from deniable import learning  # noqa: PLC0415  (scikit-learn is slow to load)

    known: dict[str, Any] = {"guarantee": ApproxDP(8, 1e-6), "bounds": (0, 1)}
    named: dict[str, Any] = {**known, "classes": [0, 1]}
    models: list[tuple[Any, str]] = [
        (learning.StandardScaler(**known), "mean_"),
        (learning.LinearRegression(**known, y_bounds=(0, 1)), "coef_"),
        (learning.Ridge(**known, y_bounds=(0, 1)), "coef_"),
        (learning.GaussianNB(**named), "theta_"),
        (learning.PCA(1, **known), "explained_variance_"),
        (learning.KMeans(2, **known, max_iter=1), "cluster_centers_"),
        (learning.LogisticRegression(**named, max_iter=2), "coef_"),
        (learning.SGDClassifier(**named, size=2, rate=0.5, max_iter=2), "coef_"),
        (learning.PerturbedLogisticRegression(**named, penalty=1.0), "coef_"),
    ]
    descent = learning.ProjectedDescent(
        "absolute", guarantee=known["guarantee"], width=1, radius=1, size=2, steps=2
    )

    def descend(more: int) -> float:
        return float(descent.release(([[1.0]] * more, [1.0] * more))[0])

    return [
        Subject("learning", "ProjectedDescent", descend, descent.loss, _ROWS, _FEWER),
        *(
            Subject("learning", type(each).__name__, _fits(each, name), each.loss, _ROWS, _FEWER)
            for each, name in models
        ),
    ]


def _fits(model: Any, name: str) -> Callable[[int], tuple[float, ...]]:
    """What is learned from `more` rows at one corner beside one at the other, with their number."""

    def fit(more: int) -> tuple[float, ...]:
        rows = np.array([[0.0]] + [[1.0]] * more)
        target = rows[:, 0].astype(int)
        fitted = model.fit(rows, target) if hasattr(model, "predict") else model.fit(rows)
        told = np.ravel(getattr(fitted, name)).tolist()
        return (*told, float(getattr(fitted, "n_rows_", 0.0)))

    return fit


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


_DOORS = 25
_SIZES = {"a": 2, "b": 2}


def synthesis_subjects() -> list[Subject]:
    """What a synthesis draws, and whole ones: of two tables, one has one row more."""
    from deniable import synthesis  # noqa: PLC0415  (only where it is asked for)
    from deniable.synthesis.scores import WrongMarginal  # noqa: PLC0415

    domain = synthesis.Domain(_SIZES)
    pairs = synthesis.Workload.all_of(domain, 2)
    singles: list[tuple[str, ...]] = [("a",), ("b",)]
    wrong = WrongMarginal(singles, [np.zeros(2), np.full(2, 2.0)], [1, 1], [0.0, 0.0])
    queries = [synthesis.Counting(domain, {"a": 1, "b": code}) for code in (1, 0, 1)]

    def online(draws: Any) -> tuple[float, ...]:
        desk = synthesis.PrivateMultiplicativeWeights(draws, queries=3, updates=2, passes=2)
        return tuple(desk.answer(query).value for query in queries)

    def fitted(method: Any) -> Callable[[Any], tuple[float, ...]]:
        return lambda draws: tuple(method.run(draws).marginal(["a", "b"]).ravel().tolist())

    asked: dict[str, tuple[Callable[[Any], object], float]] = {
        "a marginal": (lambda d: tuple(d.measure(("a",), d.whole).values.tolist()), 1.0),
        "a choice": (lambda d: d.choose(wrong, d.whole), 1.0),
        "online answers": (online, 1.0),
        "MWEM": (fitted(synthesis.MWEM(workload=pairs, rounds=2, passes=2)), 0.5),
        "MST": (fitted(synthesis.MST(iterations=5)), 0.5),
        "AIM": (fitted(synthesis.AIM(workload=pairs, iterations=3, last_iterations=5)), 0.2),
    }
    return [
        Subject(
            "synthesis", f"{name}, {claim}", _drawing(ask, claim), claim, [(False, True)], share
        )
        for name, (ask, share) in asked.items()
        for claim in (PureDP(1), ZCDP(0.5))
    ]


def _drawing(ask: Callable[[Any], object], claim: PureDP | ZCDP) -> Callable[[bool], Several]:
    """Several doors to the same rows, each with its own price and noise."""
    from deniable.synthesis.data import CodedRows  # noqa: PLC0415  (only where it is asked for)
    from deniable.synthesis.measure import open_draws  # noqa: PLC0415

    pure = isinstance(claim, PureDP)
    price: dict[str, Any] = {"epsilon": 1} if pure else {"rho": 0.5}

    def outputs(more: bool) -> Several:
        rows = np.array([[0, 0], [1, 1], [1, 0]] + [[1, 1]] * more)
        data = CodedRows(rows, _SIZES)
        with Ledger(key=bytes(32)) as ledger:
            ledger.open("people", Budget(type(claim)(10**6)), who="auditor")
            gate = Gate(ledger, "people", "auditor")
            return Several(
                [ask(open_draws(gate, data, purpose="an audit", **price)) for _ in range(_DOORS)]
            )

    return outputs
