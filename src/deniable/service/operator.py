"""The operator's pages: plan, design, preview, collect, estimate, cross, export.

Who opens them shows the key that `deniable survey serve` printed, once; a cookie holds it then.
"""

from __future__ import annotations

import hmac
from typing import Annotated, Any
from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse

from deniable.errors import DeniableError, ParameterError
from deniable.service.admission import read_people
from deniable.service.deposits import Outcome
from deniable.service.document import LONGEST, read_document
from deniable.service.draft import draft_from_form, template
from deniable.service.entry import read_sheets
from deniable.service.export import export
from deniable.service.pages import html, page_hashes, read_body, store_of, survey_of
from deniable.service.picture import growth_svg
from deniable.service.plan import planned
from deniable.service.results import crossed, growth, in_the_crowd, results

_COOKIE = "deniable_operator"
_FORM = "application/x-www-form-urlencoded"
_MEDIA = {"json": "application/json", "csv": "text/csv", "py": "text/plain", "R": "text/plain"}


def _known(request: Request) -> None:
    given = request.cookies.get(_COOKIE, "")
    if not hmac.compare_digest(given.encode(), request.app.state.operator_key.encode()):
        raise HTTPException(403, "Open the operator's link that `deniable survey serve` printed.")
    if request.method == "POST" and not _from_here(request):
        raise HTTPException(403, "This form was sent from another site.")


