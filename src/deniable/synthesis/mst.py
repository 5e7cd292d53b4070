"""MST: the marginals of single columns, and a tree of pairs (McKenna, Miklau & Sheldon 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

from deniable.errors import ParameterError
from deniable.privacy.exact import Number, positive
from deniable.synthesis.domain import Clique, Domain
from deniable.synthesis.measure import Draws
from deniable.synthesis.method import Progress, silent
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.fit import fit
from deniable.synthesis.rare import Unmerged, merged_singles
from deniable.synthesis.scores import WrongMarginal


@dataclass(frozen=True, kw_only=True)
class MST:
    """Measure all columns, choose a spanning tree of pairs, measure those, fit a tree model.

    A third of the price goes to each step; where noise drowns single columns, they get half of what
    is for choices besides. Pairs are chosen one after another among those that join
    two parts of the forest (Kruskal), by how wrong independent columns get them. Rare values, below
    three standard deviations, are merged before pairs are looked at. Privacy: `Draws`.
    """

    max_megabytes: Number = 80
    iterations: int = 400

    def check(self, domain: Domain) -> None:
        """The marginals of all pairs must fit: they are looked at side by side."""
        cells = (sum(domain.sizes) ** 2 - sum(size**2 for size in domain.sizes)) // 2
        size, most = cells * 8 / 2**20, float(positive(self.max_megabytes, "max_megabytes"))
        if size > most:
            raise ParameterError(
                "domain",
                f"{size:,.3g} MB",
                f"is what all pairs of columns take, above max_megabytes={most:g}; allow more, or "
                "use fewer columns or bins",
            )

    def run(self, draws: Draws, progress: Progress = silent) -> Model:
        third, declared = draws.whole / 3, draws.domain
        self.check(declared)
        known, merges = merged_singles(draws, third / len(declared), third / 2)
        fitted = fit(draws.domain, known, iterations=self.iterations)
        progress(1 / 3)
        pairs = []
        for pair in self._tree(draws, fitted.model):
            pairs.append(draws.measure(pair, third / (len(declared) - 1)))
        fitted = fit(draws.domain, known + pairs, start=fitted, iterations=self.iterations)
        return Unmerged(fitted.model, merges, declared)

    def _tree(self, draws: Draws, model: Model) -> list[Clique]:
        """Pairs that join all columns, each chosen for its share."""
        part = {column: column for column in draws.domain.columns}
        every = {pair: model.marginal(pair) for pair in combinations(part, 2)}
        chosen: list[Clique] = []
        share = (draws.left - draws.whole / 3) / max(1, len(part) - 1)
        for _ in range(len(part) - 1):
            joining = [pair for pair in every if part[pair[0]] != part[pair[1]]]
            place = draws.choose(
                WrongMarginal(
                    joining, [every[p] for p in joining], [1] * len(joining), [0.0] * len(joining)
                ),
                share,
            )
            pair = joining[place]
            chosen.append(pair)
            old, new = part[pair[1]], part[pair[0]]
            part = {column: new if name == old else name for column, name in part.items()}
        return chosen
