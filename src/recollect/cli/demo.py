"""``recollect demo``: tuning with and without past runs, on new data and then on each of 35 datasets.

Part 1 tunes a support vector machine. The past runs are real: each takes its trials from the measured errors of the
embedded suite (`bench.problems.suite`, space own-svm). The new data are scikit-learn's diabetes data, which are not in
the suite (its other classification sets are: iris, wine, digits, and breast_cancer under the name of wdbc). The
learner, its space, the hold-outs and the error are those of the suite, so only the data are new. All statements about
the outcome are computed from it.

In part 2 each of 35 datasets in turn is new and the others are past, since one proves little. It is an experiment as
`recollect bench run` executes them, on a benchmark of the embedded suite: errors are looked up in tables of real
trainings, past runs are random search. For this learner past runs help a lot, and the user is told so; in the same
experiment on own-svm they help hardly at all.

Notation: curves (r, n) are the best errors so far of r repetitions after each of n trials.
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from recollect._system import available_cores
from recollect._text import name_list
from recollect.bench.analysis.aggregate import MethodResult, aggregate_runs
from recollect.bench.analysis.statistics import signed_rank
from recollect.bench.experiment.executors import LocalExecutor
from recollect.bench.experiment.plan import BenchmarkSpec, Plan, SourceSettings
from recollect.bench.experiment.results import load_results
from recollect.bench.experiment.runner import run_experiment
from recollect.bench.problems.suite.suite_benchmarks import load_suite, search_space
from recollect.bench.problems.suite.training import Split, fit, hold_out, one_minus_auc, scores
from recollect.errors import MissingExtraError
from recollect.numerics.arrays import FloatArray
from recollect.optimizer.default_method import DEFAULT_METHOD
from recollect.optimizer.explanation import Explanation
from recollect.processes import run_in_processes
from recollect.progress import progress_bars
from recollect.runs.run import Config, Run
from recollect.storage.memory import Memory
from recollect.tuning.minimize import minimize
from recollect.tuning.result import Result

SPACE, NEW = "own-svm", "diabetes"
PAST_TRIALS = 40
HOLD_OUTS = 5  # as many as the suite uses for this number of rows
REPETITIONS = 4
POINTS = (5, 10, 20)  # numbers of trials at which methods are compared
TRANSFER, PLAIN, RANDOM = DEFAULT_METHOD, "gp", "random"
NAMES = {TRANSFER: "with past runs", PLAIN: "plain Bayesian optimization", RANDOM: "random search"}
BETTER, WORSE, UNCLEAR = "better", "worse", "no clear difference"
MAX_LISTED_RUNS = 5
REPLAY_BENCHMARK, REPLAY_TRIALS = "own-xgboost", 20
REPLAY_TASKS: int | None = None  # number of datasets; None: all (tests use fewer)
REPLAY_ALPHA = 0.05
Curves = Mapping[str, FloatArray]

INTRODUCTION = """\
[bold]Part 1: tune a support vector machine on new data[/bold]

Past runs   {past} runs of this learner, each with {each} trials on another dataset,
            drawn at random from real trainings that come with recollect.
New data    scikit-learn's diabetes data, which none of them used: which of 442
            patients get worse faster than the median?
Minimize    1 - AUC on held-out patients, mean of {hold_outs} hold-outs.
"""
REPLAY_INTRODUCTION = """\
[bold]Part 2: {tasks} datasets, each in turn new while the others are past[/bold]

