"""Attacks on the pages, in a real browser: markup in texts, two tabs, lost storage, traces."""

import json
from pathlib import Path

import pytest

from deniable.service.store import SurveyStore
from service.server import KEY, Server
from service.surveys import CHOICE, NUMBER, SCALE, YES_NO, survey
from service.walking import Watched, walk

TABS = survey([YES_NO, {**SCALE, "low": 1, "high": 30}], admission="blind tokens")
MARKUP = (
    '"><img src=x onerror=window.hit=1><script>window.hit=1</script>{report}{{7*7}}'
    "</textarea></title><svg onload=window.hit=1>"
)
NASTY = survey(
    [
        {**YES_NO, "text": {"en": f"yes{MARKUP}", "de": f"ja{MARKUP}"}},
        {**CHOICE, "text": {"en": f"which{MARKUP}", "de": f"was{MARKUP}"},
         "options": [{"en": f"a{MARKUP}", "de": f"b{MARKUP}"}, {"en": "javascript:1", "de": "c"}]},
        {**NUMBER, "id": "constructor", "text": {"en": MARKUP, "de": MARKUP}},
    ],
    name="nasty",
    population=MARKUP,
    languages=["en", "de"],
    title={"en": f"title{MARKUP}", "de": MARKUP},
    consent={"en": f"consent{MARKUP}\n\u202f{MARKUP}", "de": MARKUP},
)  # fmt: skip
CLOSED = survey([YES_NO], name="closed")
CODES = survey(
    [{**SCALE, "id": name, "text": {"en": name}, "low": 1, "high": 30} for name in ("one", "two")],
    name="codes",
)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("hostile"), TABS)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def store(server):
    opened = SurveyStore(server.store, keys=Path(server.store).with_suffix(".keys"))
    opened.add(NASTY)
    opened.add(CLOSED)
    yield opened
    opened.close()


def test_two_tabs_throw_once(browser, server, store):
    """Whoever opens the page twice throws once: two throws would tell twice as much."""
    (code,) = store.invite(TABS, [None])
    url = f"{server.url}/s/{TABS.id}#{code}"
    with Watched(browser) as seen:
        second = seen.context.new_page()
        second.on("request", lambda request: seen.requests.extend([request]))
        tabs = (seen.page, second)
        for page in tabs:
            page.goto(url)
            page.wait_for_selector("#agree")
        # Both agree before either has a token, and stand before the first question.
        for page in tabs:
            page.evaluate("document.getElementById('agree').click()")
        for page in tabs:
            page.wait_for_selector("#throw")
        for answer in (1, 17):
            for page in tabs:
                page.press(f"#option-{answer}", "Space")
            seen.page.press("#throw", "Enter")
            seen.page.wait_for_selector("#report")
            fell = seen.page.inner_text("#report")
            second.press("#throw", "Enter")
            second.wait_for_selector("#kept")
            assert fell in second.inner_text("#kept")
            assert second.query_selector("input") is None
            for page in tabs:
                page.press("#next", "Enter")
        for page in tabs:
            page.press("#send", "Enter")
            page.wait_for_selector("#done")
        assert len({json.loads(body)["blinded"] for body in seen.asked}) == 1
        assert len(set(seen.sent)) == 1
        assert len(seen.sent) == 2
    assert len(store.reports(TABS)) == 1


