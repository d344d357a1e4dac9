"""Which method is best over all benchmarks? The table and the figure of docs/results.md.

    python benchmarks/quality/great_comparison.py benchmarks/results/{great.csv.xz,peers.csv.gz}

For the methods that have all runs on every benchmark:

* rank: mean rank after 10, 20 and 50 evaluations over the tasks of all benchmarks, 1 is best; ties share a rank. Ranks
  that differ by less than the critical difference (Nemenyi, alpha = 0.05) are not significantly different.
* log regret: mean over benchmarks and over evaluations 2 to 50 of the log of 100 x ADTM + 0.05; a single run of many
  can decide it.
* of each run: the same with the log of each run's regret, averaged over runs.
* not behind: of all places (a benchmark after 10, 20 or 50 evaluations), where it is the best or not significantly
  behind the best.
* lost: the tasks on which it is more than 5 points behind ``gp`` after 50 evaluations (100 x normalised regret), and
  the largest loss.
* ms: mean time of a suggestion, if the results are not packed.

A second table has the other methods, each on the benchmarks and runs that it has, with the log regret of ``task-prior``
and of ``gp`` on the same runs, and p of the Wilcoxon test of "of each run" over tasks.

The figure shows the mean rank, and the geometric mean of 100 x ADTM + 0.05 over benchmarks, after each evaluation.
``--methods`` compares these only, on the benchmarks and runs that all of them have.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from compare_methods import OFFSET, log_regrets
from count_wins import AFTER, complete_methods, count_places
from recollect.bench.analysis import figure_style as style
from recollect.bench.analysis.aggregate import REFERENCE, BenchmarkResults, aggregate_runs, common_runs
from recollect.bench.analysis.figure_data import differences_from_reference, line_styles
from recollect.bench.analysis.statistics import RankTest, rank_test, signed_rank
from recollect.bench.experiment.experiment_run import CompletedRun
from recollect.bench.experiment.results import load_results
from recollect.numerics.arrays import FloatArray

DEFAULT = "task-prior"
LOSS = 5.0  # points of 100


def ranks_after(benchmarks: Sequence[BenchmarkResults], methods: Sequence[str], evaluations: int) -> RankTest:
    """Rank the methods on the tasks of all benchmarks."""
    regrets = {
        method: {
            (f"{found.benchmark} {task}", repetition): regret
            for found in benchmarks
            for (task, repetition), regret in found.methods[method].run_regrets(evaluations).items()
        }
        for method in methods
    }
    return rank_test(regrets)


def log_regret(benchmarks: Sequence[BenchmarkResults], method: str) -> FloatArray:
    """Return the mean over benchmarks of the log regret after each evaluation (h,)."""
    return np.mean([np.log(100 * found.methods[method].adtm + OFFSET) for found in benchmarks], axis=0)


def log_regret_of_runs(benchmarks: Sequence[BenchmarkResults], method: str) -> float:
    """Return the mean over benchmarks of the mean log regret of the runs."""
    return float(np.mean([log_regrets(found.methods[method]).mean() for found in benchmarks]))


def print_table(benchmarks: Sequence[BenchmarkResults], methods: Sequence[str]) -> None:
    tests = [ranks_after(benchmarks, methods, after) for after in AFTER]
    _, even = count_places(benchmarks, methods)
    lost: Counter[str] = Counter()
    worst: dict[str, tuple[float, str]] = {}
    for found in benchmarks:
        for row in differences_from_reference(found, unit=100):
            loss = row.worst, f"{found.benchmark}, {row.worst_task}"
            worst[row.result.method] = max(worst.get(row.result.method, loss), loss)
            lost[row.result.method] += sum(difference > LOSS for difference in row.by_task.values())
    differences = ", ".join(f"{test.critical_difference:.2f}" for test in tests)
    print(f"{len(benchmarks)} benchmarks, {tests[-1].tasks} tasks; critical differences of the ranks: {differences}\n")
    seconds = {own: float(np.mean([found.methods[own].seconds for found in benchmarks])) for own in methods}
    timed = [] if np.isnan(list(seconds.values())).any() else ["ms"]
    columns = [
        *(f"rank {after}" for after in AFTER),
        "log regret",
        "of each run",
        "not behind",
        f"lost to {REFERENCE}",
        *timed,
    ]
    print(f"| method | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for method in tests[-1].methods:
        ranks = [f"{test.ranks[test.methods.index(method)]:.2f}" for test in tests]
        loss = f"{lost[method]}; {worst[method][0]:.1f} ({worst[method][1]})" if method in worst else ""
        regret = f"{log_regret(benchmarks, method)[1:].mean():.2f}"
        runs = f"{log_regret_of_runs(benchmarks, method):.2f}"
        cells = [f"`{method}`", *ranks, regret, runs, f"{even[method]} of {len(AFTER) * len(benchmarks)}", loss]
        print(f"| {' | '.join([*cells, *(f'{1000 * seconds[method]:.0f}' for _ in timed)])} |")


def print_others(runs: Sequence[CompletedRun], methods: Sequence[str]) -> None:
    """Print the table of methods with fewer runs, each beside the default and plain Bayesian optimization."""
    columns = [
        "benchmarks",
        "tasks",
        "runs",
        "log regret",
        DEFAULT,
        REFERENCE,
        "of each run",
        DEFAULT,
        "p",
        REFERENCE,
        "p",
    ]
    print(f"\n| method | {' | '.join(columns)} |\n|---|{'---:|' * len(columns)}")
    for method in methods:
        compared = [method, DEFAULT, REFERENCE]
        benchmarks = list(aggregate_runs(shared_runs(runs, compared)).benchmarks.values())
        tasks = {own: np.concatenate([log_regrets(found.methods[own]) for found in benchmarks]) for own in compared}
        regrets = [f"{log_regret(benchmarks, own)[1:].mean():.2f}" for own in compared]
        of_runs = {own: f"{log_regret_of_runs(benchmarks, own):.2f}" for own in compared}
        tested = [
            cell for own in compared[1:] for cell in (of_runs[own], f"{signed_rank(tasks[method], tasks[own]):.2g}")
        ]
        count = sum(len(found.methods[method].curves) for found in benchmarks)
        cells = [len(benchmarks), len(tasks[method]), count, *regrets, of_runs[method], *tested]
        print(f"| `{method}` | {' | '.join(map(str, cells))} |")


def draw(benchmarks: Sequence[BenchmarkResults], methods: Sequence[str], path: Path) -> None:
    horizon = benchmarks[0].horizon
    evaluations = np.arange(1.0, horizon + 1)
    tests = [ranks_after(benchmarks, methods, after) for after in range(1, horizon + 1)]
    ranks = {own: np.array([test.ranks[test.methods.index(own)] for test in tests]) for own in methods}
    regrets = {own: np.exp(log_regret(benchmarks, own)) for own in methods}
    styles, layout = line_styles(methods), style.PanelLayout(3.4, 2.7, right=style.room_for(methods))
    titles = f"mean rank, {tests[-1].tasks} tasks", f"regret, geometric mean of {len(benchmarks)} benchmarks"
    with style.panels(2, 2, layout) as (figure, panels):
        for axes, title, curves in zip(panels, titles, (ranks, regrets), strict=True):
            for method, curve in curves.items():
                style.draw_line(axes, evaluations, curve, styles[method])
            axes.set_title(title)
            style.count_ticks(axes, 1, horizon, "evaluations")
            if curves is regrets:
                axes.set_yscale("log")
                style.plain_ticks(axes.yaxis)
            style.name_ends(axes, {method: float(curve[-1]) for method, curve in curves.items()}, styles)
    style.save(figure, path)


def shared_runs(runs: Sequence[CompletedRun], methods: Sequence[str]) -> list[CompletedRun]:
    """Return the runs of these methods on the benchmarks, tasks and repetitions that all of them have."""
    present = {run.key[:2] for run in runs}
    shared = {name for name, _ in present if all((name, method) in present for method in methods)}
    return common_runs(run for run in runs if run.key.benchmark in shared and run.key.method in methods)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results", type=Path, nargs="+")
    parser.add_argument("--methods", nargs="+")
    parser.add_argument("--figure", type=Path, help="files without suffix; .png and .svg are written")
    given = parser.parse_args()
    runs = load_results(given.results)
    compared = runs if given.methods is None else shared_runs(runs, given.methods)
    benchmarks = list(aggregate_runs(compared).benchmarks.values())
    methods = [name for name in complete_methods(benchmarks) if not benchmarks[0].methods[name].remark]
    print_table(benchmarks, methods)
    if others := {run.key.method for run in compared} - set(methods):
        print_others(runs, sorted(others))
    if given.figure:
        draw(benchmarks, methods, given.figure)


if __name__ == "__main__":
    main()
