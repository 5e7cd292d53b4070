"""Our page and our script with a server that lies: nothing is thrown, or what is told is true."""

import json
import math
import re
from pathlib import Path

import pytest

from deniable.service.document import plain
from deniable.service.pages import page_hashes
from deniable.service.store import SurveyStore
from service.server import Server
from service.surveys import ASKED, SCALE, SPELT, YES_NO, survey
from service.walking import Watched, walk, with_modules

BLIND = survey([YES_NO, {**SCALE, "low": 1, "high": 30}], admission="blind tokens")
CODES = survey(
    [{**SCALE, "id": name, "text": {"en": name}, "low": 1, "high": 30} for name in ("one", "two")],
    name="codes",
)
KINDS = survey(name="kinds")
SAME = survey([{**YES_NO, "id": "another", "text": {"en": "DRUGS ?"}}], name="same")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("evil"), BLIND)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def store(server):
    opened = SurveyStore(server.store, keys=Path(server.store).with_suffix(".keys"))
    for document in (CODES, KINDS, SAME):
        opened.add(document)
    yield opened
    opened.close()


def tampered(page, change):
    """Let the page get a brief that somebody changed."""

    def answer(route):
        told = route.fetch().json()
        change(told)
        route.fulfill(json=told)

    page.route("**/brief/*.json", answer)


def law(truth):
    return lambda told: told["items"][0]["law"]["thresholds"].update(truth=truth)


def item(**changes):
    return lambda told: told["items"][0].update(changes)


def twins(text):
    """Two questions of two names that ask in the same words."""

    def change(told):
        for each, said in zip(told["items"], (ASKED, text), strict=True):
            each.update(text=said)

    return change


# A hostile server may use signs that a document may not.
UNSEEN = {**SPELT, "marks": "S\u00adtra\u200bße\ufeff 5: \u202eéfi\U000e0041?"}
FAULTS = {
    "always the truth": law(str(2**64)),
    "all but always": law(str(2**64 - 1)),
    "above 8": law(str(2**64 - 2**52)),
    "never the truth": law("0"),
    "below 0": law("-1"),
    "a number for a text": law(2**63),
    "less than chance": law(str(2**62)),
    "no law": item(law=None),
    "an id that is a number": item(id=1),
    "an id that is a list": item(id=["drugs"]),
    "an id twice": lambda told: told["items"][1].update(id=told["items"][0]["id"]),
    "three options of two": item(options=["a", "b", "c"]),
    "options that are a text": item(options="ab"),
    "one option": item(options=["a"]),
    "an unknown kind": item(kind="open"),
    "a number without bounds": item(kind="number", low="0", high="zero"),
    "no questions": lambda told: told.update(items=[]),
    "questions by name": lambda told: told.update(items={"0": told["items"][0]}),
    "another survey": lambda told: told.update(survey="ab" * 16),
    "a tag for a survey": lambda told: told.update(survey="tag-of-bob"),
    "linkable after all": lambda told: told.update({"admission": "linkable codes", "key": None}),
    "linkable with a key": lambda told: told.update(admission="linkable codes"),
    "another admission": lambda told: told.update(admission="none"),
    "no key": lambda told: told.update(key=None),
    **{f"words twice: {how}": twins(text) for how, text in UNSEEN.items()},
}


def test_a_brief_that_is_not_as_it_must_be_throws_nothing(browser, server, store):
    (code,) = store.invite(BLIND, [None])
    with Watched(browser) as seen:
        for name, change in FAULTS.items():
            tampered(seen.page, change)
            seen.page.goto("about:blank")
            seen.page.goto(f"{server.url}/s/{BLIND.id}#{code}")
            seen.page.wait_for_selector("#weaker, #agree")
            assert seen.page.query_selector("#agree") is None, name
            seen.page.unroute("**/brief/*.json")
        assert all(request.method == "GET" for request in seen.requests)
        seen.page.goto("about:blank")
        seen.page.goto(f"{server.url}/s/{BLIND.id}#{code}")
        seen.page.wait_for_selector("#agree")  # as it must be


