"""Entries about a reservation: what each may say of it, and what it does to the state."""

from __future__ import annotations

from deniable.errors import DoorError
from deniable.ledger import policy
from deniable.ledger.entries import Kind, Row, State, has_ended, head_of, state_of
from deniable.ledger.reservation import Reservation
from deniable.ledger.stores.base import View
from deniable.ledger.watch import Watch
from deniable.privacy.losses.base import Loss
from deniable.privacy.wire import loss_from_json


def after_entry_about(
    watch: Watch,
    reservation: Reservation,
    *,
    kind: Kind,
    before: Row,
    view: View,
    drawn: Loss | None = None,
    second: tuple[Loss | None, Loss | None] = (None, None),
    question: str | None = None,
) -> State:
    """The state after the next entry, one about a reservation that has not ended.

    `drawn` is what is about to be drawn of it; `second` is the next part and what is held after
    that, and `question` what that part asks.
    """
    name, number = reservation.population, reservation.number
    mine = view.row(name, number)
    if mine is None or head_of(watch.authentic(mine, view)) != reservation.head:
        raise DoorError(f"{name!r} has no such reservation in this ledger")
    state = state_of(before)
    if drawn is not None:
        return policy.door_drawn(state, number, loss_from_json(mine.data["loss"]), drawn)
    if mine.data["resumable"]:
        return policy.door_ended(state, number)
    if has_ended(view.referring(name, number)):
        raise DoorError(f"reservation {number} has ended already")
    if kind != Kind.SETTLE:
        return policy.hold_kept(state, number)
    if question is not None and question == mine.question:
        raise DoorError("the second part of a question must be another question")
    return policy.settled(state, number, *second, at=before.number + 1)
