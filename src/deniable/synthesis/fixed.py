"""Methods without a choice: given marginals, or every column on its own."""

from __future__ import annotations

from dataclasses import dataclass

from deniable.errors import ParameterError
from deniable.privacy.exact import Number, positive
from deniable.synthesis.domain import Domain
from deniable.synthesis.measure import Draws
from deniable.synthesis.method import Progress, silent
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.fit import fit
from deniable.synthesis.model.junction import tree_cells
from deniable.synthesis.workload import Workload


@dataclass(frozen=True, kw_only=True)
class FixedMarginals:
    """Measure the marginals of a workload, each for its weight's share, and fit a model."""

    workload: Workload
    max_megabytes: Number = 80
    iterations: int = 1000

    def check(self, domain: Domain) -> None:
        """The junction tree of the workload must fit into its room."""
        size = tree_cells(domain, self.workload.cliques) * 8 / 2**20
        most = float(positive(self.max_megabytes, "max_megabytes"))
        if size > most:
            raise ParameterError(
                "workload",
                f"a model of {size:,.3g} MB",
                f"is above max_megabytes={most:g}; measure fewer marginals together, or use fewer "
                "bins",
            )

    def run(self, draws: Draws, progress: Progress = silent) -> Model:
        self.check(draws.domain)
        whole, weights = draws.whole, self.workload.weights
        shares = [whole * weight / sum(weights) for weight in weights]
        pairs = zip(self.workload.cliques, shares, strict=True)
        known = [draws.measure(clique, share) for clique, share in pairs]
        progress(0.5)
        return fit(draws.domain, known, iterations=self.iterations).model


@dataclass(frozen=True, kw_only=True)
class Independent:
    """Every column on its own: the line that any other method has to beat."""

    iterations: int = 1000

    def check(self, domain: Domain) -> None:
        """Any domain will do."""

    def run(self, draws: Draws, progress: Progress = silent) -> Model:
        singles = Workload(draws.domain, [(column,) for column in draws.domain.columns])
        return FixedMarginals(workload=singles, iterations=self.iterations).run(draws, progress)
