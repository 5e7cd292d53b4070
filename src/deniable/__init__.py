"""Deniable: answers about people that give no person away.

The names and their homes stand in `__init__.pyi`; they are loaded when they are first used, so that
`import deniable` costs next to nothing.
"""

from contextlib import suppress
from importlib import import_module

if TYPE_CHECKING:
    from deniable import survey
    from deniable.answer import Answer
    from deniable.auditing import attacks
    from deniable.auditing.audit import audit
    from deniable.auditing.neighbours import NeighbourPair, nasty_neighbours
    from deniable.auditing.oblivious import Oblivious, least_expected_loss, oblivious
    from deniable.auditing.replay import Replay, replay
    from deniable.auditing.search import WorstPair, sensitivity_search
    from deniable.auditing.verdict import AuditReport
    from deniable.auditing.verify import Verified, verify, verify_channel
    from deniable.engines.csv_format import csv
    from deniable.engines.duckdb import duckdb
    from deniable.engines.postgres import postgres
    from deniable.engines.spark import spark
    from deniable.errors import (
        AdmissionError,
        BudgetError,
        CalibrationError,
        DeniableError,
        DoorError,
        EngineError,
        LedgerError,
        LedgerTamperedError,
        LossFormatError,
        MissingExtraError,
        NotAnsweredError,
        ParameterError,
        ParameterTypeError,
        PrivateValueError,
        QueryError,
        RandomnessError,
        RelationError,
        ReleaseFailedError,
        ReportError,
        StreamExhaustedError,
        SurveyStoreError,
        TokenError,
        TokenSpentError,
        TokenStoreError,
    )
    from deniable.learning.bayes import GaussianNB
    from deniable.learning.blocks import SubsampledEstimator
    from deniable.learning.clustering import KMeans
    from deniable.learning.fit import fit
    from deniable.learning.linear import LinearRegression, Ridge
    from deniable.learning.logistic import LogisticRegression
    from deniable.learning.pca import PCA
    from deniable.learning.perturbed import PerturbedLogisticRegression
    from deniable.learning.projected import ProjectedDescent
    from deniable.learning.scaling import StandardScaler
    from deniable.learning.sgd import SGDClassifier
    from deniable.ledger.filters import Budget
    from deniable.ledger.ledger import Ledger
    from deniable.mechanisms.base import post_process
    from deniable.mechanisms.gaussian import DiscreteGaussian, Gaussian
    from deniable.mechanisms.histogram import Histogram, StabilityHistogram
    from deniable.mechanisms.laplace import Geometric, Laplace
    from deniable.mechanisms.metric import MetricExponential
    from deniable.mechanisms.noisy_max import ReportNoisyMax
    from deniable.mechanisms.planar import PlanarLaplace
    from deniable.mechanisms.propose_test_release import ProposeTestRelease
    from deniable.mechanisms.quantile import Quantile
    from deniable.mechanisms.response import RandomizedResponse
    from deniable.mechanisms.selection import Exponential, PermuteAndFlip, Scores, TopK
    from deniable.mechanisms.sparse_vector import SparseVector
    from deniable.mechanisms.subsample import SubsampleAggregate
    from deniable.mechanisms.truncated import TruncatedGeometric
    from deniable.privacy.accountants.pld import Bounds
    from deniable.privacy.amplification import shuffled
    from deniable.privacy.calibrate import least_epsilon, least_noise, most_releases
    from deniable.privacy.channel import Channel
    from deniable.privacy.composition import compose, repeat
    from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, PureDP
    from deniable.privacy.losses.base import Loss
    from deniable.privacy.losses.channel import ChannelLoss
    from deniable.privacy.losses.gaussian import DiscreteGaussianLoss, GaussianLoss
    from deniable.privacy.losses.generic import ApproxLoss, PureLoss
    from deniable.privacy.losses.laplace import DiscreteLaplaceLoss, LaplaceLoss
    from deniable.privacy.losses.response import RandomizedResponseLoss
    from deniable.privacy.losses.sampled import SampledLoss, poisson_sampled
    from deniable.privacy.losses.selection import ExponentialLoss
    from deniable.privacy.parallel import parallel
    from deniable.privacy.pictures import plot_growth, plot_profile, plot_tradeoff
    from deniable.privacy.price import Price
    from deniable.privacy.theorems import (
        advanced_composition,
        basic_composition,
        kairouz_composition,
        optimal_composition,
    )
    from deniable.privacy.units import ROW, Relation, Unit
    from deniable.privacy.wire import loss_from_json, loss_to_json
    from deniable.query.read.build import (
        count,
        count_distinct,
        maximum,
        mean,
        median,
        minimum,
        quantile,
        stddev,
        total,
        variance,
    )
    from deniable.query.show.explain import Explanation
    from deniable.release import Gate
    from deniable.session import Session
    from deniable.survey.best import best_protocol
    from deniable.synthesis.aim import AIM
    from deniable.synthesis.boosting import Boosting
    from deniable.synthesis.data import CodedRows
    from deniable.synthesis.domain import Domain
    from deniable.synthesis.evaluate import evaluate
    from deniable.synthesis.fixed import FixedMarginals, Independent
    from deniable.synthesis.history import errors_in_theory, plot_history
    from deniable.synthesis.measure import open_draws
    from deniable.synthesis.mst import MST
    from deniable.synthesis.mwem import MWEM
    from deniable.synthesis.online import answer_online
    from deniable.synthesis.pmw import PrivateMultiplicativeWeights
    from deniable.synthesis.queries import Counting
    from deniable.synthesis.smalldb import SmallDB
    from deniable.synthesis.synthesize import synthesize
    from deniable.synthesis.synthetic import SyntheticTable
    from deniable.synthesis.workload import Workload
    from deniable.tables import PrivateTable, PublicTable

