"""OpenDP's exact integer noise: draws per CPU second. Runs in the peers' environment."""

import json
import sys
import time
from importlib.metadata import version

import opendp.prelude as dp

dp.enable_features("contrib")


def rate(mechanism, length: int) -> float:
    values, best = [0] * length, float("inf")
    mechanism(values)
    for _ in range(3):
        start = time.process_time()
        mechanism(values)
        best = min(best, time.process_time() - start)
    return length / best


def main() -> None:
    scales, length = json.loads(sys.argv[1]), int(sys.argv[2])
    domain = dp.vector_domain(dp.atom_domain(T=int))
    space = {"Laplace": dp.l1_distance(T=int), "Gaussian": dp.l2_distance(T=int)}
    make = {"Laplace": dp.m.make_laplace, "Gaussian": dp.m.make_gaussian}
    answer: dict[str, object] = {"version": version("opendp")}
    for law, maker in make.items():
        answer[law] = {
            str(scale): rate(maker(domain, space[law], float(scale)), length) for scale in scales
        }
    print(json.dumps(answer))


main()
