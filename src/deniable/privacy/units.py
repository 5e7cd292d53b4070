"""Who is protected, and what makes two data sets neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from deniable.errors import ParameterError, ParameterTypeError


class Relation(StrEnum):
    """Which data sets count as neighbours.

    `ADD_REMOVE`: one unit more or less. `REPLACE`: one unit exchanged for another, so that the
    number of units is public. A replacement is a removal and an addition: what holds under
    add/remove holds under replace for a group of two, not the other way round.
    """

    ADD_REMOVE = "add_remove"
    REPLACE = "replace"

    @property
    def changed(self) -> int:
        """How many units' contributions differ between neighbours: one's, or those of two."""
        return 2 if self == Relation.REPLACE else 1


@dataclass(frozen=True)
class Unit:
    """Who is protected: everyone whose rows share a value in `column`, or each row by itself."""

    column: str | None

    def __post_init__(self) -> None:
        named: object = self.column
        if named is not None and not (isinstance(named, str) and named):
            raise ParameterTypeError("column", self.column, "must name a column; use ROW for rows")

    def __copy__(self) -> Unit:
        return self

    def __deepcopy__(self, _memo: object) -> Unit:
        return self

    def __reduce__(self) -> tuple[object, tuple[str | None]]:
        """ROW is the same wherever it comes from."""
        return _unit, (self.column,)

    def __str__(self) -> str:
        return "row" if self.column is None else f"unit of {self.column}"


ROW = Unit(None)


def _unit(column: str | None) -> Unit:
    return ROW if column is None else Unit(column)


def read_relation(value: Relation | str, argument: str = "relation") -> Relation:
    """Read a neighbour relation from its name."""
    try:
        return Relation(value)
    except ValueError:
        allowed = " or ".join(repr(str(relation)) for relation in Relation)
        raise ParameterError(argument, value, f"must be {allowed}") from None