__version__ = "0.1.0"
_NAMESPACES = ("losses", "auditing", "synthesis", "learning", "survey", "errors")

__all__ = [
    "AIM",
    "GDP",
    "MST",
    "MWEM",
    "PCA",
    "ROW",
    "ZCDP",
    "AdmissionError",
    "Answer",
    "ApproxDP",
    "ApproxLoss",
    "AuditReport",
    "Boosting",
    "Bounds",
    "Budget",
    "BudgetError",
    "CalibrationError",
    "Channel",
    "ChannelLoss",
    "CodedRows",
    "Counting",
    "DeniableError",
    "DiscreteGaussian",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "Domain",
    "DoorError",
    "EngineError",
    "Explanation",
    "Exponential",
    "ExponentialLoss",
    "FixedMarginals",
    "Gate",
    "Gaussian",
    "GaussianLoss",
    "GaussianNB",
    "Geometric",
    "Histogram",
    "Independent",
    "KMeans",
    "Laplace",
    "LaplaceLoss",
    "Ledger",
    "LedgerError",
    "LedgerTamperedError",
    "LinearRegression",
    "LogisticRegression",
    "Loss",
    "LossFormatError",
    "MetricExponential",
    "MissingExtraError",
    "NeighbourPair",
    "NotAnsweredError",
    "Oblivious",
    "ParameterError",
    "ParameterTypeError",
    "PermuteAndFlip",
    "PerturbedLogisticRegression",
    "PlanarLaplace",
    "Price",
    "PrivateMultiplicativeWeights",
    "PrivateTable",
    "PrivateValueError",
    "ProjectedDescent",
    "ProposeTestRelease",
    "PublicTable",
    "PureDP",
    "PureLoss",
    "Quantile",
    "QueryError",
    "RandomizedResponse",
    "RandomizedResponseLoss",
    "RandomnessError",
    "Relation",
    "RelationError",
    "ReleaseFailedError",
    "Replay",
    "ReportError",
    "ReportNoisyMax",
    "Ridge",
    "SGDClassifier",
    "SampledLoss",
    "Scores",
    "Session",
    "SmallDB",
    "SparseVector",
    "StabilityHistogram",
    "StandardScaler",
    "StreamExhaustedError",
    "SubsampleAggregate",
    "SubsampledEstimator",
    "SurveyStoreError",
    "SyntheticTable",
    "TokenError",
    "TokenSpentError",
    "TokenStoreError",
    "TopK",
    "TruncatedGeometric",
    "Unit",
    "Verified",
    "Workload",
    "WorstPair",
    "advanced_composition",
    "answer_online",
    "attacks",
    "audit",
    "basic_composition",
    "best_protocol",
    "compose",
    "count",
    "count_distinct",
    "csv",
    "duckdb",
    "errors_in_theory",
    "evaluate",
    "fit",
    "kairouz_composition",
    "least_epsilon",
    "least_expected_loss",
    "least_noise",
    "loss_from_json",
    "loss_to_json",
    "maximum",
    "mean",
    "median",
    "minimum",
    "most_releases",
    "nasty_neighbours",
    "oblivious",
    "open_draws",
    "optimal_composition",
    "parallel",
    "plot_growth",
    "plot_history",
    "plot_profile",
    "plot_tradeoff",
    "poisson_sampled",
    "post_process",
    "postgres",
    "quantile",
    "repeat",
    "replay",
    "sensitivity_search",
    "shuffled",
    "spark",
    "stddev",
    "survey",
    "synthesize",
    "total",
    "variance",
    "verify",
    "verify_channel",
]

