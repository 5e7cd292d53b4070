"""Real Chromium answers as respondents, through the whole page."""

import json
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from chance import FALSE_ALARM, plausible_share
from deniable.service.brief import brief
from deniable.service.pages import page_hashes
from deniable.service.store import SurveyStore
from deniable.survey import estimate
from service.server import Server
from service.surveys import CHOICE, NUMBER, SCALE, YES_NO, survey
from service.walking import Watched, stroll, walk, with_modules

VECTORS = json.loads((Path(__file__).parent / "channel_vectors.json").read_text())
SHARE = 0.1
# Two questions for the crowd: one for the interval, one whose truth leaves a trace if it leaks.
CROWD = survey([{**YES_NO, "epsilon": 5}, NUMBER], admission="blind tokens")
EVERY_KIND = survey(
    [{**one, "text": {"en": one["id"], "de": f"{one['id']} (de)"}}
     for one in (YES_NO, SCALE, NUMBER)]
    + [{**CHOICE, "text": {"en": "Which?", "de": "Was?"},
        "options": [{"en": "none", "de": "nichts"}, {"en": "one", "de": "eins"}]}],
    name="every-kind",
    languages=["en", "de"],
    title={"en": "A town", "de": "Eine Stadt"},
    consent={"en": "Yes.", "de": "Ja."},
)  # fmt: skip


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("browser"), CROWD)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def store(server):
    opened = SurveyStore(server.store, keys=Path(server.store).with_suffix(".keys"))
    opened.add(EVERY_KIND)
    yield opened
    opened.close()


@pytest.mark.parametrize("people", [70, pytest.param(200, marks=pytest.mark.soak)])
def test_respondents_send_nothing_but_randomised_answers(people, browser, server, store):
    """Each number is checked below the false-alarm rate for 70 already, at ε = 5."""
    codes = store.invite(CROWD, [None] * people)
    truth = np.arange(people) < SHARE * people
    numbers = [f"7.{4159265358 + person}" for person in range(people)]  # seen nowhere else
    bodies = []
    with Watched(browser, viewport={"width": 390, "height": 844}) as seen:
        for person, code in enumerate(codes):
            url = f"{server.url}/s/{CROWD.id}?{person}#{code}"
            answered = walk if person % 20 == 0 else stroll  # some by keys, as people do
            answered(seen.page, url, [int(truth[person]), numbers[person]])
            if person % 40 == 0:
                kept = seen.everything_kept()
                assert "7.4" not in kept
                assert seen.page.query_selector("#throws") is None
        bodies = [json.loads(body) for body in seen.sent]
        asked = [json.loads(body) for body in seen.asked]
        posts = sum(request.method != "GET" for request in seen.requests)
        said, kept = seen.everything_said(), seen.everything_kept()
        assert seen.context.cookies() == []
        assert seen.console == []
    # The only bodies ask for tokens and submit reports; none goes elsewhere or carries a truth.
    assert (len(asked), len(bodies), posts) == (people, people, 2 * people)
    for ask, body, code in zip(asked, bodies, codes, strict=True):
        assert ask.keys() == {"invitation", "blinded"}
        assert ask["invitation"] == code
        assert body.keys() == {"version", "survey", "message", "signature", "nonce", "reports"}
        assert body["message"] not in json.dumps(ask)
        assert code not in json.dumps(body)
        assert all(report in (0, 1) for report in body["reports"])
    assert all(request.url.startswith(server.url) for request in seen.requests)
    files = [file for file in Path(server.store).parent.iterdir() if file.is_file()]
    held = b"".join(file.read_bytes() for file in files).decode("latin-1")
    for number in numbers:
        assert number not in said
        assert number not in kept
        assert number not in held
    # What was sent agrees with the truth as often as the law says: neither always nor at random.
    told = [body["reports"][0] for body in bodies]
    agree = sum(int(a == b) for a, b in zip(told, truth.tolist(), strict=True))
    assert plausible_share(agree, people, float(CROWD.items[0].truth))
    assert not plausible_share(agree, people, 0.5)
    # Stored once each, in another order; the interval covers the truth.
    stored = store.reports(CROWD)
    assert sorted(stored) == sorted(tuple(body["reports"]) for body in bodies)
    assert stored != [tuple(body["reports"]) for body in bodies]
    found = estimate(CROWD.items[0].design, [bool(report[0]) for report in stored])
    low, high = found.interval(True, confidence=1 - FALSE_ALARM)
    assert low <= SHARE <= high
    assert not low <= 1 - SHARE <= high  # it says something


