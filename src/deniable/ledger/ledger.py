"""The ledger: reserve first, read afterwards, attach the answer, forget nothing.

A reservation checks the filter, appends its entry and commits, all in one transaction. Only then
may data be read and noise be drawn. A crash in between leaves the spend standing. The answer is an
entry of its own; a question whose answer is recorded is answered from there, at no cost.
"""

from __future__ import annotations

import hashlib
import secrets
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from deniable.closed import exactly
from deniable.errors import BudgetError, DoorError, LedgerError, ParameterError, ParameterTypeError
from deniable.held import frameless
from deniable.ledger import policy
from deniable.ledger.entries import (
    EntryKind,
    Row,
    State,
    budget_to_json,
    canonical,
    check_row,
    day_of,
    has_ended,
    head_of,
    make_row,
    of_open,
    state_of,
)
from deniable.ledger.filters import Budget, Totals, read_budget
from deniable.ledger.key import load_key, read_key
from deniable.ledger.memory import memory_of
from deniable.ledger.plain import answer_data, plain, question_digest, read_name
from deniable.ledger.record import tight_epsilon
from deniable.ledger.reservation import (
    Balance,
    Recorded,
    Reservation,
    Second,
    balance_of,
    read_hold,
    recorded,
)
from deniable.ledger.stores.base import LedgerStore, View
from deniable.ledger.stores.memory import MemoryStore
from deniable.ledger.stores.sql import SqlStore
from deniable.ledger.watch import Watch
from deniable.privacy.exact import Number, whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.wire import loss_from_json, loss_to_json
from deniable.trace import stated


