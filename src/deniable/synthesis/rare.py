"""Single columns: measured twice where noise drowns them; rare values as one, told apart later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from deniable.synthesis.domain import Clique, Codes, Domain, Floats
from deniable.synthesis.measure import Draws
from deniable.synthesis.measurement import Measurement, averaged
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.fit import total_of
from deniable.synthesis.model.rounding import sample_conditionally

_SURE = 3.0
_DROWNED = 0.02


def merged_singles(
    draws: Draws, share: Fraction, again: Fraction
) -> tuple[list[Measurement], Merged]:
    """Single columns, measured, and what is merged of them from now on."""
    singles = _measured_singles(draws, share, again)
    merges = merged(singles)
    draws.merge(merges.codes)
    return [merges.measurement(each) for each in singles], merges


def _measured_singles(draws: Draws, share: Fraction, again: Fraction) -> list[Measurement]:
    """Every column for its share; where noise drowns them once more, for `again` in all.

    Whether it does is told by the number of rows as measured, and so by released values alone.
    """
    first = [draws.measure((column,), share) for column in draws.domain.columns]
    if np.mean([each.noise for each in first]) / total_of(first) / 2 < _DROWNED:
        return first
    more = again / len(first)
    return [averaged([each, draws.measure(each.clique, more)]) for each in first]


@dataclass(frozen=True, eq=False)
class Merged:
    """For each column that has rare values, the new code of every value, and how to go back.

    `splits[column]` has a row for each new code: the probability of each old value given it.
    """

    codes: Mapping[str, Codes] = field(default_factory=dict)
    splits: Mapping[str, Floats] = field(default_factory=dict)

    def measurement(self, own: Measurement) -> Measurement:
        """A marginal of one column in the new codes.

        Of k values as one the noise has sqrt(k) times the deviation, in the answer and in the
        weight that the answer gets.
        """
        (column,) = own.clique
        if column not in self.codes:
            return own
        codes = self.codes[column]
        variance = np.bincount(codes, np.broadcast_to(np.square(own.deviation), codes.shape))
        return Measurement(
            own.clique, np.bincount(codes, own.values).astype(np.float64), np.sqrt(variance)
        )


def merged(measurements: Sequence[Measurement]) -> Merged:
    """Merge, in each column, the values measured below three standard deviations."""
    codes: dict[str, Codes] = {}
    splits: dict[str, Floats] = {}
    for own in measurements:
        (column,) = own.clique
        rare = own.values < _SURE * np.asarray(own.deviation)
        if rare.sum() < 2:
            continue
        kept = int((~rare).sum())
        new = np.where(rare, kept, np.cumsum(~rare) - 1).astype(np.int64)
        split = np.zeros((kept + 1, rare.size))
        split[new[~rare], np.flatnonzero(~rare)] = 1.0
        split[kept, rare] = _shares(own.values[rare])
        codes[column], splits[column] = new, split
    return Merged(codes, splits)


def _shares(values: Floats) -> Floats:
    """The distribution nearest to measured values: they are moved down together, none below 0."""
    total = max(float(values.sum()), 0.0)
    if total == 0.0:
        return np.full(values.size, 1 / values.size)
    falling = np.sort(values)[::-1]
    over = (np.cumsum(falling) - total) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(falling > over)[-1])
    found: Floats = np.maximum(values - over[last], 0.0)
    found /= found.sum()
    return found


@dataclass(frozen=True, eq=False)
class Unmerged:
    """A model in merged codes, shown in the declared ones."""

    inner: Model
    merges: Merged
    domain: Domain

    @property
    def total(self) -> float:
        return self.inner.total

    def marginal(self, columns: Sequence[str]) -> Floats:
        """Expected counts; a merged cell is shared out by its split."""
        clique: Clique = self.domain.clique(columns)
        table = self.inner.marginal(clique)
        for axis, column in enumerate(clique):
            if column in self.merges.splits:
                table = np.moveaxis(
                    np.tensordot(table, self.merges.splits[column], axes=(axis, 0)), -1, axis
                )
        return table

    def sample(self, rows: int) -> Codes:
        codes = self.inner.sample(rows)
        for column, split in self.merges.splits.items():
            place = self.domain.place(column)
            codes[:, place] = sample_conditionally(split, codes[:, place])
        return codes
