"""A client that is asked more than once, on one device: what it keeps, and what it says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from deniable.errors import ParameterError, ReportError
from deniable.survey.lasting import Lasting
from deniable.survey.reports import Json
from deniable.survey.several import Part


@dataclass
class Client:
    """One person's device, with a protocol for each question it may be asked.

    Formal guarantee. All reports on one question together cost no more than one report of a
    protocol of one level (`loss`), or than the permanent answer of one with two (`lasting_loss`),
    however often `report` is called and even if the true answer changes:

    * the first call on a question randomises the answer; that is kept under the question's name;
    * later calls do not look at the answer they are given: they repeat what was kept (one level),
      or add fresh noise to it (two levels).

    `state` holds what is kept: randomised answers, never true ones. Lose it, and the next report
    costs its ε once more.
    """

    questions: Mapping[str, Part]
    kept: dict[str, Json] = field(default_factory=dict)

    def report(self, question: str, value: Any) -> Json:
        """One report on a question, as it goes over the wire."""
        protocol = self._protocol(question)
        if question not in self.kept:
            first = (
                protocol.remember([value])
                if isinstance(protocol, Lasting)
                else protocol.randomize([value])
            )
            self.kept[question] = protocol.to_wire(first)[0]
        if not isinstance(protocol, Lasting):
            return self.kept[question]
        again = protocol.report(protocol.from_wire([self.kept[question]]))
        return protocol.to_wire(again)[0]

    @property
    def state(self) -> str:
        """What the device stores between calls."""
        return json.dumps({"version": 1, "kept": self.kept}, sort_keys=True)

    @classmethod
    def from_state(cls, questions: Mapping[str, Part], state: str) -> Client:
        """The client that stored this."""
        try:
            stored = json.loads(state)
        except (json.JSONDecodeError, RecursionError):
            raise ReportError("what the device stored is not JSON") from None
        if (
            not isinstance(stored, dict)
            or stored.keys() != {"version", "kept"}
            or stored["version"] != 1
            or not isinstance(stored["kept"], dict)
        ):
            raise ReportError("what the device stored is of another kind or version")
        client = cls(questions)
        for question, kept in stored["kept"].items():
            client._protocol(question).from_wire([kept])
            client.kept[question] = kept
        return client

    def _protocol(self, question: str) -> Part:
        if question not in self.questions:
            raise ParameterError("question", question, f"must be one of {[*self.questions]}")
        return self.questions[question]
