"""The same law with real coins and dice, where it has one: instructions that can be printed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from deniable.service.item import FormItem, said
from deniable.service.words import Words

_SIDES = 6
# The device rounds its probabilities down at 2^-64; dice draw the ratio that was asked for.
_ROUNDING = Fraction(1, 2**60)


@dataclass(frozen=True)
class PaperItem:
    """One question for paper: numbers of the first throw that call for the truth, then a die."""

    question: str
    coin: bool
    truthful: int
    faces: tuple[tuple[str, str], ...]
    again: str | None


def paper_item(item: FormItem, language: str, words: Words) -> PaperItem | None:
    """How to answer on paper; None where no coin or die draws this ε.

    The first throw says whether the answer decides, with probability (k p - 1)/(k - 1); otherwise a
    second one chooses among all k reports alike. Together that is the device's law, to within
    2^-60.
    """
    if item.is_number or item.reports > _SIDES:
        return None
    truthful = round(item.told * _SIDES)
    if not 1 <= truthful < _SIDES or abs(item.told - Fraction(truthful, _SIDES)) > _ROUNDING:
        return None
    each = _SIDES // item.reports
    faces = tuple(
        (_range(1 + place * each, (place + 1) * each), item.shown_option(place, language, words))
        for place in range(item.reports)
    )
    used = each * item.reports
    return PaperItem(
        question=said(item.text, language),
        coin=2 * truthful == _SIDES,
        truthful=truthful,
        faces=faces,
        again=None if used == _SIDES else _range(used + 1, _SIDES),
    )


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"
