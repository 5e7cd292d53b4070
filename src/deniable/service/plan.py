"""The planner's page: text from a form to people, margin and ε."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from deniable.errors import ParameterError
from deniable.survey.planner import PlanRow, epsilon_for, planning_table

EPSILONS = (0.25, 0.5, 1.0, 1.0986, 2.0, 3.0, 4.0)


@dataclass(frozen=True)
class Planned:
    """The table for a margin and a share, and the least ε for so many people, if asked."""

    margin: float
    share: float
    rows: tuple[PlanRow, ...]
    people: int | None
    epsilon: float | None


def planned(given: Mapping[str, str]) -> Planned:
    """Plan from a form; what is empty takes 3 points around a share of 10 %."""
    margin, share = (_share(given.get(name) or usual, name) for name, usual in
                     (("margin", "3"), ("share", "10")))  # fmt: skip
    rows = planning_table(EPSILONS, margin=margin, share=share)
    people = given.get("people", "").strip()
    if not people:
        return Planned(margin, share, rows, None, None)
    if not people.isdecimal() or not 1 <= len(people) <= 9:
        raise ParameterError("people", people[:20], "must be a whole number")
    least = epsilon_for(int(people), margin, share=share)
    return Planned(margin, share, rows, int(people), least)


def _share(text: str, what: str) -> float:
    try:
        value = float(text) / 100
    except ValueError:
        raise ParameterError(what, text[:20], "must be a number of per cent") from None
    if not 0 < value < 1:
        raise ParameterError(what, text[:20], "must lie between 0 and 100 per cent")
    return value
