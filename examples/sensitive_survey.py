"""A sensitive survey from plan to codebook: who drives after drinking, and does it go with age?

The planner says how many people are needed; each device randomises its own answer; the shares of
two age groups, their difference and a regression are estimated from the reports alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from deniable import plots
from deniable.survey import designs, estimate, planner, sentences
from deniable.survey.codebook import codebook
from deniable.survey.compare import difference
from deniable.survey.regression import logistic_regression

EPSILON = 2
MARGIN = 0.03
EXPECTED_SHARE = 0.15


def main() -> None:
    """Plan, ask, estimate, write the codebook."""
    design = designs.randomized_response(epsilon=EPSILON)
    print("What respondents read:")
    for sentence in (*sentences.deniability(design), sentences.promise(design)):
        print(f"  {sentence}")

    n = planner.sample_size(design, margin=MARGIN, share=EXPECTED_SHARE)
    print(f"\nfor ±{MARGIN:.0%} at ε = {EPSILON}: ask {n:,} people")
    print("for four questions under the same ε:")
    shares = dict.fromkeys(("drive", "theft", "drugs", "tax"), EXPECTED_SHARE)
    for plan in planner.plan_questions(shares, epsilon=EPSILON, margin=MARGIN):
        print(f"  {plan.strategy} of them each: {plan.people:,} people")

    people = np.random.default_rng(9)  # made-up people, not noise
    age = people.uniform(18, 80, size=n)
    truth = people.random(n) < 1 / (1 + np.exp(0.2 + 0.04 * (age - 18)))
    reports = design.randomize(truth)

    found = estimate(design, reports)
    print(f"\n{sentences.finding(found)} (truth among them: {truth.mean():.1%})")
    young, old = estimate(design, reports[age < 40]), estimate(design, reports[age >= 40])
    gap = difference(young, old)
    print(f"under 40 minus the others: {gap.difference:.1%}, p = {gap.p_value:.2g}")
    fit = logistic_regression(design, reports, {"age": age})
    low, high = fit.interval("age")
    print(f"log odds for each year: {fit.coefficient('age'):.3f} in [{low:.3f}, {high:.3f}]")
    print(f"\n{sentences.HONESTY}")

    book = codebook(design, question="Did you drive after drinking this year?", estimate=found)
    Path("codebook.json").write_text(book.to_json(), encoding="utf-8")
    epsilons = [0.25, 0.5, 1, 2, 3, 4]
    rows = planner.planning_table(epsilons, margin=MARGIN, share=EXPECTED_SHARE)
    picture = plots.lines(
        np.array(epsilons),
        {"people needed": [row.n for row in rows]},
        log_y=True,
        title="What protection costs: people for ±3 points",
        x_label="ε",
        y_label="people",
        path="sensitive_survey.png",
    )
    print(f"picture: {picture}")


if __name__ == "__main__":
    main()
