"""What a guarantee means: events on a neighbour, beliefs about a person, and what is not enough.

Functions take exact priors and channels and return exact posteriors beside the bounds that the
theory promises.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from deniable.errors import ParameterError
from deniable.privacy.channel import Channel
from deniable.privacy.exact import Number, exact, not_negative, probability, whole

Prior = Mapping[Hashable, Number]

_LARGEST_TABLE = 10**7


@dataclass(frozen=True)
class Range:
    """From `low` to `high`."""

    low: float
    high: float


def event_range(p: Number, *, epsilon: Number, delta: Number = 0) -> Range:
    """Where P(A(x') ∈ E) lies for a neighbour x', given P(A(x) ∈ E) = p.

    For δ = 0: [max(e^-ε p, 1 - e^ε(1-p)), min(e^ε p, 1 - e^-ε(1-p))] (Dwork & Roth 2014, Def. 2.4,
    for the event and for its complement, in both directions).
    """
    q, e = float(not_negative(p, "p")), float(not_negative(epsilon, "epsilon"))
    if q > 1:
        raise ParameterError("p", p, "a probability lies between 0 and 1")
    slack = float(not_negative(delta, "delta"))
    up, down = math.exp(min(e, 700.0)), math.exp(-e)
    low = max(down * (q - slack), 1 - up * (1 - q) - slack, 0.0)
    return Range(low, min(up * q + slack, 1 - down * (1 - q - slack), 1.0))


def posterior(prior: Prior, channel: Channel, output: Hashable) -> dict[Hashable, Fraction]:
    """Bayes' rule, exactly: P(input | output) for every input of the prior."""
    read = read_prior(prior, channel)
    joint = {x: p * channel.probability(output, x) for x, p in read.items()}
    evidence = sum(joint.values())
    if evidence == 0:
        raise ParameterError("output", output, "has probability 0 under this prior")
    return {x: p / evidence for x, p in joint.items()}


@dataclass(frozen=True)
class Belief:
    """What an adversary believes about one person before and after, beside the promised bounds."""

    prior: Fraction
    posterior: Fraction
    bounds: Range

    @property
    def ratio(self) -> float:
        return float(self.posterior / self.prior)

    @property
    def within_bounds(self) -> bool:
        """Whether the posterior lies where the theorem says."""
        slack = 1e-12
        return self.bounds.low * (1 - slack) <= self.posterior <= self.bounds.high * (1 + slack)


def strong_adversary(prior: Prior, channel: Channel, output: Hashable, value: Hashable) -> Belief:
    """Belief that one person's value is `value`, everyone else's being known.

    The channel's inputs are the person's values, so any two are neighbours: posterior/prior lies
    between e^-ε and e^ε (Dwork, McSherry, Nissim & Smith 2006, App. A), and the posterior itself
    between π/(π + (1-π)e^ε) and πe^ε/(πe^ε + 1-π).
    """
    return correlated_adversary(prior, channel, output, value, correlated=1)


def correlated_adversary(
    prior: Prior, channel: Channel, output: Hashable, value: Hashable, *, correlated: int
) -> Belief:
    """The same when the person's value moves the data of `correlated` people along.

    The channel's ε is that of one person; going from one value to another takes h steps, so the
    bounds hold with hε (Kifer & Machanavajjhala 2011 show that they are needed).
    """
    before = read_prior(prior, channel)
    if value not in before or not 0 < before[value] < 1:
        raise ParameterError("value", value, "must have a prior strictly between 0 and 1")
    after = posterior(prior, channel, output)[value]
    together = channel.epsilon() * whole(correlated, "correlated")
    return Belief(before[value], after, posterior_bounds(before[value], together))


def posterior_bounds(prior: Number, epsilon: float) -> Range:
    """Where a posterior lies after an ε-DP release about one person, given its prior."""
    pi = float(probability(prior, "prior"))
    if epsilon != math.inf:
        not_negative(epsilon, "epsilon")
    up = math.exp(min(epsilon, 700.0))
    return Range(pi / (pi + (1 - pi) * up), pi / (pi + (1 - pi) / up) if epsilon <= 700 else 1.0)


@dataclass(frozen=True)
class TwoBeliefs:
    """A posterior without one person's data, and with them."""

    without: Fraction
    with_them: Fraction


def with_and_without(
    prior: Prior, channel: Channel, output: Hashable, *, person: int, absent: Hashable
) -> dict[Hashable, TwoBeliefs]:
    """For each data set, its posterior with everyone's data, and without one person's.

    Inputs of the channel are data sets (tuples of values). "Without" runs the same mechanism on the
    data with the person's value set to `absent`. For every prior the two posteriors differ by at
    most a factor e^(2ε) (Kasiviswanathan & Smith 2014, Thm 2.2).
    """
    read = read_prior(prior, channel)
    with_them = posterior(prior, channel, output)
    joint: dict[Hashable, Fraction] = {}
    place = whole(person, "person", least=0)
    for data, p in read.items():
        if not isinstance(data, tuple) or not place < len(data):
            raise ParameterError("person", person, "inputs are tuples with a place for the person")
        hidden = (*data[:person], absent, *data[person + 1 :])
        joint[data] = p * channel.probability(output, hidden)
    evidence = sum(joint.values())
    if evidence == 0:
        raise ParameterError("output", output, "is impossible without the person's value")
    return {x: TwoBeliefs(joint[x] / evidence, with_them[x]) for x in read}


def read_prior(prior: Prior, channel: Channel) -> dict[Hashable, Fraction]:
    """Read a prior over inputs of the channel."""
    if not isinstance(prior, Mapping):
        raise ParameterError("prior", type(prior).__name__, "must map inputs to probabilities")
    read = {x: exact(p, "prior") for x, p in prior.items()}
    if any(x not in channel.inputs for x in read):
        raise ParameterError("prior", "unknown inputs", "must be over inputs of the channel")
    if any(p < 0 for p in read.values()) or sum(read.values()) != 1:
        raise ParameterError(
            "prior", float(sum(read.values())), "must be probabilities that sum to 1"
        )
    return read


def name_and_shame(values: Sequence[Hashable], people: int, delta: Number) -> Channel:
    """The mechanism that publishes each record with probability δ, and says nothing else.

    It passes (0, δ)-DP, exposes people all the same, and breaks every posterior bound for the
    outputs that name someone: δ must be far below 1/n. Inputs are data sets, outputs what was
    published: None in the place of each record that was not.
    """
    return _publishing(values, people, probability(delta, "delta"))


def sampling_channel(values: Sequence[Hashable], people: int, rate: Number) -> Channel:
    """Publishing a random sample as it is: the leaked record shows that no ε holds.

    Each record is kept with probability `rate` and shown; sampling alone is not private, it only
    amplifies what is.
    """
    return _publishing(values, people, probability(rate, "rate"))


def _publishing(values: Sequence[Hashable], people: int, shown: Fraction) -> Channel:
    if (2 * len(values) + 1) ** (2 * whole(people, "people")) > _LARGEST_TABLE:
        raise ParameterError("people", people, "makes a table too large to write down")
    inputs = tuple(product(values, repeat=people))
    outputs = tuple(product((None, *values), repeat=people))

    def chance(data: tuple[Hashable, ...], seen: tuple[Hashable, ...]) -> Fraction:
        parts = [
            1 - shown if o is None else shown * (o == v) for v, o in zip(data, seen, strict=True)
        ]
        return Fraction(math.prod(parts))

    rows = tuple(tuple(chance(data, seen) for seen in outputs) for data in inputs)
    return Channel(inputs, outputs, rows)
