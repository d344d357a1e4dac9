"""Everything recollect raises, and the warnings it gives.

::

    RecollectError
     ├── SpaceError       (ValueError)    the search space is empty, contradictory or of an unsupported kind
     ├── ConfigError      (ValueError)    a configuration does not belong to the search space
     ├── InputError       (ValueError)    an argument has an invalid value
     ├── InputTypeError   (TypeError)     an argument has the wrong type
     ├── ExhaustedError   (LookupError)   every candidate has been suggested already
     ├── MissingExtraError (ImportError)  an optional library that a method needs is not installed
     ├── StorageError     (OSError)       a memory or results could not be opened, read or written
     │    ├── ReadOnlyStorageError        an attempt to write to a storage that was opened for reading
     │    └── TaskRemovedError            the task was removed from the memory while it ran
     └── NumericalError   (ArithmeticError)  a matrix could not be factorized even with jitter

    Stop                  (Exception)    raised by a callback to end a run; not an error

    RecollectWarning      (UserWarning)
     └── FailedTrialWarning               a trial ended without a finite value and is counted as failed

Every message says what was expected, what was received, where, and what to do about it.
"""


class RecollectError(Exception):
    """Root of all errors that recollect raises on purpose."""


class SpaceError(RecollectError, ValueError):
    """The search space is empty, contradictory or of an unsupported kind."""


class ConfigError(RecollectError, ValueError):
    """A configuration does not belong to the search space.

    Attributes:
        reason: Why it does not.
        number: Its position, if it is one of several configurations.
    """

    def __init__(self, reason: str, number: int | None = None) -> None:
        """Put the number in front of the reason."""
        super().__init__(reason if number is None else f"configuration {number}: {reason}")
        self.reason, self.number = reason, number


class InputError(RecollectError, ValueError):
    """An argument has an invalid value."""


class InputTypeError(RecollectError, TypeError):
    """An argument has the wrong type."""


class ExhaustedError(RecollectError, LookupError):
    """Every candidate has been suggested already."""


class MissingExtraError(RecollectError, ImportError):
    """An optional library that a method needs is not installed."""


class StorageError(RecollectError, OSError):
    """A memory or results could not be opened, read or written."""


class ReadOnlyStorageError(StorageError):
    """A storage that was opened for reading would have been written to."""


class TaskRemovedError(StorageError):
    """A task was removed from the memory while it ran."""


class NumericalError(RecollectError, ArithmeticError):
    """A matrix could not be factorized even with jitter."""


class Stop(Exception):
    """Ends a tuning run when a callback raises it; the message says why.

    Running trials are finished, and the result is returned as usual.
    """


class RecollectWarning(UserWarning):
    """Root of all warnings that recollect gives."""


class FailedTrialWarning(RecollectWarning):
    """A trial ended without a finite value and is counted as failed."""
