"""blind.js in a real Chromium: what it makes there is good here, and the other way round."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from deniable.service import tokens
from service.chromium import chromium
from service.tokens.issuing import HERE, SCRIPT, VARIANTS, VECTORS, issuer, rfc_key
from service.tokens.token import Token

FILES = {
    "/": ("text/html", b"<!doctype html><title>tokens</title>"),
    "/blind.js": ("text/javascript", SCRIPT.read_bytes()),
    "/steps.mjs": ("text/javascript", (HERE / "steps.mjs").read_bytes()),
}
RUN = """async (step) => {
    const { run } = await import("/steps.mjs");
    return run(await import("/blind.js"), step);
}"""


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        kind, body = FILES.get(self.path, ("text/plain", b""))
        self.send_response(200 if self.path in FILES else 404)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def port():
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


@pytest.fixture(scope="module")
def browser():
    with chromium("survey.test") as running:
        yield running


@pytest.fixture(scope="module")
def run(browser, port):
    page = browser.new_page()
    page.goto(f"http://127.0.0.1:{port}/")
    return lambda **step: page.evaluate(RUN, step)


@pytest.mark.parametrize("name", VARIANTS)
def test_the_vectors(run, name):
    (vector,) = (v for v in VECTORS["vectors"] if v["name"] == VARIANTS[name].name)
    key = {"pem": rfc_key().public.pem, "variant": name}
    n, inverse = rfc_key().public.modulus, vector["inv"]
    factor = pow(int(inverse, 16), -1, n).to_bytes(512, "big").hex()
    blinded = run(do="blind", prepared=vector["input_msg"], random=vector["salt"] + factor, **key)
    assert blinded["blinded"] == vector["blinded_msg"]
    signed = run(
        do="finalize", prepared=vector["input_msg"], inverse=inverse,
        blindSignature=vector["blind_sig"], **key,
    )  # fmt: skip
    assert signed["signature"] == vector["sig"]


@pytest.mark.parametrize("bits", [2048, 3072])
@pytest.mark.parametrize("name", VARIANTS)
def test_a_token_is_made_in_the_browser(run, name, bits):
    key = issuer(bits)
    step = {"pem": key.public.pem, "variant": name}
    made = run(do="prepare", message=b"survey".hex(), **step)
    blinded = run(do="blind", **step, **made)
    signed = tokens.blind_sign(key, bytes.fromhex(blinded["blinded"]))
    done = run(
        do="finalize", blindSignature=signed.hex(), inverse=blinded["inverse"], **step, **made
    )
    token = Token.from_text(done["token"])
    tokens.verify(key.public, token.prepared, token.signature, VARIANTS[name].salt_length)
    altered = signed[:-1] + bytes([signed[-1] ^ 1])
    refused = run(
        do="finalize", blindSignature=altered.hex(), inverse=blinded["inverse"], **step, **made
    )
    assert refused["error"] == "TokenError"


def test_without_encryption_a_page_is_told_so(browser, port):
    page = browser.new_page()
    page.goto(f"http://survey.test:{port}/")
    found = page.evaluate(RUN, {"do": "key", "pem": issuer().public.pem})
    assert found["error"] == "TokenError"
    assert "over https" in found["message"]
