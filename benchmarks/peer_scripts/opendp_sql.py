"""OpenDP on Polars: count, sum and mean by city, user level. Runs in the peers' environment.

As near as OpenDP comes to the question: the rows of a user are sampled down to `max_rows`, then
noise on the count and the sum of each declared city, from the largest ρ that OpenDP itself
converts to (ε, δ); the mean is their ratio, kept within the bounds. Conversion and imports are not
timed.
"""

import json
import resource
import sys
import time
from importlib.metadata import version

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def used() -> float:
    found = resource.getrusage(resource.RUSAGE_SELF)
    return found.ru_utime + found.ru_stime


def largest_rho(epsilon: float, delta: float) -> float:
    space = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)

    def enough(scale: float) -> bool:
        noise = dp.c.make_zCDP_to_approxDP(dp.m.make_gaussian(*space, scale))
        return noise.map(1.0).epsilon(delta) <= epsilon

    return 0.5 / dp.binary_search(enough, bounds=(0.1, 1e4)) ** 2


def mean(row: dict, low: float, high: float) -> float:
    """The ratio, kept within bounds; their middle where the count is no positive number."""
    inside = row["total"] / row["n"] if row["n"] > 0 else (low + high) / 2
    return min(max(inside, low), high)


def main() -> None:
    asked = json.loads(sys.argv[1])
    rho = largest_rho(asked["epsilon"], asked["delta"])
    keys = pl.LazyFrame({"city": asked["keys"]})
    start, wall = used(), time.perf_counter()
    context = dp.Context.compositor(
        data=pl.scan_parquet(asked["file"]),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(rho=rho),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=[], max_length=asked["most"])],
    )
    query = (
        context.query()
        .truncate_per_group(asked["max_rows"])
        .group_by("city")
        .agg(
            dp.len(signed=True).alias("n"),
            pl.col("amount").fill_null(0).dp.sum(tuple(asked["bounds"])).alias("total"),
        )
        .with_keys(keys)
    )
    planned = query.release()
    planning = used() - start
    rows = planned.collect().to_dicts()
    answer = {
        "version": f"{version('opendp')} + Polars {version('polars')}",
        "cpu": used() - start,
        "wall": time.perf_counter() - wall,
        "planning": planning,
        "rho": rho,
        "memory": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
        "answers": {r["city"]: [r["n"], r["total"], mean(r, *asked["bounds"])] for r in rows},
    }
    print(json.dumps(answer))


main()
