"""What respondents and their devices reach. No handler ever sees a true answer, an IP or a time."""

from __future__ import annotations

import json
import re
from typing import Annotated

from fastapi import APIRouter, Depends, HTTPException, Request
from fastapi.responses import HTMLResponse, JSONResponse

from deniable.errors import ReportError
from deniable.service import submission
from deniable.service.brief import brief
from deniable.service.deposits import Outcome
from deniable.service.document import SurveyDocument
from deniable.service.pages import answer_html, paper_html, read_body, store_of, survey_of

router = APIRouter(prefix="/s")


async def _json_body(request: Request) -> bytes:
    return await read_body(request, submission.LONGEST, "application/json")


Body = Annotated[bytes, Depends(_json_body)]

_HEX = re.compile(r"(?:[0-9a-f]{2})+")


@router.get("/{survey}")
def answer_page(request: Request, survey: str, lang: str | None = None) -> HTMLResponse:
    """The respondent's page: the same for everybody."""
    document = survey_of(request, survey)
    language = _language(document, request, lang)
    preview = "preview" in request.query_params
    return HTMLResponse(answer_html(document, language, preview=preview))


@router.get("/{survey}/brief/{language}.json")
def brief_json(request: Request, survey: str, language: str) -> JSONResponse:
    """What the script shows and draws from."""
    document = survey_of(request, survey)
    if language not in document.languages:
        raise HTTPException(404, "This survey is not in that language.")
    store = store_of(request)
    key, closed = store.tokens(document).public, store.status(document).closed
    pem = None if key is None else key.pem
    return JSONResponse(brief(document, language, key=pem, closed=closed))


@router.get("/{survey}/paper")
def paper_page(request: Request, survey: str, lang: str | None = None) -> HTMLResponse:
    """Instructions to print, for real coins and dice."""
    document = survey_of(request, survey)
    language = _language(document, request, lang)
    return HTMLResponse(paper_html(document, language))


@router.post("/{survey}/reports")
def take_reports(request: Request, survey: str, body: Body) -> JSONResponse:
    """Store a submission once, and say so only when it is on disk."""
    document = survey_of(request, survey)
    read = submission.read_submission(document, body)
    if store_of(request).accept(document, read) is Outcome.SPENT:
        raise HTTPException(409, "This invitation was used for another submission; one counts.")
    # The same words the first time and every other time: who asks again learns nothing new.
    return JSONResponse({"stored": True})


@router.post("/{survey}/tokens")
def sign_token(request: Request, survey: str, body: Body) -> JSONResponse:
    """Sign a blinded token, once per invitation: {"invitation", "blinded"} in, {"signed"} out."""
    document = survey_of(request, survey)
    invitation, blinded = _read_blinded(body)
    return JSONResponse({"signed": store_of(request).issue(document, invitation, blinded).hex()})


def _read_blinded(body: bytes) -> tuple[str, bytes]:
    try:
        data = json.loads(body)
        if data.keys() != {"invitation", "blinded"} or not isinstance(data["invitation"], str):
            raise ValueError
        if not _HEX.fullmatch(data["blinded"]):
            raise ValueError
        return data["invitation"], bytes.fromhex(data["blinded"])
    except (ValueError, TypeError, AttributeError, RecursionError):
        raise ReportError("a token is asked for with an invitation and blinded bytes") from None


def _language(document: SurveyDocument, request: Request, wanted: str | None) -> str:
    """The language asked for, or the browser's first that the survey has, or the survey's first."""
    asked = [wanted] if wanted else []
    asked += [each.split(";")[0].strip() for each in
              request.headers.get("accept-language", "")[:200].split(",")]  # fmt: skip
    for tag in asked:
        for known in document.languages:
            if tag in (known, known.split("-")[0]) or tag.split("-")[0] == known:
                return known
    return document.languages[0]
