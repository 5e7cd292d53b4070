"""multi-freq-ldpy's servers: reports per CPU second. Runs in the peers' environment."""

import json
import sys
import time
from importlib.metadata import version

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Aggregator_MI, GRR_Client
from multi_freq_ldpy.pure_frequency_oracles.LH import LH_Aggregator_MI, LH_Client
from multi_freq_ldpy.pure_frequency_oracles.SS import SS_Aggregator_MI, SS_Client
from multi_freq_ldpy.pure_frequency_oracles.UE import UE_Aggregator_MI, UE_Client


def rate(client, server, count: int, k: int) -> float:
    # A pool of reports, used over: servers do not care.
    pool = [client(i % k) for i in range(min(count, 500))]
    reports, best = [pool[i % len(pool)] for i in range(count)], float("inf")
    server(reports)
    for _ in range(3):
        start = time.process_time()
        server(reports)
        best = min(best, time.process_time() - start)
    return count / best


def main() -> None:
    epsilon, sizes = float(sys.argv[1]), json.loads(sys.argv[2])
    answer: dict[str, object] = {"version": version("multi-freq-ldpy")}
    for k in sizes:
        answer[str(k)] = {
            "k-ary response": rate(
                lambda x, k=k: GRR_Client(x, k, epsilon),
                lambda reports, k=k: GRR_Aggregator_MI(reports, k, epsilon),
                50_000,
                k,
            ),
            "unary encoding": rate(
                lambda x, k=k: UE_Client(x, k, epsilon, True),
                lambda reports: UE_Aggregator_MI(reports, epsilon, True),
                2_000,
                k,
            ),
            "local hashing": rate(
                lambda x, k=k: LH_Client(x, k, epsilon, True),
                lambda reports, k=k: LH_Aggregator_MI(reports, k, epsilon, True),
                200,
                k,
            ),
            "subset selection": rate(
                lambda x, k=k: SS_Client(x, k, epsilon),
                lambda reports, k=k: SS_Aggregator_MI(reports, k, epsilon),
                500,
                k,
            ),
        }
    print(json.dumps(answer))


main()
