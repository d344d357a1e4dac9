"""How much sooner good configurations are found with past runs: the figure of the README.

    python benchmarks/quality/front_page_figure.py --out docs/figures/front-page.png

Draws the mean normalised regret of random search, plain Bayesian optimization (`gp`) and the default method
(`rgpe-taf`) on four benchmarks, from the packed results in this repository.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parents[1] / "results"
PANELS = {"svm-grid": "grids", "lcbench_yahpo": "suite", "xgboost10d_yahpo": "forests", "svm_openml100": "forests"}
LINES = {
    "random": ("random search", "0.55", ":"),
    "gp": ("Bayesian optimization", "black", "--"),
    "rgpe-taf": ("recollect, with past runs", "#0072b2", "-"),
}
EVALUATIONS = 50


def regret_curves(file: str, benchmark: str) -> dict[str, np.ndarray]:
    """Return 100 x mean normalised regret after 1, 2, ... evaluations of each method."""
    csv.field_size_limit(10**9)
    curves = defaultdict(list)
    with gzip.open(RESULTS / f"{file}.csv.gz", "rt") as lines:
        for row in csv.DictReader(lines):
            if row["benchmark"] == benchmark and row["method"] in LINES:
                best, worst = float(row["best"]), float(row["worst"])
                values = np.array(row["values"].split(" ", EVALUATIONS)[:EVALUATIONS], dtype=float)
                curves[row["method"]].append(100 * (np.minimum.accumulate(values) - best) / (worst - best))
    return {method: np.mean(regrets, axis=0) for method, regrets in curves.items()}


def main() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("front-page.png"))
    options = parser.parse_args()
    figure, grid = plt.subplots(2, 2, figsize=(8, 5.2), sharex=True, sharey=True, layout="constrained")
    panels = grid.ravel()
    for panel, (benchmark, file) in zip(panels, PANELS.items(), strict=True):
        for method, regret in regret_curves(file, benchmark).items():
            label, colour, dashes = LINES[method]
            panel.plot(np.arange(1, EVALUATIONS + 1), regret, dashes, color=colour, label=label, linewidth=2)
            print(f"{benchmark:<17} {method:<9}", *(f"{regret[n - 1]:6.2f}" for n in (1, 10, 20, 50)))
        panel.set(title=benchmark, xlabel="trials" if panel in grid[1] else None, yscale="log", xlim=(1, EVALUATIONS))
        panel.yaxis.set_major_formatter("{x:g}")
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supylabel("distance to the best, %", fontsize="medium")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(options.out, dpi=150)


if __name__ == "__main__":
    main()
