"""Benchmarks, experiments and their statistics.

Public names, loaded when first used:

- `load` and `names`: the benchmarks that come with recollect or can be downloaded;
- `from_table`: a benchmark from your own CSV file;
- `Benchmark`, `Task` and `About`: what these return.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect._lazy import lazily

if TYPE_CHECKING:
    from recollect.bench.benchmark import About, Benchmark, Task
    from recollect.bench.problems.tabular import from_table
    from recollect.bench.registry import load, names

__all__ = ["About", "Benchmark", "Task", "from_table", "load", "names"]

_HOME = {
    "About": "benchmark",
    "Benchmark": "benchmark",
    "Task": "benchmark",
    "from_table": "problems.tabular",
    "load": "registry",
    "names": "registry",
}

__getattr__ = lazily(__name__, _HOME)


def __dir__() -> list[str]:
    """List the public names, whether loaded yet or not."""
    return sorted(__all__)
