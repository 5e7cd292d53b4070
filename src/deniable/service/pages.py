"""What all pages share: templates, the store of a request, bodies of limited size."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

from fastapi import HTTPException, Request
from fastapi.templating import Jinja2Templates
from starlette.requests import ClientDisconnect

from deniable.service.document import SurveyDocument
from deniable.service.store import SurveyStore

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
SCRIPTS = ("respondent.js", "tokens.js", "blind.js")
TEMPLATES = Jinja2Templates(directory=_HERE / "templates")


def script_hashes() -> dict[str, str]:
    """SHA-256 of the scripts as they are served: what to publish with a survey."""
    return {name: hashlib.sha256((STATIC / name).read_bytes()).hexdigest() for name in SCRIPTS}


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
