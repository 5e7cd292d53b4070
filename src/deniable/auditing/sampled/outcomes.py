"""What one call showed, made plain: its form, its numbers, its texts, and what it printed.

Nothing is judged here. A form holds types, shapes, lengths and keys in their order; an exception,
or the end of the process, is a form too. Two outputs that differ anywhere differ here, but for
numbers beyond the first `MOST`, of which the sum and the sum of squares are kept, and for what is
nested more than two hundred levels deep. What no double holds is text, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from deniable.auditing.replay.tree import Tree, tree
from deniable.lazy import lazy

Floats = npt.NDArray[np.float64]
Strings = npt.NDArray[np.str_]
# form, numbers, texts, shown, seconds
Plain = tuple[str, list[float], str, str, float]

MOST = 500
_WHOLE, _MODULUS = 1 << 53, 10**18
_NUMBERS = {float, int, bool, Fraction, Decimal}
_DIGITS = 15  # of a decimal that its double tells from all others
_TOLD_APART = 1 << 51  # fractions a/b and c/d lie 1/bd apart, doubles of size x about x 2^-53
RAISES, GONE = "raises ", "ends its process: "
_LONGEST = 300  # of a form or a text that is kept as it is
_DEEPEST = 50  # from there on by the tree, which knows what it has met


@dataclass(frozen=True)
class Several:
    """What one call returns that made several independent releases, each of which counts."""

    outputs: Sequence[Any]


def plain(value: object, shown: str, seconds: float) -> Plain:
    """One output, with what was printed meanwhile."""
    form: list[str] = []
    numbers: list[float] = []
    texts: list[str] = []
    _describe(value, form, numbers, texts, 0)
    if len(numbers) > MOST:
        whole = np.array(numbers)
        with np.errstate(all="ignore"):
            rest = [float(whole.sum()), float((whole**2).sum())]
        numbers = numbers[:MOST] + rest
    return _short(" ".join(form)), numbers, _short("\n".join(texts)), _short(shown), seconds


def raised(error: BaseException, shown: str, seconds: float) -> Plain:
    """A call that ended with an exception, whose type and message show."""
    return RAISES + type(error).__qualname__, [], _short(_told(error)), _short(shown), seconds


def gone(how: str) -> Plain:
    """A call that ended its process."""
    return GONE + how, [], "", "", 0.0


def _told(error: BaseException) -> str:
    """The message, and where they are, the cause, the notes and what else it carries."""
    parts = [_message(error)]
    if type(error).__module__ not in {"builtins", "__main__"}:
        parts.append(type(error).__module__)
    cause = error.__cause__ or error.__context__
    if cause is not None:
        parts.append(f"{type(cause).__qualname__}: {_message(cause)}")
    parts += [str(note) for note in getattr(error, "__notes__", ())]
    carried = {k: v for k, v in vars(error).items() if k != "__notes__"}
    if carried:
        parts.append(_message(ValueError(carried)))
    return "\n".join(parts)


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "a message that cannot be read"


def _short(text: str) -> str:
    text = text.replace("\0", "\\0")  # numpy drops the last ones
    if len(text) <= _LONGEST:
        return text
    return f"{text[:_LONGEST]}… {len(text)} characters, {hash(text):x}"


def _describe(
    value: Any, form: list[str], numbers: list[float], texts: list[str], depth: int
) -> None:
    kind = type(value)
    if depth > _DEEPEST:
        _walk(tree(value), form, numbers, texts)
    elif kind in _NUMBERS:
        _describe_number(value, form, numbers, texts)
    elif kind is str or value is None:
        form.append(kind.__name__)
        texts.append(value or "")
    elif isinstance(value, np.ndarray | np.generic) and value.dtype.kind in "fiub":
        form.append(f"array {value.shape} {value.dtype}")
        as_doubles = np.asarray(value, dtype=np.float64).ravel()
        numbers.extend(as_doubles.tolist())
        if value.dtype.itemsize >= 8 and value.dtype != np.float64:
            beyond = (
                np.ravel(value)[np.abs(as_doubles) > _WHOLE] if value.dtype.kind != "f" else value
            )
            texts.extend(str(each) for each in np.ravel(beyond)[:MOST])
    elif isinstance(value, np.ndarray) and value.dtype.kind == "U":
        form.append(f"array {value.shape} of texts")
        texts.extend(value.ravel().tolist())
    elif kind is list or kind is tuple:
        form.append(f"{kind.__name__} of {len(value)}:")
        for part in value:
            _describe(part, form, numbers, texts, depth + 1)
    elif kind is dict:
        form.append(f"dict of {len(value)}:")
        for key, part in value.items():
            form.append(repr(key) if type(key) in {str, int, float, bool, tuple} else "key")
            _describe(part, form, numbers, texts, depth + 1)
    else:
        _walk(tree(value), form, numbers, texts)


def _describe_number(value: Any, form: list[str], numbers: list[float], texts: list[str]) -> None:
    """Its double, and where others have the same double, all of it."""
    kind = type(value)
    exponent = f" {value.as_tuple().exponent}" if kind is Decimal else ""
    form.append(kind.__name__ + exponent)
    numbers.append(_double(value))
    if kind is int and abs(value) > _WHOLE:
        texts.append(str(value % _MODULUS))
    elif kind is Fraction:
        if value.denominator**2 * max(1, abs(numbers[-1])) > _TOLD_APART:
            texts.append(str(value))
    elif kind is Decimal and (value.is_nan() or len(value.as_tuple().digits) > _DIGITS):
        texts.append(str(value))


def _double(value: float | Fraction | Decimal) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except ValueError:  # a decimal that signals
        return math.nan


def _walk(node: Tree, form: list[str], numbers: list[float], texts: list[str]) -> None:
    """Anything else by its tree."""
    form += [node.kind, *node.keys]
    if node.kind == "float":
        numbers.append(math.nan if node.text == "nan" else float.fromhex(node.text))
    elif node.kind == "int":
        numbers.append(_double(int(node.text)))
    elif node.text:
        texts.append(node.text)
    for part in node.parts:
        _walk(part, form, numbers, texts)


@dataclass(frozen=True)
class Outcomes:
    """What all calls on one side showed, in columns."""

    calls: Sequence[Plain]

    def __len__(self) -> int:
        return len(self.calls)

    def _column(self, read: Callable[[Plain], Any]) -> npt.NDArray[Any]:
        return np.array([read(call) for call in self.calls])

    @lazy
    def forms(self) -> npt.NDArray[Any]:
        """Types, shapes and keys."""
        return self._column(lambda call: call[0])

    @lazy
    def texts(self) -> npt.NDArray[Any]:
        """All that is no number."""
        return self._column(lambda call: call[2])

    @lazy
    def shown(self) -> npt.NDArray[Any]:
        """What was printed or warned of."""
        return self._column(lambda call: call[3])

    @lazy
    def seconds(self) -> Floats:
        """How long each call took."""
        return self._column(lambda call: call[4])

    @lazy
    def widths(self) -> Floats:
        """How many numbers there are."""
        return self._column(lambda call: float(len(call[1])))

    @lazy
    def numbers(self) -> Floats:
        """One row of numbers for each call; NaN where a row is shorter."""
        width = int(self.widths.max(initial=0))
        rows = np.full((len(self.calls), width), np.nan)
        same = [(at, call[1]) for at, call in enumerate(self.calls) if len(call[1]) == width]
        if width and same:
            rows[[at for at, _ in same]] = np.array([numbers for _, numbers in same])
        for at, call in enumerate(self.calls):
            if 0 < len(call[1]) < width:
                rows[at, : len(call[1])] = call[1]
        return rows

    @lazy
    def has_nan(self) -> npt.NDArray[Any]:
        """Whether a number that was given is none."""
        return self._column(lambda call: any(map(math.isnan, call[1])))

    @lazy
    def has_infinity(self) -> npt.NDArray[Any]:
        """Whether a number is infinite."""
        return self._column(lambda call: any(map(math.isinf, call[1])))

    def column(self, place: int) -> Floats:
        """The numbers at one place; NaN where there is none."""
        if place < self.numbers.shape[1]:
            found: Floats = self.numbers[:, place]
            return found
        return np.full(len(self.calls), np.nan)


@dataclass(frozen=True)
class Sides:
    """As many calls on the data as on the neighbour."""

    data: Outcomes
    neighbour: Outcomes

    def __len__(self) -> int:
        return len(self.data)

    def halves(self) -> tuple[Sides, Sides]:
        """The earlier half of the calls, and the later one."""
        middle = len(self) // 2
        data, neighbour = self.data.calls, self.neighbour.calls
        return (
            Sides(Outcomes(data[:middle]), Outcomes(neighbour[:middle])),
            Sides(Outcomes(data[middle:]), Outcomes(neighbour[middle:])),
        )
