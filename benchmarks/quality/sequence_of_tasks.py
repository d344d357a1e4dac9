r"""Does each run profit from the runs before it when one learner is tuned on ten datasets in turn?

    OPENBLAS_NUM_THREADS=1 nice python benchmarks/quality/sequence_of_tasks.py --shuffles 3 \
        --figure docs/figures/sequence.png

Two suites that come with recollect are used: a support vector machine measured on 35 real datasets, on a grid
(``own-svm-grid``) and at random configurations (``own-svm``). The 35 datasets are shuffled and put in a circle, and
every ten neighbours are one sequence. In these 35 sequences every dataset is in every place once, so the places differ
only in the number of past runs. On each dataset ``rgpe-taf`` makes 20 trials and learns from its runs on the datasets
before; ``gp`` and ``random`` make as many and remember nothing.

Regret is normalised: 0 is the best configuration of the table, 1 the worst. Standard errors and bands come from the 35
datasets. Every finished sequence is appended to a CSV file; the same command resumes.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import os
import tempfile
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np

import recollect
from recollect.bench import Benchmark, load
from recollect.bench.analysis import figure_style as style
from recollect.bench.analysis.figure_data import bootstrap_band, line_styles
from recollect.numerics.arrays import best_so_far

SUITES = ("own-svm-grid", "own-svm")
METHODS = ("rgpe-taf", "gp", "random")
LENGTH = 10  # datasets in a sequence
TRIALS = 20
SHOWN = 10  # trials after which regret is read
FIELDS = ("suite", "shuffle", "start", "past", "task", "method", "regrets")
Key = tuple[str, int, int]  # suite, shuffle, start


@cache
def suite(name: str) -> Benchmark:
    return load(name)


def sequence(name: str, shuffle: int, start: int) -> list[str]:
    """Ten neighbours in the circle of shuffled datasets."""
    tasks = suite(name).tasks
    circle = np.random.default_rng(shuffle).permutation(len(tasks))
    return [tasks[circle[(start + place) % len(tasks)]] for place in range(LENGTH)]


def tune(benchmark: Benchmark, task: str, method: str, *, past: list[recollect.Run], seed: int) -> recollect.Run:
    target = benchmark.task(task)
    optimizer = recollect.Optimizer(
        benchmark.space, past, method, horizon=TRIALS, seed=seed, candidates=target.candidates
    )
    for _ in range(TRIALS):
        config = optimizer.ask()
        optimizer.tell(config, target.evaluate(config))
    return recollect.Run(task, trials=optimizer.run.trials)


def run_sequence(key: Key) -> list[list[object]]:
    """Tune on ten datasets in turn, by all methods; rows of the results."""
    name, shuffle, start = key
    benchmark, rows = suite(name), []
    past: list[recollect.Run] = []
    for place, task in enumerate(sequence(*key)):
        seed = int(np.random.SeedSequence([shuffle, start, place]).generate_state(1)[0])
        ends = benchmark.task(task)
        for method in METHODS:
            known = past if method == METHODS[0] else []
            run = tune(benchmark, task, method, past=known, seed=seed)
            regrets = (best_so_far(run.y) - ends.best) / (ends.worst - ends.best)
            rows.append([*key, place, task, method, " ".join(f"{regret:.6g}" for regret in regrets)])
            if method == METHODS[0]:
                past = [*past, run]
    return rows


def finished(path: Path) -> set[Key]:
    if not path.exists():
        return set()
    with path.open(newline="") as file:
        return {(row["suite"], int(row["shuffle"]), int(row["start"])) for row in csv.DictReader(file)}


def run_missing(path: Path, suites: list[str], shuffles: int) -> None:
    done = finished(path)
    keys = [
        (name, s, start) for s in range(shuffles) for start in range(len(suite(suites[0]).tasks)) for name in suites
    ]
    with path.open("a", newline="") as file:
        writer = csv.writer(file)
        if not done:
            writer.writerow(FIELDS)
        for key in keys:
            if key not in done:
                writer.writerows(run_sequence(key))
                file.flush()


def read(path: Path, name: str, shuffles: int) -> dict[str, np.ndarray]:
    """Regrets (shuffles, places, tasks, trials) by method."""
    tasks = list(suite(name).tasks)
    regrets = {method: np.full((shuffles, LENGTH, len(tasks), TRIALS), np.nan) for method in METHODS}
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            if row["suite"] == name and int(row["shuffle"]) < shuffles:
                at = int(row["shuffle"]), int(row["past"]), tasks.index(row["task"])
                regrets[row["method"]][at] = np.array(row["regrets"].split(), dtype=float)
    return regrets


def measures(regrets: np.ndarray) -> dict[str, np.ndarray]:
    """What is read from regrets (..., trials): after ten trials, and the mean over the first ten, which tells speed."""
    return {f"after {SHOWN} trials": regrets[..., SHOWN - 1], f"mean of 1 to {SHOWN}": regrets[..., :SHOWN].mean(-1)}


def shown(values: np.ndarray, sign: str = "") -> str:
    """Mean and standard error of values (tasks,)."""
    return f"{values.mean():{sign}.4f} ({values.std(ddof=1) / np.sqrt(len(values)):.4f})"


def report(name: str, regrets: dict[str, np.ndarray]) -> None:
    """What was measured, for each number of past runs; gp and random do not depend on it."""
    transfer, plain = regrets["rgpe-taf"], regrets["gp"]
    print(f"\n{name}: mean regret (standard error over datasets); shuffles: {len(transfer)}")
    for method in METHODS[1:]:
        cells = [f"{what} {shown(own.mean((0, 1)))}" for what, own in measures(regrets[method]).items()]
        print(f"  {method:<7} {'   '.join(cells)}")
    level = plain[..., SHOWN - 1].mean()
    alone = {what: own.mean((0, 1)) for what, own in measures(plain).items()}
    heads = "".join(f"{what:<20}{'less than gp':<20}" for what in alone)
    print(f"  {'past runs':<11}{heads}better / same / worse   as good as gp after {SHOWN}")
    groups = [*([place] for place in range(LENGTH)), [1, 2, 3], [4, 5, 6], [7, 8, 9]]
    for places in groups:
        own = transfer[:, places]
        cells = ""
        for what, values in measures(own.mean((0, 1))).items():
            cells += f"{shown(values):<20}{shown(alone[what] - values, '+'):<20}"
        gain = (plain[:, places] - own)[..., SHOWN - 1]  # same dataset, same seed
        better, worse = (gain > 1e-9).mean(), (gain < -1e-9).mean()
        reached = np.flatnonzero(own.mean((0, 1, 2)) <= level)
        when = f"{reached[0] + 1} trials" if len(reached) else f"not in {TRIALS}"
        pairs = f"{better:.0%} / {1 - better - worse:.0%} / {worse:.0%}"
        print(f"  {' to '.join(map(str, places[:: max(1, len(places) - 1)])):<11}{cells}{pairs:<24}{when}")
    for trials in (1, 2, 3, 5, SHOWN, TRIALS):
        first, last, other = (own[..., trials - 1].mean((0, 1)) for own in (transfer[:, :1], transfer[:, -1:], plain))
        print(
            f"  after {trials:>2} trials: {first.mean():.4f} without past runs, {shown(last)} with {LENGTH - 1}; "
            f"gp {shown(other)}, less than gp {shown(other - last, '+')}"
        )


def draw(found: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    note = [
        "Mean normalised regret over 35 datasets (0: the best configuration, 1: the worst). gp and random remember",
        "nothing: theirs is the mean over all places. Band: 95% bootstrap interval of the difference to gp,",
        "dataset by dataset.",
    ]
    from PIL import Image

    places = np.arange(float(LENGTH))
    layout = style.PanelLayout(2.6, 1.7, right=style.room_for(METHODS))
    kinds = list(measures(np.zeros((1, TRIALS))))
    styles = line_styles(METHODS)
    with style.panels(2 * len(found), len(found), layout, note=note) as (figure, all_axes):
        for axes, (what, name) in zip(all_axes, itertools.product(kinds, found), strict=True):
            curves = {method: measures(own)[what].mean(0).T for method, own in found[name].items()}  # (tasks, places)
            for method in METHODS[1:]:
                curves[method] = np.repeat(curves[method].mean(axis=1, keepdims=True), LENGTH, axis=1)
            low, high = bootstrap_band(curves["gp"] - curves["rgpe-taf"])
            level = curves["gp"].mean(axis=0)
            style.draw_band(axes, places, np.array([level - high, level - low]), styles["rgpe-taf"])
            for method, curve in curves.items():
                style.draw_line(axes, places, curve.mean(axis=0), styles[method])
            axes.set_xlim(0, LENGTH - 1)
            axes.set_xticks(places)
            axes.set_ylim(0.0, axes.get_ylim()[1])
            style.name_ends(axes, {method: float(curve[:, -1].mean()) for method, curve in curves.items()}, styles)
            axes.set_xlabel("past runs")
            axes.set_ylabel("regret")
            axes.set_title(f"{name}, {what}")
        buffer = BytesIO()
        figure.savefig(buffer, dpi=1.5 * style.DPI)
    Image.open(buffer).convert("RGB").quantize(64).save(path, optimize=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("sequence.csv"))
    parser.add_argument("--suites", nargs="+", default=list(SUITES), choices=SUITES)
    parser.add_argument("--shuffles", type=int, default=1, help="circles of datasets; each has 35 sequences")
    parser.add_argument("--figure", type=Path, default=None, help="where to draw the figure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["RECOLLECT_CACHE"] = folder
        run_missing(options.out, options.suites, options.shuffles)
    found = {name: read(options.out, name, options.shuffles) for name in options.suites}
    for name, regrets in found.items():
        report(name, regrets)
    if options.figure is not None:
        draw(found, options.figure)


if __name__ == "__main__":
    main()
