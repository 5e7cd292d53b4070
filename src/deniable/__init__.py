"""Deniable: answers about people that give no person away."""

from deniable.errors import (
    CalibrationError,
    DeniableError,
    LossFormatError,
    MissingExtraError,
    ParameterError,
    ParameterTypeError,
    PrivateValueError,
    RandomnessError,
    RelationError,
    StreamExhaustedError,
)
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
from deniable.mechanisms.selection import Exponential, PermuteAndFlip, TopK
from deniable.mechanisms.sparse_vector import SparseVector
from deniable.mechanisms.subsample import SubsampleAggregate
from deniable.mechanisms.truncated import TruncatedGeometric
from deniable.privacy.channel import Channel
from deniable.privacy.composition import compose, repeat
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.channel import ChannelLoss
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss, GaussianLoss
from deniable.privacy.losses.generic import ApproxLoss, PureLoss
from deniable.privacy.losses.laplace import DiscreteLaplaceLoss, LaplaceLoss
from deniable.privacy.losses.response import RandomizedResponseLoss
from deniable.privacy.losses.selection import ExponentialLoss
from deniable.privacy.parallel import parallel
from deniable.privacy.price import Price
from deniable.privacy.units import ROW, Relation, Unit
from deniable.privacy.wire import loss_from_json, loss_to_json

__version__ = "0.1.0"

__all__ = [
    "GDP",
    "ROW",
    "ZCDP",
    "ApproxDP",
    "ApproxLoss",
    "CalibrationError",
    "Channel",
    "ChannelLoss",
    "DeniableError",
    "DiscreteGaussian",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "Exponential",
    "ExponentialLoss",
    "Gaussian",
    "GaussianLoss",
    "Geometric",
    "Histogram",
    "Laplace",
    "LaplaceLoss",
    "Loss",
    "LossFormatError",
    "MetricExponential",
    "MissingExtraError",
    "ParameterError",
    "ParameterTypeError",
    "PermuteAndFlip",
    "PlanarLaplace",
    "Price",
    "PrivateValueError",
    "ProposeTestRelease",
    "PureDP",
    "PureLoss",
    "Quantile",
    "RandomizedResponse",
    "RandomizedResponseLoss",
    "RandomnessError",
    "Relation",
    "RelationError",
    "ReportNoisyMax",
    "SparseVector",
    "StabilityHistogram",
    "StreamExhaustedError",
    "SubsampleAggregate",
    "TopK",
    "TruncatedGeometric",
    "Unit",
    "compose",
    "loss_from_json",
    "loss_to_json",
    "parallel",
    "post_process",
    "repeat",
]
