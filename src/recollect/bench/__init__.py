"""The measuring: benchmarks, experiments and their statistics.

Public names, loaded when first used: `load`, `names`, `from_table`, `Benchmark`, `Task`, `About`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.lazy import lazily

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

__getattr__ = lazily(__name__, _HOME)