def test_the_script_states_what_it_throws_whatever_it_is_told(browser, server, store):
    """The sentences are the script's, and so are their numbers."""

    def bolder(told):
        told["items"][0]["law"]["thresholds"]["truth"] = str(2**64 - 2**54)
        words = {"promise": "ε = 0.1", "together": "ε = 0.1", "wheel_truth": "First coin: heads."}
        told.update(epsilon=0.1, together="ε = 0.1", words=words)
        told["items"][0].update(epsilon=100, promise="ε = 0.1", deniable=["ε = 0.1"] * 2)

    with Watched(browser) as seen:
        page = seen.page
        page.goto(f"{server.url}/s/{KINDS.id}?preview")
        page.wait_for_selector("#agree")
        shown = [item.shown_epsilon() for item in KINDS.items]
        assert re.findall(r"\(ε = ([\d.]+)\)", page.inner_text("#page")) == shown
        assert page.inner_text("#together").endswith(f"ε = {KINDS.shown_epsilon()}.")
        laws = page.text_content("#laws").splitlines()
        assert laws == [f"ε = {item.shown_epsilon()}  {item.id}" for item in KINDS.items]
        page.press("#agree", "Enter")
        page.press("#option-1", "Space")
        page.press("#throw", "Enter")
        assert "can think at most 25%" in page.inner_text("#deniable")
        assert "more than 3 times as likely" in page.inner_text("#promise")
        tampered(page, bolder)
        page.reload()
        page.wait_for_selector("#agree")
        said, epsilon = page.inner_text("#page"), math.log(2**10 - 1)
        first = float(re.findall(r"\(ε = ([\d.]+)\)", said)[0])
        assert first == pytest.approx(epsilon, abs=2e-4)
        assert first >= epsilon
        assert "more than 1023 times as likely" in said
        assert float(page.inner_text("#together").split("ε = ")[1][:-1]) > 10
        page.press("#agree", "Enter")
        page.press("#option-1", "Space")
        page.press("#throw", "Enter")
        assert "can think at most 99.2%" in page.inner_text("#deniable")
        assert "wheel" in page.inner_text("#throws")
        assert "0.1" not in said + page.inner_text("#page")


def test_who_is_let_in_how_is_said_by_the_script(browser, server, store):
    with Watched(browser) as seen:
        for document, said in ((BLIND, "signed blindly"), (CODES, "can tell that")):
            seen.page.goto(f"{server.url}/s/{document.id}")
            seen.page.locator("#admission", has_text=said).wait_for()


def test_no_script_but_the_one_that_was_published_runs(browser, server, store):
    """A page with another script beside ours: the browser refuses it, and the panel names it."""

    def richer(route):
        answer = route.fetch()
        more = "<script src='/static/x.js'></script><script>window.hit = 1</script></head>"
        route.fulfill(response=answer, body=answer.text().replace("</head>", more))

    with Watched(browser) as seen:
        page = seen.page
        page.route(f"**/s/{CODES.id}", richer)
        page.route(
            "**/static/x.js",
            lambda route: route.fulfill(content_type="text/javascript", body="window.hit = 1"),
        )
        page.goto(f"{server.url}/s/{CODES.id}")
        page.wait_for_selector("#agree")
        assert page.evaluate("window.hit") is None
        page.click("#check summary")
        page.locator("#hash", has_text="script").wait_for()
        lines = page.inner_text("#hash").splitlines()
        assert lines[:2] == [f"{page_hashes(CODES)[part]}  {part}" for part in ("style", "script")]
        assert "/static/x.js" in lines[2]
        assert len(lines) == 4


def test_the_published_hash_is_that_of_the_whole_page(server, store):
    import hashlib

    status, _, page = server.get(f"/s/{CODES.id}?lang=en")
    assert status == 200
    published = page_hashes(CODES)
    assert hashlib.sha256(page).hexdigest() == published["page ?lang=en"]
    assert f"{page_hashes(BLIND)['page ?lang=en']}  page ?lang=en" in server.log.read_text()
    other = survey([{**YES_NO, "text": {"en": "Else?"}}], name="codes")
    assert page_hashes(other)["page ?lang=en"] != published["page ?lang=en"]


