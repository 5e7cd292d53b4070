"""Private learning: estimators with scikit-learn's contract, and samplers for convex problems."""

from importlib.util import find_spec

import lazy_loader

from deniable.errors import MissingExtraError

if find_spec("sklearn") is None:
    raise MissingExtraError("private estimators", "learn")

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
