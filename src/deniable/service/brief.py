"""What the respondent's script is told about a survey: texts, laws, and sentences' numbers."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from typing import Any

from deniable.privacy.channel import worst_of_all
from deniable.privacy.exact import float_above, show
from deniable.service.document import SurveyDocument
from deniable.service.item import Item, NumberLine, said
from deniable.service.words import Words, words_of
from deniable.survey.sentences import suspicion

_PRIOR = Fraction(1, 10)


def brief(
    document: SurveyDocument, language: str, *, key: str | None = None, closed: bool = False
) -> dict[str, Any]:
    """All that the page shows, in one language. Nothing in it depends on a respondent."""
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
        "epsilon": float_above(document.epsilon),
        "together": words["together"].format(epsilon=document.shown_epsilon()),
        "words": dict(words),
        "items": [_item(item, language, words) for item in document.items],
    }


def _item(item: Item, language: str, words: Words) -> dict[str, Any]:
    options = [item.option(place, language) or words["yes" if place else "no"]
               for place in range(item.reports)]  # fmt: skip
    return {
        "id": item.id,
        "kind": item.kind,
        "text": said(item.text, language),
        "options": options,
        "low": show(item.low) if isinstance(item, NumberLine) else None,
        "high": show(item.high) if isinstance(item, NumberLine) else None,
        "law": json.loads(item.question.text),
        "epsilon": item.epsilon,
        "promise": promise(item, words),
        "deniable": [
            _deniable(item, report, options, words) for report in range(item.reports)
        ]
        if not isinstance(item, NumberLine)
        else [],
    }  # fmt: skip


def promise(item: Item, words: Words) -> str:
    """The guarantee in one sentence, numbers rounded up."""
    ratio = Fraction(worst_of_all(item.design.channel.rows))
    most = math.ceil(ratio * 100) / 100
    return words["promise"].format(ratio=f"{most:g}", epsilon=item.shown_epsilon())


def _deniable(item: Item, report: int, options: list[str], words: Words) -> str:
    label = item.labels[report]
    after = suspicion(item.design, label, answer=label, prior=_PRIOR)
    return words["deniable"].format(
        report=options[report],
        answer=options[report],
        before="10%",
        after=f"{math.ceil(after * 1000) / 10:g}%",
    )
