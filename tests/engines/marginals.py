"""The exact marginals of a synthesis, as an engine counts them, on hostile rows."""

from datetime import date, datetime

import pyarrow as pa

from deniable.engines.base import LazySnapshot
from deniable.privacy.units import Relation
from deniable.synthesis.columns import codings
from deniable.synthesis.domain import Domain
from deniable.synthesis.table_data import TableMarginals, coded_rows

_NUMBERS = [None, float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e308, -1e308, 2.5, 0.1]
_WHOLE = [None, 2**63 - 1, -(2**63), 0, -1, 1, 7, -7]
_TEXTS = [None, "", "a'b", "back\\slash", "50%_off", "😀é", "12", " 7 ", "nan"]
_DAYS = [None, date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10), date(2024, 2, 29)]
HOSTILE = pa.table(
    {
        "u": pa.array([n % 40 for n in range(240)], pa.int64()),
        "i": pa.array([_WHOLE[n % 8] for n in range(240)], pa.int64()),
        "x": pa.array([_NUMBERS[n % 10] for n in range(240)], pa.float64()),
        "s": pa.array([_TEXTS[n % 9] for n in range(240)], pa.string()),
        "b": pa.array([(None, True, False)[n % 3] for n in range(240)], pa.bool_()),
        "d": pa.array([_DAYS[n % 5] for n in range(240)], pa.date32()),
        "t": pa.array([None, datetime(2024, 3, 3, 5)] * 120, pa.timestamp("us")),
    }
)
BINS = {
    "x": [-3, 0, 0.1, 1000],
    "i": [-100, 0, 7, 100],
    "d": [date(1500, 1, 1), date(2000, 1, 1), date(2030, 1, 1)],
    "t": [datetime(2000, 1, 1), datetime(2024, 3, 3), datetime(2024, 3, 4)],
}
KEYS = {"s": ("", "a'b", "back\\slash", "😀é", " 7 ", None), "b": (True, False)}


def marginals(session, cliques):
    """Marginals of a table `v` with the columns of `BINS` and `KEYS`; all values may be missing."""
    parts = session.parts
    owner, schema = parts.catalogue.private["v"], parts.catalogue.schemas["v"]
    coded = codings(
        owner,
        schema,
        columns=[*BINS, *KEYS],
        bins=BINS,
        keys=KEYS,
        bounds={},
        missing=["x", "i", "d", "t", "b"],
    )
    domain = Domain({each.name: each.size for each in coded})
    with LazySnapshot(parts.engine, (), {"v"}) as snapshot:
        data = TableMarginals(
            coded_rows(parts.catalogue, "v", coded, None), snapshot, domain, Relation.ADD_REMOVE
        )
        data.check(parts.engine, parts.catalogue)
        return [data.exact(domain.clique(clique)).tolist() for clique in cliques]


CLIQUES = [(), ("x",), ("i",), ("d", "t"), ("s", "b"), ("x", "s", "b")]
