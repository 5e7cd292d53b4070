"""The method of a synthesis, as a caller says it: by its name, or as an object."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any

import numpy as np

from deniable.closed import TEXT, exactly, frozen, read_names, read_text
from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import Number, positive, whole
from deniable.synthesis.aim import AIM
from deniable.synthesis.domain import Domain
from deniable.synthesis.fixed import FixedMarginals, Independent
from deniable.synthesis.mst import MST
from deniable.synthesis.mwem import MWEM
from deniable.synthesis.workload import Workload

Listed = AIM | MST | MWEM | FixedMarginals | Independent

METHODS: Mapping[str, type[Listed]] = {
    "aim": AIM,
    "mst": MST,
    "mwem": MWEM,
    "fixed": FixedMarginals,
    "independent": Independent,
}
"""What makes a table: these, and nothing made of them."""

_WANTED = f"must be one of {', '.join(METHODS)}, or an object of theirs, as dp.synthesis.MST()"
_COUNTS = ("iterations", "last_iterations", "rounds", "passes")


@dataclass(frozen=True)
class Chosen:
    """A method that was read once; it is made for a domain when that is known."""

    name: str
    given: Listed | None
    """The object, if it was one: a copy that nobody else holds."""
    cliques: int | list[Sequence[str]]
    """The workload of a method that brings none."""
    megabytes: Fraction | None

    def on(self, domain: Domain) -> tuple[Workload, Listed]:
        """The workload and the method for a domain."""
        if self.given is None:
            wanted = _workload(domain, self.cliques)
            kind = METHODS[self.name]
            given: dict[str, Any] = {"workload": wanted}
            if self.megabytes is not None:
                given["max_megabytes"] = self.megabytes
            taken = {each.name for each in fields(kind)}
            return wanted, kind(**{name: each for name, each in given.items() if name in taken})
        if isinstance(self.given, MST | Independent):
            return _workload(domain, self.cliques), self.given
        own = exactly(
            self.given.workload, (Workload,), "workload", "must be a dp.synthesis.Workload"
        )
        wanted = Workload(domain, dict(zip(own.cliques, own.weights, strict=True)))
        return wanted, replace(self.given, workload=wanted)


def read_method(
    method: object, workload: int | Iterable[Sequence[str]] | None, max_megabytes: Number | None
) -> Chosen:
    """Read what makes a table, and for what: an object says its own workload and room."""
    cliques = _read_workload(2 if workload is None else workload)
    size = None if max_megabytes is None else positive(max_megabytes, "max_megabytes")
    if type(method) in TEXT:
        name = read_text(method, "method")
        if name not in METHODS:
            raise ParameterError("method", name, _WANTED)
        return Chosen(name, None, cliques, size)
    kind = type(exactly(method, METHODS.values(), "method", _WANTED))
    given: Listed = frozen(method, "method")
    for argument, value in (("workload", workload), ("max_megabytes", max_megabytes)):
        if value is not None and hasattr(given, argument):
            raise ParameterError(argument, value, "is the method's own: say it there alone")
    counts: dict[str, Any] = {
        each: whole(value, each) for each, value in vars(given).items() if each in _COUNTS
    }
    name = next(name for name, each in METHODS.items() if each is kind)
    return Chosen(name, replace(given, **counts), cliques, None)


def _read_workload(given: int | Iterable[Sequence[str]]) -> int | list[Sequence[str]]:
    if isinstance(given, int | np.integer):
        return whole(given, "workload")
    if isinstance(given, str) or not isinstance(given, Iterable):
        raise ParameterTypeError(
            "workload", type(given).__name__, "must be a number of columns, or a list of cliques"
        )
    cliques = [*given]
    if any(isinstance(each, str) or not isinstance(each, Iterable) for each in cliques):
        raise ParameterTypeError("workload", "a list", "cliques are lists of columns")
    return [read_names(each, "workload") for each in cliques]


def _workload(domain: Domain, given: int | list[Sequence[str]]) -> Workload:
    if isinstance(given, int):
        return Workload.all_of(domain, given)
    return Workload(domain, given)
