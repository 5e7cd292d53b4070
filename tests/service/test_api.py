"""Hostile bodies and paths against a real server on loopback."""

import json
import re
import socket
import threading

import pytest
import uvicorn

from deniable.errors import ParameterError
from deniable.service.app import create_app
from deniable.service.operator import _count
from deniable.service.pages import script, style
from deniable.service.store import SurveyStore
from service.server import KEY, Server, body_of
from service.surveys import survey

DOCUMENT = survey(languages=["en"])


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("api"), DOCUMENT)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def store(server):
    opened = SurveyStore(server.store)
    yield opened
    opened.close()


GOOD = body_of(DOCUMENT.id, "0" * 16, [1, 2, 4, 1])
BAD = {
    "not json": (b"{", 400),
    "nothing": (b"", 400),
    "not utf-8": (b"\xff\xfe", 400),
    "deep": (b"[" * 8000, 400),
    "a list": ([GOOD], 400),
    "another version": ({**GOOD, "version": 2}, 400),
    "version true": ({**GOOD, "version": True}, 400),
    "another survey": ({**GOOD, "survey": "0" * 32}, 400),
    "a field too many": ({**GOOD, "truth": 1}, 400),
    "a field too few": ({name: GOOD[name] for name in GOOD if name != "nonce"}, 400),
    "twice a field": (json.dumps(GOOD)[:-1] + ',"reports":[0,0,0,0]}', 400),
    "too few reports": ({**GOOD, "reports": [1]}, 400),
    "too many reports": ({**GOOD, "reports": [1, 2, 4, 1, 0]}, 400),
    "no list": ({**GOOD, "reports": {"drugs": 1}}, 400),
    "out of range": ({**GOOD, "reports": [2, 2, 4, 1]}, 400),
    "below zero": ({**GOOD, "reports": [-1, 2, 4, 1]}, 400),
    "a float": ({**GOOD, "reports": [1.0, 2, 4, 1]}, 400),
    "a bool": ({**GOOD, "reports": [True, 2, 4, 1]}, 400),
    "text": ({**GOOD, "reports": ["1", 2, 4, 1]}, 400),
    "null": ({**GOOD, "reports": [None, 2, 4, 1]}, 400),
    "nan": (json.dumps({**GOOD, "reports": [float("nan"), 2, 4, 1]}), 400),
    "huge number": ({**GOOD, "reports": [10**400, 2, 4, 1]}, 400),
    "no hex": ({**GOOD, "message": "zz"}, 400),
    "half a byte": ({**GOOD, "message": "abc"}, 400),
    "no message": ({**GOOD, "message": ""}, 400),
    "long message": ({**GOOD, "message": "00" * 257}, 400),
    "a short nonce": ({**GOOD, "nonce": "00"}, 400),
    "a forged code": (GOOD, 403),
    "a forged signature": ({**GOOD, "signature": "00"}, 403),
    "oversized": (b" " * 8_193, 413),
    "very much oversized": (b"x" * 2_000_000, 413),
}


@pytest.mark.parametrize(("body", "status"), BAD.values(), ids=BAD.keys())
def test_hostile_submissions_are_refused_and_nothing_is_stored(server, store, body, status):
    found, said = server.send(DOCUMENT.id, body)
    assert (found, said.keys()) == (status, {"error"})
    assert len(said["error"]) < 200
    assert store.status(DOCUMENT).answered == 0


def test_a_body_of_another_type_is_refused(server):
    status, _, _ = server.ask("POST", f"/s/{DOCUMENT.id}/reports", json.dumps(GOOD),
                              Content_Type="text/plain")  # fmt: skip
    assert status == 415


@pytest.mark.parametrize(
    "path",
    ["/s/0", "/s/..%2f..%2fetc", f"/s/{'0' * 32}", f"/s/{DOCUMENT.id}/brief/xx.json", "/docs",
     "/openapi.json", "/static/../app.py", "/static/..%2fapp.py", "/s/'%20OR%201=1%20--",
     "/s/%00", "/s/%ff", "/static/", "/static/%00", "/static/..%5capp.py", f"/s/{'a' * 5000}"],
)  # fmt: skip
def test_other_paths_lead_nowhere(server, path):
    assert server.get(path)[0] == 404


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b'{"invitation":1,"blinded":"00"}', b'{"invitation":"a","blinded":"zz"}',
     b'{"invitation":"a","blinded":null}', b'{"invitation":"a","blinded":"0 0"}', b"[" * 8000,
     b'{"invitation":"a","blinded":""}', b'{"invitation":"a","blinded":NaN}', b"1" * 5000],
)  # fmt: skip
def test_hostile_requests_for_tokens_are_refused(server, body):
    path = f"/s/{DOCUMENT.id}/tokens"
    assert server.ask("POST", path, body, Content_Type="application/json")[0] == 400


