"""Keys, the RFC's vectors, and blind.js in Node, for the tests of tokens."""

import json
import subprocess
from functools import cache
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import load_pem_public_key

import deniable as dp
from deniable.errors import ParameterTypeError, TokenError
from deniable.service.token_keys import IssuerKey, PublicKey
from service.tokens import variants

HERE = Path(__file__).parent
SCRIPT = Path(dp.__file__).parent / "service" / "static" / "blind.js"
VECTORS = json.loads((HERE / "rfc9474_vectors.json").read_text())
VARIANTS = {
    name: value for name, value in vars(variants).items() if isinstance(value, variants.Variant)
}


@cache
def issuer(bits: int = 2048, number: int = 0) -> IssuerKey:
    return IssuerKey.generate(bits)


@cache
def rfc_key() -> IssuerKey:
    p, q, n, e, d = (int(VECTORS["key"][name], 16) for name in "pqned")
    return IssuerKey(private_key(p, q, n, e, d))


def public_key(text: str) -> PublicKey:
    """The key that `pem` wrote, as a device reads it."""
    if not isinstance(text, str):
        raise ParameterTypeError("text", type(text).__name__, "must be text in PEM")
    try:
        found = load_pem_public_key(text.encode("ascii"))
    except (ValueError, UnsupportedAlgorithm):
        raise TokenError("this is no public key in PEM") from None
    if not isinstance(found, rsa.RSAPublicKey):
        raise TokenError("tokens are signed with RSA; this is a key of another kind")
    return PublicKey(found)


def private_key(p, q, n, e, d, *, fault=0):
    """The key of these numbers; with a fault, one that computes wrongly modulo p."""
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, d % (p - 1) ^ fault, d % (q - 1), pow(q, -1, p), rsa.RSAPublicNumbers(e, n)
    )
    return numbers.private_key(unsafe_skip_rsa_key_validation=bool(fault))


def in_node(*steps):
    """The results of steps.mjs, run by Node."""
    done = subprocess.run(
        ["node", HERE / "in_node.mjs", SCRIPT],
        input=json.dumps(steps), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def one_in_node(**step):
    return in_node(step)[0]
