"""Who waits at the same time is served together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from deniable.errors import SurveyStoreError

T = TypeVar("T")
R = TypeVar("R")


@dataclass
class _Waiting(Generic[T, R]):
    item: T
    answer: R | Exception | None = None


class Batches(Generic[T, R]):
    """One batch after the other: the first of those who wait carries all of them.

    `serve` gives an answer, or an error to raise, for each item in its order.
    """

    def __init__(self, serve: Callable[[Sequence[T]], Sequence[R | Exception]]) -> None:
        self._serve = serve
        self._queue: list[_Waiting[T, R]] = []
        self._changed = threading.Condition()
        self._busy = False

    def ask(self, item: T) -> R:
        """Wait for the answer to this item."""
        mine: _Waiting[T, R] = _Waiting(item)
        with self._changed:
            self._queue.append(mine)
            self._changed.wait_for(lambda: mine.answer is not None or not self._busy)
            carried = mine.answer is not None
            if not carried:
                self._busy, batch, self._queue = True, self._queue, []
        if not carried:
            self._carry(batch)
        if isinstance(mine.answer, Exception):
            raise mine.answer
        assert mine.answer is not None
        return mine.answer

    def _carry(self, batch: Sequence[_Waiting[T, R]]) -> None:
        # What those hear whom an interrupt would leave without an answer.
        answers: Sequence[R | Exception]
        answers = [SurveyStoreError("the survey store was stopped; ask again")] * len(batch)
        try:
            answers = self._serve([each.item for each in batch])
        except Exception as problem:
            answers = [problem] * len(batch)
        finally:
            with self._changed:
                self._busy = False
                for each, answer in zip(batch, answers, strict=True):
                    each.answer = answer
                self._changed.notify_all()