def test_the_first_throw_stands_on_a_reload(browser, server, store):
    (code,) = store.invite(EVERY_KIND, [None])
    url = f"{server.url}/s/{EVERY_KIND.id}?lang=en#{code}"
    with Watched(browser) as seen:
        walk(seen.page, url, [1, 4, "7.5", 0], send=False)
        seen.page.wait_for_selector("#send")
        before = seen.page.evaluate("JSON.stringify({...localStorage})")
        state = json.loads(next(iter(json.loads(before).values())))
        assert state.keys() == {
            "version", "nonce", "token", "blinding", "reports", "said", "thrown", "tried",
            "refused", "sent", "from", "others",
        }  # fmt: skip
        assert [*state["reports"]] == ["drugs", "stress", "hours", "which"]
        assert all(type(report) is int for report in state["reports"].values())
        seen.page.goto("about:blank")
        seen.page.goto(url)
        seen.page.click("#agree")
        for _ in EVERY_KIND.items:
            seen.page.wait_for_selector("#kept")
            assert seen.page.query_selector("input") is None  # nothing to answer again
            seen.page.click("#next")
        assert seen.sent == []
        seen.page.click("#send")
        seen.page.wait_for_selector("#done")
        (body,) = map(json.loads, seen.sent)
        assert body["reports"] == [*state["reports"].values()]
        seen.page.reload()
        seen.page.click("#agree")
        seen.page.wait_for_selector("#done")
        assert len(seen.sent) == 1


def test_a_lost_acknowledgement_is_asked_for_again_with_the_same_bytes(browser, server, store):
    (code,) = store.invite(CROWD, [None])
    before = store.status(CROWD).answered
    lost = []

    def lose(route):
        if not lost:
            lost.append(route.fetch().status)  # the server stored it, the device never hears of it
            route.abort()
        else:
            route.continue_()

    with Watched(browser) as seen:
        seen.page.route("**/reports", lose)
        walk(seen.page, f"{server.url}/s/{CROWD.id}#{code}", [1, "3"], send=False)
        seen.page.click("#send")
        seen.page.wait_for_selector("#send:not([disabled])")
        assert "try again" in seen.page.inner_text("#status")
        seen.page.click("#send")
        seen.page.wait_for_selector("#done")
        assert len(seen.sent) == 2
        assert len(set(seen.sent)) == 1
    assert (lost, store.status(CROWD).answered) == ([200], before + 1)


def test_the_page_works_by_keyboard_alone_and_speaks_to_screen_readers(browser, server, store):
    (code,) = store.invite(EVERY_KIND, [None])
    with Watched(browser, locale="de-DE") as seen:
        page = seen.page
        page.goto(f"{server.url}/s/{EVERY_KIND.id}#{code}")
        assert page.get_attribute("html", "lang") == "de"
        page.wait_for_selector("#agree")
        page.focus("#code")
        page.keyboard.press("Enter")
        page.wait_for_selector("#throw")
        for item in EVERY_KIND.items[:2]:
            assert page.get_by_role("group", name=f"{item.id} (de)").count() == 1
            assert page.get_by_role("radio").count() == item.reports
            page.keyboard.press("Tab")
            page.keyboard.press("Space")
            page.keyboard.press("Enter")
            assert page.evaluate("document.activeElement.tagName") == "H1"
            assert page.get_attribute("#report", "aria-live") == "polite"
            page.focus("#next")
            page.keyboard.press("Enter")
        page.keyboard.press("Tab")
        page.keyboard.type("8")
        page.keyboard.press("Enter")
        page.focus("#next")
        page.keyboard.press("Enter")
        page.focus("#throw")
        page.keyboard.press("Enter")  # nothing chosen: said, and nothing thrown
        assert page.get_by_role("alert").inner_text() == "Bitte wählen Sie zuerst eine Antwort."
        page.get_by_role("radio", name="nichts").check()
        page.keyboard.press("Enter")
        page.focus("#next")
        page.keyboard.press("Enter")
        page.focus("#send")
        page.keyboard.press("Enter")
        page.wait_for_selector("#done")
        assert len(seen.sent) == 1
        assert seen.console == []


