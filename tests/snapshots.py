"""One step in a snapshot of its own."""


def run(engine, step):
    with engine.snapshot() as taken:
        return taken.run(step)