def ways(page, url, answers):
    """Through the page, with whatever is asked; how many questions were thrown for."""
    return len(thrown_for(page, url, answers))


def thrown_for(page, url, answers):
    """The places of the questions that were thrown for."""
    page.goto("about:blank")
    page.goto(url)
    page.press("#agree", "Enter")
    thrown = []
    for place, answer in enumerate(answers):
        page.wait_for_selector("#throw, #kept")
        if page.query_selector("#throw"):
            thrown.append(place)
            page.press(f"#option-{answer}", "Space")
            page.press("#throw", "Enter")
        page.press("#next", "Enter")
    page.press("#send", "Enter")
    page.wait_for_selector("#done, #send:not([disabled])")
    return thrown


def test_refused_reports_are_sent_again_by_who_threw_them_and_by_nobody_else(
    browser, server, store
):
    """An operator could refuse one code after another, and average what comes in."""
    codes = store.invite(CODES, [None] * 3)
    url = f"{server.url}/s/{CODES.id}#"
    with Watched(browser) as seen:
        page = seen.page
        # The right code was opened before, and nothing thrown for.
        page.goto(f"{url}{codes[1]}")
        page.press("#agree", "Enter")
        page.wait_for_selector("#throw")
        early = seen.context.new_page()
        early.goto(f"{url}{codes[2]}")
        early.press("#agree", "Enter")
        early.press("#option-4", "Space")
        assert ways(page, f"{url}0000000000000000", [17, 4]) == 2
        assert "not one of this survey" in page.inner_text("#status")
        # Somebody else, who stood before the question meanwhile, is asked before anything falls.
        early.press("#throw", "Enter")
        assert "ends in 0000" in early.inner_text("#mine")
        early.press("#mine-no", "Enter")
        early.press("#option-4", "Space")
        early.press("#throw", "Enter")
        early.wait_for_selector("#report")
        # Somebody else comes after.
        page.goto("about:blank")
        page.goto(f"{url}{codes[0]}")
        page.press("#agree", "Enter")
        page.press("#mine-no", "Enter")
        assert ways(page, f"{url}{codes[0]}", [28, 28]) == 2
        page.wait_for_selector("#done")
        # Who threw them sends the same.
        page.goto("about:blank")
        page.goto(f"{url}{codes[1]}")
        page.press("#agree", "Enter")
        page.press("#mine-yes", "Enter")
        assert ways(page, f"{url}{codes[1]}", [17, 4]) == 0
        page.wait_for_selector("#done")
        first, _, third = (json.loads(body)["reports"] for body in seen.sent)
        assert first == third
        # It is settled now: nobody is asked any more.
        (last,) = store.invite(CODES, [None])
        assert ways(page, f"{url}{last}", [3, 3]) == 2


def test_who_could_not_reach_the_server_leaves_nothing_to_others(browser, server, store):
    codes = store.invite(CODES, [None] * 2)
    url = f"{server.url}/s/{CODES.id}#"
    with Watched(browser) as seen:
        for stop in (
            lambda route: route.abort(),
            lambda route: route.fulfill(status=503, json={"error": "busy"}),
        ):
            seen.page.route("**/reports", stop)
            ways(seen.page, f"{url}{codes[0]}", [17, 4])
            seen.page.unroute("**/reports")
        assert ways(seen.page, f"{url}{codes[1]}", [3, 3]) == 2
        assert ways(seen.page, f"{url}{codes[0]}", [17, 4]) == 0  # and the first throw stands
        bodies = [json.loads(body) for body in seen.sent]
        assert bodies[0] == bodies[1] == bodies[3]


