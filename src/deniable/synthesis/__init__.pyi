"""The names of the namespace, each with its home."""

from .aim import AIM as AIM
from .boosting import Boosting as Boosting
from .data import CodedRows as CodedRows
from .domain import Domain as Domain
from .evaluate import evaluate as evaluate
from .fixed import FixedMarginals as FixedMarginals, Independent as Independent
from .history import errors_in_theory as errors_in_theory, plot_history as plot_history
from .measure import open_draws as open_draws
from .mst import MST as MST
from .mwem import MWEM as MWEM
from .online import answer_online as answer_online
from .pmw import PrivateMultiplicativeWeights as PrivateMultiplicativeWeights
from .queries import Counting as Counting
from .smalldb import SmallDB as SmallDB
from .synthetic import SyntheticTable as SyntheticTable
from .workload import Workload as Workload
