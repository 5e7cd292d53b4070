"""The public names, each with its home."""

from . import (
    auditing as auditing,
    errors as errors,
    learning as learning,
    losses as losses,
    survey as survey,
    synthesis as synthesis,
)
from .answer import Answer as Answer
from .auditing.exact.verification import verify as verify, verify_channel as verify_channel
from .auditing.replay.replays import replay as replay
from .auditing.sampled.audits import audit as audit
from .engines.csv_format import csv as csv
from .engines.duckdb import duckdb as duckdb
from .engines.postgres import postgres as postgres
from .engines.spark import spark as spark
from .errors import (
    BudgetError as BudgetError,
    DeniableError as DeniableError,
    EngineError as EngineError,
    LedgerError as LedgerError,
    NotAnsweredError as NotAnsweredError,
    ParameterError as ParameterError,
    QueryError as QueryError,
    ReleaseFailedError as ReleaseFailedError,
)
from .learning.fit import fit as fit
from .ledger.filters import Budget as Budget
from .ledger.ledger import Ledger as Ledger
from .mechanisms.base import post_process as post_process
from .mechanisms.gaussian import DiscreteGaussian as DiscreteGaussian, Gaussian as Gaussian
from .mechanisms.histogram import Histogram as Histogram, StabilityHistogram as StabilityHistogram
from .mechanisms.laplace import Geometric as Geometric, Laplace as Laplace
from .mechanisms.metric import MetricExponential as MetricExponential
from .mechanisms.noisy_max import ReportNoisyMax as ReportNoisyMax
from .mechanisms.planar import PlanarLaplace as PlanarLaplace
from .mechanisms.propose_test_release import ProposeTestRelease as ProposeTestRelease
from .mechanisms.quantile import Quantile as Quantile
from .mechanisms.response import RandomizedResponse as RandomizedResponse
from .mechanisms.selection import (
    Exponential as Exponential,
    PermuteAndFlip as PermuteAndFlip,
    Scores as Scores,
    TopK as TopK,
)
from .mechanisms.sparse_vector import SparseVector as SparseVector
from .mechanisms.subsample import SubsampleAggregate as SubsampleAggregate
from .mechanisms.truncated import TruncatedGeometric as TruncatedGeometric
from .privacy.channel import Channel as Channel
from .privacy.composition import compose as compose, repeat as repeat
from .privacy.guarantees import GDP as GDP, ZCDP as ZCDP, ApproxDP as ApproxDP, PureDP as PureDP
from .privacy.losses.base import Loss as Loss
from .privacy.parallel import parallel as parallel
from .privacy.price import Price as Price
from .privacy.units import ROW as ROW, Relation as Relation, Unit as Unit
from .query.read.build import (
    count as count,
    count_distinct as count_distinct,
    maximum as maximum,
    mean as mean,
    median as median,
    minimum as minimum,
    quantile as quantile,
    stddev as stddev,
    total as total,
    variance as variance,
)
from .query.show.explain import Explanation as Explanation
from .release import Gate as Gate
from .session import Session as Session
from .synthesis.synthesize import synthesize as synthesize
from .tables import PrivateTable as PrivateTable, PublicTable as PublicTable

__version__: str
__all__: list[str]
