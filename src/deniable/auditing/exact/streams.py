"""The channel of a sparse vector on short streams, its broken relatives included.

P(answers | values) is an integral over the noise of the threshold of a product of tails, panel by
panel between the kinks; it is good to about twelve digits. The lattice of the mechanism is 2^30
times finer than its noise and is not seen at that precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import numpy.typing as npt

from deniable.errors import ParameterError

AnswerSequence = tuple[bool, ...]
Floats = npt.NDArray[np.float64]

_LONGEST = 12
_LEAST = 1e-250
_MOST_PANELS = 20_000
_FAR = 45.0  # scales, beyond which a Laplace law has less than 1e-19


def stream_channel(
    streams: Sequence[Sequence[float]],
    *,
    threshold: float,
    threshold_scale: float,
    value_scale: float,
    positives: int | None,
) -> tuple[tuple[AnswerSequence, ...], Floats]:
    """All sequences of answers, and their probabilities: one row for each stream.

    A `value_scale` of 0 adds no noise to values; `positives` of None never ends the stream: the
    variants that are not private.
    """
    lengths = {len(stream) for stream in streams}
    if len(lengths) != 1 or not 1 <= min(lengths) <= _LONGEST:
        raise ParameterError(
            "inputs", sorted(lengths), f"streams are of one length, {_LONGEST} values at most"
        )
    outputs = _answers(lengths.pop(), positives)
    rows = np.array(
        [_row(stream, outputs, threshold, threshold_scale, value_scale) for stream in streams]
    )
    if value_scale and bool((rows < _LEAST).any()):
        raise ParameterError(
            "inputs", "streams", "lie too far from the threshold: answers rarer than 1e-250"
        )
    return outputs, rows


def _answers(length: int, positives: int | None) -> tuple[AnswerSequence, ...]:
    """Every sequence, cut after the last positive answer that is given."""
    found: dict[AnswerSequence, None] = {}
    for whole in product((False, True), repeat=length):
        ends = [i + 1 for i, above in enumerate(whole) if above]
        last = length if positives is None or len(ends) < positives else ends[positives - 1]
        found[whole[:last]] = None
    return tuple(found)


def _row(
    stream: Sequence[float],
    outputs: tuple[AnswerSequence, ...],
    threshold: float,
    threshold_scale: float,
    value_scale: float,
) -> Floats:
    values = np.array([float(value) for value in stream]) - threshold
    points, weights = _panels(values, threshold_scale, value_scale)
    density = np.exp(-np.abs(points) / threshold_scale) / (2 * threshold_scale) * weights
    above = _tail(points[None, :] - values[:, None], value_scale)
    below = _tail(values[:, None] - points[None, :], value_scale)
    row = np.empty(len(outputs))
    for number, answers in enumerate(outputs):
        chance = density.copy()
        for place, answer in enumerate(answers):
            chance *= above[place] if answer else below[place]
        row[number] = chance.sum()
    whole: Floats = row / row.sum()
    return whole


def _tail(gaps: Floats, scale: float) -> Floats:
    """P(noise >= gap); without noise, whether the gap is closed."""
    if scale == 0:
        return (gaps <= 0).astype(np.float64)
    size = np.abs(gaps) / scale
    small = np.exp(-size) / 2
    return np.where(gaps > 0, small, 1 - small)


def _panels(values: Floats, threshold_scale: float, value_scale: float) -> tuple[Floats, Floats]:
    """Gauss-Legendre points and weights between all kinks, out to where nothing is left."""
    # Where many values lie far off, what counts is noise that goes to meet them.
    far = float(np.abs(values).max()) + _FAR * (threshold_scale + value_scale)
    width = min(threshold_scale, value_scale or threshold_scale)
    if far / width > _MOST_PANELS / 2:
        raise ParameterError("inputs", "streams", "lie too far from the threshold for this noise")
    inner = [value for value in values.tolist() if -far < value < far]
    grid = np.linspace(-far, far, max(121, int(2 * far / width)) + 1).tolist()
    edges = sorted({0.0, *inner, *grid})
    x, w = np.polynomial.legendre.leggauss(16)
    points = np.concatenate([a + (b - a) * (x + 1) / 2 for a, b in pairwise(edges)])
    weights = np.concatenate([(b - a) * w / 2 for a, b in pairwise(edges)])
    return points, weights
