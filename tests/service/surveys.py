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
SCALE = {"id": "stress", "kind": "scale", "text": {"en": "Stress?"}, "epsilon": 1,
          "low": 1, "high": 5}  # fmt: skip
NUMBER = {"id": "hours", "kind": "number", "text": {"en": "Hours?"}, "epsilon": 2,
          "low": 0, "high": 12}  # fmt: skip

ASKED = "Straße 5: éfi?"
# The same words, as a printable text can spell them.
SPELT = {
    "as they are": ASKED,
    "signs": "Straße 5 – éfi !",
    "capitals": "STRASSE 5: ÉFI?",
    "spaces": " Stra ße\u00a05\u202fé f i",
    "code points": "Straße 5: e\u0301fi?",
    "ligature": "Straße 5: é\ufb01?",
    "wide letters": "Ｓｔｒａße ５: éfi?",
    "joiners": "Stra\u200cße 5: é\u200dfi?",
    "no accents": "Strasse 5: efi?",
    "other accents": "Stra\u0323ße 5: ẽf\u034fi\ufe0f?",
    "letters that show nothing": "Stra\u3164ße\u115f 5: é\uffa0f\u1160i?",
}


def survey(questions=None, **changes):
    return read_document(json.dumps(written(questions, **changes)))
