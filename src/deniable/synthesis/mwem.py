"""MWEM: multiplicative weights and the exponential mechanism (Hardt, Ligett & McSherry 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from deniable.privacy.exact import Number, positive, whole
from deniable.synthesis.domain import Domain
from deniable.synthesis.measure import Draws
from deniable.synthesis.method import Progress, silent
from deniable.synthesis.model.base import Model
from deniable.synthesis.model.dense import DenseModel, check_dense, replayed
from deniable.synthesis.scores import WrongMarginal
from deniable.synthesis.workload import Workload

_TOTAL = Fraction(1, 50)
_MEASURED = Fraction(9, 10)


@dataclass(frozen=True, kw_only=True)
class MWEM:
    """Rounds that choose the worst marginal of a workload, measure it, and replay all history.

    Under a pure price each round spends half on the choice and half on the measurement; in zCDP a
    tenth and nine tenths. A fiftieth of the price counts the rows, which are not public. Privacy:
    `Draws`. Accuracy, pure, for n rows, with probability 1 - 2T/|Q|: no query errs by more than
    2n sqrt(ln|X|/T) + 10 T ln|Q|/ε (their Thm 2.2).
    """

    workload: Workload
    rounds: int = 20
    passes: int = 100
    max_megabytes: Number = 80

    def check(self, domain: Domain) -> None:
        check_dense(domain, positive(self.max_megabytes, "max_megabytes"))

    def run(self, draws: Draws, progress: Progress = silent) -> Model:
        self.check(draws.domain)
        rounds = whole(self.rounds, "rounds")
        counted = draws.measure((), draws.whole * _TOTAL)
        total = max(1.0, float(counted.values))
        share = draws.left / rounds
        measured = share * (Fraction(1, 2) if draws.amount.pure else _MEASURED)
        model, history = DenseModel.uniform(draws.domain, total), []
        cliques = list(self.workload.cliques)
        handicap = draws.noise_size(measured)
        for done in range(rounds):
            place = draws.choose(
                WrongMarginal(
                    cliques,
                    [model.marginal(clique) for clique in cliques],
                    list(self.workload.weights),
                    [handicap * draws.domain.size(clique) for clique in cliques],
                ),
                share - measured,
            )
            history.append(draws.measure(cliques[place], measured))
            model = replayed(model, history, passes=self.passes)
            progress((done + 1) / rounds)
        return model
