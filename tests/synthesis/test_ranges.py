"""Bounds of columns that a synthesis finds: cells, and what they come to."""

from deniable.synthesis.ranges import _MOST, UnboundedColumn, _edges
from deniable.tables import ColumnType


def test_cells_have_the_edges_that_they_say():
    """Every cell begins where the one before it ends, on both sides of zero."""
    for cell in (1, 2, 64, 65, 100, _MOST):
        low, high = _edges(cell)
        assert 0 < low < high <= low * 1.5
        assert _edges(-cell) == (-high, -low)
        assert cell == _MOST or abs(_edges(cell + 1)[0] - high) <= 0.02 * high
    assert _edges(0) == (0, 0)


def test_a_column_of_whole_numbers_has_whole_bounds():
    column = UnboundedColumn("t", "y", ColumnType.INTEGER, "who")
    seen = [False] * (2 * _MOST + 1)
    seen[_MOST + 1 + 64 + 3] = True
    low, high = column.bounds([seen, seen])
    assert low.denominator == high.denominator == 1
    assert 0 < low < high
