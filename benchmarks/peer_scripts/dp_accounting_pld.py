"""dp-accounting's PLD on one case, at its own defaults. Runs in the peers' environment."""

import json
import sys
import time
from importlib.metadata import version

from dp_accounting.pld import common, privacy_loss_distribution as pld

gaussian, laplace = pld.from_gaussian_mechanism, pld.from_laplace_mechanism
CASES = [
    lambda: gaussian(10).self_compose(100),
    lambda: gaussian(10).self_compose(10_000),
    lambda: laplace(10).self_compose(1000),
    lambda: (
        laplace(10)
        .self_compose(100)
        .compose(gaussian(10).self_compose(100))
        .compose(
            pld.from_privacy_parameters(common.DifferentialPrivacyParameters(0.1, 0)).self_compose(
                50
            )
        )
    ),
    lambda: gaussian(1, sampling_prob=0.01).self_compose(10_000),
    lambda: pld.from_discrete_gaussian_mechanism(1).self_compose(10),
    lambda: pld.from_discrete_laplace_mechanism(0.1).self_compose(1000),
]

case, delta = int(sys.argv[1]), float(sys.argv[2])
start = time.process_time()
upper = CASES[case]().get_epsilon_for_delta(delta)
seconds = time.process_time() - start
print(json.dumps({"version": version("dp-accounting"), "upper": upper, "seconds": seconds}))
