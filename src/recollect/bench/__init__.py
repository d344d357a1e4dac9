"""The measuring: benchmarks, experiments and their statistics.

Public names, loaded when first used: `load`, `names`, `from_table`, `Benchmark`, `Task`, `About`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.bench.problem import About, Benchmark, Task
    from recollect.bench.registry import load, names
    from recollect.bench.table import from_table

__all__ = ["About", "Benchmark", "Task", "from_table", "load", "names"]

_HOME = {
    "About": "problem",
    "Benchmark": "problem",
    "Task": "problem",
    "from_table": "table",
    "load": "registry",
    "names": "registry",
}


def __getattr__(name: str) -> Any:
    """Import a public name from where it lives when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module 'recollect.bench' has no attribute {name!r}")
    return getattr(import_module(f"recollect.bench.{_HOME[name]}"), name)
