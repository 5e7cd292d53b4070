"""Tokens from start to end, in Python, in JavaScript, and across; with two other verifiers."""

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding

import deniable as dp
from deniable.service import tokens
from deniable.service.token_keys import IssuerKey
from service.tokens import holder, variants
from service.tokens.issuing import VARIANTS, in_node, issuer, one_in_node, public_key
from service.tokens.second_opinion import is_signature
from service.tokens.token import Token

MESSAGE = b"survey 7f3a"
EACH = pytest.mark.parametrize("name", VARIANTS)
# 2049 bits: the encoded message is one byte shorter than the modulus there.
SIZES = pytest.mark.parametrize("bits", [2048, 2049, 2052, 3072])


def issue(key, variant=variants.PSS_RANDOMIZED):
    blinding = holder.blind(key.public, holder.prepare(MESSAGE, variant), variant)
    signed = tokens.blind_sign(key, blinding.blinded)
    return Token(blinding.prepared, holder.finalize(key.public, blinding, signed, variant))


@SIZES
@EACH
def test_what_python_makes_is_a_signature_for_everybody(name, bits):
    variant, key = VARIANTS[name], issuer(bits)
    token = issue(key, variant)
    assert token.prepared[variant.prefix_length :] == MESSAGE
    tokens.verify(key.public, token.prepared, token.signature, variant.salt_length)
    scheme = padding.PSS(padding.MGF1(hashes.SHA384()), variant.salt_length)
    key.rsa.public_key().verify(token.signature, token.prepared, scheme, hashes.SHA384())
    n = key.public.modulus
    assert is_signature(n, token.prepared, token.signature, variant.salt_length)
    assert not is_signature(n, token.prepared + b"!", token.signature, variant.salt_length)


@EACH
def test_python_verifies_what_openssl_signs_with_the_same_salt_length_alone(name):
    variant, key = VARIANTS[name], issuer()
    for salt_length in (0, 20, 48, 64):
        scheme = padding.PSS(padding.MGF1(hashes.SHA384()), salt_length)
        signature = key.rsa.sign(MESSAGE, scheme, hashes.SHA384())
        assert is_signature(key.public.modulus, MESSAGE, signature, salt_length)
        if salt_length == variant.salt_length:
            tokens.verify(key.public, MESSAGE, signature, variant.salt_length)
        else:
            with pytest.raises(dp.errors.TokenError):
                tokens.verify(key.public, MESSAGE, signature, variant.salt_length)


@SIZES
@EACH
def test_python_blinds_python_signs_javascript_finalizes(name, bits):
    variant, key = VARIANTS[name], issuer(bits)
    blinding = holder.blind(key.public, holder.prepare(MESSAGE, variant), variant)
    signed = tokens.blind_sign(key, blinding.blinded)
    found = one_in_node(
        do="finalize", pem=key.public.pem, variant=name, prepared=blinding.prepared.hex(),
        inverse=f"{blinding.inverse:x}", blindSignature=signed.hex(),
    )  # fmt: skip
    signature = holder.finalize(key.public, blinding, signed, variant)
    assert found["signature"] == signature.hex()
    assert found["token"] == Token(blinding.prepared, signature).text


@SIZES
@EACH
def test_javascript_blinds_python_signs_and_finalizes(name, bits):
    variant, key = VARIANTS[name], issuer(bits)
    made = one_in_node(do="prepare", message=MESSAGE.hex(), variant=name)
    blinded = one_in_node(do="blind", pem=key.public.pem, variant=name, **made)
    blinding = holder.Blinding(
        bytes.fromhex(blinded["blinded"]),
        bytes.fromhex(made["prepared"]),
        int(blinded["inverse"], 16),
    )
    signed = tokens.blind_sign(key, blinding.blinded)
    signature = holder.finalize(key.public, blinding, signed, variant)
    assert is_signature(key.public.modulus, blinding.prepared, signature, variant.salt_length)


def test_a_token_from_javascript_is_one_of_its_survey():
    key = issuer()
    pem = key.public.pem
    about, made = in_node(
        {"do": "key", "pem": pem},
        {"do": "prepare", "message": MESSAGE.hex(), "variant": "PSS_RANDOMIZED"},
    )
    assert about == {"fingerprint": key.public.fingerprint, "length": key.public.length}
    blinded = one_in_node(do="blind", pem=pem, variant="PSS_RANDOMIZED", **made)
    signed = tokens.blind_sign(key, bytes.fromhex(blinded["blinded"]))
    done = one_in_node(
        do="finalize", pem=pem, variant="PSS_RANDOMIZED", blindSignature=signed.hex(),
        inverse=blinded["inverse"], **made,
    )  # fmt: skip
    token = Token.from_text(done["token"])
    tokens.verify(key.public, token.prepared, token.signature)
    assert token.prepared[tokens.PREFIX :] == MESSAGE


def test_signing_is_the_same_whatever_masks_it_drew():
    key = issuer()
    blinded = holder.blind(key.public, holder.prepare(MESSAGE)).blinded
    assert len({tokens.blind_sign(key, blinded) for _ in range(5)}) == 1


def test_keys_come_back_as_they_went(tmp_path):
    key = issuer()
    key.save(tmp_path / "survey.pem")
    assert (tmp_path / "survey.pem").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["survey.pem"]
    again = IssuerKey.load(tmp_path / "survey.pem")
    assert again.rsa.private_numbers() == key.rsa.private_numbers()
    public = public_key(key.public.pem)
    assert public.fingerprint == key.public.fingerprint
    assert public.modulus == key.public.modulus
    assert "PRIVATE" in (tmp_path / "survey.pem").read_text()
    assert "PRIVATE" not in public.pem + repr(key) + repr(public)
    token = issue(again)
    assert Token.from_text(token.text) == token
    assert repr(token) == "Token()"


def test_prepared_messages_never_repeat():
    assert len({holder.prepare(MESSAGE) for _ in range(1000)}) == 1000
    assert {holder.prepare(MESSAGE, variants.PSS_DETERMINISTIC) for _ in range(9)} == {MESSAGE}
