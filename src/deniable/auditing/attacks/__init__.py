"""Attacks on naive releases, and on the same releases through Deniable.

`gallery()` names them all. Each attack is a frozen set of public parameters; `run()` makes people
up, publishes, attacks, and gives a finding: numbers, a sentence, a table, and a picture.
"""

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
from deniable.auditing.attacks.reconstruction import (
    Reconstruction,
    least_squares,
    linear_program,
)
from deniable.auditing.attacks.registry import attack, gallery
from deniable.auditing.attacks.seeded import Seeded
from deniable.auditing.attacks.sparse_vector import BrokenSparseVector
from deniable.auditing.attacks.story import Attack, AttackFinding, numbers

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
