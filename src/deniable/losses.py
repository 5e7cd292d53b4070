"""Losses as data: their kinds, composition in numbers, calibration, and pictures of them."""

from deniable.privacy.accountants.pld import EpsilonRange
from deniable.privacy.amplification import shuffled
from deniable.privacy.calibrate import least_epsilon, least_noise, most_releases
from deniable.privacy.losses.channel import ChannelLoss
from deniable.privacy.losses.gaussian import DiscreteGaussianLoss, GaussianLoss
from deniable.privacy.losses.generic import ApproxLoss, PureLoss
from deniable.privacy.losses.laplace import DiscreteLaplaceLoss, LaplaceLoss
from deniable.privacy.losses.response import RandomizedResponseLoss
from deniable.privacy.losses.sampled import SampledLoss, poisson_sampled
from deniable.privacy.losses.selection import ExponentialLoss
from deniable.privacy.pictures import plot_growth, plot_profile, plot_tradeoff
from deniable.privacy.theorems import (
    advanced_composition,
    basic_composition,
    kairouz_composition,
    optimal_composition,
)
from deniable.privacy.wire import loss_from_json, loss_to_json

__all__ = [
    "ApproxLoss",
    "ChannelLoss",
    "DiscreteGaussianLoss",
    "DiscreteLaplaceLoss",
    "EpsilonRange",
    "ExponentialLoss",
    "GaussianLoss",
    "LaplaceLoss",
    "PureLoss",
    "RandomizedResponseLoss",
    "SampledLoss",
    "advanced_composition",
    "basic_composition",
    "kairouz_composition",
    "least_epsilon",
    "least_noise",
    "loss_from_json",
    "loss_to_json",
    "most_releases",
    "optimal_composition",
    "plot_growth",
    "plot_profile",
    "plot_tradeoff",
    "poisson_sampled",
    "shuffled",
]
