"""A survey on phones: each randomises its answer and sends a line of JSON; the server adds up.

Twelve reasons to stay away from work, one of them the truth. No true answer leaves a phone, the
reports could be published, and yet the shares come out, each with its interval.
"""

from __future__ import annotations

import numpy as np

import deniable as dp
from deniable import plots, survey

REASONS = (
    "cold", "flu", "back", "migraine", "child ill", "no wish",
    "hangover", "worn out", "bullied", "other job", "in custody", "other",
)  # fmt: skip
TRUE_SHARES = (0.20, 0.11, 0.10, 0.09, 0.12, 0.11, 0.06, 0.12, 0.04, 0.02, 0.01, 0.02)
PEOPLE, EPSILON = 20_000, 1.5


def main() -> None:
    """Choose a protocol, ask, count, and compare with what nobody knows."""
    for each in survey.protocol_table(len(REASONS), EPSILON, PEOPLE):
        error = f"± {each.standard_error:.4f}"
        print(f"{each.protocol.kind:18} {error}  {each.report_bits:4} bits a report")
    protocol = dp.survey.best_protocol(len(REASONS), EPSILON, PEOPLE)
    question = survey.Item("Why did you last stay away from work?", protocol)
    epsilon = protocol.loss.epsilon(delta=0)
    print(f"\nchosen: {protocol.kind}; one report is ε-DP with ε = {epsilon:.6f}")

    made_up = np.random.default_rng(7)  # made-up people, not noise
    truth = made_up.choice(len(REASONS), PEOPLE, p=TRUE_SHARES)
    sent = [question.write(protocol.randomize(part)) for part in np.array_split(truth, 50)]
    print(f"the first batch on the wire: {sent[0][:60]}...")

    tally = protocol.aggregate(question.read(sent[0]))
    for batch in sent[1:]:
        tally += protocol.aggregate(question.read(batch))
    estimate = tally.estimate()
    low, high = estimate.intervals(confidence=0.95)
    print(f"\n{'reason':12} {'share':>7}   95 % interval     (true)")
    for place, reason in enumerate(REASONS):
        interval = f"[{low[place]:6.3f}, {high[place]:6.3f}]"
        print(f"{reason:12} {estimate.share(place):7.3f}  {interval}  ({TRUE_SHARES[place]:.3f})")

    picture = plots.bars_between(
        REASONS,
        estimate.shares,
        (low, high),
        title=f"Why people stay away from work, ε = {EPSILON} on each phone",
        path="phone_survey.png",
    )
    crowd = survey.in_the_crowd(protocol, people=PEOPLE, delta=1e-6)
    print(f"\nif reports arrive shuffled: ε = {float(crowd.central.bound):.3f} at δ = 1e-6")
    print(f"that needs {crowd.needs}")
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
