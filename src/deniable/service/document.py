"""The survey document: versioned JSON that fixes the questions, their ε and every text shown.

Its `id` is a hash of the canonical text: whoever changes a word, an option or an ε has another
survey, and reports of the one are refused by the other.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from deniable.errors import ParameterError
from deniable.lazy import lazy
from deniable.privacy.exact import exact, log_up, positive, sum_up
from deniable.service.item import FormItem, ItemKind, Text, rounded_epsilon, said, scale_steps
from deniable.strict_json import read_json

FORMAT, VERSION = "deniable survey", 1
ADMISSIONS = ("linkable codes", "blind tokens")
MOST_QUESTIONS = 20
LONGEST = 200_000

_ID = re.compile(r"[0-9a-f]{32}")
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Z]{2})?")
_LOG = re.compile(r"ln ([1-9][0-9]{0,5})(?:/([1-9][0-9]{0,5}))?")
_FIELDS = {
    "format", "version", "name", "wave", "population", "limit", "languages", "admission",
    "title", "consent", "questions",
}  # fmt: skip
# Line ends, the spaces of French and others, and the joiners of Persian and Indian scripts.
_SPACES = "\n\u00a0\u202f\u200c\u200d"
_UNSEEN = "\u115f\u1160"  # letters that show nothing, to which all such are decomposed
_ITEM_FIELDS = {
    ItemKind.YES_NO: set[str](),
    ItemKind.CHOICE: {"options"},
    ItemKind.SCALE: {"low", "high"},
    ItemKind.NUMBER: {"low", "high"},
}


@dataclass(frozen=True)
class SurveyDocument:
    """A survey as it was agreed on; made by `read_document` only.

    Formal guarantee, of one respondent's whole submission: `epsilon`, the sum over the questions
    of the ε of the laws that are really drawn, under "replace" (any answers for any others).
    """

    text: str
    name: str
    wave: int
    population: str
    limit: Fraction | None
    languages: tuple[str, ...]
    admission: str
    title: Text
    consent: Text
    items: tuple[FormItem, ...]

    @lazy
    def id(self) -> str:
        """The first 32 digits of the SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:32]

    @lazy
    def epsilon(self) -> Fraction:
        """What one submission costs its respondent at most."""
        return sum_up([item.loss_epsilon for item in self.items])

    def shown_epsilon(self) -> str:
        """ε for the eye, rounded up at the fourth decimal."""
        return rounded_epsilon(self.epsilon)

    def item(self, name: str) -> FormItem:
        """The question of this id."""
        for each in self.items:
            if each.id == name:
                return each
        known = [each.id for each in self.items]
        raise ParameterError("question", name, f"must be one of {known}")

    def place(self, name: str) -> int:
        """The place of a question in every submission."""
        return self.items.index(self.item(name))


def is_survey_id(text: str) -> bool:
    """Whether it is spelt as ids are; nothing else is looked up."""
    return _ID.fullmatch(text) is not None


def load_document(path: str | Path) -> SurveyDocument:
    """Read a document from a file."""
    file = Path(path)
    if file.stat().st_size > LONGEST:
        raise ParameterError("document", str(path), f"must be {LONGEST:,} bytes at most")
    return read_document(file.read_text(encoding="utf-8"))


def read_document(text: str | bytes) -> SurveyDocument:
    """Check a document completely; an error names the first thing that is wrong with it."""
    if len(text) > LONGEST:
        raise ParameterError("document", len(text), f"must be {LONGEST:,} signs at most")
    try:
        data = read_json(text)
    except ValueError as cause:
        raise ParameterError("document", "unreadable", f"must be JSON: {cause}") from None
    given = _fields(data, _FIELDS, "document")
    if given["format"] != FORMAT or type(given["version"]) is not int:
        raise ParameterError("format", given["format"], f'must be "{FORMAT}" with a version')
    if given["version"] != VERSION:
        raise ParameterError("version", given["version"], f"must be {VERSION}; update deniable")
    languages = _languages(given["languages"])
    items = _items(given["questions"], languages)
    return SurveyDocument(
        text=json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True),
        name=_match(given["name"], _NAME, "name", "small letters, digits and hyphens, 60 at most"),
        wave=_whole(given["wave"], "wave", 1, 10_000),
        population=_line(given["population"], "population"),
        limit=None if given["limit"] is None else _epsilon(given["limit"], "limit"),
        languages=languages,
        admission=_one_of(given["admission"], ADMISSIONS, "admission"),
        title=_texts(given["title"], languages, "title", 200),
        consent=_texts(given["consent"], languages, "consent", 5_000),
        items=items,
    )


def _items(given: object, languages: tuple[str, ...]) -> tuple[FormItem, ...]:
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_QUESTIONS:
        raise ParameterError("questions", "a list", f"must be 1 to {MOST_QUESTIONS} questions")
    items = tuple(_item(each, languages) for each in given)
    if len({item.id for item in items}) != len(items):
        raise ParameterError("questions", "ids", "must each have an id of its own")
    for language in languages:
        if len({plain(said(item.text, language)) for item in items}) != len(items):
            raise ParameterError(
                "questions",
                f"texts ({language})",
                "must each have words of their own, for the page throws once for the same words: "
                "letters or numbers must differ, not signs, accents, capitals or spaces alone",
            )
    return items


