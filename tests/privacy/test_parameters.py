"""Public parameters: read as they are declared, by one decorator."""

import copy
import dataclasses
import inspect
import pickle
from enum import StrEnum
from fractions import Fraction

import pytest

import deniable as dp
from deniable.privacy.exact import Number, positive, whole
from deniable.privacy.parameters import (
    Parameter,
    flag,
    keep,
    one_of,
    parameter,
    parameters,
)
from deniable.privacy.units import read_relation


class Way(StrEnum):
    SLOW = "slow"
    FAST = "fast"


@parameters
class Plain:
    """A class with each kind of parameter."""

    epsilon: Parameter[Number, Fraction] = parameter(positive)
    many: Parameter[int, int] = parameter(whole, default=3)
    way: Parameter[Way | str, Way] = parameter(one_of(Way), default="slow")
    sure: Parameter[bool, bool] = parameter(flag, default=False)
    relation: Parameter[dp.Relation | str, dp.Relation] = parameter(
        read_relation, default=dp.Relation.ADD_REMOVE
    )


@parameters
class Checked(Plain):
    """One that looks at several of them, once all are read."""

    least: Parameter[int, int] = parameter(whole, default=1)

    def __post_init__(self) -> None:
        assert type(self.epsilon) is Fraction
        if self.least > self.many:
            raise dp.ParameterError("least", self.least, f"must be {self.many} or less")


@parameters
class Named(Checked):
    """One that is made by another name."""

    def __init__(self, *, rate: Number, many: int = 3) -> None:
        keep(
            self,
            epsilon=1 / positive(rate, "rate"),
            many=many,
            way=Way.FAST,
            sure=True,
            relation="replace",
            least=2,
        )


def test_each_is_read_as_it_is_declared():
    made = Plain(epsilon=0.1, way="fast", relation="replace")
    assert made.epsilon == Fraction(1, 10)
    assert (made.many, made.way, made.sure) == (3, Way.FAST, False)
    assert made.relation is dp.Relation.REPLACE
    assert type(Plain(epsilon=1).way) is Way  # a default is read as well
    assert list(inspect.signature(Plain).parameters) == [f.name for f in dataclasses.fields(Plain)]


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("epsilon", 0), ("epsilon", "1"), ("many", 0), ("many", 1.5), ("way", "quick"), ("sure", 1)],
)
def test_what_a_reader_refuses_is_named(name, wrong):
    for kind in (Plain, Checked):
        with pytest.raises(dp.ParameterError, match=name):
            kind(**{"epsilon": 1, name: wrong})
    with pytest.raises(dp.ParameterError, match="'slow' or 'fast'"):
        Plain(epsilon=1, way="quick")


def test_without_a_default_it_must_be_given_by_name():
    with pytest.raises(TypeError, match="epsilon"):
        Plain()
    with pytest.raises(TypeError):
        Plain(1)
    with pytest.raises(TypeError, match="colour"):
        Plain(epsilon=1, colour="red")


def test_they_are_frozen_equal_hashable_and_copied():
    made = Checked(epsilon=0.5, least=2)
    for each in dataclasses.fields(made):
        with pytest.raises(AttributeError):
            setattr(made, each.name, 1)
    for other in (copy.deepcopy(made), pickle.loads(pickle.dumps(made)), dataclasses.replace(made)):
        assert other == made
        assert hash(other) == hash(made)
    assert made != Checked(epsilon=0.5)
    assert repr(made).startswith("Checked(epsilon=0.5, many=3, way='slow'")


def test_classes_below_that_declare_nothing_are_frozen_too():
    class Below(Plain):
        """Without the decorator."""

    for made in (Below(epsilon=1), dp.Geometric(epsilon=1, sensitivity=1)):
        for name in ("epsilon", "scale", "loss", "anything"):
            with pytest.raises(AttributeError):
                setattr(made, name, 1)
            with pytest.raises(AttributeError):
                delattr(made, name)


def test_several_are_looked_at_together():
    with pytest.raises(dp.ParameterError, match="least"):
        Checked(epsilon=1, many=1, least=2)
    with pytest.raises(dp.ParameterError, match="least"):
        Named(rate=1, many=1)


def test_a_class_with_names_of_its_own_is_made_again_of_what_it_keeps():
    made = Named(rate=4)
    assert (made.epsilon, made.least) == (Fraction(1, 4), 2)
    kept = {f.name: getattr(made, f.name) for f in dataclasses.fields(made)}
    again = Named.of_fields(**{**kept, "many": 7})
    assert type(again) is Named
    assert (again.epsilon, again.many) == (Fraction(1, 4), 7)
    assert Named.of_fields(**kept) == made
    with pytest.raises(dp.ParameterError, match="many"):
        Named.of_fields(**{**kept, "many": -1})
    with pytest.raises(dp.ParameterError, match="least"):
        Named.of_fields(**{**kept, "many": 1})


def test_a_subclass_that_declares_nothing_reads_what_it_inherits():
    @dataclasses.dataclass(frozen=True)
    class Below(Checked):
        def __post_init__(self) -> None:
            super().__post_init__()
            assert type(self.epsilon) is Fraction

    assert Below(epsilon=1, many=2).many == 2
    with pytest.raises(dp.ParameterError, match="epsilon"):
        Below(epsilon=-1)
    with pytest.raises(dp.ParameterError, match="least"):
        Below(epsilon=1, least=9)


def test_losses_show_every_digit_as_their_order_in_a_ledger_follows_it():
    """Parallel losses are stored in the order of their reprs: two must never look alike."""
    close = [dp.losses.PureLoss(bound=Fraction(1, 3) + Fraction(k, 10**40)) for k in range(2)]
    assert len({repr(each) for each in close}) == 2
    assert repr(dp.losses.PureLoss(bound=Fraction(1, 3))) == (
        "PureLoss(relation=<Relation.ADD_REMOVE: 'add_remove'>, bound=Fraction(1, 3))"
    )
    there, back = (dp.parallel(*each) for each in (close, close[::-1]))
    assert dp.losses.loss_to_json(there) == dp.losses.loss_to_json(back)