class Ledger:
    """Budgets of populations, kept in a store.

    `where` is the path of an SQLite file, a URL of SQLite or Postgres, or None for a ledger that
    lives and dies with the process. `store` is where the entries are, `key` that of the chain, and
    `heard` says who may listen while it is used.
    """

    @frameless
    def __init__(
        self,
        where: str | Path | None = None,
        *,
        key: bytes | None = None,
        create: bool = True,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        nonce: Callable[[], str] = lambda: secrets.token_hex(16),
    ) -> None:
        place: object = where
        if not isinstance(place, str | Path | None):
            raise ParameterTypeError("where", type(place).__name__, "must be a path or a URL")
        self._clock, self._nonce = clock, nonce
        self.store: LedgerStore = MemoryStore() if where is None else SqlStore(where, create=create)
        try:
            # A chain that exists has a key that exists: a fresh one would only spoil it.
            fresh = not self.store.populations()
            self.key = load_key(create=fresh) if key is None else read_key(key)
            # Who hands in a key of his own keeps the heads as well.
            remembers = key is None and where is not None
            memory = memory_of(self.key) if remembers else None
            self._watch = Watch(self.store, self.key, memory)
            self.heard = self._watch.heard
        except BaseException:
            self.store.close()
            raise

    def __reduce__(self) -> NoReturn:
        raise LedgerError("a ledger is not copied or pickled: open it again where it is needed")

    def __enter__(self) -> Ledger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def written(self) -> float | None:
        """When its file was last written to, in seconds of the epoch: no entry is younger."""
        return self.store.written if isinstance(self.store, SqlStore) else None

    def open(self, population: str, budget: Budget, *, who: str) -> str:
        """Give a population its budget, once and for all; the head of its chain.

        Opening it again with the same budget changes nothing; with another one it is refused.
        """
        name, who = read_name(population, "population"), read_name(who, "who")
        budget = _read_budget(budget)

        def decide(last: Row | None, _: View) -> Row:
            if last is not None:
                raise _AlreadyOpenError
            state = replace(policy.opened(budget), time=self._day(None))
            # Two ledgers never have one head, whatever they hold.
            nonce = {"nonce": self._nonce()}
            data = {"budget": budget_to_json(budget), "state": state.to_json()} | nonce
            return make_row(
                self.key, None, population=name, kind=EntryKind.OPEN, who=who, data=data
            )

        if self._watch.settle(name) is None:
            try:
                return head_of(self._watch.append(name, decide))
            except _AlreadyOpenError:
                pass  # another process was faster
        known = self._last(name)
        if state_of(known).named != budget:
            raise BudgetError(
                f"{name!r} has another budget already, and it belongs to its people, not to a "
                "session: name the same one, or change it with top_up or lower"
            )
        return head_of(known)

    def reserve(
        self,
        population: str,
        loss: Loss,
        *,
        who: str,
        purpose: str,
        question: Mapping[str, object] | None = None,
        resumable: bool = False,
        hold: Loss | None = None,
        selects: bool = False,
    ) -> Reservation | Recorded:
        """Spend the price of a loss, or return the recorded answer to the same question.

        `question` is all that the answer depends on but the data: plan, metadata, version label.
        The loss and the population are part of it. None: a question that is never repeated. Only a
        `resumable` reservation, whose draws are recorded, can be gone on with after a crash.
        `hold` is kept free for a second part, and counts as spent, until `settle`; without that,
        for good. One that `selects` keys takes, beside its loss, its turn of the δ that is left for
        that (`policy.selecting`); earlier ones are found by `selections`.
        """
        if resumable and hold is not None:
            raise ParameterError("hold", "a loss", "a resumable reservation holds nothing")
        name, analyst = read_name(population, "population"), read_name(who, "who")
        told = read_name(purpose, "purpose")
        text = loss_to_json(loss)
        stated("reserve", (loss, name, analyst, told, question, resumable))
        charged = loss_from_json(text)  # what is written is what is charged, whatever it was
        key = _SELECTION if selects else text
        digest = None if question is None else question_digest(name, key, question)
        found = None if digest is None or selects else self._recorded(name, digest)
        if found is not None:
            stated("a stored answer", found.number)
            return found
        rest, held = read_hold(hold)

        def data(before: Row, _: View) -> dict[str, object]:
            state = state_of(before)
            after, taken = policy.reserved(
                state,
                before.number + 1,
                charged,
                analyst,
                rest=rest,
                selects=selects,
                resumable=resumable,
            )
            return {
                "purpose": told,
                "loss": loss_to_json(taken),
                "resumable": bool(resumable),
                "state": replace(after, time=self._day(state)).to_json(),
                **held,
                **({"selects": text} if selects else {}),
            }

        row = self._append(name, EntryKind.RESERVE, analyst, data, question=digest)
        whole = loss_from_json(row.data["loss"])
        return Reservation(name, row.number, analyst, whole, head_of(row))

    def selections(
        self, population: str, question: Mapping[str, object]
    ) -> list[tuple[Loss, Recorded]]:
        """The selections of keys that were made for a question, and their losses, in order."""
        name = read_name(population, "population")
        made = recorded(self._watch, self.store, name, question_digest(name, _SELECTION, question))
        return [(loss_from_json(asked.data["loss"]), found) for asked, found in made]

    def selection(self, population: str, counted: Loss, *, who: str) -> Loss:
        """What a selection would cost now, its δ included; refused as `reserve` would."""
        state = state_of(self._last(read_name(population, "population")))
        return policy.selecting(state, counted, read_name(who, "who"))[1]

    def afford(self, population: str, losses: Sequence[Loss], *, who: str) -> None:
        """Refuse, as `reserve` would, what could not all be paid now; nothing is spent."""
        state = state_of(self._last(read_name(population, "population")))
        read = [loss_from_json(loss_to_json(loss)) for loss in losses]
        policy.afford(state, read, read_name(who, "who"))

    def recorded(
        self, population: str, loss: Loss, question: Mapping[str, object]
    ) -> Recorded | None:
        """The answer to a question that was asked before at this price; nothing is spent."""
        name = read_name(population, "population")
        return self._recorded(name, question_digest(name, loss_to_json(loss), question))

    def debit(self, reservation: Reservation, loss: Loss) -> None:
        """Record that part of a reservation is about to be drawn, if so much is left of it."""
        text = loss_to_json(loss)
        self._refer(reservation, EntryKind.DEBIT, {"loss": text}, loss_from_json(text))

    def answer(
        self, reservation: Reservation, value: object, *, drawn: Sequence[Loss] | None = None
    ) -> Recorded:
        """Attach the answer: numbers, text, lists and dicts; arrays become lists.

        `drawn` are the losses that were really drawn, where they differ from the reserved one.
        """
        data = answer_data(value, drawn)
        row = self._refer(reservation, EntryKind.ANSWER, data)
        return Recorded(data["answer"], reservation.number, head_of(row))

    def settle(
        self,
        reservation: Reservation,
        value: object,
        second: Second | None,
        *,
        drawn: Sequence[Loss] | None = None,
    ) -> tuple[Recorded, Reservation | None]:
        """Attach the answer of a first part and, in the same entry, settle what is held.

        It becomes the reservation of the next part, and what is held for those after it, the
        remainder being let go; or all is let go.
        Sound only where the released `value` alone decides which.
        """
        data = answer_data(value, drawn)
        if second is None:
            stated("let go", reservation.number)
            row = self._refer(reservation, EntryKind.SETTLE, data)
            return Recorded(data["answer"], reservation.number, head_of(row)), None
        name, text = reservation.population, loss_to_json(second.loss)
        told, charged = read_name(second.purpose, "purpose"), loss_from_json(text)
        stated("reserve", (charged, name, reservation.who, told, second.question, False))
        digest = question_digest(name, text, second.question)
        rest, held = read_hold(second.hold)
        data |= {"purpose": told, "loss": text, "resumable": False} | held
        row = self._refer(
            reservation, EntryKind.SETTLE, data, second=(charged, rest), question=digest
        )
        recorded = Recorded(data["answer"], reservation.number, head_of(row))
        return recorded, Reservation(name, row.number, reservation.who, charged, head_of(row))

    def fail(self, reservation: Reservation) -> None:
        """Record that a reservation gave nothing. It stays spent, and so does what it holds."""
        self._refer(reservation, EntryKind.FAIL, {})

    def note(self, population: str, told: Mapping[str, object], *, who: str, purpose: str) -> str:
        """Write something down about a population, once; nothing is spent. The head of its chain.

        For losses that its budget does not cover, such as those of a survey whose answers were
        randomised before anybody saw them. The same note again changes nothing.
        """
        name, by = read_name(population, "population"), read_name(who, "who")
        why, kept = read_name(purpose, "purpose"), plain(told)
        digest = hashlib.sha256(canonical({"note": kept, "purpose": why}).encode()).hexdigest()
        for row in self.store.asked(name, digest):
            if row.kind == EntryKind.NOTE:
                return head_of(self._watch.authentic(row, self.store))

        def data(before: Row, _: View) -> dict[str, object]:
            state = state_of(before)
            after = replace(state, time=self._day(state))
            return {"purpose": why, "note": kept, "state": after.to_json()}

        return head_of(self._append(name, EntryKind.NOTE, by, data, question=digest))

    def _append(
        self,
        name: str,
        kind: EntryKind,
        who: str,
        data: Callable[[Row, View], Mapping[str, object]],
        *,
        question: str | None = None,
        refers: int | None = None,
    ) -> Row:
        """The next entry of an open population; `data` makes what it says from the last one."""

        def decide(last: Row | None, view: View) -> Row:
            before = self._watch.authentic(of_open(last, name), view)
            return make_row(
                self.key,
                before,
                population=name,
                kind=kind,
                who=who,
                data=data(before, view),
                question=question,
                refers=refers,
            )

        return self._watch.append(name, decide)

    def _refer(
        self,
        reservation: Reservation,
        kind: EntryKind,
        told: Mapping[str, object],
        drawn: Loss | None = None,
        *,
        second: tuple[Loss | None, Loss | None] = (None, None),
        question: str | None = None,
    ) -> Row:
        """The next entry, one about a reservation that has not ended.

        `drawn` is what is about to be drawn of it; `second` is the next part and what is held after
        that, and `question` what that part asks.
        """
        name, number = reservation.population, reservation.number

        def data(before: Row, view: View) -> dict[str, object]:
            mine, state = view.row(name, number), state_of(before)
            if mine is None or head_of(self._watch.authentic(mine, view)) != reservation.head:
                raise DoorError(f"{name!r} has no such reservation in this ledger")
            if drawn is not None:
                state = policy.door_drawn(state, number, loss_from_json(mine.data["loss"]), drawn)
            elif mine.data["resumable"]:
                state = policy.door_ended(state, number)
            elif has_ended(view.referring(name, number)):
                raise DoorError(f"reservation {number} has ended already")
            elif kind != EntryKind.SETTLE:
                state = policy.hold_kept(state, number)
            elif question is not None and question == mine.question:
                raise DoorError("the second part of a question must be another question")
            else:
                state = policy.settled(state, number, *second, at=before.number + 1)
            return {**told, "state": state.to_json()}  # the time of an earlier entry, or none

        return self._append(name, kind, reservation.who, data, question=question, refers=number)

    def resume(self, population: str, number: int) -> tuple[Reservation, Totals]:
        """A resumable reservation that has not ended, and what was drawn of it so far."""
        name = read_name(population, "population")
        row = self.store.row(name, whole(number, "number"))
        if row is None or row.kind != EntryKind.RESERVE:
            raise LedgerError(f"entry {number} of {name!r} is no reservation")
        data = self._watch.authentic(row, self.store).data
        if data.get("resumable") is not True:
            raise DoorError(f"reservation {number} of {name!r} was not opened as resumable")
        drawn = state_of(self._last(name)).doors.get(str(number))
        if drawn is None:
            raise DoorError(f"reservation {number} of {name!r} has ended already")
        return Reservation(name, number, row.who, loss_from_json(data["loss"]), head_of(row)), drawn

    def top_up(self, population: str, budget: Budget, *, who: str, reason: str) -> str:
        """Add to a budget, for a recorded reason. The promises add up (basic composition)."""
        return self._change(population, EntryKind.TOP_UP, who, reason, budget)

    def lower(self, population: str, budget: Budget, *, who: str, reason: str) -> str:
        """Replace a budget by a smaller one. What was spent stays spent."""
        return self._change(population, EntryKind.LOWER, who, reason, budget)

    def share(self, population: str, analyst: str, budget: Budget, *, who: str, reason: str) -> str:
        """Limit what one analyst may spend. The total always gates as well."""
        name = read_name(analyst, "analyst")
        return self._change(population, EntryKind.SHARE, who, reason, budget, analyst=name)

    def renew(self, population: str, budget: Budget, *, who: str, reason: str) -> str:
        """Start again with a fresh budget: a new promise, beside all earlier ones.

        Whoever was in the data before and still is loses both budgets together. Nothing about the
        earlier promise is kept but its record.
        """
        warnings.warn(
            f"{population!r} gets a fresh budget: a new promise. People who were in the data "
            "before have both losses, which add up.",
            stacklevel=2,
        )
        return self._change(population, EntryKind.RENEW, who, reason, budget)

    def _change(
        self,
        population: str,
        kind: EntryKind,
        who: str,
        reason: str,
        budget: Budget,
        *,
        analyst: str | None = None,
    ) -> str:
        name, by = read_name(population, "population"), read_name(who, "who")
        why = read_name(reason, "reason")
        budget = _read_budget(budget)

        def data(before: Row, _: View) -> dict[str, object]:
            state = state_of(before)
            after = replace(policy.changed(state, kind, budget, analyst), time=self._day(state))
            return {
                "reason": why,
                "budget": budget_to_json(budget),
                "analyst": analyst,
                "state": after.to_json(),
            }

        return head_of(self._append(name, kind, by, data))

    def balance(self, population: str) -> Balance:
        """What is spent and what is left, at this moment."""
        name = read_name(population, "population")
        return balance_of(self._last(name))

    def tight_epsilon(self, population: str, *, delta: Number) -> float:
        """ε of all releases under the present promise, as one list: for the record, no gate."""
        return tight_epsilon(self.history(population), delta)

    def history(self, population: str) -> Iterator[Row]:
        """All entries, in order, each checked against the one before."""
        before: Row | None = None
        for row in self.store.rows(read_name(population, "population")):
            check_row(self.key, before, row)
            yield row
            before = row

    def populations(self) -> list[str]:
        """The names of all populations."""
        return self.store.populations()

    def close(self) -> None:
        """Let go of files and connections."""
        self.store.close()

    def accept(self, population: str, *, who: str, reason: str) -> str | None:
        """Say that a ledger is meant as it is, though it lacks what the key's folder remembers.

        For the owner alone: what was spent on the entries that are gone is no longer counted. The
        decision is kept beside the key, and in the chain where there is one: its head.
        """
        name, by = read_name(population, "population"), read_name(who, "who")
        why = read_name(reason, "reason")
        told = {"who": by, "reason": why, "day": self._day(None), "place": self.store.place}
        if self._watch.accept(name, told) is None:
            return None
        return self.note(name, told, who=by, purpose="a ledger that lacks what was remembered")

    def _recorded(self, name: str, digest: str) -> Recorded | None:
        return next((found for _, found in recorded(self._watch, self.store, name, digest)), None)

    def _last(self, name: str) -> Row:
        return of_open(self._watch.settle(name), name)

    def _day(self, before: State | None) -> str:
        """Today; never earlier than the entry before, whatever the clock says.

        No time of day: how long a question took would show, and with it whose rows it met.
        """
        today = self._clock().astimezone(UTC).date().isoformat()
        return today if before is None else max(today, day_of(before.time))


_SELECTION = "a selection of keys"  # in the place of a price: those of any price are found


class _AlreadyOpenError(Exception):
    """Another process opened the population in between."""


def _read_budget(budget: object) -> Budget:
    return read_budget(
        exactly(budget, (Budget,), "budget", "must be a Budget, such as Budget(PureDP(1))"), ""
    )
