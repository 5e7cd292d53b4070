"""Sensitive surveys: people randomise their own answers, and shares are estimated all the same.

Designs on paper and their statistics are modules (`survey.designs`, `survey.planner`, ...); the
protocols of the local model are names here. All are loaded when they are first used.
"""

import lazy_loader

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from deniable.survey import (
        codebook,
        compare,
        compliance,
        crosstab,
        designs,
        planner,
        regression,
        sentences,
        two_samples,
        weights,
    )
    from deniable.survey.adjust import (
        AdjustedShares,
        clipped,
        iterative_bayes,
        norm_sub,
        on_simplex,
    )
    from deniable.survey.averages import MeanEstimate
    from deniable.survey.best import best_protocol, protocol_table
    from deniable.survey.bit_flip import BitFlip
    from deniable.survey.client import Client
    from deniable.survey.estimates import estimate, estimate_counts
    from deniable.survey.hadamard import HadamardResponse
    from deniable.survey.heavy_hitters import HeavyHitters
    from deniable.survey.hierarchy import Hierarchy
    from deniable.survey.kary import KaryResponse
    from deniable.survey.lasting import LastingResponse, Rappor
    from deniable.survey.local_hashing import LocalHashing
    from deniable.survey.means import HybridMean, OneBitMean, PiecewiseMean
    from deniable.survey.places import Places
    from deniable.survey.several import SampleOne, Together
    from deniable.survey.shares import ShareEstimate
    from deniable.survey.shuffle import in_the_crowd
    from deniable.survey.sketches import CountMeanSketch, HadamardSketch
    from deniable.survey.square_wave import SquareWave
    from deniable.survey.subset import SubsetSelection
    from deniable.survey.unary import UnaryEncoding
    from deniable.survey.wire import Item, read_item

__all__ = [
    "AdjustedShares",
    "BitFlip",
    "Client",
    "CountMeanSketch",
    "HadamardResponse",
    "HadamardSketch",
    "HeavyHitters",
    "Hierarchy",
    "HybridMean",
    "Item",
    "KaryResponse",
    "LastingResponse",
    "LocalHashing",
    "MeanEstimate",
    "OneBitMean",
    "PiecewiseMean",
    "Places",
    "Rappor",
    "SampleOne",
    "ShareEstimate",
    "SquareWave",
    "SubsetSelection",
    "Together",
    "UnaryEncoding",
    "best_protocol",
    "clipped",
    "codebook",
    "compare",
    "compliance",
    "crosstab",
    "designs",
    "estimate",
    "estimate_counts",
    "in_the_crowd",
    "iterative_bayes",
    "norm_sub",
    "on_simplex",
    "planner",
    "protocol_table",
    "read_item",
    "regression",
    "sentences",
    "two_samples",
    "weights",
]

_HOMES = {
    "adjust": ("AdjustedShares", "clipped", "iterative_bayes", "norm_sub", "on_simplex"),
    "averages": ("MeanEstimate",),
    "bit_flip": ("BitFlip",),
    "best": ("best_protocol", "protocol_table"),
    "client": ("Client",),
    "means": ("HybridMean", "OneBitMean", "PiecewiseMean"),
    "estimates": ("estimate", "estimate_counts"),
    "hadamard": ("HadamardResponse",),
    "heavy_hitters": ("HeavyHitters",),
    "hierarchy": ("Hierarchy",),
    "kary": ("KaryResponse",),
    "lasting": ("LastingResponse", "Rappor"),
    "local_hashing": ("LocalHashing",),
    "places": ("Places",),
    "several": ("SampleOne", "Together"),
    "shares": ("ShareEstimate",),
    "shuffle": ("in_the_crowd",),
    "sketches": ("CountMeanSketch", "HadamardSketch"),
    "square_wave": ("SquareWave",),
    "subset": ("SubsetSelection",),
    "unary": ("UnaryEncoding",),
    "wire": ("Item", "read_item"),
}
_MODULES = (
    "codebook",
    "compare",
    "compliance",
    "crosstab",
    "designs",
    "planner",
    "regression",
    "sentences",
    "two_samples",
    "weights",
)
_MOVED = {"Question": "deniable.survey.Item", "read_question": "deniable.survey.read_item"}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> object:
    """Load a module of the namespace, or a public name from the module that holds it."""
    if name in _MODULES:
        return import_module(f"deniable.survey.{name}")
    if name in _MOVED:
        raise AttributeError(f"deniable.survey.{name} is {_MOVED[name]} now")
    if name not in _HOME:
        raise AttributeError(f"module 'deniable.survey' has no attribute {name!r}")
    value: object = getattr(import_module(f"deniable.survey.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
