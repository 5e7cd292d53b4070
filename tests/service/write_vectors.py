"""Write the channels' test vectors: once for a version, never to make a test pass."""

import json
from fractions import Fraction
from pathlib import Path

from deniable.randomness.source import SECURE, bits
from deniable.service.brief import brief
from deniable.survey.thresholds import WORD
from service.device import respond
from service.surveys import survey

FRACTIONS = ("0", "0.1", "5.25", "7.3", "11.999", "12", "-3", "40")


def boundaries(item):
    """Words on both sides of every threshold."""
    threshold = int(item.truth * WORD)
    for edge in {threshold, 2 * threshold - WORD}:
        for word in (edge - 1, edge, edge + 1):
            if 0 <= word < WORD:
                yield [word >> 32, word & 0xFFFFFFFF]


def streams(item):
    last = [0, 1, 2**32 - 1, 0xFFFFFFFE]
    for edge in boundaries(item):
        for after in last:
            yield [*edge, after, 5, 6, 7]
    for first in (0, 2**32 - 1):
        yield [first, first, first, first, 9, 10, 11]
    for _ in range(30):
        yield [bits(SECURE, 32) for _ in range(8)]


def main() -> None:
    document = survey()
    shown = brief(document, "en")["items"]
    vectors = []
    for at, item in enumerate(document.items):
        number = item.kind == "number"
        for answer in FRACTIONS if number else range(item.reports):
            for words in streams(item):
                stream = [bits(SECURE, 32), *words] if number else words
                thrown = respond(item, Fraction(answer), iter(stream).__next__)
                vectors.append(
                    {
                        "item": at,
                        "answer": float(answer) if number else answer,
                        "words": stream,
                        "report": thrown.report,
                        "told": thrown.told,
                    }
                )
    kept = [{name: one[name] for name in ("id", "kind", "options", "low", "high", "law")}
            for one in shown]  # fmt: skip
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in vectors)
    path = Path(__file__).parent / "channel_vectors.json"
    path.write_text(f'{{"items":{json.dumps(kept)},\n"vectors":[\n{lines}\n]}}\n')


if __name__ == "__main__":
    main()
