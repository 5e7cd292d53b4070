"""What the crowd adds when nobody can tell whose report is whose."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.errors import ParameterTypeError
from deniable.privacy.amplification import shuffled
from deniable.privacy.exact import Number
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.generic import ApproxLoss
from deniable.survey.averages import MeanProtocol
from deniable.survey.frequency import Frequency

NEEDS = (
    "an anonymous channel: reports reach the server in an order, at times and from addresses that "
    "say nothing about their senders, and none is missing its crowd"
)


@dataclass(frozen=True)
class InTheCrowd:
    """Two guarantees for one report: what holds in any case, and what holds if `needs` is met.

    `local` protects against everybody, the operator included. `central` protects against whoever
    sees the shuffled reports only; it falls away, and `local` remains, for whoever can link a
    report to its sender.
    """

    local: Loss
    central: ApproxLoss
    people: int
    needs: str = NEEDS


def in_the_crowd(protocol: Frequency | MeanProtocol, *, people: int, delta: Number) -> InTheCrowd:
    """The guarantee of one report among `people`, if they arrive shuffled.

    (Feldman, McMillan & Talwar 2021, Thm 3.1; see `dp.losses.shuffled`.) Count only honest people
    who do report.
    """
    if not isinstance(protocol, Frequency | MeanProtocol):
        raise ParameterTypeError("protocol", type(protocol).__name__, "must be a protocol")
    return InTheCrowd(
        protocol.loss, shuffled(protocol.loss, people=people, delta=delta), int(people)
    )
