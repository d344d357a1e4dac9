"""Warnings that point to the code that called recollect, however deep within recollect they arise."""

import sys
import warnings

from recollect.errors import RecollectWarning

BETWEEN = ("recollect", "optuna", "contextlib")
"""Packages whose frames are passed over: Optuna calls samplers and journals of recollect."""


def warn_caller(message: str, category: type[Warning] = RecollectWarning) -> None:
    """Warn of something in the code that called recollect."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)
