"""The names of the namespace, each with its home."""

from . import attacks as attacks
from .exact.oblivious import (
    Oblivious as Oblivious,
    least_expected_loss as least_expected_loss,
    oblivious as oblivious,
)
from .exact.search import WorstPair as WorstPair, sensitivity_search as sensitivity_search
from .exact.verification import Verified as Verified
from .replay.neighbours import NeighbourPair as NeighbourPair, nasty_neighbours as nasty_neighbours
from .replay.replays import Replay as Replay
from .sampled.one_run import OneRunReport as OneRunReport
from .sampled.verdict import AuditReport as AuditReport
