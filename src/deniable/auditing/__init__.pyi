"""The names of the namespace, each with its home."""

from . import attacks as attacks
from .neighbours import NeighbourPair as NeighbourPair, nasty_neighbours as nasty_neighbours
from .oblivious import (
    Oblivious as Oblivious,
    least_expected_loss as least_expected_loss,
    oblivious as oblivious,
)
from .replay import Replay as Replay
from .search import WorstPair as WorstPair, sensitivity_search as sensitivity_search
from .verdict import AuditReport as AuditReport
from .verify import Verified as Verified
