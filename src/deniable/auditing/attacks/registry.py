"""The gallery: every attack by its name, in the order in which to look at them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from deniable.auditing.attacks.averaging import Averaging
from deniable.auditing.attacks.difference import Difference
from deniable.auditing.attacks.k_anonymity import KAnonymity
from deniable.auditing.attacks.last_bit import LastBit
from deniable.auditing.attacks.linkage import Linkage
from deniable.auditing.attacks.membership import Membership
from deniable.auditing.attacks.name_and_shame import NameAndShame
from deniable.auditing.attacks.reconstruction import Reconstruction
from deniable.auditing.attacks.seeded import Seeded
from deniable.auditing.attacks.sparse_vector import BrokenSparseVector
from deniable.auditing.attacks.story import Attack
from deniable.errors import ParameterError
from deniable.tables import nearest

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
