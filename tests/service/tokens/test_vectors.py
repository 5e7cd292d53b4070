"""The test vectors of RFC 9474, Appendix A: all four variants, in Python and in JavaScript."""

import pytest

import deniable as dp
from deniable.service import tokens
from service.tokens import holder
from service.tokens.holder import _blind
from service.tokens.issuing import VARIANTS, VECTORS, one_in_node, rfc_key
from service.tokens.pss import encode

BY_NAME = {variant.name: name for name, variant in VARIANTS.items()}
EACH = pytest.mark.parametrize("vector", VECTORS["vectors"], ids=lambda vector: vector["name"])
N = int(VECTORS["key"]["n"], 16)


def parts(vector):
    fields = ("input_msg", "salt", "blinded_msg", "blind_sig", "sig")
    return (bytes.fromhex(vector[name]) for name in fields)


def test_all_four_variants_are_there():
    assert sorted(vector["name"] for vector in VECTORS["vectors"]) == sorted(BY_NAME)
    assert rfc_key().public.modulus == N


@EACH
def test_python_agrees(vector):
    variant = VARIANTS[BY_NAME[vector["name"]]]
    prepared, salt, blinded, blind_signature, signature = parts(vector)
    assert prepared == bytes.fromhex(vector["msg_prefix"] + vector["msg"])
    assert len(vector["msg_prefix"]) == 2 * variant.prefix_length
    assert len(salt) == variant.salt_length
    if "encoded_msg" in vector:
        assert encode(prepared, salt, N.bit_length() - 1).hex() == vector["encoded_msg"]
    key, inverse = rfc_key(), int(vector["inv"], 16)
    blinding = _blind(key.public, prepared, salt, pow(inverse, -1, N))
    assert blinding == holder.Blinding(blinded, prepared, inverse)
    assert tokens.blind_sign(key, blinding.blinded) == blind_signature
    assert holder.finalize(key.public, blinding, blind_signature, variant) == signature
    tokens.verify(key.public, prepared, signature, variant.salt_length)


@EACH
def test_javascript_agrees(vector):
    name = BY_NAME[vector["name"]]
    key = {"pem": rfc_key().public.pem, "variant": name}
    made = one_in_node(
        do="prepare", message=vector["msg"], variant=name, random=vector["msg_prefix"]
    )
    assert made == {"prepared": vector["input_msg"]}
    factor = pow(int(vector["inv"], 16), -1, N).to_bytes(512, "big").hex()
    blinded = one_in_node(
        do="blind", prepared=vector["input_msg"], random=vector["salt"] + factor, **key
    )
    assert blinded["blinded"] == vector["blinded_msg"]
    assert int(blinded["inverse"], 16) == int(vector["inv"], 16)
    signed = one_in_node(
        do="finalize", prepared=vector["input_msg"], inverse=vector["inv"],
        blindSignature=vector["blind_sig"], **key,
    )  # fmt: skip
    assert signed["signature"] == vector["sig"]


@EACH
def test_no_vector_passes_for_another_variant(vector):
    prepared, _, _, _, signature = parts(vector)
    mine = VARIANTS[BY_NAME[vector["name"]]]
    for variant in VARIANTS.values():
        if variant.salt_length != mine.salt_length:
            with pytest.raises(dp.errors.TokenError, match="not one of this message"):
                tokens.verify(rfc_key().public, prepared, signature, variant.salt_length)
