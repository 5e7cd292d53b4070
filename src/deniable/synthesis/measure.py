"""Measuring and selecting: the only things of a synthesis that see data.

A synthesis reserves its whole price, and then draws through one door: noisy marginals, and choices
of the marginal that a public model gets most wrong. The scores of a choice are whole numbers that
are computed here, from exact marginals and public ones; no code of a caller ever sees an exact
count. Whatever else a synthesis does depends on the data through these draws alone, which is the
proof that it is private: filters hold when shares are chosen adaptively (`ledger/filters.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.closed import exactly
from deniable.errors import BudgetError, DoorError, ParameterError, ParameterTypeError
from deniable.held import Held
from deniable.mechanisms.base import exactly_one
from deniable.mechanisms.gaussian import DiscreteGaussian
from deniable.mechanisms.laplace import Geometric
from deniable.mechanisms.selection import Exponential
from deniable.mechanisms.sparse_vector import AboveThreshold, SparseStream, SparseVector
from deniable.privacy.amount import Amount, Kind, on_grid_below
from deniable.privacy.exact import Number, positive, sqrt_up
from deniable.privacy.price import GRID
from deniable.release import Door, Gate, Release
from deniable.synthesis.data import PrivateMarginals
from deniable.synthesis.domain import Clique, Codes, Counts, Domain, Floats
from deniable.synthesis.journal import Entry, Journal
from deniable.synthesis.measurement import Measurement
from deniable.synthesis.queries import Counting
from deniable.synthesis.scores import (
    BoostedQuery,
    ClosestDatabase,
    Exact,
    Question,
    WrongMarginal,
    in_steps,
)

_MOST_KEPT = 1 << 25


def open_draws(
    gate: Gate,
    data: PrivateMarginals,
    *,
    purpose: str,
    epsilon: Number | None = None,
    rho: Number | None = None,
) -> Draws:
    """Reserve ε (pure) or ρ (zCDP) through a gate, and open the door to these data."""
    name, given = exactly_one(epsilon=epsilon, rho=rho)
    amount = Amount(Kind(name), positive(given, name), data.relation)
    door = gate.open(amount.loss, purpose=purpose)
    assert isinstance(door, Door)  # no question is named, so none is found again
    return Draws(door, data, amount)


class Draws:
    """A reserved price, and draws of marginals until it is used up.

    Formal guarantee. All draws together are ε-DP (a pure amount) or ρ-zCDP for the reserved amount,
    however marginals, candidates and shares are chosen from earlier draws:

    * a marginal is released with discrete Laplace noise of scale bound/share, or discrete Gaussian
      noise with σ² = bound²/(2 share): what one unit adds has L1 norm, and so L2 norm, `bound` at
      most (twice, or sqrt 2 times, that for replaced units, whose parts are not negative);
    * a choice is an exponential mechanism with ε₀ = share, or ε₀ = sqrt(8 share): a score moves by
      weight times what one unit adds;
    * a draw that the reserved amount does not cover is refused.

    Draws that a `journal` knows are taken from there. Without a door there are no others: that is
    how the model of a recorded answer is made again, for nothing.
    """

    def __init__(
        self,
        door: Door | None,
        data: PrivateMarginals,
        amount: Amount,
        *,
        journal: Journal | None = None,
    ) -> None:
        self._door, self._data = door, data
        self._exact: Held[dict[Clique, Counts]] = Held({}, "exact marginals")
        self._kept = 0
        self.journal = Journal() if journal is None else journal
        self._known = list(self.journal.entries)
        self.amount = amount.on_grid()
        self._shrunk = self._factor_left()
        self.spent = Fraction(0)  # each draw with its part of what was lost in a crash
        self._merges: dict[str, Codes] = {}
        self.domain = data.domain
        self.measurements: list[Measurement] = []

    @property
    def whole(self) -> Fraction:
        return self.amount.value

    @property
    def unit(self) -> float:
        """How many rows one unit moves a count by, at most, in L1."""
        return self._moved / self._data.steps

    @property
    def left(self) -> Fraction:
        return self.amount.value - self.spent

    @property
    def _opened(self) -> Door:
        if self._door is None:
            raise DoorError("this synthesis is made of a recorded answer, which has ended")
        return self._door

    def merge(self, codes: Mapping[str, Codes]) -> None:
        """From now on take some values of columns for one: `codes` says which each becomes.

        Sums of cells: one unit moves them by no more than the cells themselves.
        """
        declared = self._data.domain
        sizes = dict(zip(declared.columns, declared.sizes, strict=True))
        merges: dict[str, Codes] = {}
        for name, given in codes.items():
            column = declared.columns[declared.place(name)]
            new = np.array(given, dtype=np.int64, subok=False, copy=True)
            if new.shape != (sizes[column],) or new.min() < 0 or new.max() >= new.size:
                raise ParameterError("codes", column, "must give every value its new code")
            sizes[column], merges[column] = int(new.max()) + 1, new
        self._merges, self._kept = merges, 0
        self._exact.open().clear()
        self.domain = Domain(sizes)

    def deviation(self, amount: Fraction) -> float:
        """The standard deviation, in rows, of a marginal measured for this share."""
        share = max(GRID, on_grid_below(amount * self._shrunk))
        return self._noise(share).deviation / self._data.steps

    def noise_size(self, amount: Fraction) -> float:
        """E|noise| of one cell of a marginal measured for this share, in rows."""
        wide = self.deviation(amount)
        return wide / math.sqrt(2) if self.amount.pure else wide * math.sqrt(2 / math.pi)

    def measure(self, clique: Clique, amount: Fraction) -> Measurement:
        """A noisy marginal, for a share of the price."""
        clique = self.domain.clique(clique)
        what = ["measure", list(clique)]
        noisy, wide = self._noisy(what, lambda: self._marginal(clique).ravel(), amount)
        measurement = Measurement(clique, noisy.reshape(self.domain.shape(clique)), wide)
        self.measurements.append(measurement)
        return measurement

    def choose(self, question: Question, amount: Fraction) -> int:
        """The place of a candidate with a high score, for a share of the price."""
        asked = self._frozen(question)

        def live() -> tuple[Entry, Fraction]:
            share = self._share(amount)
            mechanism = Exponential(
                epsilon=self.amount.of(share).choice_epsilon,
                sensitivity=asked.sensitivity(self._moved),
                relation=self._data.relation,
            )
            steps = self._data.steps
            place = self._opened.draw(mechanism, lambda: asked.scores(self._marginal, steps))
            assert isinstance(place, int)
            return {"place": place}, self.amount.price_of(mechanism.loss)

        return int(self._drawn(["choose", asked.count], live)["place"])

    def count(self, query: Counting, amount: Fraction) -> Measurement:
        """A noisy count, for a share of the price: one number, with the clique of its query."""
        query = Counting.frozen(query, self.domain)
        what = ["count", list(query.clique), [list(codes) for codes in query.codes]]
        exact = lambda: query.of_exact(self._marginal(query.clique))  # noqa: E731
        return Measurement(query.clique, *self._noisy(what, exact, amount))

    def _noisy(
        self, what: list[Any], exact: Callable[[], int | Counts], amount: Fraction
    ) -> tuple[Floats, float]:
        """Numbers in rows under noise, for a share of the price, and the noise's deviation."""

        def live() -> tuple[Entry, Fraction]:
            mechanism = self._noise(self._share(amount))
            noisy = np.asarray(self._opened.draw(mechanism, exact)).tolist()
            entry = {"values": noisy, "deviation": mechanism.deviation / self._data.steps}
            return entry, self.amount.price_of(mechanism.loss)

        found = self._drawn(what, live)
        values = np.array(found["values"], dtype=np.float64) / self._data.steps
        return values, float(found["deviation"])

    def watch(self, threshold: float, amount: Fraction) -> OpenSparseVector:
        """A sparse vector that tells of one query whose estimate is off by about `threshold`."""
        share = self._share(amount)
        mechanism = SparseVector(
            epsilon=self.amount.of(share).pure_epsilon,
            threshold=round(threshold * self._data.steps),
            sensitivity=self._moved,
            relation=self._data.relation,
        )
        stream = self._opened.draw(mechanism, list)
        assert isinstance(stream, SparseStream)
        self.spent += self.amount.price_of(mechanism.loss)
        return OpenSparseVector(self._opened, stream, self._marginal, self.domain, self._data.steps)

    def error_of(self, question: WrongMarginal, amount: Fraction) -> float:
        """The mean L1 error, in rows, of a public model over these marginals: a noisy number.

        The sum of all scores moves by what each of them moves.
        """
        asked = self._frozen(question)
        if not isinstance(asked, WrongMarginal):
            raise ParameterTypeError("question", type(question).__name__, "is about no marginals")
        moved = self._moved * sum(asked.weights)
        mechanism = self._noise_for(self._share(amount), moved, Fraction(moved))
        steps = self._data.steps
        noisy = self._opened.draw(mechanism, lambda: sum(asked.scores(self._marginal, steps)))
        assert isinstance(noisy, int)
        self.spent += self.amount.price_of(mechanism.loss)
        return noisy / steps / sum(asked.weights)

    def close(self, value: object) -> Release:
        return self._opened.close(value)

    def _drawn(self, what: list[Any], live: Any) -> Entry:
        """The next draw: from the journal while that lasts, then from the data."""
        if self._known:
            entry = self._known.pop(0)
            if entry["draw"] != what:
                raise ParameterError(
                    "resume", "a journal", "belongs to another synthesis, method or version"
                )
        else:
            found, price = live()
            entry = {"draw": what, "price": str(price), **found}
            if self._shrunk < 1:
                entry["share"] = str(price / self._shrunk)
            self.journal.append(entry)
        self.spent += _share_of(entry)
        return entry

    def _factor_left(self) -> Fraction:
        """How far shares shrink because a draw was charged and then lost in a crash.

        What is left of the door is spread over what is left of the plan: a method goes on with the
        shares that it would have had, each so much smaller.
        """
        if self._door is None:
            return Fraction(1)
        kept = sum((Fraction(entry["price"]) for entry in self._known), Fraction(0))
        drawn = self._door.drawn
        charged = Fraction((drawn.epsilon or 0) if self.amount.pure else drawn.rho) * GRID
        if charged < kept:
            raise ParameterError("resume", "a journal", "holds draws that this door never made")
        planned = self.amount.value - sum((_share_of(entry) for entry in self._known), Fraction(0))
        if charged == kept and planned == self.amount.value - kept:
            return Fraction(1)
        return max(Fraction(0), self.amount.value - charged) / max(GRID, planned)

    def _frozen(self, question: Question) -> Question:
        """Only the library's own questions score, made again of plain numbers read once."""
        kinds = (WrongMarginal, ClosestDatabase, BoostedQuery)
        wanted = "must be one that the library scores"
        kind: Any = type(exactly(question, kinds, "question", wanted))
        made: Question = kind.frozen(question, self.domain)
        return made

    def _share(self, amount: Fraction) -> Fraction:
        share = on_grid_below(amount * self._shrunk)
        if share <= 0:
            raise BudgetError("nothing is left of this synthesis for one more draw")
        return share

    @property
    def _moved(self) -> int:
        """How far a marginal moves in L1 between neighbours, in steps."""
        return self._data.bound * self._data.relation.changed

    def _noise(self, share: Fraction) -> DiscreteGaussian | Geometric:
        """Noise for a marginal, as `Draws` promises."""
        squared = Fraction(self._data.relation.changed * self._data.bound**2)
        return self._noise_for(share, self._moved, sqrt_up(squared, 30))

    def _noise_for(self, share: Fraction, l1: int, l2: Fraction) -> DiscreteGaussian | Geometric:
        if self.amount.pure:
            return Geometric(epsilon=share, sensitivity=l1, relation=self._data.relation)
        return DiscreteGaussian(rho=share, sensitivity=l2, relation=self._data.relation)

    def _marginal(self, clique: Clique) -> Counts:
        exact = self._exact.open()
        if clique in exact:
            return exact[clique]
        found = self._data.exact(clique)
        for axis, column in enumerate(clique):
            if column in self._merges:
                found = _merged(found, axis, self._merges[column])
        self._kept += found.size
        if self._kept > _MOST_KEPT:
            exact.clear()
            self._kept = found.size
        exact[clique] = found
        return found


