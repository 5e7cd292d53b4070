"""The gate: the one place where private data become answers.

A release opens a **door**. Its whole price is reserved in the ledger first; only then are data
read. Draws inside debit the door, never the ledger, and the door refuses what its price does not
cover. Closing it records the answer. A door that is never closed stays spent; one that was opened
as resumable can be gone on with, for what was not drawn.

Nothing that a read may have used is ever refunded. A question in parts holds the price of its later
parts while the first is drawn; the released value of each part decides, in the entry that stores
it, whether the hold becomes the door of the next part, which holds what is left for those after it,
or is let go. Without that entry, after a crash or an error, all parts stay charged.

What fails before the reservation costs nothing. What fails after it is charged, and the error says
nothing about the data.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, NoReturn, Protocol, TypeVar

from deniable.closed import exactly, frozen, is_mechanism, read_text
from deniable.errors import (
    BudgetError,
    DoorError,
    LedgerError,
    ParameterError,
    ParameterTypeError,
    ReleaseFailedError,
)
from deniable.ledger.filters import Totals, charge
from deniable.ledger.ledger import Ledger
from deniable.ledger.plain import plain
from deniable.ledger.reservation import Recorded, Reservation, Second
from deniable.mechanisms.base import Labelled
from deniable.mechanisms.sparse_vector import SparseStream
from deniable.privacy.losses.base import Loss, read_loss
from deniable.privacy.price import Price
from deniable.randomness.fork import process_mark
from deniable.shield import is_failure, now_charged, shielded
from deniable.trace import stated

Value_contra = TypeVar("Value_contra", contravariant=True)


class Releases(Protocol[Value_contra]):
    """A mechanism: a loss, and a release that has it."""

    @property
    def loss(self) -> Loss:
        """What one release does."""

    def release(self, value: Value_contra, /) -> object:
        """One release."""


class OpenStream(Protocol[Value_contra]):
    """A stream that a draw opened at the price of all its answers."""

    def ask(self, value: Value_contra, /) -> object:
        """One more answer."""


@dataclass(frozen=True)
class Release:
    """What came out, what it cost, and the entry of the ledger that proves it."""

    value: object
    cost: Price
    number: int
    head: str
    repeated: bool
    day: str = ""
    """The day on which a repeated one was asked for; empty for one that is new."""


class Door:
    """A reserved price, to be drawn from until it is closed. Made by `Gate.open`."""

    def __init__(
        self, ledger: Ledger, reservation: Reservation, drawn: Totals, *, resumable: bool
    ) -> None:
        self._ledger = ledger
        self._reservation = reservation
        self._whole = charge(reservation.loss)
        self._drawn = drawn
        self._resumable = resumable
        self._mark = process_mark()
        self._lock = threading.RLock()
        self._taken = False
        self._losses: list[Loss] = []
        self._streams: list[SparseStream] = []
        self._open = True

    def __reduce__(self) -> NoReturn:
        raise DoorError("a door is not copied or pickled; what it has drawn would be forgotten")

    def __enter__(self) -> Door:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        """A door that is left by an error is charged and closed; resumable ones stay open."""
        mine = self._mark == process_mark()
        if kind is not None and self._open and mine and not self._resumable:
            self._open = False
            stated("a door left by an error", self.number)
            with suppress(DoorError):  # an interrupt came after its answer was recorded
                self._ledger.fail(self._reservation)

    @property
    def number(self) -> int:
        """The entry of the reservation, by which a resumable door is found again."""
        return self._reservation.number

    @property
    def head(self) -> str:
        """The head of the reservation in its chain: no other door of any ledger has the same."""
        return self._reservation.head

    @property
    def cost(self) -> Price:
        """What the door cost, whatever is drawn."""
        return self._reservation.loss.price

    @property
    def drawn(self) -> Totals:
        """What was drawn so far, earlier runs of a resumable door included."""
        return self._drawn

    @shielded
    def draw(self, mechanism: Releases[Value_contra], read: Callable[[], Value_contra]) -> object:
        """Read a value and release it, within the price of the door."""
        drawn = _read_draw(mechanism, read)
        stated("draw", (self.number, drawn.loss))
        self._debit(drawn.loss)
        try:
            made = drawn.release(read())
            self._check_mine()  # the debit was made in another process, if it was forked since
            return self._watched(drawn, made)
        except BaseException as error:  # whatever it says may quote private data
            if not is_failure(error):
                raise
        # Raised out here, so that it carries nothing of that error along.
        raise ReleaseFailedError(
            f"a draw of reservation {self.number} failed after it was charged; it stays charged"
        )

    @shielded
    def ask(self, stream: OpenStream[Value_contra], read: Callable[[], Value_contra]) -> object:
        """Read a value and put it to a stream that a draw opened, and that is paid for as a whole.

        It costs nothing more, and like a draw it ends with the door.
        """
        with self._turn():
            self._check()
            if not any(each is stream for each in self._streams):
                raise DoorError("a door asks only the streams that its own draws opened")
        try:
            return stream.ask(read())
        except BaseException as error:  # whatever it says may quote private data
            if not is_failure(error):
                raise
        raise ReleaseFailedError(f"a question to a stream of reservation {self.number} failed")

    def _watched(self, drawn: Releases[Any], made: object) -> object:
        """What a draw gave; kept if it is the stream of the very mechanism that was charged.

        A function after a mechanism may give another stream, which nobody has paid for.
        """
        if type(made) is SparseStream and made.mechanism is drawn:
            self._streams.append(made)
        return made

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """One at a time; a signal handler of the thread whose turn it is, is refused at once."""
        with self._lock:
            if self._taken:
                raise DoorError("a signal handler uses a door in the midst of its use")
            self._taken = True
            try:
                yield
            finally:
                self._taken = False

    def _debit(self, loss: Loss) -> None:
        with self._turn():
            self._check()
            if loss.relation != self._reservation.loss.relation:
                raise DoorError("a draw must be stated under the relation of its door")
            total = self._drawn + charge(loss)
            if not self._whole.covers(total):
                raise BudgetError(
                    f"a draw of {loss.price} does not fit what is left of a door of {self.cost}; "
                    "nothing was drawn"
                )
            if self._resumable:  # who resumed it elsewhere is counted there
                self._ledger.debit(self._reservation, loss)
            self._drawn = total
            self._losses.append(loss)

    def close(self, value: object) -> Release:
        """Record the answer and end the door."""
        with self._turn():
            self._check()
            stated("answer", value)
            recorded = self._ledger.answer(self._reservation, value, drawn=self._apart())
            self._open = False
        return _answer(recorded, self.cost)

    def settle(self, value: object, second: Second | None) -> tuple[Release, Door | None]:
        """Record the answer of a part; the door of the next, or None: what is held goes.

        `second` may depend on the released value alone.
        """
        with self._turn():
            self._check()
            stated("answer", value)
            recorded, reservation = self._ledger.settle(
                self._reservation, value, second, drawn=self._apart()
            )
            self._open = False
        answer = _answer(recorded, self.cost)
        if reservation is None:
            return answer, None
        return answer, Door(self._ledger, reservation, Totals(), resumable=False)

    def _apart(self) -> list[Loss] | None:
        """What was drawn, where it is not what was reserved and is not recorded yet."""
        own = self._losses == [self._reservation.loss] or self._resumable
        return None if own else self._losses

    def _check(self) -> None:
        if not self._open:
            raise DoorError(f"the door of reservation {self.number} is closed")
        self._ledger.heard.check()
        self._check_mine()

    def _check_mine(self) -> None:
        if self._mark != process_mark():
            raise DoorError("a door belongs to the process that opened it")


@dataclass(frozen=True)
class Gate:
    """The way to one population's data, for one analyst."""

    ledger: Ledger
    population: str
    who: str

    def __post_init__(self) -> None:
        exactly(self.ledger, (Ledger,), "ledger", "must be a Ledger")
        read_text(self.population, "population")
        read_text(self.who, "who")

    def open(
        self,
        loss: Loss,
        *,
        purpose: str,
        question: Mapping[str, object] | None = None,
        resumable: bool = False,
    ) -> Door | Release:
        """Reserve a price and open a door; or give the recorded answer to the same question."""
        return self._opened(loss, purpose=purpose, question=question, resumable=resumable)

    def _opened(
        self,
        loss: Loss,
        *,
        purpose: str,
        question: Mapping[str, object] | None,
        resumable: bool = False,
        hold: Loss | None = None,
        selects: bool = False,
    ) -> Door | Release:
        loss = read_loss(loss)
        found = self.ledger.reserve(
            self.population,
            loss,
            who=self.who,
            purpose=purpose,
            question=question,
            resumable=resumable,
            hold=hold,
            selects=selects,
        )
        if isinstance(found, Recorded):
            return _answer(found, loss.price)
        now_charged()
        return Door(self.ledger, found, Totals(), resumable=resumable)

    def known(self, loss: Loss, question: Mapping[str, object]) -> Release | None:
        """What was answered before to the same question at the same price; free."""
        loss = read_loss(loss)
        found = self.ledger.recorded(self.population, loss, question)
        return None if found is None else _answer(replace(found, repeated=True), loss.price)

    def selected(self, question: Mapping[str, object]) -> list[Release]:
        """The selections of keys that were made for a question, in order; free."""
        found = self.ledger.selections(self.population, question)
        return [_answer(kept, loss.price) for loss, kept in found]

    def answer(
        self,
        loss: Loss,
        question: Mapping[str, object],
        make: Callable[[Door], object],
        *,
        purpose: str,
    ) -> Release:
        """What is recorded; or what `make` draws through a door of this price, which is."""
        door = self.open(loss, purpose=purpose, question=question)
        if isinstance(door, Release):
            return door
        with door:
            return door.close(make(door))

    def answer_in_two(
        self,
        first: Loss,
        rest: Loss,
        question: Mapping[str, object],
        make: Callable[[Door], object],
        then: Callable[[object], Second | None],
        *,
        purpose: str,
        selects: bool = False,
    ) -> tuple[Release, Door | Release | None]:
        """A question whose first answer decides whether, and with what noise, there is a second.

        Refused unless `first` and `rest` fit together. `make` draws the first part, at the price
        of `first`; `then`, of that released value alone, says what to do with the rest. With the
        first answer comes the door of the second part, which the caller closes; or its recorded
        answer, if it was asked before; or None. What the second part does not cost is let go.

        A first part that `selects` keys costs its turn of δ besides, and is never a repeated one.
        Where more parts follow, the second one names what it holds for them, and `go_on` draws it.
        """
        found = self._opened(
            first, purpose=purpose, question=question, hold=read_loss(rest), selects=selects
        )
        if isinstance(found, Door):
            return self.go_on(found, make, then)
        second = _second(then, found.value)
        if second is None:
            return found, None
        return found, self._opened(
            second.loss, purpose=second.purpose, question=second.question, hold=second.hold
        )

    def go_on(
        self,
        door: Door,
        make: Callable[[Door], object],
        then: Callable[[object], Second | None],
    ) -> tuple[Release, Door | Release | None]:
        """Draw a part by `make`, and settle what is held for those after it, as `answer_in_two`.

        If the part that `then` names was answered meanwhile, it is asked again, about the others.
        """
        with door:
            value = plain(make(door))
            for _ in range(2):
                second = _second(then, value)
                known = None if second is None else self.known(second.loss, second.question)
                if second is None or second.hold is None or known is None:
                    break
            answer, opened = door.settle(value, second if known is None else None)
        return answer, opened if known is None else known

    def resume(self, number: int) -> Door:
        """Go on with a resumable door that was never closed, for what it has not drawn."""
        reservation, drawn = self.ledger.resume(self.population, number)
        if reservation.who != self.who:
            raise DoorError(f"reservation {number} was opened by someone else")
        now_charged()  # whatever fails from here on may follow from what is read
        return Door(self.ledger, reservation, drawn, resumable=True)

    @shielded
    def release(
        self,
        mechanism: Releases[Value_contra],
        read: Callable[[], Value_contra],
        *,
        purpose: str,
        question: Mapping[str, object] | None = None,
    ) -> Release:
        """One draw through a door of its own: reserve, read, draw, record.

        Any mechanism of the library will do. Of a sparse vector the answers to all values that
        `read` gives are recorded: False, or True, or in its place the number.
        """
        drawn = _read_draw(mechanism, read)
        door = self.open(drawn.loss, purpose=purpose, question=question)
        if isinstance(door, Release):
            return door
        with door:
            return door.close(_told_value(door.draw(drawn, read)))


