"""How much sooner good configurations are found with past runs: the figure of the README.

    python benchmarks/quality/front_page_figure.py --out docs/figures/front-page.png

Draws the mean normalised regret of plain Bayesian optimization (`gp`) and of the default method (`task-prior`) with
past runs of all other tasks, on four benchmarks, from the results that `task_prior_study.py` has packed: 24 tasks of
each, five times, the same for both.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parents[1] / "results" / "task_prior.csv.gz"
PANELS = {
    "svm_grid": "SVM (svm-grid)",
    "lcbench": "neural networks (lcbench)",
    "xgboost10d_yahpo": "XGBoost (xgboost10d_yahpo)",
    "svm_openml100": "another SVM (svm_openml100)",
}
LINES = {"gp": ("Bayesian optimization", "black", "--"), "task-prior": ("recollect, with past runs", "#0072b2", "-")}
PAST_RUNS = {"gp": "none", "task-prior": "random"}  # how they were made
EVALUATIONS = 50


def regret_curves() -> dict[str, dict[str, np.ndarray]]:
    """Return the mean regret after 1, 2, ... evaluations by benchmark and method, of runs that both methods have."""
    runs: dict[str, dict[tuple[str, str], dict[str, np.ndarray]]] = defaultdict(lambda: defaultdict(dict))
    with gzip.open(RESULTS, "rt") as lines:
        for row in csv.DictReader(lines):
            method, made = row["method"], (row["source"], row["kind"], row["count"])
            if method in PAST_RUNS and made == (PAST_RUNS[method], "true", "0"):  # 0: with all past runs
                runs[row["table"]][row["task"], row["seed"]][method] = np.array(row["regret"].split(), dtype=float)
    both = {table: [found for found in runs[table].values() if len(found) == len(LINES)] for table in PANELS}
    return {table: {m: np.mean([found[m] for found in both[table]], axis=0) for m in LINES} for table in PANELS}


def main() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("front-page.png"))
    options = parser.parse_args()
    figure, grid = plt.subplots(2, 2, figsize=(8.6, 5.4), sharex=True, sharey=True, layout="constrained")
    panels = grid.ravel()
    for panel, (benchmark, curves) in zip(panels, regret_curves().items(), strict=True):
        for method, regret in curves.items():
            label, colour, dashes = LINES[method]
            panel.plot(np.arange(1, EVALUATIONS + 1), regret, dashes, color=colour, label=label, linewidth=2)
            print(f"{benchmark:<17} {method:<10}", *(f"{regret[n - 1]:6.2f}" for n in (1, 5, 10, 20, 50)))
        panel.set(
            title=PANELS[benchmark], xlabel="trials" if panel in grid[1] else None, yscale="log", xlim=(1, EVALUATIONS)
        )
        panel.yaxis.set_major_formatter("{x:g}")
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    figure.supylabel("distance to the best, %", fontsize="medium")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    figure.savefig(options.out, dpi=150)


if __name__ == "__main__":
    main()
