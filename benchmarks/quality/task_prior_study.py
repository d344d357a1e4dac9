"""How do ``task-prior``, ``rgpe-taf`` and ``gp`` compare, on true and on misleading past runs?

    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/task_prior_study.py --data DIR --out study.csv --jobs 2

Every run is 50 trials on one task of a table. All methods see the same past runs (50 random evaluations of each other
task, or a run of ``gp`` with 50 trials) and the same seed. Past runs take part as they are (``true``), with the sign of
their values changed (``negated``), turned around within their range (``reflected``), with their values permuted
(``shuffled``), with the values of the mirrored configurations (``mirrored``), with the values of another table
(``unrelated``: those of the next one of `TABLES`, as a function of the columns in their order), or as 1,000 copies of
one reflected run (``copies``). ``--count`` limits how many past runs there are.

A method may carry other settings of its prior: ``task-prior:plain_probability=0.3,noises=0.1/0.3``. Every finished run
is appended to a CSV file; the same command resumes. The report, of the tasks that all methods have, has mean log regret
(mean over the evaluations 2 to 50 of the log of 100 x mean normalised regret + 0.05), its difference to the first
method, 100 x mean normalised regret, p of the two-sided Wilcoxon test over tasks against the first method (repetitions
of a task are averaged; < if the method has the lower regrets by that test, > if the higher), and after how many trials
the first method is as good as this one after 5 and after 10. One run of many may decide the log of a mean; the last
lines therefore have the mean over runs of the same logs of each run, too, with the Wilcoxon test over the tasks of all
tables, and in how many runs a method is more than one point of 100 better and worse. ``--report`` prints it from a
finished file, packed or not.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import zlib
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

import recollect
from recollect.bench import Benchmark, from_table, load
from recollect.bench.analysis.statistics import signed_rank
from recollect.optimizer.method import Method

TABLES = (
    "svm_grid", "adaboost_grid", "lcbench", "xgboost10d_yahpo", "svm_openml100", "svm4d_yahpo", "glmnet2d_yahpo",
    "lightgbm5d_tabrepo", "own-svm", "own-glmnet", "own-adaboost", "own-svm-grid", "own-xgboost", "own-mlp",
)  # fmt: skip
KINDS = ("true", "negated", "reflected", "shuffled", "mirrored", "unrelated", "copies")
OBSERVATIONS = HORIZON = 50
SHOWN = (3, 5, 10, 20, 30, 50)
TESTED = (5, 10, 20, 50)
REPLACED = (5, 10)
COPIES = 1000
FIELDS = ("table", "source", "kind", "count", "task", "seed", "method", "regret")


class Cell(NamedTuple):
    """One run."""

    table: str
    source: str  # how the past runs were made: random or gp
    kind: str  # what was done to them
    count: int  # how many there are; 0 means one on each other task
    task: str
    seed: int
    method: str


@cache
def table(data: Path, name: str) -> Benchmark:
    return load(name) if name.startswith("own-") else from_table(data / f"{name}.csv.gz")


def stream(*parts: object) -> np.random.Generator:
    return np.random.default_rng([zlib.crc32(str(part).encode()) for part in parts])


@cache
def past_run(data: Path, name: str, source: str, task: str, seed: int) -> tuple[list[dict[str, Any]], np.ndarray]:
    """Configurations and values of a past run; it is the same for all tasks, so that its fit is shared."""
    other = table(data, name).task(task)
    candidates = list(other.candidates or ())
    if source == "random":
        picks = stream(name, task, seed).permutation(len(candidates))[:OBSERVATIONS]
        configs = [dict(candidates[g]) for g in picks]
        return configs, np.array([other.evaluate(config) for config in configs])
    run = tune(data, name, task, [], "gp", seed=1000 + seed)
    return list(run.configs), run.y


def mirrored(data: Path, name: str, task: str, configs: list[dict[str, Any]]) -> np.ndarray:
    """Values at the mirrored configurations."""
    space = table(data, name).space
    points = space.encode(configs)
    return nearest_values(data, name, task, np.where(space.categorical, points, 1.0 - points))


def unrelated(data: Path, name: str, task: str, configs: list[dict[str, Any]]) -> np.ndarray:
    """Values of a task of another table, whose first columns have the codes of these configurations."""
    own, other = table(data, name), TABLES[(TABLES.index(name) + 1) % len(TABLES)]
    tasks = sorted(table(data, other).tasks)
    chosen = tasks[sorted(own.tasks).index(task) % len(tasks)]
    return nearest_values(data, other, chosen, own.space.encode(configs))


def nearest_values(data: Path, name: str, task: str, points: np.ndarray) -> np.ndarray:
    """Values of a task at the candidates that are nearest to the points in the columns that both have."""
    benchmark = table(data, name)
    target = benchmark.task(task)
    candidates = list(target.candidates or ())
    rows = benchmark.space.encode(candidates)
    shared = min(rows.shape[1], points.shape[1])
    rows, points = (np.nan_to_num(codes[:, :shared], nan=-1.0) for codes in (rows, points))
    distance = np.abs(rows[None] - points[:, None]).sum(axis=2)
    return np.array([target.evaluate(candidates[g]) for g in distance.argmin(axis=1)])


def past_runs(data: Path, cell: Cell) -> list[recollect.Run]:
    others = [task for task in sorted(table(data, cell.table).tasks) if task != cell.task]
    if cell.count:
        others = list(stream("choice", cell.task, cell.seed).permutation(others)[: cell.count])
    if cell.kind == "copies":
        others = others[:1]
    runs = []
    for task in others:
        configs, y = past_run(data, cell.table, cell.source, task, cell.seed)
        rng = stream("spoil", cell.table, task, cell.seed)
        if cell.kind in ("mirrored", "unrelated"):
            y = (mirrored if cell.kind == "mirrored" else unrelated)(data, cell.table, task, configs)
        changed = {"negated": -y, "shuffled": rng.permutation(y), "true": y, "mirrored": y, "unrelated": y}
        y = changed.get(cell.kind, y.min() + y.max() - y)
        runs.append(recollect.Run(task, configs, y))
    if cell.kind == "copies":
        return [recollect.Run(f"copy {i}", runs[0].configs, runs[0].y) for i in range(COPIES)]
    return runs


def find_method(name: str) -> Method:
    base, _, settings = name.partition(":")
    found = recollect.method(base)
    pairs = [setting.split("=") for setting in settings.split(",") if setting]
    changes: dict[str, Any] = {
        key: tuple(map(float, value.split("/"))) if "/" in value else float(value) for key, value in pairs
    }
    return replace(found, prior=replace(found.prior, **changes)) if changes and found.prior is not None else found


def tune(data: Path, name: str, task: str, past: list[recollect.Run], method: str, *, seed: int) -> recollect.Run:
    target = table(data, name).task(task)
    seed = int(stream(name, task, seed).integers(2**31))
    optimizer = recollect.Optimizer(
        table(data, name).space, past, find_method(method), horizon=HORIZON, seed=seed, candidates=target.candidates
    )
    for _ in range(HORIZON):
        config = optimizer.ask()
        optimizer.tell(config, target.evaluate(config))
    return optimizer.run


def run_cell(data: Path, cell: Cell) -> list[object]:
    past = [] if cell.method == "gp" else past_runs(data, cell)
    run = tune(data, cell.table, cell.task, past, cell.method, seed=cell.seed)
    target = table(data, cell.table).task(cell.task)
    width = target.worst - target.best
    regret = (np.minimum.accumulate(run.y) - target.best) / (width if width > 0 else 1.0)
    return [*cell, " ".join(f"{100 * value:.5g}" for value in regret)]


def read(path: Path) -> dict[Cell, np.ndarray]:
    if not path.exists():
        return {}
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
        rows = csv.DictReader(file)
        return {
            Cell(*(int(row[f]) if f in ("count", "seed") else row[f] for f in FIELDS[:-1])): np.array(
                row["regret"].split(), dtype=float
            )
            for row in rows
        }


def wanted(options: argparse.Namespace) -> list[Cell]:
    cells = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        for name in options.tables:
            names = sorted(table(options.data, name).tasks)
            chosen = names if options.tasks is None else list(stream("tasks", name).permutation(names)[: options.tasks])
            for task in chosen:
                for kind in options.kinds:
                    for method in options.methods:
                        same = method == "gp"  # past runs play no part
                        place = ("none", "true", 0) if same else (options.source, kind, options.count)
                        cells.append(Cell(name, *place, str(task), seed, method))
    return list(dict.fromkeys(cells))


def run_missing(options: argparse.Namespace) -> None:
    done = read(options.out)
    missing = [cell for cell in wanted(options) if cell not in done]
    fresh = not options.out.exists()
    with options.out.open("a", newline="") as file, ProcessPoolExecutor(options.jobs) as pool:
        writer = csv.writer(file)
        if fresh:
            writer.writerow(FIELDS)
        for future in as_completed([pool.submit(run_cell, options.data, cell) for cell in missing]):
            writer.writerow(future.result())
            file.flush()


def log_regret(curves: np.ndarray) -> float:
    return float(np.log(curves.mean(axis=0)[1:] + 0.05).mean())


def log_regrets(curves: np.ndarray) -> np.ndarray:
    """Return the mean log regret of every run."""
    return np.asarray(np.log(curves[:, 1:] + 0.05).mean(axis=1))


def far_apart(gains: list[np.ndarray]) -> str:
    """In how many runs a method is more than one point better and worse than the first, after 10 and all trials."""
    (better, late), (worse, late_worse) = ((np.concatenate(gains) * sign > 1.0).sum(axis=0) for sign in (1, -1))
    return f"by more than 1 better {better}, worse {worse} after 10, {late} and {late_worse} at the end"


def tested(first: np.ndarray, own: np.ndarray) -> str:
    """Return p of the Wilcoxon test, and whose regrets are lower by it: a mean may be the other way round."""
    gap = (own - first)[own != first]
    direction = float(np.sign(gap) @ rankdata(np.abs(gap)))
    return f"{signed_rank(first, own):.3f}{'<' if direction < 0 else '>' if direction > 0 else '='}"


def catch_up(first: np.ndarray, own: np.ndarray, trials: int) -> str:
    """After how many trials the first method is as good as the other one after ``trials``, on average."""
    reached = np.flatnonzero(first.mean(axis=0) <= own.mean(axis=0)[trials - 1])
    return str(reached[0] + 1) if reached.size else f"> {first.shape[1]}"


class Curves(NamedTuple):
    """Regrets (runs, trials) of every method, on the tasks and seeds that all of them have."""

    tasks: list[str]  # of the runs, in order
    regrets: dict[str, np.ndarray]

    def by_task(self, values: np.ndarray) -> np.ndarray:
        """Average the values of runs, one in each row, over the repetitions of a task."""
        places = np.unique(self.tasks, return_inverse=True)[1]
        return np.array([values[places == place].mean(axis=0) for place in range(len(set(self.tasks)))])


def curves_of(results: dict[Cell, np.ndarray], cells: set[Cell], table: str, kind: str) -> Curves:
    """Return what the chosen cells have in common."""
    found: dict[str, dict[tuple[str, int], np.ndarray]] = defaultdict(dict)
    for cell, curve in results.items():
        if cell in cells and cell.table == table and (cell.kind == kind or cell.method == "gp"):
            found[cell.method][cell.task, cell.seed] = curve
    common = sorted(set.intersection(*(set(entry) for entry in found.values()))) if found else []
    regrets = {method: np.array([entry[key] for key in common]) for method, entry in found.items()}
    return Curves([task for task, _ in common], regrets)


def chosen(results: dict[Cell, np.ndarray], options: argparse.Namespace) -> set[Cell]:
    """Return the finished runs that the options name, on whichever tasks."""
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    return {
        cell
        for cell in results
        if cell.seed in seeds
        and cell.method in options.methods
        and (cell.method == "gp" or (cell.source == options.source and cell.count == options.count))
    }


def report(results: dict[Cell, np.ndarray], options: argparse.Namespace) -> None:
    """One block per kind of past runs: every method on every table, and the mean over tables."""
    cells = chosen(results, options)
    for kind in options.kinds:
        print(f"\npast runs: {options.source}, {kind}, {options.count or 'all'}. Runs, mean log regret, difference,")
        print(f"100 x regret after {SHOWN}, p of the Wilcoxon test at {TESTED}, trials that {REPLACED} replace")
        totals, gaps, ends = defaultdict(list), defaultdict(list), defaultdict(list)
        for name in options.tables:
            curves = curves_of(results, cells, name, kind)
            if len(curves.regrets) < len(options.methods):
                continue
            first = curves.regrets[options.methods[0]]
            for method in options.methods:
                own = curves.regrets[method]
                totals[method].append(log_regret(own))
                gaps[method].append(curves.by_task(log_regrets(own) - log_regrets(first)))
                ends[method].append((first - own)[:, [9, -1]])
                shown = " ".join(f"{own[:, n - 1].mean():6.2f}" for n in SHOWN if n <= own.shape[1])
                a, b = curves.by_task(first), curves.by_task(own)
                p = " ".join(tested(a[:, n - 1], b[:, n - 1]) for n in TESTED if n <= own.shape[1])
                numbers = f"{len(own):4} {log_regret(own):6.2f} {log_regret(own) - log_regret(first):+6.2f}"
                replaced = ", ".join(catch_up(first, own, n) for n in REPLACED)
                print(f"{name:<19}{method:<40}{numbers}  {shown}   {p}   {replaced}")
        for method, values in totals.items():
            gap = np.array(values) - np.array(totals[options.methods[0]])
            numbers = f"{len(values):4} {np.mean(values):6.2f} {gap.mean():+6.2f}"
            tasks, mean = np.concatenate(gaps[method]), np.mean([own.mean() for own in gaps[method]])
            p = signed_rank(np.zeros(len(tasks)), tasks)
            single = f"of each run: {mean:+.2f}, p = {p:.4f}; {far_apart(ends[method])}"
            print(f"{'mean over tables':<19}{method:<40}{numbers}  lower on {int((gap < 0).sum())}; {single}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RECOLLECT_DATA"), help="folder of the tables")
    parser.add_argument("--out", type=Path, default=Path("task_prior_study.csv"))
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument(
        "--methods", nargs="+", default=["rgpe-taf", "gp", "task-prior"], help="the first is compared with"
    )
    parser.add_argument("--kinds", nargs="+", default=["true"], choices=KINDS)
    parser.add_argument("--source", default="random", choices=["random", "gp"], help="how past runs were made")
    parser.add_argument("--count", type=int, default=0, help="number of past runs; 0 means one on each other task")
    parser.add_argument("--tasks", type=int, default=None, help="run a sample of this many tasks of each table")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--report", action="store_true", help="run nothing")
    options = parser.parse_args()
    options.data = Path(options.data or ".")
    if not options.report:
        run_missing(options)
    report(read(options.out), options)


if __name__ == "__main__":
    main()
