"""OpenDP on Polars: count, sum and mean by city, user level. Runs in the peers' environment.

As near as OpenDP comes to the question: rows of a user are sampled down to `max_rows`, then noise
under the same (ε, δ), from zCDP, on a count and a sum of each declared city; their ratio is the
mean. Prints what was spent, the peak memory and the answers as JSON.
"""

import json
import resource
import sys
import time
from importlib.metadata import version

import opendp.prelude as dp
import polars as pl

dp.enable_features("contrib")


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    asked = json.loads(sys.argv[1])
    low, high = asked["bounds"]
    keys = pl.LazyFrame({"city": asked["keys"]}, schema={"city": pl.String})
    started, wall = cpu(), time.perf_counter()
    context = dp.Context.compositor(
        data=pl.scan_parquet(asked["file"]),
        privacy_unit=dp.unit_of(contributions=1, identifier=pl.col("user_id")),
        privacy_loss=dp.loss_of(rho=asked["rho"]),
        split_evenly_over=1,
        margins=[dp.polars.Margin(by=[], max_length=asked["max_length"])],
    )
    query = (
        context.query()
        .truncate_per_group(asked["max_rows"])
        .group_by("city")
        .agg(dp.len().alias("n"), pl.col("amount").cast(int).fill_null(0).dp.sum((low, high)).alias("total"))
        .with_keys(keys)
    )
    if asked["explain"]:
        print(query.summarize(alpha=0.05))
    found = query.release().collect()
    spent, waited = cpu() - started, time.perf_counter() - wall
    answers = {row["city"]: (row["n"], row["total"]) for row in found.to_dicts()}
    print(
        json.dumps(
            {
                "version": f"{version('opendp')}, Polars {version('polars')}",
                "cpu": spent,
                "wall": waited,
                "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
                "answers": answers,
            }
        )
    )


main()
