"""No page loads anything: all that it is made of lies in it, and in the hash that is published.

A style sheet that is loaded could send the true choice by a picture, before any coin is thrown, and
could change what a sentence says.
"""

import base64
import hashlib
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from deniable.service.pages import STATIC, page_hashes
from deniable.service.store import SurveyStore
from service.server import KEY, Server
from service.surveys import survey, written
from service.walking import Watched, walk

BOTH = {"en": "A town", "de": "Eine Stadt"}
OTHER = {"en": "x", "de": "y"}
DOCUMENT = survey(
    [
        {**each, "text": {"en": f"A {each['id']}", "de": f"Ein {each['id']}"}}
        | ({"options": [BOTH, OTHER]} if "options" in each else {})
        for each in written()["questions"]
    ],
    languages=["en", "de"],
    title=BOTH,
    consent=BOTH,
    admission="blind tokens",
)  # fmt: skip
ANSWERS = [1, 1, 4, "7.5"]
RESPONDENT = [f"/s/{DOCUMENT.id}{query}" for query in ("", "?lang=de", "?preview")]
PAPER = [f"/s/{DOCUMENT.id}/paper{query}" for query in ("", "?lang=de")]
OPERATOR = [
    "/operator", "/operator/plan", "/operator/plan?margin=x", "/operator/design",
    f"/operator/{DOCUMENT.id}", f"/operator/{DOCUMENT.id}/crosstab",
    f"/operator/{DOCUMENT.id}/crosstab?first=drugs&second=which", f"/operator/{DOCUMENT.id}/paper",
]  # fmt: skip
ERRORS = [
    "/",
    "/nowhere",
    "/static/style.css",
    "/favicon.ico",
    f"/s/{'0' * 32}",
    "/operator/enter/x",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loads")
    running = Server(folder, DOCUMENT)
    store = SurveyStore(running.store, keys=Path(running.store).with_suffix(".keys"))
    running.codes = store.invite(DOCUMENT, [None] * 3)
    store.enter(DOCUMENT, "monday", [(1, 1, 4, 1), (0, 0, 2, 0)] * 20)
    store.close()
    yield running
    running.stop()


class Parts(HTMLParser):
    """What a page holds: its scripts and styles, and all that names something to load."""

    def __init__(self, page):
        super().__init__()
        self.inside, self.scripts, self.styles, self.loads = None, [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.inside = tag if tag in ("script", "style") else None
        for name, value in attributes:
            if name.startswith("on") or name in LOADING or (name == "href" and tag not in ("a",)):
                self.loads.append((tag, name, value))

    def handle_endtag(self, tag):
        if tag == self.inside:
            self.inside = None

    def handle_data(self, data):
        if self.inside:
            {"script": self.scripts, "style": self.styles}[self.inside].append(data)


LOADING = {"src", "srcset", "imagesrcset", "data", "poster", "background", "style", "ping", "icon",
           "manifest", "xlink:href", "formaction", "codebase", "archive", "srcdoc"}  # fmt: skip


def allowed(policy):
    return dict(part.strip().split(" ", 1) for part in policy.split(";"))


def named(texts):
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in texts)
    return [f"'sha256-{each}'" for each in hashes]


def test_every_page_holds_all_that_it_is_made_of(server):
    for path in (*RESPONDENT, *PAPER, *OPERATOR, *ERRORS):
        status, headers, page = server.ask("GET", path, Cookie=f"deniable_operator={KEY}")
        assert (status == 200) == (path not in ERRORS)
        rules, parts = allowed(headers["content-security-policy"]), Parts(page.decode())
        assert parts.loads == []
        if status == 200:
            assert [rules["style-src"]] == named(parts.styles)
            assert len(parts.scripts) == (path in RESPONDENT)
        assert not re.search(r"url\(|@import|image-set|@font-face|\\", "".join(parts.styles))
        assert rules["script-src"] == (named(parts.scripts) or ["'none'"])[0] or path in ERRORS
        asks = path in RESPONDENT or path in ERRORS
        assert rules["connect-src"] in ("'none'", *(["'self'"] if asks else []))
        own = {"script-src", "style-src", "connect-src", "form-action"}
        assert {value for name, value in rules.items() if name not in own} == {"'none'"}
        assert rules.keys() >= {"default-src", "img-src", "object-src", "base-uri", *own}


def plain(url):
    return re.sub(r"[0-9a-f]{32}", "ID", urlsplit(url).path)


def test_chromium_loads_nothing(server, browser):
    """Every request of every page: the page itself, and what the script asks in its words."""
    with Watched(browser) as seen:
        for path in (f"/operator/enter/{KEY}", *RESPONDENT, *PAPER, *OPERATOR):
            seen.page.goto(f"{server.url}{path}", wait_until="networkidle")
        seen.page.goto(f"{server.url}/operator/{DOCUMENT.id}")
        assert seen.page.locator("svg.growth").count() == len(DOCUMENT.items)  # drawn in the page
        band = "getComputedStyle(document.querySelector('.growth .band')).fill"
        assert seen.page.evaluate(band) == "rgb(185, 208, 230)"  # and styled
        seen.page.fill("[name=count]", "1")
        seen.page.press("button:has-text('Invite')", "Enter")
        seen.page.wait_for_selector("tbody code")
        walk(seen.page, f"{server.url}/s/{DOCUMENT.id}?lang=en#{server.codes[0]}", ANSWERS)
        assert seen.page.evaluate("getComputedStyle(document.body).margin") == "0px"
        kinds = {(each.resource_type, each.method, plain(each.url)) for each in seen.requests}
        assert {kind for kind in kinds if kind[0] != "document"} == {
            ("fetch", "GET", "/s/ID/brief/en.json"), ("fetch", "GET", "/s/ID/brief/de.json"),
            ("fetch", "POST", "/s/ID/tokens"), ("fetch", "POST", "/s/ID/reports"),
        }  # fmt: skip
        assert seen.console == []


HEAD = {
    "a style sheet": "<link rel=stylesheet href=LEAK>",
    "a style": "<style>body { background: url(LEAK) }</style>",
    "a choice": "<style>#option-1:checked { background: url(LEAK) }</style>",
    "an import": "<style>@import 'LEAK';</style>",
    "a font": "<style>@font-face { font-family: f; src: url(LEAK) } * { font: 1rem f }</style>",
    "another sentence": "<style>#promise::after { content: 'ε = 0.1' } h1 { color: red }</style>",
    "an icon": "<link rel=icon href=LEAK>",
    "early": "<link rel=preload as=style href=LEAK>",
    "later": "<link rel=prefetch href=LEAK>",
    "a module": "<link rel=modulepreload href=LEAK>",
    "a manifest": "<link rel=manifest href=LEAK>",
}
BODY = {
    "a picture": "<img src=LEAK>",
    "several": "<img srcset='LEAK 1x'>",
    "a picture in a drawing": "<svg><image href=LEAK /></svg>",
    "a button": "<input type=image src=LEAK>",
    "a film": "<video src=LEAK></video>",
    "a poster": "<video poster=LEAK></video>",
    "a frame": "<iframe src=LEAK></iframe>",
    "an object": "<object data=LEAK></object>",
    "an attribute": "<p style='background: url(LEAK)'>x</p>",
}
# Chromium without a screen asks for no icon, and for a manifest and a prefetch when it likes.
LOADED = {*HEAD, *BODY} - {"another sentence", "an icon", "later", "a manifest"}


def reached(browser, server, **options):
    """Somebody between adds all of that to a page: what of it is loaded, and the page's colour."""
    found = set()
    paths = {name: f"/leak{place}" for place, name in enumerate((*HEAD, *BODY))}

    def richer(route):
        answer = route.fetch()
        page = answer.text()
        for mark, planted in (("</head>", HEAD), ("<main", BODY)):
            more = "".join(text.replace("LEAK", paths[name]) for name, text in planted.items())
            assert page.count(mark) == 1
            page = page.replace(mark, f"{more}{mark}")
        route.fulfill(response=answer, body=page)

    def leak(route):
        found.update(name for name, path in paths.items() if route.request.url.endswith(path))
        route.abort()

    with Watched(browser, **options) as seen:
        seen.page.route(re.compile(r"/leak\d+$"), leak)
        seen.page.route(f"**/s/{DOCUMENT.id}?preview", richer)
        walk(seen.page, f"{server.url}/s/{DOCUMENT.id}?preview", ANSWERS, send=False)
        return found, seen.page.evaluate("getComputedStyle(document.querySelector('h1')).color")


def test_what_is_planted_in_a_page_is_not_loaded_and_not_used(server, browser):
    """The policy, which came with the page, refuses it.

    A prefetch may follow the rule for scripts' requests; it is asked for whatever is chosen, and
    the page that holds it has another hash.
    """
    found, colour = reached(browser, server)
    assert found <= {"later"}
    assert colour == "rgb(28, 39, 51)"


def test_what_is_planted_works_without_the_policy(server, browser):
    found, colour = reached(browser, server, bypass_csp=True)
    assert found >= LOADED
    assert colour == "rgb(255, 0, 0)"


def changed(folder, rule):
    """A server whose files hold another style sheet."""
    shutil.copytree(STATIC, folder / "static")
    with (folder / "static" / "style.css").open("a") as sheet:
        sheet.write(rule)
    return (
        "import pathlib, deniable.service.pages as pages; "
        f"pages.STATIC = pathlib.Path({str(folder / 'static')!r}); "
    )


def test_another_style_sheet_is_another_hash(tmp_path):
    published = page_hashes(DOCUMENT)
    server = Server(tmp_path, DOCUMENT, setup=changed(tmp_path, "#promise { display: none }\n"))
    try:
        for kind, path in (("page", "/s/ID?lang=en"), ("paper", "/s/ID/paper?lang=en")):
            page = server.get(path.replace("ID", DOCUMENT.id))[2]
            assert hashlib.sha256(page).hexdigest() != published[f"{kind} ?lang=en"]
        told = re.findall(r"publish: +(\w+)  (.*)", server.log.read_text())
        differ = {name for digest, name in told if published.get(name, digest) != digest}
        assert differ == published.keys() - {"script"}
    finally:
        server.stop()


@pytest.mark.parametrize(
    "rule", ["h1 { background: url(/x) }", "@import '/x';", "a { b: \\75rl(/x) }"]
)
def test_a_style_sheet_that_loads_something_is_not_served(tmp_path, rule):
    with pytest.raises(AssertionError):
        Server(tmp_path, DOCUMENT, setup=changed(tmp_path, rule))


def test_what_users_run_to_check_a_page_gives_the_published_hash(server):
    """The command in the page and in the documentation, by curl's own bytes."""
    told = dict(
        reversed(line.split(None, 1)) for line in
        re.findall(r"publish: +(.*)", server.log.read_text())
    )  # fmt: skip
    assert told.items() >= page_hashes(DOCUMENT).items()
    for language in ("en", "de"):
        for kind, path in (("page", ""), ("paper", "/paper")):
            page = server.get(f"/s/{DOCUMENT.id}{path}?lang={language}")[2]
            assert hashlib.sha256(page).hexdigest() == told[f"{kind} ?lang={language}"]