def test_codes_are_not_signed(server):
    body = b'{"invitation":"a","blinded":"00"}'
    path = f"/s/{DOCUMENT.id}/tokens"
    assert server.ask("POST", path, body, Content_Type="application/json")[0] == 403


def test_a_code_that_no_bytes_can_spell_is_refused(server):
    body = rb'{"invitation":"\ud800","blinded":"00"}'
    path = f"/s/{DOCUMENT.id}/tokens"
    assert server.ask("POST", path, body, Content_Type="application/json")[0] == 403


def test_operator_pages_need_the_key(server):
    for path in ("", "/plan", "/design", f"/{DOCUMENT.id}", f"/{DOCUMENT.id}/export/reports.csv"):
        assert server.ask("GET", f"/operator{path}")[0] == 403
        assert server.ask("GET", f"/operator{path}", Cookie="deniable_operator=x")[0] == 403
        assert server.operator(path)[0] == 200
    assert server.get("/operator/enter/wrong")[0] == 403
    form = "count=1"
    crossed = server.ask(
        "POST", f"/operator/{DOCUMENT.id}/invite", form,
        Cookie="deniable_operator=operator-key-of-the-tests", Sec_Fetch_Site="cross-site",
        Content_Type="application/x-www-form-urlencoded",
    )  # fmt: skip
    assert crossed[0] == 403


