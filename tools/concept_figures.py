"""Draw the pictures of the pages under ``docs/concepts``, with recollect's own models and weights.

python tools/concept_figures.py            # writes docs/figures/concept-*.png
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import recollect
from recollect.surrogate.fit import fit_gp
from recollect.surrogate.gp import GP

FIGURES = Path(__file__).parents[1] / "docs" / "figures"
GRID = np.linspace(0.0, 1.0, 201)[:, None]
BLUE, ORANGE, GREEN, RED, GREY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "0.45"
SPACE = {"x": (0.0, 1.0)}
SHIFTS = {"past run A": 0.0, "past run B": 0.06, "past run C": -0.07}
NEW_SHIFT = 0.02


def error(x: Any, shift: float) -> Any:
    """Return the error of a model family that has its optimum near 0.7, and a second dip."""
    x = np.asarray(x) - shift
    return 0.35 + 0.3 * np.cos(9.0 * x + 3.4) * np.exp(-1.2 * (x - 0.7) ** 2) + 0.25 * (x - 0.65) ** 2


def past_runs() -> dict[str, recollect.Run]:
    """Return three past runs of twelve random trials each."""
    rng = np.random.default_rng(3)
    runs = {}
    for task, shift in SHIFTS.items():
        points = rng.random(12)
        runs[task] = recollect.Run(task, [{"x": float(x)} for x in points], error(points, shift).tolist())
    return runs


def model_of(points: Any, values: Any) -> GP:
    """Fit a Gaussian process to one run."""
    return fit_gp(np.asarray(points, dtype=float)[:, None], values, rng=np.random.default_rng(0))


def run_model(run: recollect.Run) -> GP:
    """Fit a Gaussian process to a past run."""
    return model_of([config["x"] for config in run.configs], run.values)


def draw_past_runs() -> None:
    """One model for each past run, and where the new run starts."""
    figure, panels = plt.subplots(1, 4, figsize=(12, 2.9), sharey=True, layout="constrained")
    runs = past_runs()
    for panel, (task, run), colour in zip(panels, runs.items(), (BLUE, GREEN, RED), strict=False):
        mean, deviation = run_model(run).predict(GRID)[0], np.sqrt(run_model(run).predict(GRID)[1])
        panel.fill_between(GRID[:, 0], mean - 2 * deviation, mean + 2 * deviation, color=colour, alpha=0.15, lw=0)
        panel.plot(GRID, mean, color=colour, label="model")
        panel.plot([config["x"] for config in run.configs], run.values, "o", color=colour, ms=4, label="trials")
        panel.set(title=task, xlabel="hyperparameter")
    optimizer = recollect.Optimizer(SPACE, past=runs.values(), horizon=20, seed=0)
    config = optimizer.ask()
    assert config is not None
    panels[3].plot(GRID, error(GRID, NEW_SHIFT), "--", color="black", label="unknown error")
    panels[3].plot(config["x"], error(config["x"], NEW_SHIFT), "*", color=ORANGE, ms=15, label="first trial")
    panels[3].set(title="the new task", xlabel="hyperparameter")
    panels[0].set_ylabel("error")
    for panel in (panels[0], panels[3]):
        panel.legend(frameon=False, fontsize=8, loc="lower left")
    save(figure, "concept-past-runs")


def draw_ranking() -> None:
    """Which pairs of new results does each past run put in the right order, and the weights that follow."""
    sources = {"past run A": 0.0, "past run B": 0.06, "unrelated": None}
    x = np.array([0.03, 0.2, 0.4, 0.52, 0.63, 0.68, 0.76, 0.95])
    y = error(x, NEW_SHIFT) + 0.07 * np.random.default_rng(8).standard_normal(x.size)
    runs = past_runs()
    noise = np.random.default_rng(5)
    unrelated = model_of(noise.random(12), noise.random(12))
    models = {name: unrelated if shift is None else run_model(runs[name]) for name, shift in sources.items()}
    base = np.array([model.mean(x[:, None]) for model in models.values()])
    loo = np.array([model_of(np.delete(x, i), np.delete(y, i)).mean(x[i : i + 1, None])[0] for i in range(x.size)])
    weights = recollect.transfer.rgpe_weights(base, loo, y, dilution="none", rng=np.random.default_rng(0))
    figure, panels = plt.subplots(1, 4, figsize=(12, 3.0), layout="constrained")
    colours = (BLUE, GREEN, GREY)
    for panel, name, prediction, colour in zip(panels, models, base, colours, strict=False):
        _draw_pairs(panel, y, prediction, colour)
        panel.set_title(name)
    names = [*models, "the new task itself"]
    panels[3].barh(names, weights.values, color=[*colours, "black"])
    panels[3].invert_yaxis()
    panels[3].set(title="weights that follow", xlim=(0, 1))
    print(dict(zip(names, np.round(weights.values, 3), strict=True)))
    save(figure, "concept-ranking")


def _draw_pairs(panel: Any, y: Any, prediction: Any, colour: str) -> None:
    """Draw observed against predicted ranks, and count the pairs in the right order."""
    observed, predicted = y.argsort().argsort() + 1, prediction.argsort().argsort() + 1
    for a, b in zip(observed, predicted, strict=True):
        panel.plot([0, 1], [a, b], "-o", color=colour)
    first, second = np.triu_indices(len(y), 1)
    right = np.sum((y[first] < y[second]) == (prediction[first] < prediction[second]))
    panel.set(xticks=[0, 1], xticklabels=["result", "prediction"], yticks=range(1, len(y) + 1), xlim=(-0.3, 1.3))
    panel.set_xlabel(f"{right} of {len(first)} pairs in the right order")
    panel.set_ylabel("rank (1 = best)")


def draw_task_prior() -> None:
    """What past runs say a task looks like, and what three results make of it."""
    shifts = np.linspace(-0.12, 0.12, 9)
    functions = np.array([error(GRID[:, 0], shift) for shift in shifts])
    z = (functions - functions.mean(axis=1, keepdims=True)) / functions.std(axis=1, keepdims=True)
    mean, features = z.mean(axis=0), (z - z.mean(axis=0)) / np.sqrt(len(z) - 1)
    covariance = features.T @ features + 0.02 * np.exp(-(((GRID - GRID.T) / 0.2) ** 2))
    rows = np.array([40, 100, 130])
    truth = error(GRID[:, 0], 0.09)
    truth = (truth - truth.mean()) / truth.std()
    gain = np.linalg.solve(covariance[np.ix_(rows, rows)] + 1e-4 * np.eye(3), covariance[rows]).T
    posterior = mean + gain @ (truth[rows] - mean[rows])
    variance = np.diag(covariance) - np.sum(gain * covariance[rows].T, axis=1)
    figure, panels = plt.subplots(1, 3, figsize=(12, 3.0), sharey=True, layout="constrained")
    panels[0].plot(GRID, z.T, color=GREY, lw=1)
    panels[0].set_title("nine past tasks, on one scale")
    _draw_band(panels[1], mean, np.diag(covariance))
    panels[1].set_title("the prior: their mean and how they vary")
    _draw_band(panels[2], posterior, variance)
    panels[2].plot(GRID, truth, "--", color="black", label="unknown error")
    panels[2].plot(GRID[rows, 0], truth[rows], "o", color=ORANGE, label="three results")
    panels[2].set_title("after three results")
    panels[2].legend(frameon=False, fontsize=8)
    for panel in panels:
        panel.set_xlabel("hyperparameter")
    save(figure, "concept-task-prior")


def _draw_band(panel: Any, mean: Any, variance: Any) -> None:
    spread = 2 * np.sqrt(np.maximum(variance, 0))
    panel.fill_between(GRID[:, 0], mean - spread, mean + spread, color=BLUE, alpha=0.15, lw=0)
    panel.plot(GRID, mean, color=BLUE)


def draw_guard(tasks: int = 12, trials: int = 30) -> None:
    """Past runs with reversed values, with a guard and without, beside plain Bayesian optimization."""
    benchmark = recollect.bench.load("own-svm-grid")
    lines = {
        "gp": ("no past runs", "black", "--"),
        "task-prior": ("reversed past runs, task-prior", GREEN, "-"),
        "rgpe-taf": ("reversed past runs, rgpe-taf", BLUE, "-"),
        "rgpe-taf+none+paper": ("reversed past runs, no guard", ORANGE, ":"),
    }
    figure, panel = plt.subplots(figsize=(6.5, 3.4), layout="constrained")
    for method, (label, colour, dashes) in lines.items():
        regrets = np.mean([_misled(benchmark, name, method, trials) for name in benchmark.tasks[:tasks]], axis=0)
        panel.plot(np.arange(1, trials + 1), regrets, dashes, color=colour, label=label, lw=2)
        print(method, *(f"{regrets[n - 1]:.2f}" for n in (1, 5, 10, 20, 30)))
    panel.set(xlabel="trials", ylabel="regret (0 best, 100 worst)", xlim=(1, trials), yscale="log")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.legend(frameon=False)
    save(figure, "concept-guard")


def _misled(benchmark: Any, name: str, method: str, trials: int) -> Any:
    """Return the normalised regret of a run whose past runs say the opposite of the truth."""
    rng = np.random.default_rng(0)
    task = benchmark.task(name)
    others = [other for other in benchmark.tasks if other != name][:8]
    past = []
    for other in others:
        configs = [benchmark.candidates[i] for i in rng.choice(len(benchmark.candidates), 30, replace=False)]
        values = [-benchmark.task(other).evaluate(config) for config in configs]
        past.append(recollect.Run(other, configs, values, space=benchmark.space))
    optimizer = recollect.Optimizer(
        benchmark.space, past=past, method=method, horizon=trials, seed=0, candidates=benchmark.candidates
    )
    values = []
    for _ in range(trials):
        config = optimizer.ask()
        values.append(task.evaluate(config))
        optimizer.tell(config, values[-1])
    return 100 * (np.minimum.accumulate(values) - task.best) / (task.worst - task.best)


def save(figure: Any, name: str) -> None:
    """Write a figure with the house's axes."""
    for panel in figure.axes:
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(FIGURES / f"{name}.png", dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    draw_past_runs()
    draw_ranking()
    draw_task_prior()
    draw_guard()
