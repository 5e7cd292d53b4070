"""Broken texts: a question after an accident, or an attack."""

import random
import re

from fuzz.productions import HOSTILE_LITERALS


def _tokens(sql: str) -> list[str]:
    return re.findall(r"\s+|\w+|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|.", sql)


def dropped(sql: str, rng: random.Random) -> str:
    tokens = _tokens(sql)
    del tokens[rng.randrange(len(tokens))]
    return "".join(tokens)


def doubled(sql: str, rng: random.Random) -> str:
    tokens = _tokens(sql)
    place = rng.randrange(len(tokens))
    return "".join([*tokens[:place], tokens[place], " ", *tokens[place:]])


def swapped(sql: str, rng: random.Random) -> str:
    tokens = _tokens(sql)
    one, other = rng.randrange(len(tokens)), rng.randrange(len(tokens))
    tokens[one], tokens[other] = tokens[other], tokens[one]
    return "".join(tokens)


def misnamed(sql: str, rng: random.Random) -> str:
    functions = [
        "MEDIAN",
        "RANDOM",
        "READ_CSV",
        "GETENV",
        "MAX",
        "ERROR",
        "LIST",
        "SLEEP",
        "nope",
        "",
    ]
    return re.sub(r"\b(COUNT|SUM|AVG)\(", f"{rng.choice(functions)}(", sql, count=1)


def hostile_literal(sql: str, rng: random.Random) -> str:
    listed = [each for known in HOSTILE_LITERALS.values() for each in known]
    return re.sub(r"(?<![\w.'])\d+(?![\w.'])", lambda _: rng.choice(listed), sql, count=1)


def deep(sql: str, rng: random.Random) -> str:
    level = rng.choice([20, 80, 700])
    return sql.replace("COUNT(*)", f"SUM({'(' * level}1{')' * level})", 1)


def commented(sql: str, rng: random.Random) -> str:
    place = rng.choice([match.start() for match in re.finditer(" ", sql)] or [0])
    return f"{sql[:place]} {rng.choice(['/* a */', '-- b', '/*', '--', '#'])} {sql[place:]}"


def ended(sql: str, rng: random.Random) -> str:
    return sql + rng.choice(
        [";", ";;", "; DROP TABLE visits", ")", " --", "\0", "; SELECT 1", "\ud800"]
    )


def cut(sql: str, rng: random.Random) -> str:
    return sql[: rng.randrange(1, len(sql))]


MUTATIONS = (dropped, doubled, swapped, misnamed, hostile_literal, deep, commented, ended, cut)
