"""Every error raised on purpose.

    DeniableError
    ├── ParameterError (ValueError)          a public parameter is outside its range
    │   └── ParameterTypeError (TypeError)   a public parameter is of the wrong type
    ├── PrivateValueError (ValueError)       a private value cannot be released as it is
    ├── RelationError (ValueError)           losses under different neighbour relations were mixed
    ├── LossFormatError (ValueError)         a stored loss cannot be read
    ├── ReportError (ValueError)             reports of a survey cannot be read; none was counted
    ├── CalibrationError (ValueError)        no noise reaches the guarantee that was asked for
    ├── MissingExtraError (ImportError)      an optional part is not installed
    ├── AdmissionError (PermissionError)     an invitation or token does not admit to a survey
    ├── SurveyStoreError (RuntimeError)      a survey's answers cannot be read or written
    ├── BudgetError (RuntimeError)           a release would exceed a budget, or budgets disagree
    ├── LedgerError (RuntimeError)           the ledger cannot be read or written
    │   └── LedgerTamperedError              entries were changed, removed, reordered or cut off
    ├── QueryError (ValueError)              a question cannot be answered privately as it stands
    ├── EngineError (RuntimeError)           an engine could not run a statement
    ├── DoorError (RuntimeError)             a door to private data is used up, closed or elsewhere
    ├── ReleaseFailedError (RuntimeError)    a release failed after it was charged
    │   └── NotAnsweredError                 too few people stand out; part of the price was charged
    ├── TokenError (ValueError)              a one-time token, or what makes one, is not valid
    ├── StreamExhaustedError (RuntimeError)  an interactive mechanism has given its last answer
    └── RandomnessError (RuntimeError)       no randomness fit for release can be had

A message says what was asked, what is allowed and what to do next. It may quote public
parameters; it never quotes a private value.
"""

from __future__ import annotations

__all__ = [
    "AdmissionError",
    "BudgetError",
    "CalibrationError",
    "DeniableError",
    "DoorError",
    "EngineError",
    "LedgerError",
    "LedgerTamperedError",
    "LossFormatError",
    "MissingExtraError",
    "NotAnsweredError",
    "ParameterError",
    "ParameterTypeError",
    "PrivateValueError",
    "QueryError",
    "RandomnessError",
    "RelationError",
    "ReleaseFailedError",
    "ReportError",
    "StreamExhaustedError",
    "SurveyStoreError",
    "TokenError",
]


class DeniableError(Exception):
    """Root of every error raised on purpose."""


class ParameterError(DeniableError, ValueError):
    """A public parameter is outside its range."""

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        super().__init__(argument, value, allowed)
        self.argument, self.value, self.allowed = argument, value, allowed

    def __str__(self) -> str:
        return f"{self.argument}={_short(self.value)}: {self.allowed}"

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"


class ParameterTypeError(ParameterError, TypeError):
    """A public parameter is of the wrong type."""


class PrivateValueError(DeniableError, ValueError):
    """A private value cannot be released as it is. The message never quotes it."""


class RelationError(DeniableError, ValueError):
    """Losses under different neighbour relations were mixed."""


class LossFormatError(DeniableError, ValueError):
    """A stored loss cannot be read."""


class ReportError(DeniableError, ValueError):
    """Reports of a survey cannot be read. None of them was counted."""


class TokenError(DeniableError, ValueError):
    """A one-time token, or what makes one, is not valid. The message never quotes it."""


class CalibrationError(DeniableError, ValueError):
    """No noise reaches the guarantee that was asked for."""


class MissingExtraError(DeniableError, ImportError):
    """An optional part is not installed."""

    def __init__(self, what: str, extra: str) -> None:
        super().__init__(what, extra)
        self.what, self.extra = what, extra

    def __str__(self) -> str:
        return f"{self.what} need an extra package: pip install 'deniable[{self.extra}]'"


class RandomnessError(DeniableError, RuntimeError):
    """No randomness fit for release can be had."""


class StreamExhaustedError(DeniableError, RuntimeError):
    """An interactive mechanism has given its last answer."""


class AdmissionError(DeniableError, PermissionError):
    """An invitation or a token does not admit to a survey. Nothing was stored."""


class SurveyStoreError(DeniableError, RuntimeError):
    """A survey's answers cannot be read or written. Nothing was acknowledged."""


class BudgetError(DeniableError, RuntimeError):
    """A release would exceed a budget, or two budgets for one population disagree."""


class LedgerError(DeniableError, RuntimeError):
    """The ledger cannot be read or written. Nothing was released."""


class LedgerTamperedError(LedgerError):
    """Entries of the ledger were changed, removed, reordered or cut off."""


class QueryError(DeniableError, ValueError):
    """A question cannot be answered privately as it stands. Nothing was read or spent."""


class EngineError(DeniableError, RuntimeError):
    """An engine could not run a statement, before a charge; what the engine said is not quoted."""


class DoorError(DeniableError, RuntimeError):
    """A door to private data is used up, closed, or was opened elsewhere."""


class ReleaseFailedError(DeniableError, RuntimeError):
    """Something failed after a charge, which stays. The message never quotes a private value."""


class NotAnsweredError(ReleaseFailedError):
    """Released numbers say that nothing can be learned at this price: part of it was charged."""


def _short(value: object, limit: int = 60) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # integers of many thousand digits, lists in lists
        return f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def is_stop(error: BaseException) -> bool:
    """Whether DuckDB's driver ended a statement because a signal came, of which it says no more."""
    return type(error) is RuntimeError and str(error) == "Query interrupted"


def is_panic(error: BaseException) -> bool:
    """Whether a library in Rust, such as polars, has failed: to Python that is no `Exception`."""
    return type(error).__module__ == "pyo3_runtime"
