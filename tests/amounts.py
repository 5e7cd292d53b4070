"""Amounts as tests say them."""

from fractions import Fraction

from deniable.privacy.amount import Amount, Kind
from deniable.privacy.units import Relation


def rho(value, relation=Relation.ADD_REMOVE):
    return Amount(Kind.RHO, Fraction(value), relation)


def epsilon(value, relation=Relation.ADD_REMOVE):
    return Amount(Kind.EPSILON, Fraction(value), relation)
