"""The demonstration: a support vector machine, tuned on data that it has not seen, by what 35 past runs know.

What that brings on many data sets is shown by `recollect.cli.demo_suite`.

The past runs are real: each takes its trials from the measured errors of the embedded suite (`recollect.bench.suite`,
space own-svm). The new data are scikit-learn's diabetes data, which are not in the suite (its other sets of classes
are: iris, wine, digits, and breast_cancer under the name of wdbc). The learner, its space, the hold-outs and the error
are those of the suite, so that nothing but the data is new. All that is said of the outcome is computed from it.

Notation: curves (r, n) are the best errors so far of r repetitions after each of n trials.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.cli.demo_suite import (
    BETTER,
    OURS,
    PLAIN,
    UNCLEAR,
    WORSE,
    by_word,
    introduction,
    replay,
    replay_table,
    replay_verdict,
)
from recollect.cli.progress import bars
from recollect.errors import MissingExtraError
from recollect.numerics.arrays import FloatArray
from recollect.system import cores

if TYPE_CHECKING:
    from rich.table import Table

    from recollect.bench.suite.datasets import Split
    from recollect.history.run import Config, Run
    from recollect.optimizer.explain import Explanation
    from recollect.tuning.result import Result

SPACE, NEW = "own-svm", "diabetes"
PAST_TRIALS = 40
HOLD_OUTS = 5
"""As many as the suite has for so many rows."""
REPETITIONS = 4
POINTS = (5, 10, 20)
RANDOM = "random"
NAMES = {OURS: "with past runs", PLAIN: "plain Bayesian optimization", RANDOM: "random search"}
MOST_SHOWN = 5
Curves = Mapping[str, FloatArray]

INTRODUCTION = """\
[bold]A support vector machine, tuned on data that it has not seen[/bold]

Past   {past} runs of this learner, each {each} trials on another data set, drawn at
       random from tables of real trainings that come with recollect.
New    scikit-learn's diabetes data, not among them: which of 442 patients get
       worse faster than the median? To be made small: 1 - AUC on held-out
       patients, mean of {hold_outs} hold-outs.