def test_the_device_counts_whatever_left_it(browser, server, store):
    """Whether it was taken or not, under whatever name the same question comes back."""
    (first,), (second,), (third,) = (
        store.invite(document, [None]) for document in (BLIND, KINDS, SAME)
    )
    with Watched(browser) as seen:
        page = seen.page
        page.route("**/reports", lambda route: route.fulfill(status=503, json={"error": "later"}))
        ways(page, f"{server.url}/s/{BLIND.id}#{first}", [0, 3])
        page.unroute("**/reports")
        page.goto(f"{server.url}/s/{KINDS.id}#{second}")
        page.wait_for_selector("#before")
        told = [float(each) for each in re.findall(r"ε = (\d+\.?\d*)", page.inner_text("#before"))]
        both = [float(BLIND.epsilon), float(BLIND.epsilon + KINDS.epsilon)]
        assert all(b - 1e-9 <= a <= b + 2e-4 for a, b in zip(told, both, strict=True))
        assert "1 submissions" in page.inner_text("#before")
        assert page.locator(".again").count() == 1  # the first question is in both
        page.goto("about:blank")
        walk(page, f"{server.url}/s/{KINDS.id}#{second}", [0, 1, 2, "3"])
        page.goto(f"{server.url}/s/{SAME.id}#{third}")
        again = page.locator(".again").inner_text()  # another name, another spelling
        assert float(re.search(r"ε = (\d+\.\d+)", again)[1]) == pytest.approx(2.1973, abs=2e-4)
        page.goto("about:blank")
        page.goto(f"{server.url}/s/{BLIND.id}#{first}")  # the same again is not another one
        page.wait_for_selector("#before")
        assert "1 submissions" in page.inner_text("#before")


RENAMED = {
    "name": lambda told, visit: told.update(id=f"drugs-{visit}"),
    "name and setting": lambda told, visit: told.update(
        id=f"drugs-{visit}", text=f"{told['text'].upper()}{'!' * visit}"
    ),
    "name and law": lambda told, visit: told.update(
        id=f"drugs-{visit}", law={"thresholds": {"truth": str(3 * 2**62 + visit)}}
    ),
    "name and order": lambda told, visit: told.update(
        id=f"drugs-{visit}", options=told["options"][:: (-1) ** visit]
    ),
    "name and options": lambda told, visit: told.update(
        id=f"drugs-{visit}", options=[f"{option} {visit}" for option in told["options"]]
    ),
}


@pytest.mark.parametrize("how", RENAMED)
def test_the_first_throw_stands_whatever_the_question_is_called(browser, server, store, how):
    """A server that takes nothing and names the question anew would average the throws."""
    (code,) = store.invite(SAME, [None])
    with Watched(browser) as seen:
        page, visit = seen.page, [0]
        tampered(page, lambda told: RENAMED[how](told["items"][0], visit[0]))
        page.route("**/reports", lambda route: route.fulfill(status=503, json={"error": "busy"}))
        thrown = []
        for visit[0] in range(4):
            thrown.append(ways(page, f"{server.url}/s/{SAME.id}#{code}", [1]))
        assert thrown == [1, 0, 0, 0]
        sent = [json.loads(body)["reports"][0] for body in seen.sent]
        first = sent[0]
        turned = [first, 1 - first, first, 1 - first]
        assert sent == (turned if how == "name and order" else [first] * 4)


def test_nor_under_another_code(browser, server, store):
    """Refused under one code, and renamed for the next."""
    codes = store.invite(SAME, [None] * 2)
    with Watched(browser) as seen:
        page, visit = seen.page, [0]
        tampered(page, lambda told: RENAMED["name"](told["items"][0], visit[0]))
        page.route("**/reports", lambda route: route.fulfill(status=403, json={"error": "no"}))
        assert ways(page, f"{server.url}/s/{SAME.id}#{codes[0]}", [1]) == 1
        visit[0] = 1
        page.goto("about:blank")
        page.goto(f"{server.url}/s/{SAME.id}#{codes[1]}")
        page.press("#agree", "Enter")
        page.press("#mine-yes", "Enter")
        assert ways(page, f"{server.url}/s/{SAME.id}#{codes[1]}", [1]) == 0
        first, second = (json.loads(body)["reports"] for body in seen.sent)
        assert first == second


