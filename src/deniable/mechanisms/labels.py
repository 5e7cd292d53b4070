"""Labels of answers and reports: found by their places in a channel, or refused."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError

Places = npt.NDArray[np.int64]
Reports = Sequence[Hashable] | npt.NDArray[Any]


def find_places(labels: tuple[Hashable, ...], values: Any) -> Places | None:
    """The place of each value among the labels; None if these are not all labels."""
    if isinstance(values, np.ndarray) and values.dtype == np.bool_ and labels == (False, True):
        return values.astype(np.int64) if values.ndim == 1 else None
    if isinstance(values, str | bytes | dict | set | frozenset):
        return None
    # True equals 1, and is another answer all the same.
    place = {(isinstance(label, bool), label): i for i, label in enumerate(labels)}
    if labels == (False, True):
        place |= {(False, 0): 0, (False, 1): 1}
    try:
        each = values.tolist() if isinstance(values, np.ndarray) else values
        found = [place[isinstance(value, bool | np.bool_), value] for value in each]
        return np.array(found, dtype=np.int64)
    except Exception:  # a value's own message may quote it
        return None


def report_places(labels: tuple[Hashable, ...], reports: Reports, argument: str) -> Places:
    """Places of reports that came in; nothing is counted unless all of them are labels."""
    found = find_places(labels, reports)
    if found is None:
        raise ParameterError(
            argument,
            type(reports).__name__,
            f"must be a list of reports, each one of {labels}; drop or correct the others first",
        )
    if not found.size:
        raise ParameterError(argument, 0, "must be one or more reports")
    return found


def as_array(labels: tuple[Hashable, ...]) -> npt.NDArray[Any]:
    """Labels as an array to pick from: plain where all are of one plain type, objects otherwise."""
    if len({type(label) for label in labels}) == 1 and isinstance(labels[0], bool | int | str):
        plain = np.array(labels)
        if plain.tolist() == list(labels):
            return plain
    boxed = np.empty(len(labels), dtype=object)
    for i, label in enumerate(labels):
        boxed[i] = label
    return boxed


def read_answer(labels: tuple[Hashable, ...], answer: Hashable, argument: str = "answer") -> int:
    """The place of one label."""
    place = labels.index(answer) if answer in labels else None
    if place is None or (isinstance(answer, bool) and not isinstance(labels[place], bool)):
        raise ParameterError(argument, answer, f"must be one of {labels}")
    return place
