"""Other libraries under our auditor, in their own environment: each against its own claim.

    audit_peers.py LIBRARY      prints one report for each of its mechanisms, as JSON

The auditor is told a callable, its claim and two neighbours, and nothing else.
"""

import json
import sys
import warnings
from importlib.metadata import version

import numpy as np

import deniable as dp

warnings.simplefilter("ignore")
ONE = dp.PureDP(1)
NUMBERS = [(0.0, 1.0)]


def diffprivlib():
    from diffprivlib.mechanisms import Gaussian, Laplace
    from diffprivlib.models import KMeans

    laplace = Laplace(epsilon=1, sensitivity=1)
    gaussian = Gaussian(epsilon=1, delta=1e-6, sensitivity=1)
    # The number of rows is public to this library: one row is replaced.
    low = np.full((6, 1), 0.1)
    other = low.copy()
    other[5] = 0.9

    def centres(rows):
        return KMeans(n_clusters=2, epsilon=1, bounds=(0, 1)).fit(rows).cluster_centers_

    yield "Laplace", laplace.randomise, ONE, NUMBERS, 1_000
    yield "Gaussian", gaussian.randomise, dp.ApproxDP(1, 1e-6), NUMBERS, 10_000
    yield "KMeans", centres, ONE, [(low, other)], 4_000


def pydp():
    import pydp.algorithms.numerical_mechanisms as mechanisms

    laplace = mechanisms.LaplaceMechanism(epsilon=1, sensitivity=1)
    gaussian = mechanisms.GaussianMechanism(1.0, 1e-6, 1.0)
    yield "LaplaceMechanism", laplace.add_noise, ONE, NUMBERS, 10_000
    yield "GaussianMechanism", gaussian.add_noise, dp.ApproxDP(1, 1e-6), NUMBERS, 10_000


LIBRARIES = {"diffprivlib": (diffprivlib, "diffprivlib"), "pydp": (pydp, "python-dp")}


def main():
    subjects, package = LIBRARIES[sys.argv[1]]
    found = {"version": version(package), "reports": {}}
    for name, mechanism, claim, pairs, n in subjects():
        found["reports"][name] = dp.audit(mechanism, claim, pairs, n, time_limit=60).to_dict()
    print(json.dumps(found))


main()
