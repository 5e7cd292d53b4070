"""One synthesis of one table: what is checked first, its door, and the door's journal."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

from deniable.engines.base import LazySnapshot, Step, quoted
from deniable.errors import ParameterError
from deniable.privacy.amount import Amount
from deniable.privacy.losses.base import Loss
from deniable.privacy.wire import loss_to_json
from deniable.query.plan.plan import Plan
from deniable.release import Door, Gate, Release
from deniable.session import Parts
from deniable.synthesis.columns import Coding
from deniable.synthesis.domain import Domain
from deniable.synthesis.journal import Entry, Journal, alone, begun
from deniable.synthesis.measure import Draws
from deniable.synthesis.method import Method, Progress
from deniable.synthesis.synthetic import SyntheticTable
from deniable.synthesis.table_data import TableMarginals, coded_rows
from deniable.synthesis.workload import Workload
from deniable.tables import PrivateTable

_LEAST = Fraction(1, 10**9)
_LEAST_SHARE = Fraction(1, 10**15)
_SMALLEST = Fraction(1, 1000)


@dataclass(frozen=True)
class SynthesisRun:
    """One synthesis: its table, its domain and its price."""

    parts: Parts
    table: str
    owner: PrivateTable
    coded: tuple[Coding, ...]
    domain: Domain
    amount: Amount
    max_rows: int | None
    rows: Plan
    """The rows of all marginals, compiled once."""

    @classmethod
    def of(
        cls,
        parts: Parts,
        table: str,
        coded: tuple[Coding, ...],
        amount: Amount,
        max_rows: int | None,
    ) -> SynthesisRun:
        """One of a table with these columns."""
        domain = Domain({each.name: each.size for each in coded})
        rows = coded_rows(parts.catalogue, table, coded, max_rows)
        owner = parts.catalogue.private[table]
        return cls(parts, table, owner, coded, domain, amount, max_rows, rows)

    @property
    def gate(self) -> Gate:
        return Gate(self.parts.ledger, self.owner.population, self.parts.who)

    def snapshot(self) -> LazySnapshot:
        """Of the whole table, which is read many times; rows are put in order by all columns."""
        schema = self.parts.catalogue.schemas[self.table]
        columns = ", ".join(quoted(name.lower()) for name in schema.columns)
        read = f"SELECT {columns} FROM {quoted(self.table)}"  # noqa: S608
        return LazySnapshot(self.parts.engine, [Step(read, read), Step(read, read)], {self.table})

    def data(self, snapshot: LazySnapshot) -> TableMarginals:
        """The marginals of the table, for the door."""
        return TableMarginals(self.rows, snapshot, self.domain, self.owner.relation)

    def counting(self, max_rows: int) -> SynthesisRun:
        """The same, with so many rows of a unit, where nobody says how many."""
        if not self.rows.buys_rows:
            return self
        return replace(self, max_rows=max_rows, rows=self.rows.with_rows(max_rows))

    def check(self, least: Fraction = _SMALLEST) -> None:
        """Refuse, before anything is spent, what could only fail or teach nothing.

        `least` is the smallest share of the price that a draw gets.
        """
        if self.amount.value < _LEAST:
            raise ParameterError(
                "epsilon", str(self.amount), "is too small for any synthesis; pay more"
            )
        if self.amount.value * least < _LEAST_SHARE:
            raise ParameterError(
                "epsilon", str(self.amount), "is too small for so many draws; pay more, draw less"
            )
        with self.snapshot() as snapshot:  # none is taken: nothing is run
            data = self.data(snapshot)
            data.check(self.parts.engine, self.parts.catalogue)
            size = self.owner.size
            draws = Draws(None, data, self.amount)
            draws.deviation(self.amount.value * least)  # noise that cannot be drawn is refused here
            if size is None:
                return
            noise = draws.deviation(self.amount.value / len(self.domain))
        if 3 * noise > size:
            raise ParameterError(
                "epsilon",
                str(self.amount),
                f"is too small: the noise on one count, ±{3 * noise:,.0f}, is above the declared "
                f"size of {size:,}; pay more, or take fewer columns. Nothing was spent",
            )

    def synthesized(
        self,
        method: Method,
        name: str,
        wanted: Workload,
        path: str | Path | None,
        progress: Progress,
    ) -> SyntheticTable:
        """The synthetic table: drawn now, gone on with, or made of the recorded answer."""
        with alone(path), self.snapshot() as snapshot:
            data = self.data(snapshot)
            loss = self.amount.loss
            door, kept = self._door(loss, self._question(repr(method), wanted), path)
            draws = Draws(door, data, self.amount, journal=kept)
            if door is None:
                model = method.run(draws, progress)
            else:
                with door:
                    model = method.run(draws, progress)
                    draws.close({"drawn": list(draws.journal.entries)})
        progress(1.0)
        return SyntheticTable(
            self.coded, model, tuple(draws.measurements), name, (("marginals", loss.price),)
        )

    def _question(self, method: str, wanted: Workload) -> dict[str, object]:
        """All that the answer depends on, but the data and the price."""
        return {
            "synthesis": method,
            "workload": [[list(clique) for clique in wanted.cliques], list(wanted.weights)],
            "columns": [each.sql() for each in self.coded],
            "max_rows": self.max_rows,
            "table": self.table,
            "tables": {self.table: self.owner.describe()},
        }

    def _door(
        self, loss: Loss, question: Mapping[str, object], path: str | Path | None
    ) -> tuple[Door | None, Journal]:
        """A door and what was drawn from it: newly opened, resumed, or the recorded answer."""
        first = None if path is None else begun(path)
        if first is not None:
            if first[0] != "open" or first[2:] != [_digest(loss, question)]:
                raise ParameterError(
                    "journal", str(path), "was begun with another synthesis, price or version"
                )
            if self.parts.ledger.recorded(self.owner.population, loss, question) is None:
                number = int(first[1])
                reserved, _ = self.parts.ledger.resume(self.owner.population, number)
                # A journal that is refused is so before anything is read.
                kept = _Tail(path, key=self._key(reserved.head))
                return self.gate.resume(number), kept
        opened = self.gate.open(
            loss, purpose="synthesis", question=question, resumable=path is not None
        )
        if isinstance(opened, Release):
            assert isinstance(opened.value, dict)
            return None, Journal(entries=opened.value["drawn"])
        if path is None:
            return opened, Journal()
        kept = _Tail(path, key=self._key(opened.head))
        kept.append({"draw": ["open", opened.number, _digest(loss, question)], "price": "0"})
        return opened, kept

    def _key(self, head: str) -> bytes:
        """What seals the journal of one door of one ledger, by the head of its reservation."""
        text = f"a journal of {head}".encode()
        return hmac.new(self.parts.ledger.key, text, hashlib.sha256).digest()


def _digest(loss: Loss, question: Mapping[str, object]) -> str:
    text = json.dumps([loss_to_json(loss), question], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class _Tail(Journal):
    """A journal in a file, without the line that says which door it belongs to."""

    @property
    def entries(self) -> tuple[Entry, ...]:
        return super().entries[1:]
