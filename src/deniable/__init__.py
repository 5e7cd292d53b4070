"""Deniable: answers about people that give no person away.

The names and their homes stand in `__init__.pyi`; they are loaded when they are first used, so that
`import deniable` costs next to nothing.
"""

from contextlib import suppress
from importlib import import_module

import lazy_loader

__version__ = "0.1.0"
_NAMESPACES = ("losses", "auditing", "synthesis", "learning", "survey", "errors")

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Load a public name from its home; a name that stands in a namespace is told with it."""
    if name not in __all__ and not name.startswith("_"):
        for namespace in _NAMESPACES:
            with suppress(ImportError):  # one that needs an extra package
                if name in import_module(f"{__name__}.{namespace}").__all__:
                    raise AttributeError(f"deniable.{name} is deniable.{namespace}.{name}")
    value: object = _load(name)
    return value