def _read_draw(
    mechanism: Releases[Value_contra], read: Callable[[], Value_contra]
) -> Releases[Value_contra]:
    """The mechanism, copied; refuses, before anything is charged, what could only fail.

    The loss that is charged and the noise that is drawn are both made of the same plain numbers.
    """
    drawn: Any = frozen(mechanism, "mechanism") if is_mechanism(mechanism) else None
    if not is_mechanism(drawn):
        raise ParameterTypeError(
            "mechanism", type(mechanism).__name__, "must be one of the library's own, as dp.Laplace"
        )
    if not callable(read):
        raise ParameterTypeError(
            "read", type(read).__name__, "must be a function without arguments"
        )
    if isinstance(drawn, Labelled):
        try:
            plain(drawn.labels)
        except LedgerError:
            raise ParameterError(
                "mechanism", type(drawn).__name__, "must name what it reports by text or numbers"
            ) from None
    made: Releases[Value_contra] = drawn
    return made


def _told_value(made: object) -> object:
    """What a draw gave, as a ledger keeps it."""
    if type(made) is SparseStream:
        return [each.above if each.value is None else each.value for each in made.answers]
    if type(made) is dict and not all(isinstance(name, str) for name in made):
        return list(made.items())
    return made


def _second(then: Callable[[object], Second | None], value: object) -> Second | None:
    """What a released value decides; `then` gets a copy, as the ledger would give it back."""
    decided = then(plain(value))
    if decided is None:
        return None
    exactly(decided, (Second,), "then", "must give a Second, or None")
    hold = None if decided.hold is None else read_loss(decided.hold)
    return replace(decided, loss=read_loss(decided.loss), hold=hold)


def _answer(recorded: Recorded, cost: Price) -> Release:
    return Release(
        recorded.value, cost, recorded.number, recorded.head, recorded.repeated, recorded.day
    )
