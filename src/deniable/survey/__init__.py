"""Sensitive surveys: people randomise their own answers, and shares are estimated all the same.

Designs on paper and their statistics are modules (`survey.designs`, `survey.planner`, ...); the
protocols of the local model are names here. All are loaded when they are first used.
"""

import lazy_loader

_MOVED = {"Question": "deniable.survey.Item", "read_question": "deniable.survey.read_item"}

_load, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Load a module of the namespace, or a public name from the module that holds it."""
    if name in _MOVED:
        raise AttributeError(f"deniable.survey.{name} is {_MOVED[name]} now")
    value: object = _load(name)
    return value
