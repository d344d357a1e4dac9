"""How fast are forest tasks, compared with scikit-learn, and how well do they rank unseen configurations?

    python benchmarks/speed/forest_tasks.py speed --cpu
    python benchmarks/speed/forest_tasks.py correlation --table svm_openml100.csv.gz --tasks 8

``speed`` grows forests of 500 trees on random data. It times predictions for 1 and for 1,000 points, with scikit-learn
on one core beside them, and a complete ``task.evaluate(config)`` on a stored and loaded forest, including encoding (its
trees have leaves of at least four rows, as tuned ones often have). ``--large`` adds a forest that takes minutes to
grow. ``--cpu`` measures processor time instead of wall time, for busy machines.

``correlation`` tunes forests on evenly spaced tasks of a tidy table (``--benchmark NAME`` for a tabular benchmark) and
prints the cross-validated Spearman correlation of each. The defaults are the paper's settings; ``--candidates``,
``--folds`` and ``--trees`` make it smaller.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from recollect.bench.benchmark import About, Benchmark
from recollect.bench.data.openml_bot import bot_space
from recollect.bench.problems.forest_benchmark import (
    CSV_SETTINGS,
    ForestBuild,
    TuneSettings,
    build_forests,
    forest_benchmark,
    forest_features,
)
from recollect.numerics.linalg import single_threaded
from recollect.space.sampling import uniform

SHAPES = (("svm", 250), ("svm", 2000), ("xgboost", 1000))
LARGE = ("xgboost", 5000)
ABOUT = About("random data", "", "", "", "forest")


def median_ms(call: Callable[[], object], *, clock: Callable[[], float], repeats: int) -> float:
    call()
    times = []
    for _ in range(repeats):
        begin = clock()
        call()
        times.append(clock() - begin)
    return 1e3 * float(np.median(times))


def speed(options: argparse.Namespace) -> None:
    from sklearn.ensemble import RandomForestRegressor

    from recollect.bench.problems.forest_model import flatten

    clock = time.process_time if options.cpu else time.perf_counter
    print(f"{options.trees} trees; milliseconds, {'processor' if options.cpu else 'wall'} time, median")
    heads = ("nodes", "depth", "1 point", "sklearn", "1,000", "sklearn", "evaluate")
    print(f"{'data':<15}" + "".join(f"{head:>10}" for head in heads))
    for name, n in (*SHAPES, LARGE) if options.large else SHAPES:
        space, rng = bot_space(name), np.random.default_rng(0)
        X, Q = uniform(space, n, rng), uniform(space, 1000, rng)
        features, points = forest_features(space, X), forest_features(space, Q)
        y = 0.05 + 0.3 * np.square(features[:, 0] - 0.4) + 0.1 * np.square(features[:, 5]) + 0.02 * rng.random(n)
        model = RandomForestRegressor(options.trees, random_state=1, max_features=0.5).fit(features, np.log(y))
        forest = flatten(model)
        np.testing.assert_allclose(forest.predict(points), model.predict(points), rtol=0, atol=1e-12)
        row = []
        for asked, repeats in ((points[:1], 30), (points, 7)):
            for predict in (forest.predict, model.predict):
                row.append(median_ms(lambda p=predict, a=asked: p(a), clock=clock, repeats=repeats))
        one = evaluation(space, X, y, Q, options.trees, clock)
        print(
            f"{name + ' ' + str(n):<15}{forest.value.size:>10}{forest.depth:>10}{row[0]:>10.2f}{row[1]:>10.1f}"
            f"{row[2]:>10.1f}{row[3]:>10.1f}{one:>10.2f}",
            flush=True,
        )


def evaluation(space, X, y, Q, trees: int, clock: Callable[[], float]) -> float:
    """Milliseconds of one ``task.evaluate(config)`` on a forest that was stored and loaded."""
    settings = TuneSettings(candidates=0, final_trees=trees)
    configs = iter(space.decode(Q))
    with tempfile.TemporaryDirectory() as folder:
        built = ForestBuild(settings, folder=Path(folder))
        task = forest_benchmark("random data", space, {"one": (X, y)}, ABOUT, build=built).task("one")
        return median_ms(lambda: task.evaluate(next(configs)), clock=clock, repeats=30)


def table_of(options: argparse.Namespace) -> Benchmark:
    from recollect.bench import from_table, load

    return from_table(options.table) if options.table else load(options.benchmark)


def correlation(options: argparse.Namespace) -> None:
    benchmark = table_of(options)
    chosen = np.unique(np.linspace(0, len(benchmark.tasks) - 1, options.tasks).astype(int))
    data = {}
    for name in (benchmark.tasks[position] for position in chosen):
        task = benchmark.task(name)
        X = benchmark.space.encode(task.candidates or ())
        data[name] = (X, task.evaluate_many(X))
    settings = TuneSettings(options.candidates, options.folds, options.trees, 1, scale=options.scale)
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        forests = build_forests(
            benchmark.space, data, jobs=options.jobs, build=ForestBuild(settings, folder=Path(folder))
        )
        scores = {name: forests.tuned(name)[1] for name in data}
    print(f"{benchmark.name}: cross-validated Spearman correlation, {settings}")
    for name, score in scores.items():
        errors = data[name][1]
        print(f"{name:<12}{len(errors):>6} rows  errors {errors.min():.4f} to {errors.max():.4f}  {score:.3f}")
    known = np.array([score for score in scores.values() if np.isfinite(score)])
    print(
        f"{len(scores)} tasks, median {np.median(known):.3f}, at least 0.9 on {np.sum(known >= 0.9)}, undefined on "
        f"{len(scores) - len(known)}; {time.perf_counter() - begin:.0f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = parser.add_subparsers(required=True)
    part = parts.add_parser("speed")
    part.add_argument("--trees", type=int, default=500)
    part.add_argument("--cpu", action="store_true")
    part.add_argument("--large", action="store_true")
    part.set_defaults(run=speed)
    part = parts.add_parser("correlation")
    where = part.add_mutually_exclusive_group(required=True)
    where.add_argument("--table", type=Path)
    where.add_argument("--benchmark")
    part.add_argument("--tasks", type=int, default=8)
    part.add_argument("--jobs", type=int, default=1)
    part.add_argument("--scale", choices=["log", "rank"], default=CSV_SETTINGS.scale)
    part.add_argument("--candidates", type=int, default=CSV_SETTINGS.candidates)
    part.add_argument("--folds", type=int, default=10)
    part.add_argument("--trees", type=int, default=100)
    part.set_defaults(run=correlation)
    options = parser.parse_args()
    with single_threaded():
        options.run(options)


if __name__ == "__main__":
    main()