_HOMES = {
    "deniable": ("survey",),
    "deniable.synthesis.aim": ("AIM",),
    "deniable.synthesis.boosting": ("Boosting",),
    "deniable.synthesis.data": ("CodedRows",),
    "deniable.synthesis.domain": ("Domain",),
    "deniable.synthesis.fixed": (
        "FixedMarginals",
        "Independent",
    ),
    "deniable.synthesis.history": ("errors_in_theory", "plot_history"),
    "deniable.synthesis.measure": ("open_draws",),
    "deniable.synthesis.mst": ("MST",),
    "deniable.synthesis.mwem": ("MWEM",),
    "deniable.synthesis.online": ("answer_online",),
    "deniable.synthesis.pmw": ("PrivateMultiplicativeWeights",),
    "deniable.synthesis.queries": ("Counting",),
    "deniable.synthesis.smalldb": ("SmallDB",),
    "deniable.synthesis.evaluate": ("evaluate",),
    "deniable.synthesis.synthesize": ("synthesize",),
    "deniable.synthesis.synthetic": ("SyntheticTable",),
    "deniable.synthesis.workload": ("Workload",),
    "deniable.answer": ("Answer",),
    "deniable.auditing": ("attacks",),
    "deniable.engines.csv_format": ("csv",),
    "deniable.engines.duckdb": ("duckdb",),
    "deniable.engines.postgres": ("postgres",),
    "deniable.engines.spark": ("spark",),
    "deniable.query.read.build": (
        "count",
        "count_distinct",
        "maximum",
        "mean",
        "median",
        "minimum",
        "quantile",
        "stddev",
        "total",
        "variance",
    ),
    "deniable.query.show.explain": ("Explanation",),
    "deniable.session": ("Session",),
    "deniable.survey.best": ("best_protocol",),
    "deniable.tables": ("PrivateTable", "PublicTable"),
    "deniable.auditing.audit": ("audit",),
    "deniable.auditing.verdict": ("AuditReport",),
    "deniable.auditing.neighbours": ("NeighbourPair", "nasty_neighbours"),
    "deniable.auditing.oblivious": ("Oblivious", "least_expected_loss", "oblivious"),
    "deniable.auditing.replay": ("Replay", "replay"),
    "deniable.auditing.search": ("WorstPair", "sensitivity_search"),
    "deniable.auditing.verify": ("Verified", "verify", "verify_channel"),
    "deniable.errors": (
        "AdmissionError",
        "BudgetError",
        "CalibrationError",
        "DeniableError",
        "DoorError",
        "EngineError",
        "QueryError",
        "LedgerError",
        "LedgerTamperedError",
        "NotAnsweredError",
        "ReleaseFailedError",
        "ReportError",
        "LossFormatError",
        "MissingExtraError",
        "ParameterError",
        "ParameterTypeError",
        "PrivateValueError",
        "RandomnessError",
        "RelationError",
        "StreamExhaustedError",
        "TokenError",
        "TokenSpentError",
        "TokenStoreError",
        "SurveyStoreError",
    ),
    "deniable.learning.bayes": ("GaussianNB",),
    "deniable.learning.blocks": ("SubsampledEstimator",),
    "deniable.learning.clustering": ("KMeans",),
    "deniable.learning.fit": ("fit",),
    "deniable.learning.linear": (
        "LinearRegression",
        "Ridge",
    ),
    "deniable.learning.logistic": ("LogisticRegression",),
    "deniable.learning.pca": ("PCA",),
    "deniable.learning.projected": ("ProjectedDescent",),
    "deniable.learning.scaling": ("StandardScaler",),
    "deniable.learning.perturbed": ("PerturbedLogisticRegression",),
    "deniable.learning.sgd": ("SGDClassifier",),
    "deniable.ledger.filters": ("Budget",),
    "deniable.ledger.ledger": ("Ledger",),
    "deniable.release": ("Gate",),
    "deniable.mechanisms.base": ("post_process",),
    "deniable.mechanisms.gaussian": (
        "DiscreteGaussian",
        "Gaussian",
    ),
    "deniable.mechanisms.histogram": (
        "Histogram",
        "StabilityHistogram",
    ),
    "deniable.mechanisms.laplace": (
        "Geometric",
        "Laplace",
    ),
    "deniable.mechanisms.metric": ("MetricExponential",),
    "deniable.mechanisms.noisy_max": ("ReportNoisyMax",),
    "deniable.mechanisms.planar": ("PlanarLaplace",),
    "deniable.mechanisms.propose_test_release": ("ProposeTestRelease",),
    "deniable.mechanisms.quantile": ("Quantile",),
    "deniable.mechanisms.response": ("RandomizedResponse",),
    "deniable.mechanisms.selection": (
        "Exponential",
        "PermuteAndFlip",
        "Scores",
        "TopK",
    ),
    "deniable.mechanisms.sparse_vector": ("SparseVector",),
    "deniable.mechanisms.subsample": ("SubsampleAggregate",),
    "deniable.mechanisms.truncated": ("TruncatedGeometric",),
    "deniable.privacy.accountants.pld": ("Bounds",),
    "deniable.privacy.amplification": ("shuffled",),
    "deniable.privacy.calibrate": (
        "least_epsilon",
        "least_noise",
        "most_releases",
    ),
    "deniable.privacy.losses.sampled": (
        "SampledLoss",
        "poisson_sampled",
    ),
    "deniable.privacy.pictures": (
        "plot_growth",
        "plot_profile",
        "plot_tradeoff",
    ),
    "deniable.privacy.theorems": (
        "advanced_composition",
        "basic_composition",
        "kairouz_composition",
        "optimal_composition",
    ),
    "deniable.privacy.channel": ("Channel",),
    "deniable.privacy.composition": (
        "compose",
        "repeat",
    ),
    "deniable.privacy.guarantees": (
        "GDP",
        "ZCDP",
        "ApproxDP",
        "PureDP",
    ),
    "deniable.privacy.losses.base": ("Loss",),
    "deniable.privacy.losses.channel": ("ChannelLoss",),
    "deniable.privacy.losses.gaussian": (
        "DiscreteGaussianLoss",
        "GaussianLoss",
    ),
    "deniable.privacy.losses.generic": (
        "ApproxLoss",
        "PureLoss",
    ),
    "deniable.privacy.losses.laplace": (
        "DiscreteLaplaceLoss",
        "LaplaceLoss",
    ),
    "deniable.privacy.losses.response": ("RandomizedResponseLoss",),
    "deniable.privacy.losses.selection": ("ExponentialLoss",),
    "deniable.privacy.parallel": ("parallel",),
    "deniable.privacy.price": ("Price",),
    "deniable.privacy.units": (
        "ROW",
        "Relation",
        "Unit",
    ),
    "deniable.privacy.wire": (
        "loss_from_json",
        "loss_to_json",
    ),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a public name from its home; a name that stands in a namespace is told with it."""
    if name not in __all__ and not name.startswith("_"):
        for namespace in _NAMESPACES:
            with suppress(ImportError):  # one that needs an extra package
                if name in import_module(f"{__name__}.{namespace}").__all__:
                    raise AttributeError(f"deniable.{name} is deniable.{namespace}.{name}")
    value: object = _load(name)
    return value
