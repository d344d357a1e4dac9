"""After the same results, where does each method look next?

    OPENBLAS_NUM_THREADS=1 python benchmarks/quality/next_suggestion.py --data DIR --tasks 8

Two runs of the same method part after the first trial, and then luck decides, so it takes hundreds of runs to see a
small difference. Here every method gets the same results: the first n trials of a run of ``gp`` or of ``egp`` on a task
of a table, with the past runs of `task_prior_study`. Of the configurations that are left, the acquisition function says
which comes next. Printed are, for all places where a better configuration is left,

* ``closed``: the part of the distance to the best configuration that the next trial closes,
* ``place``: the mean logarithm of the best configuration's place in the order of the acquisition function,
* ``better``: the same for the first configuration that is better than what was found,

as means over tables, with the difference to the first method and its standard error. A method may carry settings as
in `task_prior_study`: ``task-prior:reversed_probability=0.05,noises=0.01/0.1/0.3``.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from recollect.numerics.arrays import row_keys
from recollect.optimizer.method import Method
from recollect.optimizer.model import fit_model, make_transfer_context
from recollect.optimizer.past_runs import align_past_runs
from recollect.optimizer.search_region import make_search_region
from task_prior_study import HORIZON, TABLES, Cell, find_method, past_runs, stream, table, tune

AFTER = (2, 3, 5, 7, 10, 14, 20, 28, 38)
RUNS_OF = ("gp", "egp")  # in turn
COLUMNS = ("closed", "place", "better")


def outcome(scores: np.ndarray, values: np.ndarray, found: float) -> tuple[float, float, float]:
    """Return what the configuration with the highest score closes, and the places of the best and a better one."""
    best = values.min()
    closed = (found - min(found, values[scores.argmax()])) / (found - best)
    places = [np.log1p((scores > scores[chosen].max()).sum()) for chosen in (values == best, values < found)]
    return float(closed), float(places[0]), float(places[1])


def compare_on(
    data: Path, name: str, task: str, *, source: str, seed: int, number: int, methods: dict[str, Method]
) -> Iterator[tuple[int, dict[str, tuple[float, float, float]]]]:
    """Yield the number of results and each method's outcome, along one run."""
    target, space = table(data, name).task(task), table(data, name).space
    past = past_runs(data, Cell(name, source, "true", 0, task, seed, ""))
    history = tune(data, name, task, past, RUNS_OF[number % len(RUNS_OF)], seed=seed)
    rows, y = space.encode(history.configs), history.y
    candidates = list(target.candidates or ())
    points, values = space.encode(candidates), np.array([target.evaluate(config) for config in candidates])
    contexts = {}
    for label, method in methods.items():
        aligned = align_past_runs(past, space, "minimize", method)
        region = make_search_region(space, method, aligned, candidates=candidates, horizon=HORIZON)
        rng = np.random.default_rng(seed)
        contexts[label] = make_transfer_context(method, region, aligned, chosen=None, horizon=HORIZON, rng=rng)
    for n in AFTER:
        seen = set(row_keys(rows[:n]))
        left = np.array([key not in seen for key in row_keys(points)])
        if values[left].min() >= y[:n].min():
            continue
        outcomes = {}
        for label, method in methods.items():
            rng = np.random.default_rng(n)
            model = fit_model(method, contexts[label], rows[:n], y[:n], previous=None, rng=rng)
            assert method.acquisition is not None
            prepared = method.acquisition.prepare(model.ensemble(np.empty((0, rows.shape[1]))), rng)
            outcomes[label] = outcome(prepared.score(points[left]), values[left], float(y[:n].min()))
        yield n, outcomes


def print_means(places: list[tuple[str, int]], outcomes: dict[str, np.ndarray]) -> None:
    first = next(iter(outcomes.values()))
    tables, after = (np.array(column) for column in zip(*places, strict=True))
    print(f"{len(places)} places on {len(set(tables))} tables; mean over tables, difference to the first +- its error")
    for label, own in outcomes.items():
        means = np.mean([own[tables == name].mean(axis=0) for name in sorted(set(tables))], axis=0)
        gap, errors = (own - first).mean(axis=0), (own - first).std(axis=0) / np.sqrt(len(own))
        cells = [
            f"{column} {mean:.3f} ({d:+.3f} +- {e:.3f})"
            for column, mean, d, e in zip(COLUMNS, means, gap, errors, strict=True)
        ]
        print(f"{label:<55} {'  '.join(cells)}")
        print(" " * 8, "place after", "  ".join(f"{n}: {own[after == n, 1].mean():.2f}" for n in sorted(set(after))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=os.environ.get("RECOLLECT_DATA"), help="folder of the tables")
    parser.add_argument("--tables", nargs="+", default=TABLES, choices=TABLES)
    parser.add_argument("--methods", nargs="+", default=["egp", "task-prior", "rgpe-taf", "gp"])
    parser.add_argument("--source", default="random", choices=["random", "gp"], help="how past runs were made")
    parser.add_argument("--tasks", type=int, default=8, help="of each table")
    parser.add_argument("--seed", type=int, default=700)
    given = parser.parse_args()
    data, methods = Path(given.data or "."), {name: find_method(name) for name in given.methods}
    places: list[tuple[str, int]] = []
    outcomes: dict[str, list[tuple[float, float, float]]] = {name: [] for name in methods}
    for name in given.tables:
        tasks = stream("tasks", name).permutation(sorted(table(data, name).tasks))[: given.tasks]
        for number, task in enumerate(tasks):
            along = {"source": given.source, "seed": given.seed, "number": number}
            for n, row in compare_on(data, name, str(task), **along, methods=methods):
                places.append((name, n))
                for label, own in row.items():
                    outcomes[label].append(own)
        print(f"{name}: {len(places)} places so far", flush=True)
    print_means(places, {label: np.array(own) for label, own in outcomes.items()})


if __name__ == "__main__":
    main()