def plain(text: str) -> str:
    """What a text says: its letters and numbers, as the page's script takes them (`brief.js`)."""
    letters = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).upper())
    return "".join(
        sign for sign in letters if unicodedata.category(sign)[0] in "LN" and sign not in _UNSEEN
    )


def _item(given: object, languages: tuple[str, ...]) -> FormItem:
    asked = given.get("kind") if isinstance(given, dict) else None
    kind = ItemKind(_one_of(asked, tuple(map(str, ItemKind)), "kind"))
    data = _fields(given, {"id", "kind", "text", "epsilon", *_ITEM_FIELDS[kind]}, "question")
    name = _match(data["id"], _NAME, "id", "small letters, digits and hyphens, 60 at most")
    text = _texts(data["text"], languages, f"text of {name}", 1_000)
    epsilon = _epsilon(data["epsilon"], f"epsilon of {name}")
    options, values = data.get("options", []), None
    if not isinstance(options, list):
        raise ParameterError("options", name, "must be a list of texts")
    read = tuple(_texts(each, languages, f"options of {name}", 200) for each in options)
    if kind == ItemKind.SCALE:
        low, high = (
            _whole(data[end], f"ends of {name}", -1_000_000, 1_000_000) for end in ("low", "high")
        )
        values = scale_steps(low, high)
    if kind == ItemKind.NUMBER:
        values = (_number(data["low"], name), _number(data["high"], name))
    return FormItem(kind, name, text, epsilon, read, values)


def _fields(data: object, wanted: set[str], what: str) -> Mapping[str, Any]:
    if not isinstance(data, dict):
        raise ParameterError(what, type(data).__name__, "must be an object")
    if data.keys() != wanted:
        missing, unknown = sorted(wanted - data.keys()), sorted(data.keys() - wanted)
        raise ParameterError(
            what,
            f"{len(data)} fields",
            f"must have exactly these fields: {', '.join(sorted(wanted))}; "
            f"missing: {', '.join(missing) or 'none'}; "
            f"unknown: {', '.join(unknown)[:200] or 'none'}",
        )
    return data


def _languages(given: object) -> tuple[str, ...]:
    if not isinstance(given, list) or not 1 <= len(given) <= 20:
        raise ParameterError("languages", "a list", 'must be a list such as ["en", "de"]')
    read = tuple(_match(each, _LANGUAGE, "languages", 'tags such as "en"') for each in given)
    if len(set(read)) != len(read):
        raise ParameterError("languages", len(read), "must differ from each other")
    return read


def _texts(given: object, languages: tuple[str, ...], what: str, longest: int) -> Text:
    if not isinstance(given, dict) or given.keys() != set(languages):
        raise ParameterError(what, "texts", f"must give one text for each of {list(languages)}")
    for text in given.values():
        if not isinstance(text, str) or not 1 <= len(text.strip()) <= longest:
            raise ParameterError(what, "a text", f"must be text of 1 to {longest:,} signs")
        if any(not (sign.isprintable() or sign in _SPACES) for sign in text):
            raise ParameterError(what, "a text", "must hold printable signs and line ends only")
    return tuple((language, given[language]) for language in languages)


def _epsilon(given: object, what: str) -> Fraction:
    """A number, or "ln 3": then e^ε is three exactly, and fair coins and dice can draw the law."""
    if isinstance(given, str) and (found := _LOG.fullmatch(given)):
        ratio = Fraction(int(found[1]), int(found[2] or 1))
        if ratio > 1:
            return log_up(ratio)
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise ParameterError(what, given, 'must be a number such as 1.0, or "ln 3"')
    return positive(given, what)


def _number(given: object, name: str) -> Fraction:
    if isinstance(given, bool) or not isinstance(given, int | float) or abs(given) > 10**12:
        raise ParameterError(f"ends of {name}", "a bound", "must be a number, 1e12 at most")
    return exact(given, f"ends of {name}")


def _whole(given: object, what: str, least: int, most: int) -> int:
    if type(given) is not int or not least <= given <= most:
        raise ParameterError(what, given, f"must be a whole number from {least:,} to {most:,}")
    return given


def _line(given: object, what: str) -> str:
    if not isinstance(given, str) or not 1 <= len(given) <= 200 or not given.isprintable():
        raise ParameterError(what, type(given).__name__, "must be a line of 1 to 200 signs")
    return given


def _match(given: object, pattern: re.Pattern[str], what: str, allowed: str) -> str:
    if not isinstance(given, str) or not pattern.fullmatch(given):
        raise ParameterError(what, given, f"must be {allowed}")
    return given


def _one_of(given: object, allowed: tuple[str, ...], what: str) -> str:
    if not isinstance(given, str) or given not in allowed:
        raise ParameterError(what, given, f"must be one of {list(allowed)}")
    return given
