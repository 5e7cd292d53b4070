"""How far a measured share may lie from its figure, at the suite's false-alarm rate."""

import math

from scipy import stats

from chance import FALSE_ALARM

FAR = float(stats.norm.isf(FALSE_ALARM / 2))
CLUSTERED = 1.5  # people of one group, or bits of one system, are not quite independent


def margin(trials: int, share: float = 0.5) -> float:
    """Normal bounds for a share of nearly independent trials, half as wide again."""
    return CLUSTERED * FAR * math.sqrt(max(share * (1 - share), 1 / trials) / trials)


def near(found: float, figure: float, trials: int, *, model: float = 0.0) -> bool:
    """Whether a share fits a figure that is itself known to within `model`."""
    return abs(found - figure) <= margin(trials, figure) + model


def at_most(found: float, limit: float, trials: int) -> bool:
    """Whether a share is compatible with a limit."""
    return found <= limit + margin(trials, limit)
