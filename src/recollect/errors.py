"""Everything recollect raises, and the warnings it gives.

::

    RecollectError
     ├── SpaceError       (ValueError)    the search space is empty, contradictory or of a kind that cannot be used
     ├── ConfigError      (ValueError)    a configuration does not belong to the search space
     ├── InputError       (ValueError)    an argument has a value that makes no sense
     ├── InputTypeError   (TypeError)     an argument has the wrong type
     ├── ExhaustedError   (LookupError)   every candidate has been suggested already
     ├── MissingExtraError (ImportError)  an optional library that a method needs is not installed
     ├── StorageError     (OSError)       a memory or results could not be opened, read or written
     └── NumericalError   (ArithmeticError)  a matrix could not be factorised even with jitter

    RecollectWarning      (UserWarning)
     └── FailedTrialWarning               a trial ended without a finite value and is counted as failed

A message says what was expected, what came, and where.
"""


class RecollectError(Exception):
    """Root of all errors that recollect raises on purpose."""


class SpaceError(RecollectError, ValueError):
    """The search space is empty, contradictory or of a kind that cannot be used."""


class ConfigError(RecollectError, ValueError):
    """A configuration does not belong to the search space."""


class InputError(RecollectError, ValueError):
    """An argument has a value that makes no sense."""


class InputTypeError(RecollectError, TypeError):
    """An argument has the wrong type."""


class ExhaustedError(RecollectError, LookupError):
    """Every candidate has been suggested already."""


class MissingExtraError(RecollectError, ImportError):
    """An optional library that a method needs is not installed."""


class StorageError(RecollectError, OSError):
    """A memory or results could not be opened, read or written."""


class NumericalError(RecollectError, ArithmeticError):
    """A matrix could not be factorised even with jitter."""


class RecollectWarning(UserWarning):
    """Root of all warnings that recollect gives."""


class FailedTrialWarning(RecollectWarning):
    """A trial ended without a finite value and is counted as failed."""
