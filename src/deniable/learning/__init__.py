"""Private learning: estimators with scikit-learn's contract, and samplers for convex problems."""

from importlib.util import find_spec

from deniable.errors import MissingExtraError

if find_spec("sklearn") is None:
    raise MissingExtraError("private estimators", "learn")
