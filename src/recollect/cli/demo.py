"""The demonstration: a support vector classifier tuned on three bundled datasets, then on a fourth with their help."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
from rich.table import Table

from recollect.errors import InputError
from recollect.history.run import Run
from recollect.optimizer.optimizer import Optimizer

if TYPE_CHECKING:
    from ConfigSpace import ConfigurationSpace

CHECKPOINTS = (1, 3, 5, 10, 20, 30, 50, 100, 200)
PAST, NEW = ("iris", "wine", "digits"), "breast_cancer"
PAST_TRIALS = 25
MOST_ROWS = 500


def run_demo(trials: int, seed: int) -> None:
    """Tune on the past datasets, then on the new one by three methods; close with a table and what was transferred."""
    if find_spec("sklearn") is None:
        raise InputError("the demonstration trains scikit-learn models; install it: pip install 'recollect[bench]'")
    console = Console()
    console.print(f"Past: the same SVC (kernel, C, gamma, degree) tuned on {', '.join(PAST)}.")
    console.print(f"New:  {NEW}, by random search, by plain Bayesian optimization, and with the past runs.\n")
    past: list[Run] = []
    runs: dict[str, Run] = {}
    with Progress(*_columns(), console=console) as progress:
        for name in PAST:
            optimizer = Optimizer(demo_space(), method="gp", horizon=PAST_TRIALS, seed=seed)
            run = _tune(optimizer, name, PAST_TRIALS, progress)
            past.append(Run(name, run.configs, run.values))
        for method in ("random", "gp", "rgpe-taf"):
            optimizer = Optimizer(demo_space(), past, method, horizon=trials, seed=seed)
            runs[method] = _tune(optimizer, NEW, trials, progress)
    console.print(_table(runs, trials))
    console.print(f"\nWhat the past runs say now (rgpe-taf):\n{optimizer.explain()}", highlight=False)
    console.print("\nNext: README.md shows how to tune a function of your own in 15 lines.")


def _columns() -> tuple[ProgressColumn, ...]:
    return (
        TextColumn("{task.description:<24}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("best error {task.fields[best]:.4f}"),
        TimeRemainingColumn(),
    )


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


def _objective(dataset: str) -> Callable[[dict[str, Any]], float]:
    import sklearn.datasets
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.model_selection import StratifiedKFold, cross_val_score
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    X, y = getattr(sklearn.datasets, f"load_{dataset}")(return_X_y=True)
    X, y = X[:MOST_ROWS], y[:MOST_ROWS]
    folds = StratifiedKFold(5, shuffle=True, random_state=0)

    def error(config: dict[str, Any]) -> float:
        model = make_pipeline(StandardScaler(), SVC(**config, max_iter=20_000))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a bad C may not converge; its error says so too
            return 1.0 - float(np.mean(cross_val_score(model, X, y, cv=folds, scoring="balanced_accuracy")))

    return error


def _tune(optimizer: Optimizer, dataset: str, trials: int, progress: Progress) -> Run:
    objective = _objective(dataset)
    bar = progress.add_task(f"{dataset}, {optimizer.method.name}", total=trials, best=1.0)
    for _ in range(trials):
        config = optimizer.ask()
        optimizer.tell(config, objective(config))
        progress.update(bar, advance=1, best=min(value for value in optimizer.run.values if value is not None))
    return optimizer.run


def _table(runs: dict[str, Run], trials: int) -> Table:
    table = Table(title=f"Best balanced error on {NEW} after so many trials")
    table.add_column("method")
    shown = sorted({point for point in CHECKPOINTS if point < trials} | {trials})
    for point in shown:
        table.add_column(str(point), justify="right")
    for name, run in runs.items():
        lowest = np.minimum.accumulate(run.y)
        table.add_row(name, *(f"{lowest[point - 1]:.4f}" for point in shown))
    return table
