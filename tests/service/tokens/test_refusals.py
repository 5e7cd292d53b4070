"""Hostile inputs: each is refused, and the message says why without quoting it."""

import base64

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

import deniable as dp
from deniable.service import tokens
from deniable.service.token_keys import IssuerKey
from service.tokens import holder
from service.tokens.issuing import VECTORS, issuer, one_in_node, private_key, public_key
from service.tokens.token import Token

MESSAGE = b"survey 7f3a"
KEY, OTHER = issuer(), issuer(number=1)
N, LENGTH = KEY.public.modulus, KEY.public.length


def signed(message=MESSAGE, key=KEY):
    blinding = holder.blind(key.public, holder.prepare(message))
    return blinding, tokens.blind_sign(key, blinding.blinded)


def a_token(message=MESSAGE, key=KEY):
    blinding, signature = signed(message, key)
    return Token(blinding.prepared, holder.finalize(key.public, blinding, signature))


def as_bytes(number, length=LENGTH):
    return number.to_bytes(length, "big")


@pytest.mark.parametrize(
    "number",
    [0, 1, N - 1, N, N + 1, 256**LENGTH - 1],
    ids=["0", "1", "n-1", "n", "n+1", "largest"],
)
def test_numbers_out_of_range_are_not_signed(number):
    with pytest.raises(dp.errors.TokenError, match="out of range"):
        tokens.blind_sign(KEY, as_bytes(number))


@pytest.mark.parametrize("number", [2, N - 2], ids=["2", "n-2"])
def test_the_ends_of_the_range_are_signed(number):
    found = int.from_bytes(tokens.blind_sign(KEY, as_bytes(number)), "big")
    assert pow(found, 65537, N) == number


@pytest.mark.parametrize("length", [0, 1, LENGTH - 1, LENGTH + 1, 10 * LENGTH])
def test_wrong_lengths_are_refused(length):
    said = f"has {length} bytes, and this key works on {LENGTH}"
    blinding, signature = signed()
    with pytest.raises(dp.errors.TokenError, match=said):
        tokens.blind_sign(KEY, b"\x01" * length)
    with pytest.raises(dp.errors.TokenError, match=said):
        holder.finalize(KEY.public, blinding, (signature * 10)[:length])
    with pytest.raises(dp.errors.TokenError, match=said):
        tokens.verify(KEY.public, blinding.prepared, (signature * 10)[:length])


@pytest.mark.parametrize(
    "value",
    [-1, 5, 2.5, None, "text", bytearray(LENGTH), [1] * LENGTH, 3j],
    ids=lambda value: repr(value)[:12],
)
def test_what_is_no_bytes_is_refused(value):
    token, (blinding, _) = a_token(), signed()
    for attempt in (
        lambda: tokens.blind_sign(KEY, value),
        lambda: holder.prepare(value),
        lambda: holder.blind(KEY.public, value),
        lambda: holder.finalize(KEY.public, blinding, value),
        lambda: tokens.verify(KEY.public, value, token.signature),
        lambda: tokens.verify(KEY.public, token.prepared, value),
        lambda: Token(value, token.signature),
        lambda: Token(token.prepared, value),
    ):
        with pytest.raises(dp.errors.ParameterTypeError, match="must be bytes"):
            attempt()


def test_a_signature_of_another_message_key_or_value_is_refused():
    token, another = a_token(), a_token()
    n = N
    number = int.from_bytes(token.signature, "big")
    for public, prepared, signature in [
        (OTHER.public, token.prepared, token.signature),
        (KEY.public, another.prepared, token.signature),
        (KEY.public, token.prepared + b"\0", token.signature),
        (KEY.public, token.prepared[1:], token.signature),
        (KEY.public, b"", token.signature),
        *((KEY.public, token.prepared, as_bytes(x)) for x in (0, 1, n - number, number ^ 1)),
        # Products of signatures are signatures of products, and those encode nothing.
        (
            KEY.public,
            token.prepared,
            as_bytes(number * int.from_bytes(another.signature, "big") % n),
        ),
    ]:
        with pytest.raises(dp.errors.TokenError, match=r"not one of this message|out of range"):
            tokens.verify(public, prepared, signature)
    tokens.verify(KEY.public, token.prepared, token.signature)


def test_every_byte_of_a_signature_counts():
    token = a_token()
    for place in range(LENGTH):
        altered = bytearray(token.signature)
        altered[place] ^= 1 << place % 8
        with pytest.raises(dp.errors.TokenError):
            tokens.verify(KEY.public, token.prepared, bytes(altered))


def test_a_signature_beyond_the_modulus_is_refused():
    """s + n opens to the same number; it fits into the bytes for some signatures."""
    while True:
        token = a_token()
        beyond = int.from_bytes(token.signature, "big") + N
        if beyond < 256**LENGTH:
            break
    with pytest.raises(dp.errors.TokenError, match="below n"):
        tokens.verify(KEY.public, token.prepared, as_bytes(beyond))


