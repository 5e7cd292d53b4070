"""The battery on every listed version of an engine, each in an environment of its own.

python tests/values/versions.py      runs all, and writes the table of docs/engines.md
"""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

HOME = Path(__file__).parents[2]
FOLDER, PAGE = HOME / ".venv-engines", HOME / "docs" / "engines.md"
DUCKDB = ("1.4.5", "1.5.6", "2.0.0")
_HEAD = (
    "| engine | operators | expressions | cases | faults | metamorphic |\n"
    "|---|---|---|---|---|---|\n"
)
_BEGIN, _END = "<!-- tested versions -->\n", "<!-- end -->\n"
METAMORPHIC = HOME / "tests" / "values" / "test_metamorphic.py"


def main():
    """One row for each version; DuckDB's come from folders that stand before what is installed."""
    rows = []
    for number in DUCKDB:
        folder = FOLDER / f"duckdb-{number}"
        if not folder.exists():
            _call("pip", "install", "--quiet", "--no-deps", "--target", folder, f"duckdb=={number}")
        rows.append(_asked("duckdb", str(folder)))
    rows += [_asked(name) for name in ("postgres", "spark")]
    table = _HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    print(table)
    before, _, rest = PAGE.read_text().partition(_BEGIN)
    PAGE.write_text(f"{before}{_BEGIN}{table}{_END}{rest.partition(_END)[2]}")


def _asked(name, *first):
    """The row of an engine, from a process that has it."""
    paths = os.pathsep.join((*first, str(HOME / "src"), str(HOME / "tests")))
    made = _call(__file__, name, env={**os.environ, "PYTHONPATH": paths}, module=False)
    row = json.loads(made.splitlines()[-1])
    print(*row, flush=True)
    return row


def _call(name, *given, env=None, module=True):
    command = [sys.executable, *(["-m"] if module else []), name, *map(str, given)]
    return subprocess.run(command, check=True, text=True, env=env, stdout=subprocess.PIPE).stdout


def row_of(name):
    """Run one engine's battery in this process."""
    from values.on_duckdb import OnDuckDB
    from values.samples import SAMPLES

    if name == "duckdb":
        import duckdb

        run, title = OnDuckDB().run(thin=True), f"DuckDB {duckdb.__version__}"
    else:
        run, title = {"postgres": _on_postgres, "spark": _on_spark}[name](OnDuckDB().known())
    counts = len(SAMPLES), sum(map(len, run.groups.values())), run.cases, len(run.faults)
    for fault in run.faults[:20]:
        print(fault, file=sys.stderr)
    return [title, *(f"{count:,}" for count in counts), _metamorphic() if name == "duckdb" else ""]


def _metamorphic():
    """Whether people who come to a table leave what others add to a sum."""
    if not METAMORPHIC.exists():
        return "not run"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(METAMORPHIC)]
    done = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, cwd=HOME)
    return "passes" if done.returncode == 0 else "fails"


def _on_postgres(known):
    from postgres import Postgres
    from values.on_postgres import OnPostgres

    server = Postgres()
    try:
        with contextlib.closing(OnPostgres(server.url)) as run:
            number = run.engine.execute("SHOW server_version").fetchone()[0].split()[0]
            return run.run(known, thin=True), f"Postgres {number}"
    finally:
        server.remove()


def _on_spark(known):
    from engines.spark_session import local_spark
    from values.on_spark import OnSpark

    warnings.simplefilter("ignore")
    with local_spark() as session, tempfile.TemporaryDirectory() as folder:
        return OnSpark(session, folder).run(known, thin=True), f"Spark {version('pyspark')}"


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(row_of(sys.argv[1])))
    else:
        main()
