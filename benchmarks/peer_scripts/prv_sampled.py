"""prv-accountant on the one case it knows among ours: 10,000 Poisson-sampled Gaussians."""

import json
import sys
import time
from importlib.metadata import version

from prv_accountant import PRVAccountant
from prv_accountant.privacy_random_variables import PoissonSubsampledGaussianMechanism

delta = float(sys.argv[1])
start = time.process_time()
accountant = PRVAccountant(
    prvs=[PoissonSubsampledGaussianMechanism(sampling_probability=0.01, noise_multiplier=1.0)],
    max_self_compositions=[10_000],
    eps_error=1e-3,
    delta_error=1e-9,
)
low, _, high = accountant.compute_epsilon(delta=delta, num_self_compositions=[10_000])
seconds = time.process_time() - start
print(
    json.dumps(
        {"version": version("prv-accountant"), "lower": low, "upper": high, "seconds": seconds}
    )
)