def test_nor_behind_a_decoy_of_its_old_name(browser, server, store):
    (code,) = store.invite(SAME, [None])

    def moved(told):
        (item,) = told["items"]
        told["items"] = [{**item, "text": "Tea?"}, {**item, "id": "drugs-1"}]

    with Watched(browser) as seen:
        page = seen.page
        page.route("**/reports", lambda route: route.fulfill(status=503, json={"error": "busy"}))
        assert ways(page, f"{server.url}/s/{SAME.id}#{code}", [1]) == 1
        tampered(page, moved)
        assert ways(page, f"{server.url}/s/{SAME.id}#{code}", [1, 1]) == 0


def test_what_was_thrown_in_other_words_is_counted_under_the_same_code(browser, server, store):
    """Other words are another question, which is thrown for, and told before."""
    (code,) = store.invite(SAME, [None])
    with Watched(browser) as seen:
        page, visit = seen.page, [0]
        tampered(page, lambda told: told["items"][0].update(id=f"n{visit[0]}", text=f"v{visit[0]}"))
        page.route("**/reports", lambda route: route.fulfill(status=503, json={"error": "busy"}))
        told = []
        for visit[0] in range(3):
            page.goto("about:blank")
            page.goto(f"{server.url}/s/{SAME.id}#{code}")
            page.wait_for_selector("#agree")
            before = page.query_selector("#before")
            shown = before and re.search(r"ε = (\d+\.\d+)", before.inner_text())
            told.append(float(shown[1]) if shown else 0)
            assert ways(page, f"{server.url}/s/{SAME.id}#{code}", [1]) == 1
        once = float(SAME.epsilon)
        assert told == pytest.approx([0, once, 2 * once], abs=3e-4)