"""
NEXT = """\
[bold]Where to go next[/bold]
  tune a function     recollect.minimize(objective, space, memory="tuning.db")
                      README.md shows it, examples/ has runnable programs
  tune any program    recollect tune --help, recollect memory --help
  how well, how fast  docs/results.md, docs/performance.md"""


def run_demo(trials: int, seed: int) -> None:
    """Build the memory, tune on the new data, repeat it by three methods, say what came of it; then on 35 data sets."""
    if find_spec("sklearn") is None:
        raise MissingExtraError("the demonstration trains scikit-learn models: pip install 'recollect[bench]'")
    from rich.console import Console

    from recollect.history.memory import Memory

    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as folder, closing(Memory(Path(folder) / "tuning.db")) as memory:
        past = past_runs(seed)
        for run in past:
            memory.add(run, SPACE)
        console.print(INTRODUCTION.format(past=len(past), each=PAST_TRIALS, hold_outs=HOLD_OUTS))
        result = _tune(OURS, seed, trials=trials, memory=memory, progress=True)
    curves = compare(result.run, seed=seed)
    points = sorted({point for point in POINTS if point < trials} | {trials})
    console.print(comparison(curves, points))
    console.print(verdict(curves, points))
    console.print()
    console.print(helpers(result.explain()))
    console.print(worst_case(len(past), trials))
    console.print(f"\n[bold]Best configuration of repetition 1 with past runs[/bold]  1 - AUC {result.best_value:.4f}")
    console.print(f"  {written(result.best_config or {})}\n")
    console.print(introduction(PAST_TRIALS))
    found = replay(seed, tuple(NAMES), PAST_TRIALS)
    console.print(replay_table(found, NAMES))
    console.print(f"{replay_verdict(found)}\n")
    console.print(NEXT)


def past_runs(seed: int) -> list[Run]:
    """Return a past run for each data set of the suite: trials drawn from its table, as random search would make."""
    from recollect.bench.suite.store import load_suite
    from recollect.history.run import Run

    suite = load_suite(SPACE)
    rng = np.random.default_rng(seed)
    runs = []
    for name in suite.tasks:
        task = suite.task(name)
        assert task.candidates is not None
        drawn = rng.choice(len(task.candidates), PAST_TRIALS, replace=False)
        configs = [task.candidates[number] for number in drawn]
        runs.append(Run(name, configs, map(task.evaluate, configs), space=suite.space))
    return runs


@cache
def hold_outs() -> tuple[Split, ...]:
    """Return the new data, split as the suite splits its own."""
    from sklearn.datasets import load_diabetes

    from recollect.bench.suite.datasets import Split, held_out_rows

    X, progression = load_diabetes(return_X_y=True, scaled=False)
    y = (progression > np.median(progression)).astype(np.intp)
    splits = []
    for number in range(HOLD_OUTS):
        held = np.zeros(y.size, dtype=np.bool_)
        held[held_out_rows(y, np.random.default_rng(number))] = True
        Z = (X - X[~held].mean(axis=0)) / X[~held].std(axis=0)
        splits.append(Split(Z[~held], y[~held], Z[held], y[held], 2, number))
    return tuple(splits)


def error(config: Config) -> float:
    """Train on every hold-out; return the mean error on what was held out."""
    from recollect.bench.suite.learners import fit, scores
    from recollect.bench.suite.measuring import one_minus_auc

    def one(split: Split) -> float:
        return one_minus_auc(scores(SPACE, fit(SPACE, config, split), split.X_held), split.y_held)

    return float(np.mean([one(split) for split in hold_outs()]))


def _tune(method: str, seed: int, *, trials: int, progress: bool = False, **past: Any) -> Result:
    from recollect.bench.suite.spaces import compiled
    from recollect.tuning.minimize import minimize

    return minimize(
        error, compiled(SPACE), trials=trials, problem=SPACE, task=NEW, method=method, seed=seed, progress=progress,
        **past,
    )  # fmt: skip


def compare(first: Run, *, seed: int) -> Curves:
    """Return the curves of each method; the first repetition with past runs has been made."""
    jobs = [(method, seed + number) for number in range(REPETITIONS) for method in NAMES]
    total = len(jobs)
    jobs.remove((OURS, seed))
    curves = defaultdict(list, {OURS: [np.minimum.accumulate(first.y)]})
    with bars("count", "elapsed") as tell:
        tell("comparing", 1, total)
        for done, (method, curve) in enumerate(_repeated(jobs, len(first)), start=2):
            curves[method].append(curve)
            tell("comparing", done, total)
    return {method: np.array(curves[method]) for method in NAMES}


def _repeated(jobs: Sequence[tuple[str, int]], trials: int) -> Iterator[tuple[str, FloatArray]]:
    import joblib

    # In order, since repetitions of the same seed are set side by side.
    parallel = joblib.Parallel(n_jobs=min(cores(), len(jobs)), return_as="generator", batch_size=1)
    yield from parallel(joblib.delayed(repetition)(method, seed, trials) for method, seed in jobs)


def repetition(method: str, seed: int, trials: int) -> tuple[str, FloatArray]:
    """Tune once more; past trials are drawn anew, since much depends on which they happen to be."""
    run = _tune(method, seed, trials=trials, past=past_runs(seed) if method == OURS else ()).run
    return method, np.minimum.accumulate(run.y)


def comparison(curves: Curves, points: Sequence[int]) -> Table:
    """Return the table of the mean best errors, and how often past runs were ahead."""
    from rich.table import Table

    table = Table(title=f"Best 1 - AUC so far, mean of {len(curves[OURS])} repetitions", title_justify="left")
    table.add_column("after so many trials")
    for point in points:
        table.add_column(str(point), justify="right")
    for method, name in NAMES.items():
        cells = [f"{curves[method][:, point - 1].mean():.4f}" for point in points]
        table.add_row(f"{name} ({method})", *cells, end_section=method == RANDOM)
    for rival in (PLAIN, RANDOM):
        ahead = [(curves[OURS][:, point - 1] < curves[rival][:, point - 1]).sum() for point in points]
        table.add_row(f"past runs ahead of {rival}", *(f"{count} of {len(curves[OURS])}" for count in ahead))
    return table


def verdict(curves: Curves, points: Sequence[int]) -> str:
    """Say of each of the others where past runs were better, or worse, by more than two standard errors."""
    lines = [f"Past runs against {NAMES[rival]}: {_against(curves, rival, points)}." for rival in (PLAIN, RANDOM)]
    lines.append(
        "A difference is clear if its mean is more than two standard errors. Each repetition has its own seed and "
        "draws its own past trials."
    )
    return "\n".join(lines)


def _against(curves: Curves, rival: str, points: Sequence[int]) -> str:
    words = {}
    for point in points:
        gain = curves[rival][:, point - 1] - curves[OURS][:, point - 1]
        doubt = 2.0 * gain.std(ddof=1) / np.sqrt(gain.size)
        words[point] = BETTER if gain.mean() > doubt else WORSE if gain.mean() < -doubt else UNCLEAR
    return by_word(words)


def helpers(shown: Explanation) -> Table:
    """Return the table of the past runs with most weight: how much, and how well they order the new results."""
    from rich.table import Table

    table = Table(title="Which past runs had most weight in repetition 1, mean over its trials", title_justify="left")
    table.add_column("past run")
    table.add_column("weight", justify="right")
    table.add_column("pairs of new results in right order", justify="right")
    mean = {entry.task: entry.mean_weight or 0.0 for entry in (*shown.past, shown.target)}
    first = sorted(shown.past, key=lambda entry: -mean[entry.task])[:MOST_SHOWN]
    for entry in first:
        right = "-" if entry.misranked is None or not shown.pairs else f"{1.0 - entry.misranked / shown.pairs:.0%}"
        table.add_row(entry.task, f"{mean[entry.task]:.2f}", right)
    own = mean[shown.target.task]
    others = 1.0 - own - sum(mean[entry.task] for entry in first)
    table.add_row(f"the other {len(shown.past) - len(first)}", f"{max(others, 0.0):.2f}", "")
    table.add_row("(these data alone)", f"{own:.2f}", "")
    return table


def worst_case(past: int, trials: int) -> str:
    """Say how much past runs can slow the search down."""
    from recollect.transfer.bound import slowdown_factor

    factor = slowdown_factor(trials, past)
    return (
        f"Worst case: whatever {past} past runs say, the guarantees of plain Bayesian optimization hold within "
        f"{factor:.0f} times as many trials (the paper's theorem; docs/methods.md says what it supposes)."
    )


def written(config: Config) -> str:
    """Return a configuration as short text."""
    values = {name: f"{value:.4g}" if isinstance(value, float) else value for name, value in config.items()}
    return ", ".join(f"{name} {value}" for name, value in values.items())
