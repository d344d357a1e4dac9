"""The demonstration: a support vector classifier on scikit-learn's breast-cancer data, tuned by two methods."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from recollect.errors import InputError
from recollect.history.run import Run
from recollect.optimizer.optimizer import Optimizer

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

CHECKPOINTS = (5, 10, 20, 30, 50, 100, 200)


def run_demo(trials: int, seed: int) -> None:
    """Tune with ``gp`` and with ``random``, show progress, close with a table of the best errors along the way."""
    if find_spec("sklearn") is None:
        raise InputError("the demonstration trains scikit-learn models; install it: pip install 'recollect[bench]'")
    console = Console()
    console.print("Tuning an SVC on scikit-learn's breast-cancer data: kernel, C, gamma and degree, 5-fold error.\n")
    objective = _objective()
    runs: dict[str, Run] = {}
    columns = (
        TextColumn("{task.description:<7}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("best error {task.fields[best]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        for method in ("random", "gp"):
            bar = progress.add_task(method, total=trials, best=1.0)
            optimizer = Optimizer(demo_space(), method=method, horizon=trials, seed=seed)
            runs[method] = _tune(optimizer, objective, trials, partial(progress.update, bar, advance=1))
    console.print(_table(runs, trials))
    best = runs["gp"].best
    assert best is not None
    settings = ", ".join(f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
                         for name, value in best.config.items())
    console.print(f"\nBest settings found by gp: {settings}")
    console.print("Next: README.md shows how to tune a function of your own in 15 lines.")


def demo_space() -> ConfigurationSpace:
    """Return the conditional four-dimensional space of the paper's SVM benchmark, over scikit-learn's names."""
    from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

    space = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "poly", "rbf"], default="rbf")
    gamma = Float("gamma", (2.0**-10, 2.0**10), log=True)
    degree = Integer("degree", (2, 5))
    space.add(kernel, Float("C", (2.0**-10, 2.0**10), log=True), gamma, degree)
    space.add(EqualsCondition(gamma, kernel, "rbf"), EqualsCondition(degree, kernel, "poly"))
    return space


def _objective() -> Callable[[dict[str, Any]], float]:
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = load_breast_cancer(return_X_y=True)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)

    def error(config: dict[str, Any]) -> float:
        model = make_pipeline(StandardScaler(), SVC(**config, max_iter=20_000))
        return 1.0 - float(np.mean(cross_val_score(model, X, y, cv=folds, scoring="balanced_accuracy")))

    return error


def _tune(
    optimizer: Optimizer, objective: Callable[[dict[str, Any]], float], trials: int, done: Callable[..., None]
) -> Run:
    for _ in range(trials):
        config = optimizer.ask()
        optimizer.tell(config, objective(config))
        best = optimizer.best
        assert best is not None
        assert best.value is not None
        done(best=best.value)
    return optimizer.run


def _table(runs: dict[str, Run], trials: int) -> Table:
    table = Table(title="Best balanced error after so many trials")
    table.add_column("method")
    shown = sorted({point for point in CHECKPOINTS if point < trials} | {trials})
    for point in shown:
        table.add_column(str(point), justify="right")
    for name, run in runs.items():
        lowest = np.minimum.accumulate(run.y)
        table.add_row(name, *(f"{lowest[point - 1]:.4f}" for point in shown))
    return table
