"""What the respondent's script does, word for word, in Python.

`respondent.js` and these functions read the same random 32-bit words in the same order and give the
same report: `tests/service/channel_vectors.json` holds both to it. A client in another language
can be checked with the same file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from deniable.errors import ParameterError
from deniable.randomness.source import SECURE, bits
from deniable.service.item import FormItem
from deniable.survey.number_laws import INPUTS
from deniable.survey.thresholds import WORD

Words = Callable[[], int]

_WORD = 1 << 32


@dataclass(frozen=True)
class Throw:
    """A report, and whether the answer decided it; the latter never leaves the device."""

    report: int
    told: bool


def device_words() -> int:
    """32 fresh random bits."""
    return bits(SECURE, 32)


def respond(item: FormItem, answer: int | Fraction, words: Words = device_words) -> Throw:
    """Randomise one answer: a report's place, or a number for a question on a number.

    Raises:
        ParameterError: the place is none of the question's. Nothing was thrown then.
    """
    threshold = int(item.truth * WORD)
    if item.is_number:
        place = _place(item, Fraction(answer))
        bit = int((words() >> 2) < place)
        return _coin(bit, threshold, words)
    place = int(answer)
    if place != answer or not 0 <= place < item.reports:
        # What was given is not quoted: it is somebody's answer.
        raise ParameterError(
            "answer", "a place", f"must be a whole number from 0 to {item.reports - 1}: its place"
        )
    if item.reports == 2:
        return _coin(place, threshold, words)
    return _die(place, item.reports, threshold, words)


def _coin(bit: int, threshold: int, words: Words) -> Throw:
    """The bit with probability 2p - 1, else a fair coin: P(bit) = 2p - 1 + (1 - p) = p."""
    if _word64(words) < 2 * threshold - WORD:
        return Throw(bit, told=True)
    return Throw(words() & 1, told=False)


def _die(answer: int, k: int, threshold: int, words: Words) -> Throw:
    """The answer with probability p, else one of the k - 1 others, each alike."""
    if _word64(words) < threshold:
        return Throw(answer, told=True)
    other = _below(k - 1, words)
    return Throw(other + (other >= answer), told=False)


def _word64(words: Words) -> int:
    high = words()
    return (high << 32) | words()


def _below(count: int, words: Words) -> int:
    """A whole number below `count`, uniformly: words beyond the last full round are drawn again."""
    limit = _WORD - _WORD % count
    word = words()
    while word >= limit:
        word = words()
    return word % count


def _place(item: FormItem, number: Fraction) -> int:
    """The number's place on the grid of 2^30 parts; what lies outside is moved to the end."""
    low, high = item.values
    share = (min(max(number, low), high) - low) / (high - low)
    return int(share * INPUTS + Fraction(1, 2))
