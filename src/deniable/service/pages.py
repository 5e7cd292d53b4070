"""What all pages share: templates with script and style inside, bodies of limited size."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import HTTPException, Request
from fastapi.templating import Jinja2Templates
from markupsafe import Markup
from starlette.requests import ClientDisconnect

from deniable.service.brief import promise
from deniable.service.document import SurveyDocument
from deniable.service.item import said
from deniable.service.paper import paper_item
from deniable.service.store import SurveyStore
from deniable.service.words import words_of

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
# In the order in which they need each other.
SCRIPTS = (
    "blind.js", "tokens.js", "chance.js", "brief.js", "memory.js", "words.js", "respondent.js",
)  # fmt: skip
_IMPORT = re.compile(r'^import \{[^}]*\} from "\./[a-z]+\.js";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export ", re.MULTILINE)
TEMPLATES = Jinja2Templates(directory=_HERE / "templates")


@cache
def script() -> str:
    """The whole script of the respondent's page: all files one after the other, in the page itself.

    A page that names no other file can be hashed whole, and the policy can name its only script by
    hash, in every browser.
    """
    texts = ((STATIC / name).read_text(encoding="utf-8") for name in SCRIPTS)
    whole = "\n" + "\n".join(_EXPORT.sub("", _IMPORT.sub("", text)) for text in texts)
    assert "</script" not in whole
    assert "<!--" not in whole
    return whole


@cache
def style() -> str:
    """The styles of all pages, which lie in each page itself and load nothing.

    A style sheet could send what was chosen by loading pictures, and change what a sentence says.
    """
    whole = "\n" + (STATIC / "style.css").read_text(encoding="utf-8")
    assert not re.search(r"</style|<!--|url\(|@import|image-set|\\", whole)
    return whole


@cache
def source(text: str) -> str:
    """A script or a style as a Content-Security-Policy names it."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def html(name: str, **values: Any) -> str:
    """A page with its styles inside: it names no other file."""
    plain = Markup(style())  # noqa: S704  (our own file)
    return TEMPLATES.get_template(name).render(style=plain, **values)


def answer_html(document: SurveyDocument, language: str, *, preview: bool = False) -> str:
    """The respondent's page: the same text for everybody."""
    return html(
        "respondent.html",
        survey=document.id,
        admission=document.admission,
        title=said(document.title, language),
        language=language,
        languages=document.languages,
        words=words_of(language),
        preview=preview,
        script=Markup(script()),  # noqa: S704  (our own file)
    )


def paper_html(document: SurveyDocument, language: str) -> str:
    """The sheet to print: the same text for everybody."""
    words = words_of(language)
    sheets = [
        {
            "question": said(item.text, language),
            "paper": paper_item(item, language, words),
            "promise": promise(item, words),
        }
        for item in document.items
    ]
    return html(
        "paper.html",
        title=said(document.title, language),
        consent=said(document.consent, language),
        language=language,
        words=words,
        sheets=sheets,
    )


def page_hashes(document: SurveyDocument) -> dict[str, str]:
    """SHA-256 of the pages in each language, and of what they hold: to publish with a survey."""
    texts = {"script": script(), "style": style()}
    texts |= {f"page ?lang={each}": answer_html(document, each) for each in document.languages}
    texts |= {f"paper ?lang={each}": paper_html(document, each) for each in document.languages}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def store_of(request: Request) -> SurveyStore:
    """The store that this application serves."""
    store: SurveyStore = request.app.state.store
    return store


def survey_of(request: Request, survey: str) -> SurveyDocument:
    """The document of this id, or 404."""
    found = store_of(request).document(survey)
    if found is None:
        raise HTTPException(404, "There is no such survey here; check the link.")
    return found


async def read_body(request: Request, most: int, kind: str) -> bytes:
    """A body of this type and at most so many bytes; the rest of a longer one is not read.

    Who sends it drop by drop is not waited for.
    """
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != kind:
        raise HTTPException(415, f"Send {kind}.")
    parts, size = [], 0
    try:
        async with asyncio.timeout(request.app.state.patience):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise HTTPException(413, f"A body has {most:,} bytes at most.")
                parts.append(part)
    except TimeoutError:
        raise HTTPException(408, "This body took too long.", {"Connection": "close"}) from None
    except ClientDisconnect:
        raise HTTPException(400, "The connection ended inside the body.") from None
    return b"".join(parts)


def wants_json(request: Request) -> bool:
    """Whether an error goes to a script rather than to a reader."""
    path: str = request.url.path
    return (request.method == "POST" and path.startswith("/s/")) or path.endswith(".json")