def test_check_it_yourself_shows_the_bytes_and_the_hashes(browser, server, store):
    (code,) = store.invite(CROWD, [None])
    with Watched(browser) as seen:
        walk(seen.page, f"{server.url}/s/{CROWD.id}#{code}", [0, "1"])
        seen.page.click("#check summary")
        assert seen.page.inner_text("#bytes") == seen.sent[0]
        seen.page.locator("#hash", has_text="token key").wait_for()
        lines = (line.split("  ") for line in seen.page.inner_text("#hash").splitlines())
        assert {name: digest for digest, name in lines} == {
            **{part: page_hashes(CROWD)[part] for part in ("script", "style")},
            "token key": store.tokens(CROWD).public.fingerprint,
        }


def test_a_preview_sends_and_keeps_nothing(browser, server, store):
    before = store.status(CROWD).answered
    with Watched(browser) as seen:
        walk(seen.page, f"{server.url}/s/{CROWD.id}?preview", [1, "2"], send=False)
        assert seen.page.query_selector("#send") is None
        assert seen.page.evaluate("localStorage.length") == 0
        assert seen.sent == []
    assert store.status(CROWD).answered == before


def test_a_refused_code_is_said(browser, server, store):
    with Watched(browser) as seen:
        seen.page.goto(f"{server.url}/s/{CROWD.id}#0000000000000000")
        seen.page.click("#agree")
        seen.page.locator("#code-error", has_text="not one of this survey").wait_for()
        url = f"{server.url}/s/{EVERY_KIND.id}?lang=en#0000000000000000"
        walk(seen.page, url, [1, 4, "7.5", 0], send=False)
        seen.page.click("#send")
        seen.page.wait_for_selector("#send:not([disabled])")
        assert "not one of this survey" in seen.page.inner_text("#status")


def test_javascript_gives_the_vectors(browser, server):
    with Watched(browser, bypass_csp=True) as seen:
        with_modules(seen.page)
        seen.page.goto(f"{server.url}/s/{CROWD.id}")
        found = seen.page.evaluate(
            """async ({items, vectors}) => {
                const { respond } = await import("/modules/chance.js");
                return vectors.map(({item, answer, words}) => {
                    let at = 0;
                    const thrown = respond(items[item], answer, () => words[at++]);
                    return [thrown.report, thrown.told];
                });
            }""",
            VECTORS,
        )
    assert found == [[vector["report"], vector["told"]] for vector in VECTORS["vectors"]]


DRAWS = 400_000


def test_the_pages_own_function_draws_the_channel(browser, server):
    """400,000 calls with the browser's own randomness, spread over all kinds and answers.

    Chi-square against the exact channel with a false-alarm rate of 1e-9; a channel whose ε is off
    by 5 % is told apart.
    """
    document = survey()
    cases = [
        (at, answer) for at, item in enumerate(document.items) for answer in range(item.reports)
    ]
    calls = DRAWS // len(cases) + 1
    given = {"items": brief(document, "en")["items"], "cases": cases, "calls": calls}
    started = time.monotonic()
    with Watched(browser, bypass_csp=True) as seen:
        with_modules(seen.page)
        seen.page.goto(f"{server.url}/s/{CROWD.id}")
        counts = seen.page.evaluate(
            """async ({items, cases, calls}) => {
                const { respond } = await import("/modules/chance.js");
                return cases.map(([at, answer]) => {
                    const item = items[at];
                    const ends = [Number(item.low), Number(item.high)];
                    const truth = item.kind === "number" ? ends[answer] : answer;
                    const counts = new Array(item.options.length).fill(0);
                    for (let call = 0; call < calls; call++) counts[respond(item, truth).report]++;
                    return counts;
                });
            }""",
            given,
        )
    assert calls * len(cases) >= DRAWS
    print(f"{calls * len(cases):,} calls in {time.monotonic() - started:.1f} s")
    asked = zip((YES_NO, CHOICE, SCALE, NUMBER), document.items, strict=True)
    stronger = survey([{**each, "epsilon": 1.05 * float(item.asked)} for each, item in asked])
    freedom = sum(len(each) - 1 for each in counts)
    assert stats.chi2.sf(distance(document, cases, counts), freedom) > FALSE_ALARM
    assert stats.chi2.sf(distance(stronger, cases, counts), freedom) < FALSE_ALARM  # it has power


def distance(document, cases, counts):
    """Pearson's statistic of all counts against the document's exact channels."""
    total = 0.0
    for (at, answer), seen in zip(cases, counts, strict=True):
        row = document.items[at].design.channel.rows[answer]
        expected = np.array([float(p) for p in row]) * sum(seen)
        total += float(((np.array(seen) - expected) ** 2 / expected).sum())
    return total
