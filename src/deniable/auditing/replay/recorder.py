"""What a pipeline does, event by event; and the same with outputs put in from an earlier run."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from deniable.auditing.gaps import Arguments, plain_subject, view
from deniable.auditing.replay.tree import Tree, tree
from deniable.mechanisms.selection import Scores
from deniable.privacy.losses.base import Loss
from deniable.randomness.fork import process_mark

Result = TypeVar("Result")


class Diverged(BaseException):
    """The run has left the recorded one; what follows cannot be compared.

    Not an Exception, so that a pipeline's own handlers let it pass.
    """


@dataclass(frozen=True)
class Call:
    """One release: by what, on which private arguments, with what outcome.

    `subject` and `arguments` are plain: they survive pickling, and hold no code of the pipeline.
    """

    name: str
    subject: object
    parameters: Tree
    price: Tree
    arguments: Arguments
    stream: int | None
    raised: Tree | None
    output: object


@dataclass(frozen=True)
class Fact:
    """Something public that was said."""

    name: str
    content: Tree


BARE_NOISE = "bare noise"
"""The fact that noise was asked for outside of any mechanism, told with its law."""

Event = Call | Fact

_INSIDE: ContextVar[bool] = ContextVar("deniable_inside_a_release", default=False)


class Recorder:
    """Listens to a run and keeps its events; releases are made as usual."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.started: set[str] = set()
        self._process = (-1, 0)
        self._streams: list[object] = []

    def begin(self) -> None:
        """Listen in this process, and in no child of it."""
        self._process = process_mark()

    @property
    def listens(self) -> bool:
        """Not inside a release, whose own draws are its affair, nor in a forked child."""
        return not _INSIDE.get() and self._process == process_mark()

    def release(
        self, subject: object, verb: str, arguments: tuple[object, ...], go: Callable[[], Result]
    ) -> Result:
        """Keep one release."""
        if not self.listens:
            return go()
        given = copied(arguments)
        try:
            output = self._alone(go)
        except Exception as error:
            self.events.append(self._call(subject, verb, (), tree(error), None))
            raise
        seen = self._alone(lambda: view(subject, given))
        kept = _places(arguments, output)
        return self.settle(self._call(subject, verb, seen, None, copied(kept)), output, arguments)

    def _alone(self, go: Callable[[], Result]) -> Result:
        token = _INSIDE.set(True)
        try:
            return go()
        finally:
            _INSIDE.reset(token)

    def settle(self, call: Call, output: Result, arguments: tuple[object, ...]) -> Result:
        """Keep a call that was made, and say what the pipeline gets."""
        del arguments
        self.events.append(call)
        return output

    def _call(
        self, subject: object, verb: str, seen: Arguments, raised: Tree | None, output: object
    ) -> Call:
        ordinal = next((i for i, each in enumerate(self._streams) if each is subject), None)
        mechanism = plain_subject(subject)
        loss = getattr(mechanism, "loss", None)
        return Call(
            name=f"{type(subject).__name__}.{verb.lstrip('_')}",
            subject=mechanism,
            parameters=tree(getattr(subject, "mechanism", subject)),
            price=tree(loss.price if isinstance(loss, Loss) else None),
            arguments=seen,
            stream=ordinal,
            raised=raised,
            output=output,
        )

    def noise(self, law: object) -> None:
        """Keep that noise was asked for outside of any mechanism."""
        if self.listens:
            self.meet(Fact(BARE_NOISE, tree(law)))

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
        return self._alone(go)

    def meet(self, event: Event) -> None:
        """Keep an event without a private argument."""
        self.events.append(event)


class Replayer(Recorder):
    """Listens to a second run and puts in the outputs of the first, release by release."""

    def __init__(self, script: tuple[Event, ...]) -> None:
        super().__init__()
        self._script = script

    def settle(self, call: Call, output: Result, arguments: tuple[object, ...]) -> Result:
        """Give what the first run got: what was drawn here only shows that nothing raises."""
        expected = self._expected(call)
        assert isinstance(expected, Call)
        if expected.raised is not None:
            raise Diverged
        del output
        given: Any = _from_places(arguments, copied(expected.output))
        result: Result = given
        return result

    def meet(self, event: Event) -> None:
        """Keep an event, and stop where the first run met another."""
        self._expected(event)

    def _expected(self, event: Event) -> Event:
        self.events.append(event)
        at = len(self.events) - 1
        if at >= len(self._script) or self._script[at].name != event.name:
            raise Diverged
        return self._script[at]


def _places(arguments: tuple[Any, ...], output: Any) -> Any:
    """A choice as its place, so that a replay hands out its own candidate."""
    if type(arguments[0]) is not Scores:
        return output
    candidates = list(arguments[0].candidates)
    if isinstance(output, list):
        return [_place(candidates, each) for each in output]
    return _place(candidates, output)


def _place(candidates: list[Any], chosen: Any) -> int:
    return next(i for i, each in enumerate(candidates) if each is chosen or each == chosen)


def _from_places(arguments: tuple[Any, ...], output: Any) -> Any:
    if type(arguments[0]) is not Scores:
        return output
    candidates, chosen = list(arguments[0].candidates), output
    places = chosen if isinstance(chosen, list) else [chosen]
    if any(place >= len(candidates) for place in places):
        raise Diverged
    found = [candidates[place] for place in places]
    return found if isinstance(chosen, list) else found[0]


def copied(value: Any) -> Any:
    """A copy, so that what happens to the value later does not change what was kept."""
    try:
        return copy.deepcopy(value)
    except Exception:  # connections, locks and the like are kept as they are
        return value
