"""Quality on the two real grids: 100 x ADTM at 10, 20, ... evaluations, leave one task out.

Past runs of a transfer method are ``gp`` runs of 50 evaluations on every other task, one drawn per task and
repetition, so ``gp`` is run first. Every finished run is appended to a CSV at once; started again, the command does
only what is missing. Data: the folder named by RECOLLECT_DATA or --data with svm_grid.csv.gz and adaboost_grid.csv.gz.

    OPENBLAS_NUM_THREADS=1 python benchmarks/grids.py --data DIR --methods random gp --seeds 5 --jobs 2
"""

from __future__ import annotations

import argparse
import csv
import gzip
import os
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

import numpy as np

GRIDS = ("svm_grid", "adaboost_grid")
HORIZON = 50
MULTIPLES = (2, 4)  # of random search, computed from its one long run as far as the grid has points
WITHOUT_PAST = ("random", "gp", "gcp")
FEW = {"mtgp": 4}  # past runs, drawn at random, for methods that would refuse all of them
Cell = tuple[str, str, str, int]  # grid, method, task, seed
FIELDS = ("grid", "method", "task", "seed", "seconds", "picks")


@cache
def load(path: Path) -> tuple[list[dict[str, float]], dict[str, np.ndarray]]:
    """Return the shared configurations and, per task, the error of each of them."""
    with gzip.open(path, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    columns = [name for name in rows[0] if name.startswith("x")]
    tasks: dict[str, list[float]] = defaultdict(list)
    configs: dict[tuple[float, ...], None] = {}
    for row in rows:
        configs[tuple(float(row[name]) for name in columns)] = None
        tasks[row["task"]].append(float(row["error"]))
    if any(len(errors) != len(configs) for errors in tasks.values()):
        raise SystemExit(f"{path}: the tasks do not share one grid")
    return [dict(zip(columns, point, strict=True)) for point in configs], {k: np.array(v) for k, v in tasks.items()}


def grid_space(configs: list[dict[str, float]]) -> dict[str, tuple[float, float]]:
    names = list(configs[0])
    return {name: (min(c[name] for c in configs), max(c[name] for c in configs)) for name in names}


def run_cell(data: Path, cell: Cell, past: dict[str, list[int]]) -> dict[str, object]:
    """Tune one task once; ``past`` maps other tasks to the grid points that their past run evaluated."""
    import recollect

    grid, method, task, seed = cell
    configs, tasks = load(data / f"{grid}.csv.gz")
    where = {tuple(config.values()): index for index, config in enumerate(configs)}
    runs = [
        recollect.Run(other, [configs[g] for g in picks], [tasks[other][g] for g in picks])
        for other, picks in past.items()
    ]
    begin = time.perf_counter()
    number = sorted(tasks).index(task)
    options = {"past": runs} if runs else {}
    optimizer = recollect.Optimizer(
        grid_space(configs), method=method, horizon=HORIZON, seed=1000 * seed + number, candidates=configs, **options
    )
    picks = []
    # The paper's random search at multiples needs a longer run; the horizon means nothing to it.
    for _ in range(min(HORIZON * max(MULTIPLES), len(configs)) if method == "random" else HORIZON):
        config = optimizer.ask()
        picks.append(where[tuple(config.values())])
        optimizer.tell(config, float(tasks[task][picks[-1]]))
    return dict(zip(FIELDS, (*cell, f"{time.perf_counter() - begin:.2f}", " ".join(map(str, picks))), strict=True))


def draw_past(done: dict[Cell, list[int]], cell: Cell) -> dict[str, list[int]]:
    """Draw for each other task one of its gp runs, anew for every repetition and target."""
    grid, method, task, seed = cell
    if method.split("+")[0] in WITHOUT_PAST:
        return {}
    others = sorted({key[2] for key in done if key[0] == grid and key[1] == "gp"} - {task})
    rng = np.random.default_rng([seed, *task.encode()])
    if (few := FEW.get(method.split("+")[0])) is not None:
        others = sorted(np.random.default_rng([seed, few, *task.encode()]).choice(others, few, replace=False).tolist())
    past = {}
    for other in others:
        seeds = sorted(key[3] for key in done if key[:3] == (grid, "gp", other))
        past[other] = done[(grid, "gp", other, int(rng.choice(seeds)))]
    return past


def read_results(path: Path) -> dict[Cell, list[int]]:
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {
            (row["grid"], row["method"], row["task"], int(row["seed"])): [int(g) for g in row["picks"].split()]
            for row in csv.DictReader(file)
        }


def adtm(errors: np.ndarray, picks: list[int]) -> np.ndarray:
    """Return the normalised regret after each evaluation."""
    best = np.minimum.accumulate(errors[picks])
    return (best - errors.min()) / (errors.max() - errors.min())


def curves_of(errors: np.ndarray, method: str, picks: list[int]) -> dict[str, np.ndarray]:
    """Return the regret of a run and, for random search, at those multiples for which it is long enough."""
    from recollect.bench.statistics import random_multiple

    curves = {method: adtm(errors, picks)[:HORIZON]}
    if method == "random":
        for factor in MULTIPLES:
            if len(picks) >= factor * HORIZON:
                curves[f"random-{factor}x"] = random_multiple(adtm(errors, picks), factor)[:HORIZON]
    return curves


def report(data: Path, out: Path) -> None:
    done = read_results(out)
    print("100 x ADTM after          10     20     30     40     50   seeds   s/run")
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    seconds = {(row["grid"], row["method"], row["task"], int(row["seed"])): float(row["seconds"]) for row in rows}
    for grid in GRIDS:
        _, tasks = load(data / f"{grid}.csv.gz")
        curves: dict[str, dict[Cell, np.ndarray]] = defaultdict(dict)
        for key, picks in done.items():
            if key[0] == grid:
                for method, regret in curves_of(tasks[key[2]], key[1], picks).items():
                    curves[method][key] = regret
        for method, cells in curves.items():
            per_task = [np.mean([c for k, c in cells.items() if k[2] == task], axis=0) for task in tasks
                        if any(k[2] == task for k in cells)]
            curve = 100 * np.mean(per_task, axis=0)
            values = "  ".join(f"{curve[k - 1]:5.2f}" for k in (10, 20, 30, 40, 50))
            took = np.median([seconds[key] for key in cells])
            print(f"{grid[:8]:<9} {method:<14} {values}   {len({k[3] for k in cells}):>3}   {took:6.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RECOLLECT_DATA"))
    parser.add_argument("--out", type=Path, default=Path("grids.csv"))
    parser.add_argument("--grids", nargs="+", default=GRIDS, choices=GRIDS)
    parser.add_argument("--methods", nargs="+", default=["gp"])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tasks", type=int, default=None, help="only the first so many tasks")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if options.data is None:
        raise SystemExit("name the folder of the grids: --data DIR or RECOLLECT_DATA")
    options.data = Path(options.data)
    for method in options.methods:
        run_method(method, options)
    report(options.data, options.out)


def run_method(method: str, options: argparse.Namespace) -> None:
    done = read_results(options.out)
    cells = [
        (grid, method, task, seed)
        for grid in options.grids
        for seed in range(options.seeds)
        for task in sorted(load(options.data / f"{grid}.csv.gz")[1])[: options.tasks]
    ]
    missing = [cell for cell in cells if cell not in done]
    fresh = not options.out.exists()
    with options.out.open("a", newline="") as file, ProcessPoolExecutor(options.jobs) as pool:
        writer = csv.DictWriter(file, FIELDS)
        if fresh:
            writer.writeheader()
        futures = [pool.submit(run_cell, options.data, cell, draw_past(done, cell)) for cell in missing]
        for future in futures:
            writer.writerow(future.result())
            file.flush()


if __name__ == "__main__":
    main()