Gradient boosting with {count} hyperparameters. Errors are looked up in tables of
real trainings; a past run is {each} trials of random search.
"""
NEXT = """\
[bold]Where to go next[/bold]
  tune a function     recollect.minimize(objective, space, memory="tuning.db")
                      help(recollect.minimize) has all options
  tune any program    recollect tune --help, recollect memory --help
  results and speed   recollect help results, recollect help performance"""


def run_demo(trials: int, seed: int) -> None:
    """Tune on the new data with a memory of past runs, compare three methods, then repeat it on 35 datasets."""
    if find_spec("sklearn") is None:
        raise MissingExtraError("the demo trains scikit-learn models: pip install 'recollect[bench]'")
    console = Console(highlight=False)
    with tempfile.TemporaryDirectory() as folder, closing(Memory(Path(folder) / "tuning.db")) as memory:
        past = past_runs(seed)
        for run in past:
            memory.add(run, SPACE)
        console.print(INTRODUCTION.format(past=len(past), each=PAST_TRIALS, hold_outs=HOLD_OUTS))
        result = _tune(TRANSFER, seed, trials=trials, memory=memory, progress=True)
    curves = compare(result.run, seed=seed)
    points = sorted({point for point in POINTS if point < trials} | {trials})
    console.print(comparison_table(curves, points))
    console.print(verdict(curves, points))
    console.print()
    console.print(weights_table(result.explain()))
    console.print(result.explain().summary, markup=False)
    console.print(f"\n[bold]Best configuration of repetition 1 with past runs[/bold]  1 - AUC {result.best_value:.4f}")
    best = {name: f"{v:.4g}" if isinstance(v, float) else v for name, v in (result.best_config or {}).items()}
    console.print(f"  {', '.join(f'{name} {value}' for name, value in best.items())}\n")
    suite = load_suite(REPLAY_BENCHMARK)
    tasks, count = len(suite.tasks), len(suite.space.names)
    console.print(REPLAY_INTRODUCTION.format(tasks=tasks, count=count, each=PAST_TRIALS))
    results = replay_suite(seed)
    console.print(replay_table(results))
    console.print(f"{replay_verdict(results)}\n")
    console.print(NEXT)


def past_runs(seed: int) -> list[Run]:
    """Return one past run per dataset of the suite: trials drawn from its table, as in random search."""
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
    """Return the new data, split as in the suite."""
    from sklearn.datasets import load_diabetes

    X, progression = load_diabetes(return_X_y=True, scaled=False)
    y = (progression > np.median(progression)).astype(np.intp)
    none = np.empty((y.size, 0))  # no indicators
    return tuple(hold_out(X, none, y, np.random.default_rng(number), number) for number in range(HOLD_OUTS))


def error(config: Config) -> float:
    """Train on every hold-out and return the mean error on the held-out rows."""
    tables = [(scores(SPACE, fit(SPACE, config, split), split.X_held), split.y_held) for split in hold_outs()]
    return float(np.mean([one_minus_auc(table, y) for table, y in tables]))


def _tune(method: str, seed: int, *, trials: int, progress: bool = False, **past: Any) -> Result:
    settings = {"trials": trials, "method": method, "seed": seed, "progress": progress, **past}
    return minimize(error, search_space(SPACE), problem=SPACE, task=NEW, **settings)


def compare(first: Run, *, seed: int) -> Curves:
    """Return the curves of each method; ``first`` is the first repetition with past runs."""
    jobs = [(method, seed + number) for number in range(REPETITIONS) for method in NAMES]
    total = len(jobs)
    jobs.remove((TRANSFER, seed))
    curves = defaultdict(list, {TRANSFER: [np.minimum.accumulate(first.y)]})
    with progress_bars("count", "elapsed") as update:
        update("comparing", 1, total)
        futures = {}
        function, processes = partial(repetition, trials=len(first)), min(available_cores(), len(jobs))
        for done, (job, future) in enumerate(run_in_processes(function, jobs, processes=processes), start=2):
            futures[job] = future
            update("comparing", done, total)
    for job in jobs:  # in this order, since repetitions of the same seed are compared
        curves[job[0]].append(futures[job].result())
    return {method: np.array(curves[method]) for method in NAMES}


def repetition(job: tuple[str, int], *, trials: int) -> FloatArray:
    """Tune once more, with newly drawn past trials, since much depends on which they are."""
    method, seed = job
    run = _tune(method, seed, trials=trials, past=past_runs(seed) if method == TRANSFER else ()).run
    return np.minimum.accumulate(run.y)


def comparison_table(curves: Curves, points: Sequence[int]) -> Table:
    """Return the table of the mean best errors, and how often past runs were ahead."""
    count = len(curves[TRANSFER])
    rows = {
        f"{name} ({method})": [f"{curves[method][:, point - 1].mean():.4f}" for point in points]
        for method, name in NAMES.items()
    }
    for rival in (PLAIN, RANDOM):
        ahead = [(curves[TRANSFER][:, point - 1] < curves[rival][:, point - 1]).sum() for point in points]
        rows[f"past runs ahead of {rival}"] = [f"{wins} of {count}" for wins in ahead]
    return points_table(f"Best 1 - AUC so far, mean of {count} repetitions", points, rows)


def verdict(curves: Curves, points: Sequence[int]) -> str:
    """State where past runs were better or worse than each of the others by more than two standard errors."""
    lines = []
    for rival in (PLAIN, RANDOM):
        verdicts = {}
        for point in points:
            gain = curves[rival][:, point - 1] - curves[TRANSFER][:, point - 1]
            margin = 2.0 * gain.std(ddof=1) / np.sqrt(gain.size)
            verdicts[point] = BETTER if gain.mean() > margin else WORSE if gain.mean() < -margin else UNCLEAR
        lines.append(f"Past runs against {NAMES[rival]}: {describe_verdicts(verdicts)}.")
    meaning = "A difference is clear if its mean exceeds two standard errors."
    return "\n".join([*lines, f"{meaning} Each repetition has its own seed and draws its own past trials."])


def weights_table(explanation: Explanation) -> Table:
    """Return the table of the past runs with the largest weights, and how well they rank the new results."""
    table = Table(
        title="Past runs with the largest weights in repetition 1 (mean over its trials)", title_justify="left"
    )
    table.add_column("past run")
    table.add_column("weight", justify="right")
    table.add_column("correctly ordered pairs of new results", justify="right")
    mean = {entry.task: entry.mean_weight or 0.0 for entry in (*explanation.past, explanation.target)}
    first = sorted(explanation.past, key=lambda entry: -mean[entry.task])[:MAX_LISTED_RUNS]
    for entry in first:
        pairs, misranked = explanation.pairs, entry.misranked
        correct = "-" if misranked is None or not pairs else f"{1.0 - misranked / pairs:.0%}"
        table.add_row(entry.task, f"{mean[entry.task]:.2f}", correct)
    own = mean[explanation.target.task]
    others = 1.0 - own - sum(mean[entry.task] for entry in first)
    table.add_row(f"the other {len(explanation.past) - len(first)}", f"{max(others, 0.0):.2f}", "")
    table.add_row("(the new data only)", f"{own:.2f}", "")
    return table


def replay_suite(seed: int) -> Mapping[str, MethodResult]:
    """Run the experiment of part 2 and return the result of each method on all datasets."""
    specs = (BenchmarkSpec(REPLAY_BENCHMARK, tasks=REPLAY_TASKS),)
    plan = Plan(tuple(NAMES), specs, SourceSettings("random", PAST_TRIALS), horizon=REPLAY_TRIALS, seed=seed)
    with tempfile.TemporaryDirectory() as folder:
        with progress_bars("count", "elapsed") as progress:
            run_experiment(plan, Path(folder), executor=LocalExecutor(available_cores()), progress=progress)
        return aggregate_runs(load_results([Path(folder)])).benchmarks[REPLAY_BENCHMARK].methods


def replay_table(results: Mapping[str, MethodResult]) -> Table:
    """Return the table of mean regrets, and on how many datasets past runs were better and worse."""
    rows = {
        f"{name} ({method})": [f"{100 * results[method].adtm[point - 1]:.2f}" for point in POINTS]
        for method, name in NAMES.items()
    }
    for rival in (PLAIN, RANDOM):
        counts = [_better_and_worse(results, rival, point) for point in POINTS]
        rows[f"past runs better, worse than {rival}"] = [f"{better}, {worse}" for better, worse, _ in counts]
    title = f"Mean of {len(results[TRANSFER].tasks)} datasets: 0 is the best known error, 100 the worst"
    return points_table(title, POINTS, rows)


def replay_verdict(results: Mapping[str, MethodResult]) -> str:
    """State where past runs were clearly better or worse than plain Bayesian optimization, and what they save."""
    verdicts = {}
    for point in POINTS:
        better, worse, p = _better_and_worse(results, PLAIN, point)
        verdicts[point] = UNCLEAR if p >= REPLAY_ALPHA else BETTER if better > worse else WORSE
    test = f"Wilcoxon test over datasets, {REPLAY_ALPHA:.0%} level"
    lines = [f"Past runs against plain Bayesian optimization: {describe_verdicts(verdicts)} ({test})."]
    reached = np.flatnonzero(results[TRANSFER].adtm <= results[PLAIN].adtm[-1])
    if reached.size and reached[0] + 1 < REPLAY_TRIALS:
        lines.append(f"Past runs reach the error of {REPLAY_TRIALS} plain trials after {reached[0] + 1} trials.")
    lines.append("Past runs help this learner a lot, others less or not at all (recollect help results).")
    return "\n".join(lines)


def _better_and_worse(results: Mapping[str, MethodResult], rival: str, point: int) -> tuple[int, int, float]:
    """Return on how many datasets past runs are better and worse after this many trials, and the p-value."""
    ours, theirs = results[TRANSFER].task_regrets(point), results[rival].task_regrets(point)
    a, b = (np.array([regrets[task] for task in sorted(ours)]) for regrets in (ours, theirs))
    return int((a < b).sum()), int((a > b).sum()), signed_rank(a, b)


def describe_verdicts(verdicts: Mapping[int, str]) -> str:
    """State after how many trials past runs were better, worse or neither."""
    points = {verdict: [str(p) for p in verdicts if verdicts[p] == verdict] for verdict in (BETTER, WORSE, UNCLEAR)}
    return ", ".join(f"{verdict} after {name_list(own)} trials" for verdict, own in points.items() if own)


def points_table(title: str, points: Sequence[int], rows: Mapping[str, Sequence[str]]) -> Table:
    """Return a table with one column per number of trials, and a line below the rows of the methods."""
    table = Table(title=title, title_justify="left")
    table.add_column("after this many trials")
    for point in points:
        table.add_column(str(point), justify="right")
    for number, (label, cells) in enumerate(rows.items(), start=1):
        table.add_row(label, *cells, end_section=number == len(NAMES))
    return table
