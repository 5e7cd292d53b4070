"""Boosting for queries (Dwork, Rothblum & Vadhan 2010), on small domains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

from deniable.errors import ParameterError
from deniable.privacy.exact import whole
from deniable.synthesis.domain import Codes, Domain, Floats
from deniable.synthesis.measure import Draws
from deniable.synthesis.method import Progress, silent
from deniable.synthesis.model.dense import DenseModel, check_dense
from deniable.synthesis.pmw import taught
from deniable.synthesis.queries import Counting
from deniable.synthesis.scores import BoostedQuery

_TOTAL, _CHOSEN = Fraction(1, 50), Fraction(1, 4)


@dataclass(frozen=True, kw_only=True)
class Boosting:
    """Rounds that sample queries which earlier synopses get wrong, and make a synopsis of those.

    Each round draws `sample` queries with probability growing in how many synopses so far get them
    wrong, measures them, and fits one synopsis to those answers. A query is answered by the median
    of all synopses. Sampling a query is an exponential mechanism on votes that move by two counts
    for each synopsis; a quarter of the price is for sampling, a fiftieth counts the rows.
    """

    queries: Sequence[Counting]
    rounds: int = 8
    sample: int = 8
    passes: int = 50

    def check(self, domain: Domain) -> None:
        check_dense(domain)
        if not self.queries:
            raise ParameterError("queries", "none", "name one query or more")

    def run(self, draws: Draws, progress: Progress = silent) -> Boosted:
        self.check(draws.domain)
        rounds, sample = whole(self.rounds, "rounds"), whole(self.sample, "sample")
        total = max(1.0, float(draws.measure((), draws.whole * _TOTAL).values))
        share = draws.left / (rounds * sample)
        measured = share * (1 - _CHOSEN)
        noise = draws.deviation(measured)
        synopses: list[DenseModel] = []
        for done in range(rounds):
            wrong = BoostedQuery(
                self.queries,
                [_answers(each, self.queries) for each in synopses],
                right=2 * noise,
                width=4 * noise,
            )
            places = [draws.choose(wrong, share - measured) for _ in range(sample)]
            history = [
                (self.queries[place], float(draws.count(self.queries[place], measured).values))
                for place in places
            ]
            uniform = DenseModel.uniform(draws.domain, total)
            synopses.append(taught(uniform, history, self.passes))
            progress((done + 1) / rounds)
        return Boosted(tuple(synopses))


@dataclass(frozen=True, eq=False)
class Boosted:
    """Several synopses, which answer by their median."""

    synopses: tuple[DenseModel, ...]
    domain: Domain = field(init=False)
    total: float = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", self.synopses[0].domain)
        object.__setattr__(self, "total", self.synopses[0].total)

    def answer(self, query: Counting) -> float:
        return float(np.median([query.of(each.marginal(query.clique)) for each in self.synopses]))

    def marginal(self, columns: Sequence[str]) -> Floats:
        """Cell by cell the median of the synopses."""
        return np.median([each.marginal(columns) for each in self.synopses], axis=0)

    def sample(self, rows: int) -> Codes:
        """Rows of the mixture of all synopses, equally."""
        logs = np.log(np.mean([each.probabilities for each in self.synopses], axis=0))
        return DenseModel(self.domain, self.total, logs).sample(rows)


def _answers(model: DenseModel, queries: Sequence[Counting]) -> Floats:
    marginals = {query.clique: model.marginal(query.clique) for query in queries}
    return np.array([query.of(marginals[query.clique]) for query in queries])
