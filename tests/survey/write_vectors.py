"""Write the wire format's test vectors: once for a version, never to make a test pass."""

import json
from pathlib import Path

from deniable import survey
from deniable.survey.frequency import Frequency
from survey.test_wire import PROTOCOLS, truth


def main() -> None:
    vectors = {}
    for name, protocol in PROTOCOLS.items():
        question = survey.Item("who?", protocol)
        reports = protocol.randomize(truth(protocol, 40))
        written = json.loads(question.write(reports))
        vector = {
            "question": json.loads(question.text),
            "id": question.id,
            "reports": {**written, "reports": written["reports"][:8]},
        }
        if isinstance(protocol, Frequency) and not isinstance(protocol, survey.BitFlip):
            few = question.read(json.dumps(vector["reports"]))
            vector["first shares"] = protocol.aggregate(few).estimate().shares[:5].tolist()
        vectors[name] = vector
    path = Path(__file__).parent / "wire_vectors.json"
    path.write_text(json.dumps(vectors, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
