"""pure-ldp's servers: reports per CPU second. Runs in the peers' environment."""

import json
import sys
import time
from importlib.metadata import version

from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.hadamard_response import (
    HadamardResponseClient,
    HadamardResponseServer,
)
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer


def pairs(epsilon: float, k: int):
    plain = {"epsilon": epsilon, "d": k, "index_mapper": lambda x: x}
    hadamard = HadamardResponseServer(**plain)
    return {
        "k-ary response": (DEClient(**plain), DEServer(**plain), 50_000),
        "unary encoding": (UEClient(**plain, use_oue=True), UEServer(**plain, use_oue=True), 2_000),
        "local hashing": (LHClient(**plain, use_olh=True), LHServer(**plain, use_olh=True), 200),
        "Hadamard response": (
            HadamardResponseClient(**plain, hash_funcs=hadamard.get_hash_funcs()),
            hadamard,
            2_000,
        ),
    }


def rate(client, server, count: int, k: int) -> float:
    # A pool of reports, used over: their clients are slow, and servers do not care.
    pool = [client.privatise(i % k) for i in range(min(count, 500))]
    reports, best = [pool[i % len(pool)] for i in range(count)], float("inf")
    for _ in range(3):
        server.reset()
        start = time.process_time()
        for report in reports:
            server.aggregate(report)
        server.estimate(0, suppress_warnings=True)
        best = min(best, time.process_time() - start)
    return count / best


def main() -> None:
    epsilon, sizes = float(sys.argv[1]), json.loads(sys.argv[2])
    answer: dict[str, object] = {"version": version("pure-ldp")}
    for k in sizes:
        answer[str(k)] = {
            name: rate(client, server, count, k)
            for name, (client, server, count) in pairs(epsilon, k).items()
        }
    print(json.dumps(answer))


main()
