"""Noise that repeats in forked children: the one event that looks at two releases.

Let c be a fixed input. A mechanism that draws anew in every process gives, for M(x) in one child
and M(c) in another, a pair that is no less private in x than M(x) alone: M(c) knows nothing of x.
So the event "both children give the same output" obeys the claim. If the noise is copied with the
process, it happens always for x = c and, for additive noise, never for x a neighbour of c. Where
calls in one process show no noise there is none to be copied: other events tell of what leaks.
"""

from __future__ import annotations

import marshal
import os
import time
from functools import partial

from deniable.auditing.sampled.bounds import EventCounts, perfect
from deniable.auditing.sampled.claims import Claim, refuted
from deniable.auditing.sampled.isolation import Ended, in_child
from deniable.auditing.sampled.outcomes import plain, raised
from deniable.auditing.sampled.sampling import Call, copied
from deniable.auditing.sampled.targets import Pair
from deniable.randomness.fork import process_mark

EVENT = "two forked children give the same output, one of them on the data"
_REHEARSALS = 4
_IN_ONE_PROCESS = 12
_MOST_TRIALS = 400


def repeated_noise(
    call: Call, pair: Pair, claim: Claim, level: float, time_limit: float
) -> EventCounts | None:
    """How often two children agree, on the data and on the neighbour.

    None where no number of trials could refute the claim, where a few calls in one process are all
    the same, where a few trials, which are thrown away, show nothing of the kind, or where a child
    did not end.
    """
    trials = _trials(claim, level)
    if trials is None or not _varies(call, pair, time_limit):
        return None
    if not _shows(call, pair, time_limit):
        return None
    counted = _agreements(call, pair, trials, time_limit)
    return None if counted is None else EventCounts(counted[0], counted[1], trials, level)


def _varies(call: Call, pair: Pair, time_limit: float) -> bool:
    """Whether outputs differ from call to call in one process."""

    def run() -> int:
        return len({_key(call, pair.data) for _ in range(_IN_ONE_PROCESS)})

    found = in_child(run, time.monotonic() + time_limit * _IN_ONE_PROCESS)
    return isinstance(found, int) and found > 1


def _trials(claim: Claim, level: float) -> int | None:
    """Half as many more as would do if all went as in the worst case."""
    enough = next((m for m in range(5, _MOST_TRIALS) if refuted(claim, *perfect(m, level))), None)
    return None if enough is None else enough + enough // 2


def _shows(call: Call, pair: Pair, time_limit: float) -> bool:
    """Whether children agree on the data, and never otherwise, in all of a few trials."""

    def run() -> bool:
        _key(call, pair.data)
        return all(
            _agree(call, pair.data, pair.data, time_limit) is True
            and _agree(call, pair.neighbour, pair.data, time_limit) is False
            for _ in range(_REHEARSALS)
        )

    return in_child(run, time.monotonic() + time_limit * (4 * _REHEARSALS + 1)) is True


def _agreements(call: Call, pair: Pair, trials: int, time_limit: float) -> tuple[int, int] | None:
    """In a child that has called once, and so has whatever state a second call builds on."""

    def run() -> tuple[int, int] | None:
        _key(call, pair.data)
        same = [0, 0]
        for _ in range(trials):
            for at, first in enumerate((pair.data, pair.neighbour)):
                agree = _agree(call, first, pair.data, time_limit)
                if agree is None:
                    return None
                same[at] += agree
        return same[0], same[1]

    found = in_child(run, time.monotonic() + time_limit * (4 * trials + 1))
    return found if isinstance(found, tuple) else None


def _agree(call: Call, first: object, second: object, time_limit: float) -> bool | None:
    """Whether two children give the same output; None where one did not end."""
    one, other = (
        in_child(partial(_key, call, given), time.monotonic() + time_limit)
        for given in (first, second)
    )
    return None if isinstance(one, Ended) or isinstance(other, Ended) else one == other


def _key(call: Call, given: object) -> bytes:
    """An output as bytes, so that NaN equals itself; the input stays as it was."""
    process = process_mark()
    try:
        output = call(copied(given))
    except Exception as error:
        return marshal.dumps(raised(error, "", 0.0))
    finally:
        if process_mark() != process:
            os._exit(0)  # a child that the call forked and forgot ends here
    return marshal.dumps(plain(output, "", 0.0))
