"""Documents for the tests."""

import json

from deniable.service.document import read_document


def written(questions=None, **changes):
    data = {
        "format": "deniable survey",
        "version": 1,
        "name": "town",
        "wave": 1,
        "population": "town/adult",
        "limit": None,
        "languages": ["en"],
        "admission": "linkable codes",
        "title": {"en": "A town"},
        "consent": {"en": "Taking part is voluntary."},
        "questions": questions if questions is not None else [YES_NO, CHOICE, SCALE, NUMBER],
    }
    return {**data, **changes}


YES_NO = {"id": "drugs", "kind": "yes/no", "text": {"en": "Drugs?"}, "epsilon": "ln 3"}
CHOICE = {
    "id": "which",
    "kind": "choice",
    "text": {"en": "Which?"},
    "epsilon": 1.5,
    "options": [{"en": "none"}, {"en": "one"}, {"en": "several"}],
}
SCALE = {"id": "stress", "kind": "scale", "text": {"en": "?"}, "epsilon": 1, "low": 1, "high": 5}
NUMBER = {"id": "hours", "kind": "number", "text": {"en": "?"}, "epsilon": 2, "low": 0, "high": 12}


def survey(questions=None, **changes):
    return read_document(json.dumps(written(questions, **changes)))
