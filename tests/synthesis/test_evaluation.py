"""Private evaluation of tables that a caller made something of."""

from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest

import deniable as dp
from deniable.synthesis.columns import Coding
from synthesis.test_synthesize import session


class Model:
    """A model with code of its own, which would compute beside exact counts."""

    def __init__(self, inner):
        self.domain, self.total, self.marginal = inner.domain, inner.total, inner.marginal


class Subclass(Coding):
    """A coding with SQL of its own."""

    def inside(self):
        return 'TRUE UNION ALL SELECT * FROM "visits" WHERE TRUE'


class Seen(np.ndarray):
    """An array whose own code sees what it is computed with."""

    seen: ClassVar[list[object]] = []

    def __array_ufunc__(self, ufunc, method, *inputs, **named):
        Seen.seen.append([type(each) for each in inputs])
        named.pop("out", None)
        plain = [each.view(np.ndarray) if isinstance(each, Seen) else each for each in inputs]
        return np.asarray(getattr(ufunc, method)(*plain, **named)).view(Seen)


@pytest.fixture(scope="module")
def opened():
    with session() as each:
        yield (
            each,
            dp.synthesize(
                each, "visits", epsilon=1, method="independent", columns=["ward", "urgent"]
            ),
        )


def test_models_and_codings_of_a_callers_own_are_refused_for_nothing(opened):
    own, made = opened
    first, second = made.codings
    stranger = Subclass(first.name, first.kind, first.values, first.edges, first.missing)
    wrong = [
        replace(made, model=Model(made.model)),
        replace(made, codings=(stranger, second)),
        replace(made, codings=(second, first)),
        replace(made, codings=(first,)),
        replace(made, codings=(replace(first, values=("A",)), second)),
        made.condition(ward="A"),
    ]
    before = own.spent
    for each in wrong:
        with pytest.raises(dp.ParameterError):
            dp.synthesis.evaluate(own, "visits", each, epsilon=0.1)
    for rows in (-1, 0, 2.5, "all"):
        with pytest.raises(dp.ParameterError, match="max_rows"):
            dp.synthesis.evaluate(own, "visits", made, epsilon=0.1, max_rows=rows)
    assert own.spent == before


def test_arrays_in_a_model_are_copied_before_anything_is_read(opened):
    own, made = opened
    model = made.model
    spies = tuple(table.view(Seen) for table in model.tables)
    Seen.seen.clear()
    found = dp.synthesis.evaluate(
        own, "visits", replace(made, model=replace(model, tables=spies)), epsilon=1
    )
    assert found[1] < 0.2
    assert Seen.seen  # in making the marginals
    assert not any(np.ndarray in each for each in Seen.seen)  # where exact counts are plain arrays


def test_a_coding_is_read_once(opened):
    own, made = opened
    first, second = made.codings
    loud = replace(first)
    object.__setattr__(loud, "inside", lambda: "1 = 0")
    found = dp.synthesis.evaluate(own, "visits", replace(made, codings=(loud, second)), epsilon=1)
    assert found[1] < 0.2  # with no row inside, half of everything would be off
