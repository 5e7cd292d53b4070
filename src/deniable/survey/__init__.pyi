"""The names of the namespace, each with its home."""

from . import (
    codebook as codebook,
    compare as compare,
    compliance as compliance,
    crosstab as crosstab,
    designs as designs,
    planner as planner,
    regression as regression,
    sentences as sentences,
    two_samples as two_samples,
    weights as weights,
)
from .adjust import (
    AdjustedShares as AdjustedShares,
    clipped as clipped,
    iterative_bayes as iterative_bayes,
    norm_sub as norm_sub,
    on_simplex as on_simplex,
)
from .averages import MeanEstimate as MeanEstimate
from .best import best_protocol as best_protocol, protocol_table as protocol_table
from .bit_flip import BitFlip as BitFlip
from .client import Client as Client
from .estimates import estimate as estimate, estimate_counts as estimate_counts
from .hadamard import HadamardResponse as HadamardResponse
from .heavy_hitters import HeavyHitters as HeavyHitters
from .hierarchy import Hierarchy as Hierarchy
from .kary import KaryResponse as KaryResponse
from .lasting import LastingResponse as LastingResponse, Rappor as Rappor
from .local_hashing import LocalHashing as LocalHashing
from .means import (
    HybridMean as HybridMean,
    OneBitMean as OneBitMean,
    PiecewiseMean as PiecewiseMean,
)
from .places import Places as Places
from .several import SampleOne as SampleOne, Together as Together
from .shares import ShareEstimate as ShareEstimate
from .shuffle import in_the_crowd as in_the_crowd
from .sketches import CountMeanSketch as CountMeanSketch, HadamardSketch as HadamardSketch
from .square_wave import SquareWave as SquareWave
from .subset import SubsetSelection as SubsetSelection
from .unary import UnaryEncoding as UnaryEncoding
from .wire import Item as Item, read_item as read_item
