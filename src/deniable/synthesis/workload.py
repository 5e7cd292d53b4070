"""The workload: the marginals that must come out right, and how much each matters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from deniable.closed import read_names
from deniable.errors import ParameterError, ParameterTypeError
from deniable.privacy.exact import whole
from deniable.synthesis.domain import Clique, Domain

_MOST = 100_000
_MOST_INSIDE = 1_000_000


@dataclass(frozen=True, init=False)
class Workload:
    """Cliques with whole weights. Public: it says what is wanted, not what is there."""

    cliques: tuple[Clique, ...]
    weights: tuple[int, ...]

    def __init__(
        self, domain: Domain, cliques: Mapping[Sequence[str], int] | Iterable[Sequence[str]]
    ) -> None:
        given = cliques if isinstance(cliques, Mapping) else dict.fromkeys(map(tuple, cliques), 1)
        found: dict[Clique, int] = {}
        for columns, weight in given.items():
            if isinstance(columns, str):
                raise ParameterTypeError("workload", columns, "cliques are lists of columns")
            clique = domain.clique(columns)
            if not clique:
                raise ParameterError("workload", "an empty clique", "name one column or more")
            found[clique] = found.get(clique, 0) + whole(weight, "workload")
        if not 0 < len(found) <= _MOST:
            raise ParameterError("workload", len(found), f"must be 1 to {_MOST:,} cliques")
        object.__setattr__(self, "cliques", tuple(found))
        object.__setattr__(self, "weights", tuple(found.values()))

    @classmethod
    def of_fields(cls, *, cliques: tuple[Clique, ...], weights: tuple[int, ...]) -> Workload:
        """Made again of what another one holds; a domain is to look at its columns."""
        if len(cliques) != len(weights):
            raise ParameterError("workload", len(weights), "has one weight for each clique")
        made = object.__new__(cls)
        named = tuple(read_names(each, "workload") for each in cliques)
        object.__setattr__(made, "cliques", named)
        object.__setattr__(made, "weights", tuple(whole(each, "workload") for each in weights))
        return made

    @classmethod
    def all_of(cls, domain: Domain, way: int) -> Workload:
        """All marginals of so many columns, or of all columns where there are fewer."""
        size = min(whole(way, "way"), len(domain))
        return cls(domain, combinations(domain.columns, size))

    def closure(self) -> dict[Clique, int]:
        """Every clique inside one of the workload, with w_r = Σ_s weight_s |r ∩ s|.

        This is how AIM weighs its candidates (McKenna et al. 2022, Sec. 4.2).
        """
        listed = sum(2 ** len(clique) - 1 for clique in self.cliques)
        if listed > _MOST_INSIDE:  # told before they are listed
            raise _too_much(listed)
        # |r ∩ s| counts columns one by one, so r weighs the sum of what its columns weigh.
        found, heavy = set[Clique](), dict[str, int]()
        for clique, weight in zip(self.cliques, self.weights, strict=True):
            for size in range(1, len(clique) + 1):
                found.update(combinations(clique, size))
            for column in clique:
                heavy[column] = heavy.get(column, 0) + weight
        if len(found) > _MOST:
            raise _too_much(len(found))
        ordered = sorted(found, key=lambda r: (len(r), r))
        return {r: sum(heavy[column] for column in r) for r in ordered}


def _too_much(cliques: int) -> ParameterError:
    return ParameterError(
        "workload",
        f"{cliques:,} marginals",
        f"are inside of its cliques, above {_MOST:,}; name smaller or fewer cliques",
    )
