"""AIM: measure what the model gets most wrong, again and again (McKenna et al. 2022)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.exact import Number, positive
from deniable.synthesis.domain import Clique, Domain
from deniable.synthesis.measure import Draws
from deniable.synthesis.measurement import Measurement
from deniable.synthesis.method import Progress, silent
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.fit import fit
from deniable.synthesis.model.junction import JunctionTree, tree_cells
from deniable.synthesis.rare import Unmerged, merged_singles
from deniable.synthesis.scores import WrongMarginal
from deniable.synthesis.workload import Workload

_MEASURED = Fraction(9, 10)
_ROUNDS = 16


@dataclass(frozen=True, kw_only=True)
class AIM:
    """An adaptive and iterative mechanism for any workload of marginals.

    Each round chooses, by an exponential mechanism, the marginal with the largest weighted error
    beyond what noise would explain, measures it, and refits the model. Shares grow fourfold when a
    measurement told nothing new. Beyond the paper, single columns are measured twice where their
    noise is large beside the rows, and rare values are merged. The junction tree of all that is
    measured never exceeds `max_megabytes`; the part of it that is allowed grows with the price
    spent. Which shares are spent depends on earlier draws alone, and they never add up to more than
    is reserved (`Draws`).
    """

    workload: Workload
    max_megabytes: Number = 1
    iterations: int = 30
    last_iterations: int = 400

    def check(self, domain: Domain) -> None:
        """Single columns must fit; what else is measured is chosen so that it does."""
        self.workload.closure()  # too much is refused here, not once it is charged
        cells = sum(domain.sizes)
        if cells * 8 > positive(self.max_megabytes, "max_megabytes") * 2**20:
            raise ParameterError(
                "max_megabytes",
                float(self.max_megabytes),
                f"single columns alone have {cells:,} cells; allow more, or use fewer bins",
            )

    def run(self, draws: Draws, progress: Progress = silent) -> Model:
        declared = draws.domain
        self.check(declared)
        cells = float(positive(self.max_megabytes, "max_megabytes")) * 2**20 / 8
        share = draws.whole / (_ROUNDS * len(declared))
        once = _MEASURED * share
        rest = draws.whole - once * len(declared)
        known, merges = merged_singles(draws, once, rest / 3)
        fitted = fit(draws.domain, known, iterations=self.last_iterations)
        weights = self.workload.closure()
        while True:
            last = draws.left < 2 * share
            if last:
                share = draws.left
            room = cells * float((draws.spent + share) / draws.whole)
            cliques = _fitting(fitted.model.tree, known, list(weights), room)
            measured = _round(draws, fitted.model, {c: weights[c] for c in cliques}, share)
            known.append(measured)
            before = fitted.model.marginal(measured.clique)
            fitted = fit(
                draws.domain,
                known,
                start=fitted,
                iterations=self.last_iterations if last else self.iterations,
            )
            if last:
                break
            moved = float(np.abs(fitted.model.marginal(measured.clique) - before).sum())
            if moved <= measured.noise:
                share *= 2 if draws.amount.pure else 4  # half the noise
            progress(float(draws.spent / draws.whole))
        return Unmerged(fitted.model, merges, declared)


def _round(draws: Draws, model: Model, weights: dict[Clique, int], share: Fraction) -> Measurement:
    """Choose a marginal and measure it."""
    cliques = list(weights)
    noise = draws.noise_size(_MEASURED * share)
    place = draws.choose(
        WrongMarginal(
            cliques,
            [model.marginal(clique) for clique in cliques],
            list(weights.values()),
            [noise * draws.domain.size(clique) for clique in cliques],
        ),
        (1 - _MEASURED) * share,
    )
    return draws.measure(cliques[place], _MEASURED * share)


def _fitting(
    tree: JunctionTree, known: list[Measurement], wanted: list[Clique], room: float
) -> list[Clique]:
    """Candidates with which the junction tree stays within its room, or that it holds already."""
    cliques = list(dict.fromkeys(each.clique for each in known))
    return [
        clique
        for clique in wanted
        if tree.holder(clique) is not None or tree_cells(tree.domain, [*cliques, clique]) <= room
    ]