def asked(name, text=ASKED, options=("no", "yes"), ratio=3):
    """A question of an operator; one answer makes a report `ratio` times as likely as another."""
    truth = str(2**64 * ratio // (ratio + 1))
    law = {"thresholds": {"truth": truth}}
    return {"id": name, "kind": "yes/no", "text": text, "options": list(options), "law": law}


MOVED = ([f"{ASKED} no", f"{ASKED} yes"], [f"no: {ASKED}", f"yes: {ASKED}"], ["no", "yes"])
LOADS = {
    "a name each time": [[asked(f"q{n}"), asked(f"o{n}", f"Tea {n}?")] for n in range(3)],
    "twins of two names": [[asked(f"q{n}"), asked(f"q{n + 1}")] for n in range(3)],
    **{
        f"twins: {how}": [[asked("q0")], *([asked(f"q{n}"), asked(f"q{n + 1}", text)]
                                           for n in range(2))]
        for how, text in UNSEEN.items() if how in {"capitals", "spaces", "marks"}
    },
    "words moved to the options": [
        [asked("q0")], *([asked(f"q{n + 1}", f"Which {n}?", each)] for n, each in enumerate(MOVED))
    ],
    "moved beside the question": [
        [asked("q0"), asked("q1", "Which?", MOVED[0])],
        [asked("q2"), asked("q3", "This?", MOVED[1])],
    ],
    "moved between two": [
        [asked("q0", "Straße 5", ["éfi", "no"])], [asked("q1", "Straße", ["5: éfi", "no"])],
        [asked("q2", "Straße 5: éfi", ["!", "no"]), asked("q0", "Straße", ["5: éfi", "no"])],
    ],
    "two throws behind one question": [
        [asked("q0")], [asked("q1", "Tea?")], [asked("q0", "Tea?"), asked("q2", "Milk?")]
    ],
    "a weaker law afterwards": [
        [asked("q0", ratio=255)],
        [asked("q0"), asked("q1", "Tea?")],
        [asked("q2"), asked("q1", "A")],
    ],
}  # fmt: skip


@pytest.mark.parametrize("how", LOADS)
def test_one_throw_for_the_same_words_and_every_throw_is_told(browser, server, store, how):
    """An operator with the true page, who gives another brief at each load and takes nothing."""
    (code,) = store.invite(SAME, [None])
    url = f"{server.url}/s/{SAME.id}#{code}"
    with Watched(browser) as seen:
        page, items, words, spent = seen.page, [], [], 0.0
        tampered(page, lambda told: told.update(items=items))
        page.route("**/reports", lambda route: route.fulfill(status=503, json={"error": "busy"}))
        for load in LOADS[how]:
            items[:] = load
            page.goto("about:blank")
            page.goto(url)
            page.wait_for_selector("#weaker, #agree")
            if page.query_selector("#weaker"):
                assert len({plain(each["text"]) for each in load}) < len(load)
                continue
            told = page.locator("#together, #before").last.inner_text()
            for place in thrown_for(page, url, [1] * len(load)):
                truth = int(load[place]["law"]["thresholds"]["truth"])
                spent += math.log(truth / (2**64 - truth))
                words.append(plain(load[place]["text"]))
            assert float(re.findall(r"ε = (\d+\.\d+)", told)[-1]) >= spent - 1e-9
        assert len(set(words)) == len(words)


def test_what_left_is_told_to_who_types_another_code(browser, server, store):
    first, second = store.invite(SAME, [None] * 2)
    url = f"{server.url}/s/{SAME.id}#{first}"
    with Watched(browser) as seen:
        page = seen.page
        page.route("**/reports", lambda route: route.fulfill(status=503, json={"error": "busy"}))
        assert ways(page, url, [1]) == 1
        page.goto("about:blank")
        page.goto(url)
        page.wait_for_selector("#agree")
        assert page.locator("#before").count() == 0  # it is this one
        page.fill("#code", second)
        both = float(re.findall(r"ε = (\d+\.\d+)", page.inner_text("#before"))[-1])
        assert both == pytest.approx(2 * float(SAME.epsilon), abs=3e-4)
        page.fill("#code", first.lower())
        assert page.locator("#before").count() == 0


def test_words_are_the_same_for_the_page_and_for_documents(browser, server):
    texts = [
        *UNSEEN.values(),
        *TWINS.values(),
        "ΟΔΟΣ οδος",
        "ıİiI",
        "ŉǰΐﬃ",
        "½²Ⅷ",
        "लड़की",
        "한국어",
        "?",
    ]
    with Watched(browser, bypass_csp=True) as seen:
        with_modules(seen.page)
        seen.page.goto(f"{server.url}/s/{BLIND.id}")
        found = seen.page.evaluate(
            """async (texts) => {
                const { plain } = await import("/modules/brief.js");
                return texts.map(plain);
            }""",
            texts,
        )
    assert found == [plain(text) for text in texts]


def test_two_questions_of_one_survey_in_nearly_the_same_words_are_two(browser, server, store):
    document = survey(
        [{**YES_NO, "id": name, "text": {"en": text}} for name, text in TWINS.items()], name="twins"
    )
    store.add(document)
    (code,) = store.invite(document, [None])
    with Watched(browser) as seen:
        assert ways(seen.page, f"{server.url}/s/{document.id}#{code}", [1, 0]) == 2
        seen.page.wait_for_selector("#done")


TWINS = {"less": "Below 30?", "more": "Above 30?"}


def test_all_languages_say_everything(browser, server):
    with Watched(browser, bypass_csp=True) as seen:
        with_modules(seen.page)
        seen.page.goto(f"{server.url}/s/{BLIND.id}")
        english, german, other = seen.page.evaluate(
            """async () => {
                const { wordsOf } = await import("/modules/words.js");
                return ["en", "de-AT", "fr"].map(wordsOf);
            }"""
        )
    assert english == other
    assert english.keys() == german.keys()
    places = {name: sorted(re.findall(r"\{\w+\}", text)) for name, text in english.items()}
    assert places == {name: sorted(re.findall(r"\{\w+\}", text)) for name, text in german.items()}
