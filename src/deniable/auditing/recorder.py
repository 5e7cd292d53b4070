"""What a pipeline does, event by event; and the same with outputs put in from an earlier run."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from deniable.auditing.tree import Tree, tree
from deniable.privacy.losses.base import Loss

Result = TypeVar("Result")


class Diverged(BaseException):
    """The run has left the recorded one; what follows cannot be compared.

    Not an Exception, so that a pipeline's own handlers let it pass.
    """


@dataclass(frozen=True)
class Call:
    """One release: by what, on which private arguments, with what outcome."""

    name: str
    subject: object
    verb: str
    parameters: Tree
    price: Tree
    arguments: tuple[object, ...]
    stream: int | None
    raised: Tree | None
    output: object


@dataclass(frozen=True)
class Fact:
    """Something public that was said."""

    name: str
    content: Tree


@dataclass(frozen=True)
class BareNoise:
    """Noise drawn outside of any mechanism."""

    name: str
    law: Tree
    count: int


Event = Call | Fact | BareNoise


class Recorder:
    """Listens to a run and keeps its events; releases are made as usual."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.forked = False
        self._inside = False
        self._process = os.getpid()
        self._streams: list[object] = []

    @property
    def listens(self) -> bool:
        """Not inside a release, whose own draws are its affair, nor in a forked child."""
        return not self._inside and self._process == os.getpid()

    def release(
        self, subject: object, verb: str, arguments: tuple[object, ...], go: Callable[[], Result]
    ) -> Result:
        """Keep one release."""
        if not self.listens:
            return go()
        kept = tuple(map(_copied, arguments))
        self._inside = True
        try:
            output = go()
        except Exception as error:
            self.events.append(self._call(subject, verb, kept, tree(error), None))
            raise
        finally:
            self._inside = False
        return self.settle(self._call(subject, verb, kept, None, _copied(output)), output)

    def settle(self, call: Call, output: Result) -> Result:
        """Keep a call that was made, and say what the pipeline gets."""
        self.events.append(call)
        return output

    def _call(
        self,
        subject: object,
        verb: str,
        arguments: tuple[object, ...],
        raised: Tree | None,
        output: object,
    ) -> Call:
        ordinal = next((i for i, each in enumerate(self._streams) if each is subject), None)
        mechanism = getattr(subject, "mechanism", subject) if ordinal is not None else subject
        loss = getattr(mechanism, "loss", None)
        return Call(
            name=f"{type(subject).__name__}.{verb.lstrip('_')}",
            subject=subject,
            verb=verb,
            parameters=tree(mechanism),
            price=tree(loss.price if isinstance(loss, Loss) else None),
            arguments=arguments,
            stream=ordinal,
            raised=raised,
            output=output,
        )

    def noise(self, law: object, count: int) -> None:
        """Keep a draw outside of any mechanism."""
        if self.listens:
            self.meet(BareNoise("bare noise", tree(law), count))

    def fact(self, name: str, content: object) -> None:
        """Keep a public fact."""
        if self.listens:
            self.meet(Fact(name, tree(content)))

    def opened(self, subject: object, go: Callable[[], Result]) -> Result:
        """A stream draws the noise it starts with itself, which is not bare."""
        if not self.listens:
            return go()
        self._streams.append(subject)
        self.meet(Fact("stream opened", tree(getattr(subject, "mechanism", None))))
        self._inside = True
        try:
            return go()
        finally:
            self._inside = False

    def meet(self, event: Event) -> None:
        """Keep an event without a private argument."""
        self.events.append(event)


class Replayer(Recorder):
    """Listens to a second run and puts in the outputs of the first, release by release."""

    def __init__(self, script: list[Event]) -> None:
        super().__init__()
        self._script = script

    def settle(self, call: Call, output: Result) -> Result:
        """Give what the first run got: what was drawn here only shows that nothing raises."""
        expected = self._expected(call)
        del output
        assert isinstance(expected, Call)
        if expected.raised is not None:
            raise Diverged
        return _copied(expected.output)  # type: ignore[return-value]

    def meet(self, event: Event) -> None:
        """Keep an event, and stop where the first run met another."""
        self._expected(event)

    def _expected(self, event: Event) -> Event:
        self.events.append(event)
        at = len(self.events) - 1
        if at >= len(self._script) or self._script[at].name != event.name:
            raise Diverged
        return self._script[at]


def _copied(value: object) -> object:
    """A copy, so that what happens to the value later does not change what was kept."""
    try:
        return copy.deepcopy(value)
    except Exception:  # connections, locks and the like are kept as they are
        return value
