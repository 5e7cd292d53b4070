"""A DuckDB whose operators were not tried is refused, unless the owner says otherwise."""

import duckdb
import pyarrow as pa
import pytest

import deniable as dp
from deniable.engines.versions import TESTED


def opened(**given):
    table = dp.PrivateTable(pa.table({"u": [1, 2]}), unit="u", population="p", max_rows=1)
    ledger = dp.Ledger(key=bytes(32))
    return dp.Session({"t": table}, budget=dp.PureDP(1), ledger=ledger, **given)


def test_the_installed_version_is_tested():
    assert duckdb.__version__ in TESTED
    opened().close()


def test_another_version_needs_a_word_of_the_owner(monkeypatch):
    monkeypatch.setattr(duckdb, "__version__", "2.0.99")
    with pytest.raises(dp.ParameterError, match=r"DuckDB 2\.0\.99 was not tried"):
        opened()
    with opened(untested_engine=True) as session:
        assert session.sql("SELECT COUNT(*) AS n FROM t", epsilon=0.5)["n"]
