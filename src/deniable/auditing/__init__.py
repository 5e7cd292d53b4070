"""Verification and audit: exact channels, replayed pipelines, worst neighbours."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
