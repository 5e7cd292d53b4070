"""From the designer's form to a document."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from deniable.errors import ParameterError
from deniable.service.blind_tokens import BlindTokens
from deniable.service.document import FORMAT, VERSION

ROWS = 4

CONSENT = (
    "Taking part is voluntary. Your device changes your answers at random before it sends them. "
    "Only the changed answers are kept, without your name, your address or the time."
)


def new_document(
    *,
    name: str,
    question: str,
    epsilon: float | str,
    population: str = "everyone",
    admission: str = BlindTokens.kind,
) -> dict[str, Any]:
    """A document of one yes/no question, to be edited."""
    filled = {
        **template(),
        "name": name,
        "text-1": question,
        "epsilon-1": str(epsilon),
        "population": population,
        "admission": admission,
    }
    return _document(filled)


def template() -> dict[str, str]:
    """What the empty form holds."""
    return {
        "name": "my-survey", "wave": "1", "population": "everyone", "limit": "", "language": "en",
        "title": "A question you can answer", "consent": CONSENT,
        "kind-1": "yes/no", "id-1": "question-1", "epsilon-1": "ln 3",
    }  # fmt: skip


def draft_from_form(form: Mapping[str, str]) -> str:
    """The document of a form as JSON text; a pasted document wins. It is not checked here."""
    return form["json"] if form.get("json", "").strip() else json.dumps(_document(form))


def _document(form: Mapping[str, str]) -> dict[str, Any]:
    language = form.get("language", "en").strip()
    questions = [
        _question(form, row, language)
        for row in range(1, ROWS + 1)
        if form.get(f"text-{row}", "").strip()
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": form.get("name", "").strip(),
        "wave": _number(form.get("wave", "1"), "wave"),
        "population": form.get("population", "").strip(),
        "limit": _epsilon(form["limit"]) if form.get("limit", "").strip() else None,
        "languages": [language],
        "admission": form.get("admission", BlindTokens.kind),
        "title": {language: form.get("title", "").strip()},
        "consent": {language: form.get("consent", "").replace("\r\n", "\n").strip()},
        "questions": questions,
    }


def _question(form: Mapping[str, str], row: int, language: str) -> dict[str, Any]:
    def field(name: str) -> str:
        return form.get(f"{name}-{row}", "").strip()

    made: dict[str, Any] = {
        "id": field("id"),
        "kind": field("kind"),
        "text": {language: field("text")},
        "epsilon": _epsilon(field("epsilon")),
    }
    if made["kind"] == "choice":
        options = form.get(f"options-{row}", "").splitlines()
        made["options"] = [{language: each.strip()} for each in options if each.strip()]
    if made["kind"] in ("scale", "number"):
        made["low"], made["high"] = (_number(field(end), end) for end in ("low", "high"))
    return made


def _epsilon(text: str) -> float | int | str:
    text = text.strip()
    return text if text.startswith("ln") else _number(text, "epsilon")


def _number(text: str, what: str) -> float | int:
    try:
        return int(text) if text.strip().lstrip("-").isdecimal() else float(text)
    except ValueError:
        raise ParameterError(what, text[:20], "must be a number") from None