def _share_of(entry: Entry) -> Fraction:
    """Which part of the plan a draw was: its price, and more where shares were shrunk."""
    return Fraction(entry["share"] if "share" in entry else entry["price"])


def _merged(table: Counts, axis: int, codes: Codes) -> Counts:
    """Sums of the slices that get the same new code."""
    out = np.zeros((int(codes.max()) + 1, *np.delete(table.shape, axis)), dtype=np.int64)
    np.add.at(out, codes, np.moveaxis(table, axis, 0))
    return np.moveaxis(out, 0, axis)


class OpenSparseVector:
    """An open sparse vector over counting queries. It says at most once that one is off."""

    def __init__(
        self, door: Door, stream: SparseStream, exact: Exact, domain: Domain, steps: int
    ) -> None:
        self._door, self._stream, self._exact = door, stream, exact
        self._domain, self._steps = domain, steps

    @property
    def told(self) -> bool:
        """Whether it has told of a query, and so ended."""
        return self._stream.positives_left == 0

    def off(self, query: Counting, estimate: float) -> bool:
        """Whether |exact - estimate| is above the threshold, nearly: it moves as a count does."""
        query = Counting.frozen(query, self._domain)
        expected = int(in_steps(np.array(float(estimate)), self._steps))
        read = lambda: abs(query.of_exact(self._exact(query.clique)) - expected)  # noqa: E731
        answer = self._door.ask(self._stream, read)
        assert isinstance(answer, AboveThreshold)
        return answer.above
