"""Tasks of a memory, for tests of analysis and reports."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from recollect import Run
from recollect.analysis.memory_tasks import StoredTask, TaskModels, model_tasks
from recollect.space.space import compile_space

SPACE: dict[str, Any] = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


COMPILED = compile_space(SPACE)


def points(count: int = 12, seed: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(seed)
    return [{"x": float(a), "y": float(b)} for a, b in rng.random((count, 2))]


def slope(config: dict[str, Any]) -> float:
    return float(config["x"] + 0.2 * config["y"])


def example_run(task: str, function: Callable[[dict[str, Any]], float] = slope, **given: Any) -> Run:
    configs = points(given.pop("count", 12), given.pop("seed", 0))
    return Run(task, configs, [function(config) for config in configs], **{"space": COMPILED, **given})


def stored_tasks(*runs: Run) -> list[StoredTask]:
    return [StoredTask("p", one, one.space, None, None, ()) for one in runs]


def modelled(*runs: Run) -> TaskModels:
    models = model_tasks(stored_tasks(*runs))
    assert models is not None
    return models
