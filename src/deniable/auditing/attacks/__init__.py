"""Attacks on naive releases, and on the same releases through Deniable.

`gallery()` names them all. Each attack is a frozen set of public parameters; `run()` makes people
up, publishes, attacks, and gives a finding: numbers, a sentence, a table, and a picture.
"""

from collections.abc import Mapping
from types import MappingProxyType

from deniable.auditing.attacks.anonymity import (
    candidates,
    group_sizes,
    is_k_anonymous,
    mondrian,
    uniqueness,
)
from deniable.auditing.attacks.averaging import Averaging
from deniable.auditing.attacks.difference import Difference
from deniable.auditing.attacks.k_anonymity import CITY_HOSPITAL, VALLEY_CLINIC, KAnonymity
from deniable.auditing.attacks.last_bit import LastBit
from deniable.auditing.attacks.linkage import Linkage
from deniable.auditing.attacks.membership import Membership
from deniable.auditing.attacks.name_and_shame import NameAndShame
from deniable.auditing.attacks.reconstruction import Reconstruction, least_squares, linear_program
from deniable.auditing.attacks.seeded import Seeded
from deniable.auditing.attacks.sparse_vector import BrokenSparseVector
from deniable.auditing.attacks.story import Attack, AttackFinding, numbers
from deniable.errors import ParameterError
from deniable.tables import nearest

__all__ = [
    "CITY_HOSPITAL",
    "VALLEY_CLINIC",
    "Attack",
    "AttackFinding",
    "Averaging",
    "BrokenSparseVector",
    "Difference",
    "KAnonymity",
    "LastBit",
    "Linkage",
    "Membership",
    "NameAndShame",
    "Reconstruction",
    "Seeded",
    "attack",
    "candidates",
    "gallery",
    "group_sizes",
    "is_k_anonymous",
    "least_squares",
    "linear_program",
    "mondrian",
    "numbers",
    "uniqueness",
]

# In the order in which to look at them.
_ATTACKS: tuple[type[Attack], ...] = (
    Difference,
    Averaging,
    Reconstruction,
    Membership,
    KAnonymity,
    Linkage,
    LastBit,
    Seeded,
    NameAndShame,
    BrokenSparseVector,
)


def gallery() -> Mapping[str, type[Attack]]:
    """All attacks by name; each is a frozen set of public parameters with `run()`."""
    return MappingProxyType({attack.name: attack for attack in _ATTACKS})


def attack(name: str) -> Attack:
    """The attack of this name, with its usual parameters."""
    known = gallery()
    if name not in known:
        raise ParameterError("attack", name, f"no such attack; {nearest(str(name), known)}")
    return known[name]()
