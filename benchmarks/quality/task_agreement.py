"""How much is there to transfer: do the tasks of a benchmark rank configurations alike?

    python benchmarks/quality/task_agreement.py own-svm branin DIR/lcbench_yahpo.csv.gz --figures docs/figures

For every benchmark: the mean of Spearman's correlation over all pairs of tasks, and its spread. ``--figures FOLDER``
draws a small heat map of all pairs (needs matplotlib). Benchmarks are given by name, tables by path. If the tasks of a
table were measured at different configurations, forests replace it: 100 trees each, on ranks, not tuned.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from recollect.bench import Benchmark, from_table, load
from recollect.bench.analysis.statistics import task_agreement
from recollect.bench.problems.forest_benchmark import ForestBuild, TuneSettings

SHOWN = (5, 50, 95)


def open_benchmark(given: str, jobs: int) -> Benchmark:
    """A benchmark by name or path; as forests where its tasks share no configurations."""
    if not given.endswith((".csv", ".csv.gz")):
        return load(given)
    table = from_table(given)
    if table.candidates is not None:
        return table
    build = ForestBuild(TuneSettings(candidates=0, final_trees=100, scale="rank"))
    return from_table(given, mode="forest", jobs=jobs, build=build)


def ordered(agreement: np.ndarray) -> np.ndarray:
    """The matrix with tasks that agree next to each other."""
    from scipy.cluster.hierarchy import leaves_list, linkage
    from scipy.spatial.distance import squareform

    distance = np.clip(1.0 - np.nan_to_num(agreement), 0.0, None)
    np.fill_diagonal(distance, 0.0)
    order = leaves_list(linkage(squareform(distance, checks=False), "average", optimal_ordering=True))
    return agreement[np.ix_(order, order)]


def draw(name: str, agreement: np.ndarray, mean: float, folder: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(2.9, 2.5), dpi=110, layout="constrained")
    colours = plt.get_cmap("RdBu").with_extremes(bad="0.75")
    image = axes.imshow(ordered(agreement), vmin=-1, vmax=1, cmap=colours, interpolation="nearest")
    axes.set_title(f"{name}: mean {mean:.2f}", fontsize=9)
    axes.set_xlabel(f"{len(agreement)} tasks, alike ones together", fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
    bar = figure.colorbar(image, ax=axes, ticks=[-1, -0.5, 0, 0.5, 1])
    bar.set_label("rank correlation", fontsize=8)
    bar.ax.tick_params(labelsize=7)
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.png", pil_kwargs={"optimize": True})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benchmarks", nargs="+", metavar="NAME|TABLE.csv")
    parser.add_argument("--figures", type=Path)
    parser.add_argument("--jobs", type=int, default=1, help="processes that build forests")
    options = parser.parse_args()
    print("| benchmark | tasks | points | mean | 5 % | median | 95 % | pairs below 0 |")
    print("|---|---|---|---|---|---|---|---|")
    for given in options.benchmarks:
        benchmark = open_benchmark(given, options.jobs)
        agreement = task_agreement(benchmark)
        pairs = agreement[np.triu_indices(len(agreement), 1)]
        pairs = pairs[np.isfinite(pairs)]
        spread = " | ".join(f"{value:.2f}" for value in np.percentile(pairs, SHOWN))
        points = "500 random" if benchmark.candidates is None else str(len(benchmark.candidates))
        print(
            f"| {benchmark.name} | {len(agreement)} | {points} | {pairs.mean():.2f} | {spread} | "
            f"{100 * np.mean(pairs < 0):.0f} % |",
            flush=True,
        )
        if options.figures is not None:
            draw(benchmark.name, agreement, float(pairs.mean()), options.figures)


if __name__ == "__main__":
    main()
