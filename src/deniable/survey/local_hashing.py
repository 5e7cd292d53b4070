"""Local hashing: the category is hashed into few buckets, and the bucket is reported noisily."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.parameters import parameters
from deniable.survey.answers import Answers, Integers, read_answers, read_size
from deniable.survey.formats import Hashed
from deniable.survey.frequency import Frequency
from deniable.survey.hashing import PRIME, bucket, collision, fresh_functions
from deniable.survey.laws import OneOf, enumerable
from deniable.survey.protocol import Pair, Reports
from deniable.survey.shares import Support, Tally, chosen
from deniable.survey.thresholds import keep
from deniable.trace import traced

_MOST_BUCKETS = 1 << 16
_MOST_COUNTED = 1 << 24


@parameters
class LocalHashing(Frequency):
    """Hash the category into g buckets with a function of one's own, then answer g-ary.

    A report is the function (three residues, see `hashing`) and a bucket. g is the better of the
    two next to e^ε + 1 unless given (OLH; Wang, Blocki, Li & Jha 2017, Section 4.4); buckets=2 is
    BLH (Bassily & Smith 2015). The function is drawn without looking at the answer, so ε holds
    whatever it is; two categories collide with a known probability, so estimates are exactly
    unbiased, and three fall independently, so shares of two are not positively correlated.

    `aggregate` counts for all categories, n k steps; name `candidates` where k is huge.
    """

    kind: ClassVar[str] = "local hashing"
    buckets: int = 0

    def __post_init__(self) -> None:
        buckets = self.buckets or _best_buckets(float(self.epsilon))
        object.__setattr__(self, "buckets", read_size(buckets, "buckets", _MOST_BUCKETS))

    @lazy
    def law(self) -> OneOf:
        return OneOf(self.buckets, keep(self.epsilon, Fraction(1, self.buckets - 1)))

    @property
    def format(self) -> Hashed:
        return Hashed(self.buckets, self.k)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the true bucket below this; functions are taken modulo the prime."""
        return {**self.law.thresholds, "prime": PRIME}

    @property
    def pair(self) -> Pair:
        """Both answers in one bucket; else the bucket of one, of the other, or a third."""
        apart = 1 - collision(self.buckets)
        own, other = apart * self.law.truth, apart * self.law.lie
        rest = 1 - own - other
        return (own, other, rest), (other, own, rest)

    @lazy
    def support(self) -> Support:
        """A report speaks for every category that falls into its bucket."""
        meet = collision(self.buckets)
        other = meet * self.law.truth + (1 - meet) * self.law.lie
        return Support(float(self.law.truth), float(other))

    def channel(self, function: Sequence[int]) -> Channel:
        """P(bucket | answer) under one hash function (c0, c1, c2), which is public."""
        given: object = function
        if (
            not isinstance(given, list | tuple)
            or len(given) != 3
            or not all(isinstance(c, int) and 0 <= c < PRIME for c in given)
        ):
            raise ParameterError("function", type(given).__name__, f"must be 3 ints below {PRIME}")
        places = np.arange(enumerable(self.k))
        functions = np.array([function] * self.k, dtype=np.uint64)
        true = bucket(functions, places, self.buckets).tolist()
        outputs = tuple(range(self.buckets))
        truth, lie = self.law.truth, self.law.lie
        rows = tuple(tuple(truth if y == own else lie for y in outputs) for own in true)
        return Channel(tuple(places.tolist()), outputs, rows)

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One row (c0, c1, c2, bucket) for each true answer."""
        truth = read_answers(values, self.k)
        functions = fresh_functions(truth.size)
        answers = self.law.draw(bucket(functions, truth, self.buckets))
        return np.column_stack([functions, answers.astype(np.uint64)])

    def aggregate(self, reports: Reports, candidates: Sequence[int] | None = None) -> Tally:
        """Count the reports that speak for each category, or for the candidates in their order."""
        checked = self.check(reports)
        if candidates is None and self.k > _MOST_COUNTED:
            raise ParameterError(
                "k", self.k, f"categories are counted up to {_MOST_COUNTED:,}; give candidates="
            )
        wanted = None if candidates is None else read_candidates(candidates, self.k)
        counts = self.format.count(checked, wanted)
        return Tally(self, counts, len(checked), chosen(candidates))


def read_candidates(candidates: Sequence[int], k: int) -> Integers:
    """Public categories to count for."""
    array = np.asarray(candidates)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu":
        raise ParameterError("candidates", type(candidates).__name__, "must be whole numbers")
    if array.min() < 0 or array.max() >= k:
        raise ParameterError("candidates", "out of range", f"must be categories 0 to {k - 1}")
    return array.astype(np.int64)


def _best_buckets(epsilon: float) -> int:
    """The better of the two whole numbers next to e^ε + 1; beyond 2^16 nothing is gained."""
    ideal = math.exp(min(epsilon, 11.0)) + 1
    near = (max(2, math.floor(ideal)), max(2, math.ceil(ideal)))
    return min(near, key=lambda g: _variance(g, math.exp(min(epsilon, 50.0))))


def _variance(g: int, odds: float) -> float:
    p, q = odds / (odds + g - 1), 1 / g
    return q * (1 - q) / (p - q) ** 2
