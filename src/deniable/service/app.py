"""The web application: respondents' pages, the API behind them, and the operator's pages."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deniable.errors import (
    AdmissionError,
    BudgetError,
    DeniableError,
    ParameterError,
    ReportError,
    SurveyStoreError,
)
from deniable.service import operator, respondent
from deniable.service.pages import script, source, style, wants_json
from deniable.service.store import SurveyStore

# Nothing is loaded: one style, named by its hash, lies in every page, and one script in that of
# respondents, which alone may ask this server. No pictures, no frames, no other host.
_POLICY = (
    "default-src 'none'; script-src {script}; style-src {style}; img-src 'none'; "
    "connect-src {asks}; form-action {forms}; base-uri 'none'; frame-ancestors 'none'; "
    "object-src 'none'"
)
_ANSWER_PAGE = re.compile(r"/s/[^/]+")
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}

_STATUS: dict[type[DeniableError], int] = {
    ReportError: 400,
    ParameterError: 400,
    AdmissionError: 403,
    BudgetError: 409,
    SurveyStoreError: 503,
}


def create_app(
    store: SurveyStore, *, operator_key: str | None = None, patience: float = 30.0
) -> FastAPI:
    """The application over a store. The operator's pages need the key; None draws a fresh one.

    `patience` is how many seconds a body may take to come in.
    """
    app = FastAPI(
        title="Deniable", docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False
    )
    app.state.store = store
    app.state.patience = patience
    app.state.operator_key = operator_key or secrets.token_urlsafe(24)
    app.include_router(respondent.router)
    app.include_router(operator.router)
    app.add_middleware(_Protected)
    app.add_exception_handler(DeniableError, _refused)
    app.add_exception_handler(HTTPException, _not_found)
    return app


class _Protected:
    """Puts the headers on every response, errors included."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = str(scope.get("path", ""))
        inside, answers = path.startswith("/operator"), _ANSWER_PAGE.fullmatch(path)
        headers = {
            **_HEADERS,
            "Content-Security-Policy": _POLICY.format(
                script=source(script()) if answers else "'none'",
                style=source(style()),
                asks="'self'" if answers else "'none'",
                forms="'self'" if inside else "'none'",
            ),
            # Forms of the operator say where they come from, to this server alone.
            "Referrer-Policy": "same-origin" if inside else "no-referrer",
        }

        async def protected(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(headers)
            await send(message)

        await self._app(scope, receive, protected)


def _refused(request: Request, error: Exception) -> Response:
    code = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 400)
    return _told(request, code, str(error))


def _not_found(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _told(request, error.status_code, str(error.detail), error.headers)


def _told(
    request: Request, code: int, message: str, headers: Mapping[str, str] | None = None
) -> Response:
    if wants_json(request):
        return JSONResponse({"error": message}, status_code=code, headers=headers)
    return PlainTextResponse(message, status_code=code, headers=headers)
