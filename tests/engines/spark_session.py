"""A quiet Spark on this machine alone, its files in a temporary folder."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import deniable.engines.spark  # noqa: F401  (quiets what PySpark says as it is imported)

from pyspark.sql import SparkSession  # isort: skip


_QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


@contextmanager
def local_spark(*, quick: bool = True) -> Iterator[SparkSession]:
    """Two threads, loopback only, nothing shown, nothing left behind.

    `quick` is for statements that run once: Java compiles them in a hurry.
    """
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
        settings |= {"spark.sql.shuffle.partitions": "2", "spark.sql.maxPlanStringLength": "0"}
    builder = SparkSession.builder.master("local[2]").appName("deniable-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()
        shutil.rmtree(folder, ignore_errors=True)