@pytest.mark.parametrize(
    "headers",
    [{"Sec_Fetch_Site": "cross-site"}, {"Sec_Fetch_Site": "same-site"},
     {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Origin": "http://127.0.0.1:1"}],
)  # fmt: skip
def test_forms_from_other_sites_are_refused(server, store, headers):
    before = store.status(DOCUMENT).invited
    for act, form in (("invite", "count=1"), ("close", "sure=town"), ("paper", "batch=a&sheets=")):
        status, _, _ = server.ask(
            "POST", f"/operator/{DOCUMENT.id}/{act}", form, Cookie=f"deniable_operator={KEY}",
            Content_Type="application/x-www-form-urlencoded", **headers,
        )  # fmt: skip
        assert status == 403
    assert store.status(DOCUMENT).invited == before
    assert not store.status(DOCUMENT).closed


def test_a_body_that_trickles_in_is_not_waited_for(tmp_path):
    store = SurveyStore(tmp_path / "slow.db")
    store.add(DOCUMENT)
    app = create_app(store, patience=0.2)
    listening = socket.create_server(("127.0.0.1", 0))
    slow = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    running = threading.Thread(target=slow.run, kwargs={"sockets": [listening]})
    running.start()
    try:
        with socket.create_connection(listening.getsockname(), timeout=60) as connection:
            connection.sendall(
                f"POST /s/{DOCUMENT.id}/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n"
                "Content-Type: application/json\r\n\r\n{".encode()
            )
            answer = b"".join(iter(lambda: connection.recv(4096), b""))  # to the end
        assert answer.startswith(b"HTTP/1.1 408")
    finally:
        slow.should_exit = True
        running.join()
        store.close()


def test_a_connection_that_breaks_inside_a_body_is_no_failure_of_the_server(server, store):
    before = store.status(DOCUMENT).answered
    for size in (0, 1, 50):
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(
                f"POST /s/{DOCUMENT.id}/reports HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n"
                "Content-Type: application/json\r\n\r\n".encode()
                + b"{" * size
            )
    assert server.get(f"/s/{DOCUMENT.id}")[0] == 200
    assert store.status(DOCUMENT).answered == before
    assert "Traceback" not in server.log.read_text()


def test_the_operator_closes_a_survey(server, store):
    document = survey(name="closing")
    store.add(document)
    codes = store.invite(document, [None, None])
    first, second = (body_of(document.id, code, [1, 2, 4, 1]) for code in codes)
    assert server.send(document.id, first)[0] == 200
    assert server.operator(f"/{document.id}/close", "sure=another")[0] == 400
    assert b'id="state">open' in server.operator(f"/{document.id}")[2]
    assert server.operator(f"/{document.id}/close", "sure=closing")[0] == 303
    assert b'id="state">closed' in server.operator(f"/{document.id}")[2]
    assert server.send(document.id, second) == (
        403, {"error": "this survey is closed; no more answers are taken"},
    )  # fmt: skip
    assert server.send(document.id, first) == (200, {"stored": True})
    brief = json.loads(server.get(f"/s/{document.id}/brief/en.json")[2])
    assert brief["closed"] is True


def test_every_answer_forbids_inline_scripts_and_other_hosts(server):
    for path in (f"/s/{DOCUMENT.id}", f"/s/{DOCUMENT.id}/paper", "/static/style.css", "/nowhere"):
        _, headers, _ = server.get(path)
        policy = headers["content-security-policy"]
        assert re.match(
            "default-src 'none'; script-src 'sha256-[^' ]+'; style-src 'sha256-[^' ]+'; "
            "img-src 'none'; connect-src 'self';"
            if path.count("/") == 2 and path.startswith("/s/")
            else "default-src 'none'; script-src 'none'; style-src 'sha256-[^' ]+'; "
            "img-src 'none'; connect-src 'none';",
            policy,
        )
        assert "form-action 'none'" in policy
        assert "unsafe" not in policy
        assert "http" not in policy
        assert headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in headers


def test_respondents_pages_name_no_other_host_and_hold_no_script_but_ours(server):
    for path in (f"/s/{DOCUMENT.id}", f"/s/{DOCUMENT.id}/paper"):
        page = server.get(path)[2].decode().replace(f"<style>{style()}</style>", "")
        page = page.replace(f'<script type="module">{script()}</script>', "")
        assert not re.search(r"(src|href|action)=\"(https?:)?//", page)
        assert not re.search(r"<script|<style|\sstyle=|\son\w+=", page)


def test_operator_designs_invites_and_exports(server, store):
    form = (
        "name=made&wave=1&population=p&language=en&title=T&consent=C&do=save&admission=linkable+codes"
        "&text-1=Ever%3F&kind-1=yes/no&id-1=ever&epsilon-1=ln+3"
        "&text-2=Which%3F&kind-2=choice&id-2=which&epsilon-2=1&options-2=a%0D%0Ab%0D%0Ac"
    )
    status, headers, _ = server.operator("/design", form)
    assert status == 303
    survey_id = headers["location"].rsplit("/", 1)[1]
    made = store.document(survey_id)
    assert [item.labels for item in made.items] == [(False, True), ("a", "b", "c")]
    status, _, page = server.operator(f"/{survey_id}/invite", "count=3")
    codes = re.findall(rf"{survey_id}#([0-9A-Z]{{16}})", page.decode())
    assert (status, len(codes)) == (200, 3)
    for number, code in enumerate(codes):
        body = body_of(survey_id, code, [number % 2, number], f"{number:032x}")
        assert server.send(survey_id, body) == (200, {"stored": True})
    assert server.operator(f"/{survey_id}/export/reports.csv")[2].decode().count("\n") == 4
    assert b"estimate" in server.operator(f"/{survey_id}")[2]
    assert b"Independence" in server.operator(f"/{survey_id}/crosstab?first=ever&second=which")[2]
    assert b"must be" in server.operator(f"/{survey_id}/crosstab?first=ever&second=ever")[2]


def test_hostile_forms_are_told_what_is_wrong(server):
    for form in ("", "name=x", "json=%7B", "json=[]", "name=<script>&text-1=a&epsilon-1=x"):
        status, _, page = server.operator("/design", form)
        assert status == 200
        assert b'class="error"' in page
        assert b"<script>" not in page
    assert b'class="error"' in server.operator("/plan?margin=x")[2]
    assert b'class="error"' in server.operator("/plan?people=-1")[2]
    assert server.operator(f"/{DOCUMENT.id}/invite", "count=-1")[0] == 400
    assert server.operator("/design", "a=b" * 200_000)[0] == 413


def test_texts_of_a_survey_are_never_markup(server, store):
    nasty = survey(
        name="nasty", title={"en": "<script>alert(1)</script>"}, consent={"en": "<img src=x>"}
    )
    store.add(nasty)
    for path in (f"/s/{nasty.id}", f"/s/{nasty.id}/paper"):
        page = server.get(path)[2]
        assert b"<script>alert" not in page
        assert b"<img" not in page
    assert b"<script>alert" not in server.operator(f"/{nasty.id}")[2]


def test_an_interrupted_server_says_what_holds(tmp_path):
    running = Server(tmp_path, DOCUMENT)
    running.stop()
    assert running.process.returncode == 0
    assert running.log.read_text().endswith("every answer that was acknowledged is stored\n")


def test_the_server_keeps_no_log_of_requests(server):
    server.get(f"/s/{DOCUMENT.id}?looked=here")
    log = server.log.read_text()
    assert "looked" not in log
    assert "GET" not in log
    assert "Traceback" not in log


@pytest.mark.parametrize("text", ["0", "", "-1", "0000001000002", "1" * 5_000, "1.5", "100001"])
def test_a_count_of_codes_is_a_plain_number(text):
    with pytest.raises(ParameterError):
        _count(text)
    assert _count("100000") == 100_000