def _from_here(request: Request) -> bool:
    """Whether a form came from a page of this server. Old browsers tell their origin only."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site in ("same-origin", "none")
    origin = request.headers.get("origin")
    return origin is None or urlsplit(origin).netloc == request.headers.get("host")


async def _form(request: Request) -> dict[str, str]:
    body = await read_body(request, 2 * LONGEST, _FORM)
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, max_num_fields=200)
    except ValueError:
        raise HTTPException(400, "This form cannot be read.") from None
    return {name: values[0] for name, values in fields.items()}


Form = Annotated[dict[str, str], Depends(_form)]
entrance = APIRouter(prefix="/operator")
inside = APIRouter(prefix="/operator", dependencies=[Depends(_known)])


@entrance.get("/enter/{key}")
def enter(request: Request, key: str) -> Response:
    """Exchange the key of the link for a cookie, so that it leaves the address bar."""
    if not hmac.compare_digest(key.encode(), request.app.state.operator_key.encode()):
        raise HTTPException(403, "This is not the operator's key of this server.")
    response = RedirectResponse("/operator", status_code=303)
    secure = request.url.scheme == "https"
    response.set_cookie(_COOKIE, key, httponly=True, samesite="strict", secure=secure)
    return response


@inside.get("")
def surveys(request: Request) -> Any:
    """All surveys and how far they are."""
    store = store_of(request)
    rows = [(document, store.status(document)) for document in store.documents()]
    return _page("operator.html", rows=rows)


@inside.get("/plan")
def plan_page(request: Request) -> Any:
    """People, margin and ε against each other."""
    given = {name: str(value) for name, value in request.query_params.items()}
    plan, error = None, None
    try:
        plan = planned(given)
    except DeniableError as problem:
        error = str(problem)
    return _page("plan.html", given=given, plan=plan, error=error)


@inside.get("/design")
def design_page() -> Any:
    """An empty form."""
    return _page("design.html", given=template(), draft=None, error=None)


@inside.post("/design")
def design_sent(request: Request, form: Form) -> Any:
    """Check a draft, show what it costs, and keep it if that was asked for."""
    try:
        text = draft_from_form(form)
        draft = read_document(text)
    except DeniableError as problem:
        return _page("design.html", given=form, draft=None, error=str(problem))
    if form.get("do") != "save":
        return _page("design.html", given=form, draft=draft, error=None)
    survey = store_of(request).add(draft)
    return RedirectResponse(f"/operator/{survey}", status_code=303)


@inside.get("/{survey}")
def survey_page(request: Request, survey: str) -> Any:
    """Status, live estimates with intervals, and their pictures."""
    document = survey_of(request, survey)
    store = store_of(request)
    reports = store.reports(document)
    found = [
        (
            result,
            growth_svg(
                growth(result.item, [each[place] for each in reports]),
                title=f"{result.item.id}: {result.main.label} against the number of reports",
                percent=result.mean is None,
            ),
        )
        for place, result in enumerate(results(document, reports))
    ]
    return _page(
        "survey.html",
        document=document,
        status=store.status(document),
        found=found,
        crowd=in_the_crowd(document, len(reports)),
        hashes=page_hashes(document),
        key=store.tokens(document).public,
        base=str(request.base_url).rstrip("/"),
    )


@inside.post("/{survey}/invite")
def invite(request: Request, survey: str, form: Form) -> Any:
    """Fresh codes, shown once."""
    document = survey_of(request, survey)
    people: list[str | None]
    if form.get("people", "").strip():
        people = [*read_people(form["people"].splitlines())]
    else:
        people = [None] * _count(form.get("count", ""))
    codes = store_of(request).invite(document, people)
    invited = [(one or "", code) for one, code in zip(people, codes, strict=True)]
    base = str(request.base_url).rstrip("/")
    return _page("invited.html", document=document, invited=invited, base=base)


@inside.post("/{survey}/close")
def close(request: Request, survey: str, form: Form) -> Any:
    """No more answers, once the form says so in words."""
    document = survey_of(request, survey)
    if form.get("sure") != document.name:
        raise ParameterError("sure", "a name", "type the survey's name to close it for good")
    store_of(request).close_survey(document)
    return RedirectResponse(f"/operator/{survey}", status_code=303)


@inside.get("/{survey}/crosstab")
def crosstab_page(
    request: Request, survey: str, first: str | None = None, second: str | None = None
) -> Any:
    """Two questions against each other, corrected for the coins."""
    document = survey_of(request, survey)
    reports = store_of(request).reports(document)
    table, error = None, None
    if first and second and reports:
        try:
            table = crossed(document, reports, first, second)
        except DeniableError as problem:
            error = str(problem)
    return _page("crosstab.html", document=document, table=table, error=error,
        first=first, second=second, n=len(reports),
    )  # fmt: skip


@inside.get("/{survey}/paper")
def entry_page(request: Request, survey: str) -> Any:
    """The form for reports from paper."""
    return _page("entry.html", document=survey_of(request, survey), message=None, given={})


@inside.post("/{survey}/paper")
def entry_sent(request: Request, survey: str, form: Form) -> Any:
    """Store a batch of sheets once."""
    document = survey_of(request, survey)
    try:
        sheets = read_sheets(document, form.get("sheets", ""))
        outcome = store_of(request).enter(document, form.get("batch", "").strip(), sheets)
    except DeniableError as problem:
        message = str(problem)
    else:
        message = {
            Outcome.STORED: f"{len(sheets)} sheets were stored.",
            Outcome.ALREADY: "This batch was stored before; nothing was counted twice.",
            Outcome.SPENT: "Another batch has this name; nothing was stored. Choose another name.",
        }[outcome]
    return _page("entry.html", document=document, message=message, given=form)


@inside.get("/{survey}/export/{name}")
def export_file(request: Request, survey: str, name: str) -> Response:
    """One file of the export."""
    document = survey_of(request, survey)
    files = export(document, store_of(request).reports(document))
    if name not in files:
        raise HTTPException(404, f"The export has {', '.join(files)}.")
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    media = _MEDIA[name.rsplit(".", maxsplit=1)[-1]]
    return PlainTextResponse(files[name], media_type=media, headers=headers)


def _count(text: str) -> int:
    if not text.isdecimal() or len(text) > 6 or not 1 <= int(text) <= 100_000:
        raise ParameterError("count", text, "must be a whole number from 1 to 100,000")
    return int(text)


def _page(name: str, **values: Any) -> HTMLResponse:
    return HTMLResponse(html(name, **values))


router = APIRouter()
router.include_router(entrance)
router.include_router(inside)
