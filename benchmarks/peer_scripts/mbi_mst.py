"""MST with mbi 2's inference: CPU seconds and peak memory. Runs in the peers' environment."""

import itertools
import json
import resource
import sys
import time
import warnings
from importlib.metadata import version

import numpy as np

warnings.simplefilter("ignore")
import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)
import mbi  # noqa: E402


def dataset(rows, domain):
    return mbi.Dataset(dict(zip(domain.attributes, rows.T, strict=True)), domain)


def marginal(data, clique):
    return np.asarray(data.project(clique).datavector(flatten=True))


def mst(rows, sizes, rho, rng):
    """Three equal shares: columns, choices, pairs; rare values merged in between."""
    full = mbi.Domain(tuple(sizes), tuple(sizes.values()))
    data, count = dataset(rows, full), len(sizes)
    sigma = np.sqrt(3 * count / (2 * rho))
    singles, maps = [], {}
    for name in sizes:
        noisy = marginal(data, (name,)) + rng.normal(0, sigma, sizes[name])
        rare = noisy < 3 * sigma
        if rare.sum() > 1:
            maps[name] = np.where(rare, (~rare).sum(), np.cumsum(~rare) - 1)
        singles.append(mbi.LinearMeasurement(noisy, (name,), sigma))
    small = np.stack(
        [maps[name][rows[:, at]] if name in maps else rows[:, at] for at, name in enumerate(sizes)],
        axis=1,
    )
    new = {name: int(maps[name].max()) + 1 if name in maps else sizes[name] for name in sizes}
    domain = mbi.Domain(tuple(new), tuple(new.values()))
    data = dataset(small, domain)
    known = [each.compress(maps, full) for each in singles]
    model = mbi.estimation.MirrorDescent().estimate(domain, known)
    pairs = list(itertools.combinations(sizes, 2))
    errors = {
        pair: np.abs(
            marginal(data, pair) - np.asarray(model.project(pair).datavector(flatten=True))
        ).sum()
        for pair in pairs
    }
    epsilon, part, chosen = np.sqrt(8 * rho / 3 / (count - 1)), {name: name for name in sizes}, []
    for _ in range(count - 1):
        left = [pair for pair in pairs if part[pair[0]] != part[pair[1]]]
        scores = epsilon / 2 * np.array([errors[pair] for pair in left])
        law = np.exp(scores - scores.max())
        pair = left[rng.choice(len(left), p=law / law.sum())]
        chosen.append(pair)
        old, name = part[pair[1]], part[pair[0]]
        part = {column: name if group == old else group for column, group in part.items()}
    sigma = np.sqrt(3 * (count - 1) / (2 * rho))
    for pair in chosen:
        exact = marginal(data, pair)
        known.append(mbi.LinearMeasurement(exact + rng.normal(0, sigma, exact.size), pair, sigma))
    model = mbi.estimation.MirrorDescent().estimate(domain, known)
    made = model.synthetic_data()
    columns = []
    for name in sizes:
        codes = np.asarray(made.data[name]).astype(np.int64)
        if name in maps:
            options = [np.flatnonzero(maps[name] == code) for code in range(new[name])]
            codes = np.array([rng.choice(options[code]) for code in codes])
        columns.append(codes)
    return np.stack(columns, axis=1)


def main() -> None:
    rows = np.load(sys.argv[1])
    sizes, rho = json.loads(sys.argv[2]), float(sys.argv[3])
    start = time.process_time()
    made = mst(rows, sizes, rho, np.random.default_rng())
    seconds = time.process_time() - start
    np.save(sys.argv[4], made)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"version": version("mbi"), "seconds": seconds, "megabytes": peak}))


main()
