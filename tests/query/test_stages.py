"""The way of a question is the one that is written down."""

import sys

import pyarrow as pa

import deniable as dp
from deniable.query.stages import STAGES


def test_a_question_passes_its_stages_in_order():
    table = dp.PrivateTable(pa.table({"u": list(range(50))}), unit="u", population="p", max_rows=1)
    wanted = {stage.__code__: stage.__qualname__ for stage in STAGES}
    seen = []

    def listen(frame, event, _):
        if event == "call" and frame.f_code in wanted and wanted[frame.f_code] not in seen:
            seen.append(wanted[frame.f_code])

    with dp.Session({"t": table}, budget=dp.ApproxDP(9, 1e-6), ledger=dp.Ledger()) as session:
        sys.setprofile(listen)
        try:
            session.sql("SELECT COUNT(*) AS n FROM t", epsilon=1)
        finally:
            sys.setprofile(None)
    assert seen == [stage.__qualname__ for stage in STAGES]
