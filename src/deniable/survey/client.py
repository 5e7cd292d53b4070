"""A client that is asked more than once, on one device: what it keeps, and what it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from deniable.errors import ParameterError, ParameterTypeError, ReportError
from deniable.survey.averages import MeanProtocol
from deniable.survey.formats import Json
from deniable.survey.frequency import Frequency
from deniable.survey.heavy_hitters import HeavyHitters
from deniable.survey.hierarchy import Hierarchy
from deniable.survey.lasting import Lasting
from deniable.survey.places import Places
from deniable.survey.wire import Item, load

OnDevice = Frequency | MeanProtocol | Hierarchy | HeavyHitters | Places

_VERSION = 2


@dataclass
class Client:
    """One person's device, with a protocol for each question it may be asked.

    Formal guarantee. All reports on one question together cost no more than one report of a
    protocol of one level (`loss`), or than the permanent answer of one with two (`lasting_loss`),
    however often `report` is called, by however many threads, and even if the true answer changes:

    * the first call on a question randomises the answer; that is kept under the question's name;
    * later calls do not look at the answer they are given: they repeat what was kept (one level),
      or add fresh noise to it (two levels);
    * what was kept under one protocol is never reported under another: `from_state` refuses it.

    `state` holds what is kept: randomised answers, never true ones. Lose it, or copy the device
    before its first report, and the next report costs its ε once more.
    """

    questions: Mapping[str, OnDevice]
    kept: dict[str, Json] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        given: object = self.questions
        if not isinstance(given, Mapping):
            raise ParameterTypeError(
                "questions", type(given).__name__, "must map names to protocols"
            )
        for name, protocol in given.items():
            if not isinstance(protocol, OnDevice):
                raise ParameterTypeError(
                    "questions",
                    type(protocol).__name__,
                    "a device holds one protocol for each question; a design is asked once by "
                    "`randomize`, and the parts of several questions are named one by one",
                )
            Item(name, protocol)
        # A copy of our own: a protocol must not be exchanged behind what was kept under it.
        self.questions = MappingProxyType(dict(given))
        self._first = threading.Lock()

    def report(self, question: str, value: Any) -> Json:
        """One report on a question, as it goes over the wire."""
        protocol = self._protocol(question)
        with self._first:  # two threads that both find nothing kept would send two fresh answers
            if question not in self.kept:
                first: Any = (
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
        """What the device stores between calls, each answer with the id of its question."""
        kept = {
            name: {"question": self._id(name), "answer": answer}
            for name, answer in self.kept.items()
        }
        return json.dumps({"version": _VERSION, "kept": kept}, sort_keys=True)

    @classmethod
    def from_state(cls, questions: Mapping[str, OnDevice], state: str | bytes) -> Client:
        """The client that stored this.

        Raises:
            ReportError: it is damaged, or an answer was kept under other parameters, whose loss
                is not that of the protocol given.
        """
        stored = load(state)
        if (
            not isinstance(stored, dict)
            or stored.keys() != {"version", "kept"}
            or type(stored["version"]) is not int
            or stored["version"] != _VERSION
            or not isinstance(stored["kept"], dict)
        ):
            raise ReportError("what the device stored is of another kind or version")
        client = cls(questions)
        for name, kept in stored["kept"].items():
            if not isinstance(kept, dict) or kept.keys() != {"question", "answer"}:
                raise ReportError("what the device stored is not an answer with its question")
            protocol = client._protocol(name)
            if kept["question"] != client._id(name):
                raise ReportError(
                    f"the answer to {name!r} was kept under another protocol or other parameters; "
                    "give those, or ask under a new name, which costs its ε in addition"
                )
            protocol.from_wire([kept["answer"]])
            client.kept[name] = kept["answer"]
        return client

    def _id(self, name: str) -> str:
        return Item(name, self.questions[name]).id

    def _protocol(self, question: str) -> OnDevice:
        name: object = question
        if not isinstance(name, str) or name not in self.questions:
            raise ParameterError("question", question, f"must be one of {[*self.questions]}")
        return self.questions[name]