def test_texts_are_texts_on_every_page(browser, server, store):
    (code,) = store.invite(NASTY, [MARKUP[:150]])
    with Watched(browser) as seen:
        page = seen.page
        page.on("dialog", lambda dialog: seen.console.append("dialog"))
        for language in ("de", "en"):
            page.goto(f"{server.url}/s/{NASTY.id}/paper?lang={language}")
            assert unharmed(page)
        walk(page, f"{server.url}/s/{NASTY.id}?lang=en#{code}", [1, 0, "3"], send=False)
        assert unharmed(page)
        assert f"yes{MARKUP}" in page.inner_text(".reports")
        page.press("#send", "Enter")
        page.wait_for_selector("#done")
        assert unharmed(page)
        page.goto(f"{server.url}/operator/enter/{KEY}")
        for path in (
            "", f"/{NASTY.id}", f"/{NASTY.id}/paper",
            f"/{NASTY.id}/crosstab?first=drugs&second=which",
        ):  # fmt: skip
            page.goto(f"{server.url}/operator{path}")
            assert unharmed(page)
        page.goto(f"{server.url}/operator/{NASTY.id}")
        assert f"title{MARKUP}" in page.inner_text("h1")
        page.fill("[name=people]", f"another {MARKUP[:120]}")
        page.click("button:has-text('Invite')")
        assert MARKUP[:120] in page.inner_text("tbody")
        assert unharmed(page)
        page.goto(f"{server.url}/operator/design")
        page.fill("[name=title]", MARKUP)
        page.fill("[name=consent]", MARKUP)
        page.fill("[name=text-1]", MARKUP)
        page.click("button[value=check]")
        assert MARKUP in page.inner_text(".notice")
        assert page.input_value("[name=consent]") == MARKUP
        assert unharmed(page)
        assert seen.console == []


def unharmed(page):
    """No text became an element or ran."""
    return page.evaluate(
        "window.hit === undefined && document.querySelector('img, svg:not(.growth)') === null "
        "&& [...document.scripts].every(script => script.src === '')"
    )


def test_nothing_true_is_left_to_go_back_to(browser, server, store):
    """After sending: back, forward, reload and another tab find reports, and no answer."""
    (code,) = store.invite(NASTY, [None])
    url, number = f"{server.url}/s/{NASTY.id}?lang=en#{code}", "3.14159265"
    with Watched(browser) as seen:
        page = seen.page
        page.goto(url)
        page.press("#agree", "Enter")
        for place in (1, 0):
            page.press(f"#option-{place}", "Space")
            page.press("#throw", "Enter")
            page.press("#next", "Enter")
        page.fill("#number", number)  # chosen, and left before it was thrown
        page.goto(f"{server.url}/s/{NASTY.id}/paper")
        page.go_back()
        page.wait_for_selector("#agree")
        assert number not in seen.everything_kept()
        page.press("#agree", "Enter")
        for _ in range(2):
            page.wait_for_selector("#kept")
            page.press("#next", "Enter")
        page.wait_for_selector("#number")
        assert page.input_value("#number") == ""
        page.fill("#number", number)
        page.press("#throw", "Enter")
        page.wait_for_selector("#report")
        assert number not in seen.everything_kept()
        page.press("#next", "Enter")
        page.press("#send", "Enter")
        page.wait_for_selector("#done")
        for move in (page.reload, page.go_forward, page.go_back):
            move()
            kept = seen.everything_kept()
            assert number not in kept
            assert "counts" not in kept  # no coin that would say whether a report is the answer
            assert page.query_selector("input[type=radio]") is None
        assert number not in seen.everything_said()


def test_a_browser_that_keeps_nothing_throws_nothing(browser, server, store):
    """Private windows of some browsers: without memory the first throw could not stand."""
    (code,) = store.invite(TABS, [None])
    with Watched(browser) as seen:
        seen.page.add_init_script(
            "Storage.prototype.setItem = () => { throw new DOMException('full'); }"
        )
        seen.page.goto(f"{server.url}/s/{TABS.id}#{code}")
        seen.page.press("#agree", "Enter")
        seen.page.locator("#code-error", has_text="keeps nothing").wait_for()
        assert seen.asked == []
        assert seen.console == []


def test_a_closed_survey_says_so(browser, server, store):
    store.close_survey(CLOSED)
    with Watched(browser) as seen:
        seen.page.goto(f"{server.url}/s/{CLOSED.id}#0000000000000000")
        assert "closed" in seen.page.inner_text("#closed")
        assert seen.page.query_selector("#agree") is None
