"""Pipelines replayed on many pairs of neighbours."""

from deniable.auditing.replay.replays import replays


def each_replayed(pipeline, pairs, factory=None):
    """Each pair with what was found; those of the same data share the runs on it."""
    groups = {}
    for pair in pairs:
        groups.setdefault(repr(pair.data), []).append(pair)
    for group in groups.values():
        neighbours = [pair.neighbour for pair in group]
        found = replays(pipeline, group[0].data, neighbours, factory=factory, time_limit=None)
        yield from zip(group, found, strict=True)
