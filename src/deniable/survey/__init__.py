"""Sensitive surveys: people randomise their own answers, and shares are estimated all the same.

Designs on paper and their statistics are modules (`survey.designs`, `survey.planner`, ...); the
protocols of the local model are names here. All are loaded when they are first used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
