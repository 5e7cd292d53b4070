"""A quiet Spark on this machine alone, its files in a temporary folder."""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import deniable.engines.spark  # noqa: F401  (quiets what PySpark says as it is imported)

from pyspark.sql import SparkSession  # isort: skip


_QUICK = (
    # Statements run once: Java compiles them in a hurry, and has room for what it compiled.
    "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=200m -XX:MetaspaceSize=300m "
    # Room for what is short-lived, so that it need not be looked for often.
    "-XX:+UseSerialGC -Xms1500m -Xmn700m"
)
_FORGETFUL = {
    "spark.ui.retainedJobs": "1",
    "spark.ui.retainedStages": "1",
    "spark.ui.retainedTasks": "1",
    "spark.sql.ui.retainedExecutions": "1",
}


@contextmanager
def local_spark(*, quick: bool = True) -> Iterator[SparkSession]:
    """A session of its own on the one Spark of this process: views and settings are not shared.

    `quick` is for statements that run once; a Spark that was started stays as it is.
    """
    yield _started(quick).newSession()


@cache
def _started(quick: bool) -> SparkSession:
    """Two threads, loopback only, nothing shown, nothing left behind."""
    os.environ.setdefault(
        "PYSPARK_PYTHON", sys.executable
    )  # for sources that are written in Python
    folder = tempfile.mkdtemp(prefix="deniable-spark-")
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.local.dir": f"{folder}/local",
        "spark.sql.warehouse.dir": f"{folder}/warehouse",
        "spark.sql.shuffle.partitions": "4",
        "spark.driver.extraJavaOptions": (
            f"-Dderby.system.home={folder}/derby -Duser.timezone=UTC {_QUICK * quick}"
        ),
        "spark.sql.catalogImplementation": "in-memory",
    }
    if quick:
        settings |= {
            "spark.driver.memory": "2g",
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.maxPlanStringLength": "0",
            **_FORGETFUL,
        }
    builder = SparkSession.builder.master("local[2]").appName("deniable-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()

    owner = os.getpid()

    def end() -> None:
        if os.getpid() == owner:  # not a child that was forked
            session.stop()
            shutil.rmtree(folder, ignore_errors=True)

    atexit.register(end)
    return session