def test_finalize_refuses_what_another_key_signed_or_somebody_altered():
    blinding, signature = signed()
    altered = as_bytes(int.from_bytes(signature, "big") ^ 2)
    of_another = signed()[1]
    foreign = bytes([0]) + signature[1:]
    for wrong in (altered, of_another, foreign, as_bytes(0), as_bytes(1)):
        with pytest.raises(dp.errors.TokenError, match="not one of this message"):
            holder.finalize(KEY.public, blinding, wrong)


def test_javascript_refuses_the_same():
    pem, (blinding, signature) = KEY.public.pem, signed()
    step = {
        "do": "finalize",
        "pem": pem,
        "prepared": blinding.prepared.hex(),
        "inverse": f"{blinding.inverse:x}",
        "variant": "PSS_RANDOMIZED",
    }
    right = one_in_node(**step, blindSignature=signature.hex())
    assert "signature" in right
    altered = as_bytes(int.from_bytes(signature, "big") ^ 2)
    for wrong in (altered, signed()[1], as_bytes(0), as_bytes(1)):
        found = one_in_node(**step, blindSignature=wrong.hex())
        assert found["error"] == "TokenError"
        assert "not one of this message" in found["message"]
    for wrong in (b"", signature[1:], signature + b"\0"):
        found = one_in_node(**step, blindSignature=wrong.hex())
        assert found["error"] == "TokenError"
        assert f"has {len(wrong)} bytes" in found["message"]
    assert one_in_node(do="refusesText", pem=pem) == {"names": ["TokenError"] * 3}


def public_pem(key):
    return (
        key.public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        .decode()
    )


def test_keys_of_other_kinds_are_refused_on_both_sides():
    small = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    three = rsa.generate_private_key(public_exponent=3, key_size=2048)
    for pem, said in [
        (public_pem(small), "2048 to 8192 bits"),
        (public_pem(three), "the exponent 65537"),
        (public_pem(ec.generate_private_key(ec.SECP256R1())), "RSA"),
        ("", "public key"),
        ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "public key"),
        (KEY.public.pem[:200], "public key"),
    ]:
        with pytest.raises(dp.errors.TokenError, match=said):
            public_key(pem)
        found = one_in_node(do="key", pem=pem)
        assert found["error"] == "TokenError"
        assert said in found["message"]
    with pytest.raises(dp.errors.ParameterTypeError, match="must be text"):
        public_key(KEY.public.pem.encode())
    for key in (small, three):
        with pytest.raises(dp.errors.TokenError, match="bits and the exponent"):
            IssuerKey(key)


@pytest.mark.parametrize("bits", [0, -2048, 1024, 2047, 8193, 2048.0, True, "2048"])
def test_key_sizes_are_bounded(bits):
    with pytest.raises(dp.ParameterError, match="must be from 2048 to 8192"):
        IssuerKey.generate(bits)


def test_key_files_are_kept_from_others_and_never_replaced(tmp_path):
    file = tmp_path / "survey.pem"
    KEY.save(file)
    before = file.read_bytes()
    with pytest.raises(dp.errors.TokenError, match="exists"):
        OTHER.save(file)
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
    file.chmod(0o640)
    with pytest.raises(dp.errors.TokenError, match="chmod 600"):
        IssuerKey.load(file)
    with pytest.raises(dp.errors.TokenError, match="cannot be read"):
        IssuerKey.load(tmp_path / "none.pem")
    with pytest.raises(dp.errors.TokenError, match="cannot be written"):
        KEY.save(tmp_path / "no folder" / "survey.pem")
    file.write_bytes(before[:300])
    file.chmod(0o600)
    with pytest.raises(dp.errors.TokenError, match="no private key"):
        IssuerKey.load(file)
    curve = ec.generate_private_key(ec.SECP256R1())
    file.write_bytes(
        curve.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    with pytest.raises(dp.errors.TokenError, match="another kind"):
        IssuerKey.load(file)


def test_a_wrong_result_is_not_handed_out():
    """A processor that errs modulo p alone would give p away: gcd(s^e - m, n) = q."""
    p, q, n, e, d = (int(VECTORS["key"][name], 16) for name in "pqned")
    broken = IssuerKey(private_key(p, q, n, e, d, fault=4))
    blinded = holder.blind(broken.public, holder.prepare(MESSAGE)).blinded
    with pytest.raises(dp.errors.TokenError, match="nothing is handed out"):
        tokens.blind_sign(broken, blinded)


def test_a_token_has_one_text():
    text = a_token().text
    first, second = text.split(".")
    standard = base64.b64encode(b"\xfb\xef" * 20).decode()
    wrong = ["", ".", text + "=", text + ".", " " + text, text + "\n", first, f"{first}..{second}",
             f"{first}.", f"{standard}.{second}", "é." + second, "A" * 5000 + ".A"]  # fmt: skip
    for each in wrong:
        with pytest.raises(dp.errors.TokenError, match="this is no token"):
            Token.from_text(each)
    # Three signs hold two bytes and two spare bits.
    assert Token.from_text("AAA.AAA").prepared == b"\0\0"
    with pytest.raises(dp.errors.TokenError, match="the one way"):
        Token.from_text("AAB.AAA")
    with pytest.raises(dp.errors.ParameterTypeError, match="must be text"):
        Token.from_text(7)
