"""Local hashing: the category is hashed into few buckets, and the bucket is reported noisily."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np

from deniable.errors import ParameterError, ReportError
from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.survey.answers import Answers, Integers, read_answers, read_size
from deniable.survey.frequency import Frequency, Pair, Reports, enumerable
from deniable.survey.hashing import PRIME, Words, bucket, collision, fresh_functions, spoken_for
from deniable.survey.kary import respond
from deniable.survey.reports import Json, columns_of, from_hex, integers
from deniable.survey.shares import Support, Tally, chosen
from deniable.survey.thresholds import WORD, keep
from deniable.trace import traced

_MOST_BUCKETS = 1 << 16
_MOST_COUNTED = 1 << 24


@dataclass(frozen=True, kw_only=True)
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
        super().__post_init__()
        buckets = self.buckets or _best_buckets(float(self.asked))
        object.__setattr__(self, "buckets", read_size(buckets, "buckets", _MOST_BUCKETS))

    @lazy
    def truth(self) -> Fraction:
        """The probability that the true bucket is reported."""
        return keep(self.asked, Fraction(1, self.buckets - 1))

    @property
    def lie(self) -> Fraction:
        """The probability of each other bucket."""
        return (1 - self.truth) / (self.buckets - 1)

    @property
    def thresholds(self) -> Mapping[str, int]:
        """Tell the true bucket below this; functions are taken modulo the prime."""
        return {"truth": int(self.truth * WORD), "prime": PRIME}

    @property
    def pair(self) -> Pair:
        """Both answers in one bucket; else the bucket of one, of the other, or a third."""
        apart = 1 - collision(self.buckets)
        own, other = apart * self.truth, apart * self.lie
        rest = 1 - own - other
        return (own, other, rest), (other, own, rest)

    @lazy
    def support(self) -> Support:
        """A report speaks for every category that falls into its bucket."""
        meet = collision(self.buckets)
        return Support(float(self.truth), float(meet * self.truth + (1 - meet) * self.lie))

    @property
    def report_bits(self) -> int:
        """Three residues and a bucket."""
        return 3 * PRIME.bit_length() + (self.buckets - 1).bit_length()

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
        rows = tuple(tuple(self.truth if y == own else self.lie for y in outputs) for own in true)
        return Channel(tuple(places.tolist()), outputs, rows)

    @traced
    def randomize(self, values: Answers) -> Reports:
        """One row (c0, c1, c2, bucket) for each true answer."""
        truth = read_answers(values, self.k)
        functions = fresh_functions(truth.size)
        answers = respond(bucket(functions, truth, self.buckets), self.buckets, self.truth)
        return np.column_stack([functions, answers.astype(np.uint64)])

    def aggregate(self, reports: Reports, candidates: Sequence[int] | None = None) -> Tally:
        """Count the reports that speak for each category, or for the candidates in their order."""
        functions, named = self._check(reports)
        if candidates is None and self.k > _MOST_COUNTED:
            raise ParameterError(
                "k", self.k, f"categories are counted up to {_MOST_COUNTED:,}; give candidates="
            )
        places = np.arange(self.k) if candidates is None else read_candidates(candidates, self.k)
        counts = spoken_for(functions, named, self.buckets, places)
        return Tally(self, counts, named.size, chosen(candidates))

    def to_wire(self, reports: Reports) -> list[Json]:
        """The function's residues, 16 hexadecimal digits each, and the bucket."""
        functions, named = self._check(reports)
        return [
            [f"{a:016x}{b:016x}{c:016x}", y]
            for (a, b, c), y in zip(functions.tolist(), named.tolist(), strict=True)
        ]

    def from_wire(self, payloads: Sequence[Json]) -> Reports:
        """48 hexadecimal digits and a bucket."""
        texts, named = columns_of(payloads, 2)
        functions = from_hex(texts, 24).view(">u8").astype(np.uint64)
        answers = integers(list(named), self.buckets).astype(np.uint64)
        reports = np.column_stack([functions, answers])
        self._check(reports)
        return reports

    def _check(self, reports: Reports) -> tuple[Words, Integers]:
        array = np.asarray(reports)
        if array.dtype != np.uint64 or array.ndim != 2 or array.shape[1] != 4 or not array.size:
            raise ReportError("reports are rows of four 64-bit words: a function and a bucket")
        if int(array[:, :3].max()) >= PRIME:
            raise ReportError(f"a function's numbers are below {PRIME}")
        return array[:, :3], integers(array[:, 3], self.buckets)


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
