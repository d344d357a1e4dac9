"""Hyperparameter tuning with Bayesian optimization that remembers.

The public names, loaded when first used: ``import recollect`` itself imports nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy import lazily

if TYPE_CHECKING:
    from recollect import bench, transfer
    from recollect.errors import (
        ConfigError,
        ExhaustedError,
        FailedTrialWarning,
        InputError,
        InputTypeError,
        MissingExtraError,
        NumericalError,
        RecollectError,
        RecollectWarning,
        SpaceError,
        StorageError,
    )
    from recollect.history.export import write_runs
    from recollect.history.importers.recognise import read_runs
    from recollect.history.memory import Memory
    from recollect.history.run import FAILED, Run, State, Trial
    from recollect.optimizer.catalog import method, methods
    from recollect.optimizer.explain import Explanation, Influence
    from recollect.optimizer.method import Method
    from recollect.optimizer.optimizer import Optimizer
    from recollect.space.space import Space, compile_space
    from recollect.tuning.minimize import minimize
    from recollect.tuning.result import Result

__version__ = "0.3.0"

_HOME = {
    "ConfigError": "errors",
    "ExhaustedError": "errors",
    "FailedTrialWarning": "errors",
    "InputError": "errors",
    "InputTypeError": "errors",
    "MissingExtraError": "errors",
    "NumericalError": "errors",
    "RecollectError": "errors",
    "RecollectWarning": "errors",
    "SpaceError": "errors",
    "StorageError": "errors",
    "write_runs": "history.export",
    "read_runs": "history.importers.recognise",
    "Memory": "history.memory",
    "FAILED": "history.run",
    "Run": "history.run",
    "State": "history.run",
    "Trial": "history.run",
    "method": "optimizer.catalog",
    "methods": "optimizer.catalog",
    "Explanation": "optimizer.explain",
    "Influence": "optimizer.explain",
    "Method": "optimizer.method",
    "Optimizer": "optimizer.optimizer",
    "Space": "space.space",
    "compile_space": "space.space",
    "minimize": "tuning.minimize",
    "Result": "tuning.result",
}
_MODULES = ("bench", "transfer")

__all__ = [
    "FAILED",
    "ConfigError",
    "ExhaustedError",
    "Explanation",
    "FailedTrialWarning",
    "Influence",
    "InputError",
    "InputTypeError",
    "Memory",
    "Method",
    "MissingExtraError",
    "NumericalError",
    "Optimizer",
    "RecollectError",
    "RecollectWarning",
    "Result",
    "Run",
    "Space",
    "SpaceError",
    "State",
    "StorageError",
    "Trial",
    "__version__",
    "bench",
    "compile_space",
    "method",
    "methods",
    "minimize",
    "read_runs",
    "transfer",
    "write_runs",
]


__getattr__ = lazily(__name__, _HOME, _MODULES)


def __dir__() -> list[str]:
    """List the public names, whether loaded yet or not."""
    return sorted(__all__)
