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
)
from deniable.mechanisms.base import post_process
from deniable.mechanisms.gaussian import DiscreteGaussian, Gaussian
from deniable.mechanisms.laplace import Geometric, Laplace
from deniable.privacy.composition import compose, repeat
from deniable.privacy.guarantees import GDP, ZCDP, ApproxDP, PureDP
from deniable.privacy.losses.base import Loss
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss, GaussianLoss
from deniable.privacy.losses.generic import ApproxLoss, PureLoss
from deniable.privacy.losses.laplace import DiscreteLaplaceLoss, LaplaceLoss
from deniable.privacy.losses.response import RandomizedResponseLoss
from deniable.privacy.losses.selection import ExponentialLoss
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
    "DeniableError",
    "DiscreteGaussian",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "ExponentialLoss",
    "Gaussian",
    "GaussianLoss",
    "Geometric",
    "Laplace",
    "LaplaceLoss",
    "Loss",
    "LossFormatError",
    "MissingExtraError",
    "ParameterError",
    "ParameterTypeError",
    "Price",
    "PrivateValueError",
    "PureDP",
    "PureLoss",
    "RandomizedResponseLoss",
    "RandomnessError",
    "Relation",
    "RelationError",
    "Unit",
    "compose",
    "loss_from_json",
    "loss_to_json",
    "post_process",
    "repeat",
]
