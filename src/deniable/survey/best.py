"""Which protocol for so many categories, such an ε and so many people."""

from __future__ import annotations

import math
from dataclasses import dataclass

from deniable.privacy.exact import Number, whole
from deniable.survey.answers import read_size
from deniable.survey.frequency import Frequency
from deniable.survey.hadamard import HadamardResponse
from deniable.survey.kary import KaryResponse
from deniable.survey.local_hashing import LocalHashing
from deniable.survey.subset import SubsetSelection
from deniable.survey.thresholds import read_epsilon
from deniable.survey.unary import UnaryEncoding

_MOST_ROW = 1 << 14  # bits of a row that a phone should send
_MOST_STEPS = 10**11  # steps that a server should take
_NEAR = 1.02


@dataclass(frozen=True)
class ProtocolCost:
    """A protocol beside what it costs."""

    protocol: Frequency
    standard_error: float
    report_bits: int
    server_steps: int
    practical: bool


def protocol_table(k: int, epsilon: Number, n: int) -> tuple[ProtocolCost, ...]:
    """The protocols side by side, the least standard error of a rare category first."""
    size, asked, people = read_size(k), read_epsilon(epsilon), whole(n, "n")
    made: list[tuple[Frequency, int]] = [
        (LocalHashing(k=size, epsilon=asked), people * size),
    ]
    if size <= 1 << 20:
        made += [
            (UnaryEncoding(k=size, epsilon=asked), people * size // 8),
            (SubsetSelection(k=size, epsilon=asked), people * size // 8),
        ]
    if size <= 1 << 24:
        made += [
            (KaryResponse(k=size, epsilon=asked), people),
            (HadamardResponse(k=size, epsilon=asked), people + 2 * size * size.bit_length()),
        ]
    table = [
        ProtocolCost(
            protocol,
            math.sqrt(protocol.variance(people)),
            protocol.report_bits,
            steps,
            protocol.report_bits <= _MOST_ROW and steps <= _MOST_STEPS,
        )
        for protocol, steps in made
    ]
    return tuple(sorted(table, key=lambda each: each.standard_error))


def best_protocol(k: int, epsilon: Number, n: int) -> Frequency:
    """The protocol for the shares of k categories among n people who answer with ε each.

    Of those that phone and server can bear (rows up to 16,384 bits, 1e11 steps), the ones whose
    standard error is within 2 % of the least; of these, the one with the shortest reports.
    """
    table = protocol_table(k, epsilon, n)
    bearable = [each for each in table if each.practical] or [
        min(table, key=lambda each: (each.report_bits, each.server_steps))
    ]
    near = [each for each in bearable if each.standard_error <= _NEAR * bearable[0].standard_error]
    return min(near, key=lambda each: each.report_bits).protocol
