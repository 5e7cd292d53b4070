"""The protocol once more, as the RFCs' pseudocode has it, on plain integers. For tests alone."""

import hashlib


def sha384(data):
    return hashlib.sha384(data).digest()


def mgf1(seed, length):
    mask, counter = b"", 0
    while len(mask) < length:
        mask += sha384(seed + counter.to_bytes(4, "big"))
        counter += 1
    return mask[:length]


def is_encoding(message, encoded, bits, salt_length):
    """EMSA-PSS-VERIFY (RFC 8017, 9.1.2), step by step."""
    length = -(-bits // 8)
    if len(encoded) != length or length < 48 + salt_length + 2 or encoded[-1] != 0xBC:
        return False
    masked, seal = encoded[: length - 49], encoded[length - 49 : -1]
    spare = 8 * length - bits
    if spare and masked[0] >> (8 - spare):
        return False
    block = int.from_bytes(masked, "big") ^ int.from_bytes(mgf1(seal, len(masked)), "big")
    block &= (1 << (8 * len(masked) - spare)) - 1
    block = block.to_bytes(len(masked), "big")
    zeros = length - 48 - salt_length - 2
    if block[:zeros] != bytes(zeros) or block[zeros] != 1:
        return False
    return sha384(bytes(8) + sha384(message) + block[zeros + 1 :]) == seal


def is_signature(n, message, signature, salt_length):
    """RSASSA-PSS-VERIFY (RFC 8017, 8.1.2)."""
    number = int.from_bytes(signature, "big")
    if len(signature) != -(-n.bit_length() // 8) or number >= n:
        return False
    bits = n.bit_length() - 1
    opened = pow(number, 65537, n)
    if opened.bit_length() > 8 * -(-bits // 8):
        return False
    return is_encoding(message, opened.to_bytes(-(-bits // 8), "big"), bits, salt_length)
