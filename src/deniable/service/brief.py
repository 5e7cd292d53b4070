"""What the respondent's script is told about a survey: its texts and its laws."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

from deniable.privacy.channel import worst_of_all
from deniable.service.document import SurveyDocument
from deniable.service.item import FormItem, rounded_up, said
from deniable.service.words import Words, words_of


def brief(
    document: SurveyDocument, language: str, *, key: str | None = None, closed: bool = False
) -> dict[str, Any]:
    """The survey's own texts and laws, in one language. Nothing in it depends on a respondent.

    No number about privacy is in it: the script works them out from the thresholds.
    """
    words = words_of(language)
    return {
        "version": 1,
        "survey": document.id,
        "admission": document.admission,
        "key": key,
        "closed": closed,
        "language": language,
        "languages": list(document.languages),
        "title": said(document.title, language),
        "consent": said(document.consent, language),
        "items": [_item(item, language, words) for item in document.items],
    }


def _item(item: FormItem, language: str, words: Words) -> dict[str, Any]:
    return {
        "id": item.id,
        "kind": item.kind,
        "text": said(item.text, language),
        "options": [item.shown_option(at, language, words) for at in range(item.reports)],
        "low": item.labels[0] if item.is_number else None,
        "high": item.labels[1] if item.is_number else None,
        "law": json.loads(item.wire.text),
    }


def promise(item: FormItem, words: Words) -> str:
    """The guarantee in one sentence, numbers rounded up."""
    ratio = Fraction(worst_of_all(item.design.channel.rows))
    return words["promise"].format(ratio=rounded_up(ratio, 2), epsilon=item.shown_epsilon())
