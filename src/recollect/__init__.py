"""Hyperparameter tuning with Bayesian optimization that remembers.

The public names are loaded on first use: ``import recollect`` itself imports nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect._lazy import lazily
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
    Stop,
    StorageError,
)

if TYPE_CHECKING:
    from recollect import bench, transfer
    from recollect.optimizer.catalog import method, methods
    from recollect.optimizer.explanation import Explanation, Influence
    from recollect.optimizer.method import Method
    from recollect.optimizer.optimizer import Optimizer
    from recollect.runs.run import FAILED, Run, State, Trial
    from recollect.space.space import Space, compile_space
    from recollect.storage.formats.export import write_runs
    from recollect.storage.importers.detection import read_runs
    from recollect.storage.memory import Memory
    from recollect.tuning.minimize import maximize, minimize
    from recollect.tuning.result import Result

__version__ = "0.4.0"

__all__ = [
    "FAILED", "ConfigError", "ExhaustedError", "Explanation", "FailedTrialWarning", "Influence", "InputError",
    "InputTypeError", "Memory", "Method", "MissingExtraError", "NumericalError", "Optimizer", "RecollectError",
    "RecollectWarning", "Result", "Run", "Space", "SpaceError", "State", "Stop", "StorageError", "Trial", "__version__",
    "bench", "compile_space", "maximize", "method", "methods", "minimize", "read_runs", "transfer", "write_runs",
]  # fmt: skip

_NAMES = {
    "optimizer.catalog": ("method", "methods"),
    "optimizer.explanation": ("Explanation", "Influence"),
    "optimizer.method": ("Method",),
    "optimizer.optimizer": ("Optimizer",),
    "runs.run": ("FAILED", "Run", "State", "Trial"),
    "space.space": ("Space", "compile_space"),
    "storage.formats.export": ("write_runs",),
    "storage.importers.detection": ("read_runs",),
    "storage.memory": ("Memory",),
    "tuning.minimize": ("maximize", "minimize"),
    "tuning.result": ("Result",),
}

__getattr__ = lazily(
    __name__, {name: module for module, names in _NAMES.items() for name in names}, modules=("bench", "transfer")
)


def __dir__() -> list[str]:
    """List the public names, whether loaded yet or not."""
    return sorted(__all__)
