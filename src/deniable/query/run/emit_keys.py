"""Declared keys in statements: where a group has many texts, rows have the place of their own.

They are found by a join, which leaves out the rows of undeclared keys before anything is summed,
and small numbers are grouped by sooner than texts are. What comes out is the text again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from deniable.lazy import lazy
from deniable.query.plan.counted import names
from deniable.query.plan.keys import among, are_many_texts, one_of
from deniable.query.plan.plan import Plan


@dataclass(frozen=True)
class GroupPlaces:
    """The groups of a plan, in places where that is quicker: g0, g1, ... of declared rows."""

    plan: Plan

    @lazy
    def _lists(self) -> dict[str, str]:
        """By column, its declared keys and their places, as SQL that is written once."""
        groups = self.plan.counted.groups
        return {
            name: group.in_places
            for name, group in zip(names("g", groups), groups, strict=True)
            if are_many_texts(group.keys)
        }

    @property
    def lists(self) -> str:
        """The lists of keys as common table expressions after others."""
        return "".join(f", {_list(name)} AS ({text})" for name, text in self._lists.items())

    def rows(self, also: str = "") -> str:
        """The rows of declared groups, after FROM; those of which something holds also."""
        joined = "".join(
            f" JOIN {_list(name)} ON deniable_base.{name} = {_list(name)}.k" for name in self._lists
        )
        return f"deniable_base{joined}{where_declared(self.plan, self._lists, also)}"

    @lazy
    def columns(self) -> list[str]:
        """The groups of these rows, to be grouped by."""
        return [
            f"{_list(name)}.p" if name in self._lists else f"deniable_base.{name}"
            for name in self.plan.counted.grouped
        ]

    @property
    def picked(self) -> str:
        """The same under their names, before other columns."""
        pairs = zip(self.columns, self.plan.counted.grouped, strict=True)
        return "".join(f"{column} AS {name}, " for column, name in pairs)

    def shown(self, select: str) -> str:
        """A SELECT of sums by group, with the texts instead of their places."""
        if not self._lists:
            return select
        groups, stats = self.plan.counted.grouped, self.plan.counted.statistics
        keys = [f"{_list(name)}.k AS {name}" if name in self._lists else name for name in groups]
        joined = "".join(
            f" JOIN {_list(name)} ON placed.{name} = {_list(name)}.p" for name in self._lists
        )
        return f"SELECT {', '.join([*keys, *names('t', stats)])} FROM ({select}) AS placed{joined}"


def _list(name: str) -> str:
    """The list of the keys of a column."""
    return f"deniable_keys_{name}"


def where_declared(plan: Plan, joined: Collection[str] = (), also: str = "") -> str:
    """Keep the declared groups, but for those whose keys are joined, or the selected ones."""
    conditions = [
        group.declared_as(name)
        for name, group in zip(plan.counted.grouped, plan.counted.groups, strict=True)
        if group.keys is not None and name not in joined
    ]
    if plan.counted.selected is not None:
        conditions.append(selected(plan))
    if also:
        conditions.append(also)
    return f" WHERE {' AND '.join(conditions)}" if conditions else ""


def selected(plan: Plan) -> str:
    """The condition that columns g0, g1, ... are one of the groups that were selected."""
    assert plan.counted.selected is not None
    columns = [exp.column(name) for name in plan.counted.grouped]
    if not plan.counted.selected:
        return "FALSE"
    if len(columns) == 1:
        kept = one_of(columns[0], [key[0] for key in plan.counted.selected])
    else:
        kept = among(columns, plan.counted.selected)
    return kept.sql("duckdb")
