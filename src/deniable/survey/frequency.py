"""What every protocol for shares of categories offers."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from deniable.lazy import lazy
from deniable.privacy.channel import Channel
from deniable.privacy.exact import whole
from deniable.privacy.losses.base import Loss
from deniable.privacy.parameters import parameter, parameters
from deniable.survey.answers import Answers, read_answers, read_size
from deniable.survey.formats import Format
from deniable.survey.laws import OneHot, OneOf
from deniable.survey.protocol import Pair, Protocol, Reports
from deniable.survey.shares import ShareEstimate, Spoken, Support, Tally
from deniable.trace import traced


@parameters
class Frequency(Protocol):
    """A client that randomises one answer of 0, ..., k - 1, and a server that counts.

    Formal guarantee, of each protocol below:

    * one report is ε-DP for its sender, whatever the answers of others and whatever the server
      does (relation "replace"); ε is that of the probabilities that are drawn, which are rounded
      to 64-bit thresholds so that the ε asked for is never exceeded;
    * reports have exactly the channel's probabilities and are independent of each other;
    * `aggregate(reports).estimate()` is unbiased for the shares of the true answers.

    A report is unledgered: who is asked twice keeps the sum of the losses.
    """

    k: int = parameter(read_size)

    @property
    @abstractmethod
    def support(self) -> Support:
        """How often a report speaks for its sender's category, and for any other."""

    def aggregate(self, reports: Reports) -> Tally:
        """The server's part: check all reports, then count them."""
        checked = self.check(reports)
        return Tally(self, self.format.count(checked), len(checked))

    def estimate(self, tally: Tally) -> ShareEstimate:
        """Unbiased shares from a tally."""
        spoken = Spoken(tally.counts, tally.n, self.support)
        return spoken.estimate(tally.n, tally.candidates)

    def variance(self, n: int, share: float = 0.0) -> float:
        """The exact variance of a category's estimated share in a fixed population of n.

        (f p(1-p) + (1-f) q(1-q)) / (n (p-q)²), f being its true share (Wang et al. 2017, Thm 2).
        """
        p, q = self.support
        spread = share * p * (1 - p) + (1 - share) * q * (1 - q)
        return spread / (whole(n, "n") * (p - q) ** 2)


@parameters
class OneLaw(Frequency):
    """A protocol that is one law: its reports are what the law draws of the true answers."""

    @property
    @abstractmethod
    def law(self) -> OneOf | OneHot:
        """From the true answer to the report."""

    @property
    def pair(self) -> Pair:
        return self.law.pair

    @property
    def support(self) -> Support:
        return self.law.support

    @property
    def format(self) -> Format:
        return self.law.format

    @property
    def thresholds(self) -> Mapping[str, int]:
        return self.law.thresholds

    @lazy
    def loss(self) -> Loss:
        return self.law.loss

    def channel(self) -> Channel:
        """P(report | answer), for few categories."""
        return self.law.channel()

    @traced
    def randomize(self, values: Answers) -> Reports:
        return self.law.draw(read_answers(values, self.k))
