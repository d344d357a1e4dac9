"""Regret after each trial when past runs mislead: the figure of docs/methods/task-prior.md.

    python benchmarks/quality/misleading_figure.py benchmarks/results/task_prior.csv.gz \
        --out docs/figures/misleading-past-runs.png

Draws one panel for each table and each kind of misleading past runs, with the mean over the runs that all methods have,
from what benchmarks/quality/task_prior_study.py has written.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from task_prior_study import Cell, curves_of, read

LINES = {
    "gp": ("gp, without past runs", "#0072b2", "-"),
    "rgpe-taf": ("rgpe-taf", "#d55e00", "--"),
    "task-prior": ("task-prior", "#009e73", "-."),
}
TABLES = ("own-mlp", "own-xgboost", "own-svm", "svm_grid")
KINDS = ("negated", "shuffled", "mirrored", "unrelated")


def chosen(results: dict[Cell, np.ndarray], kind: str, seed: int) -> set[Cell]:
    """Return the runs of the figure: of one seed, with a past run on every other task."""
    return {
        cell
        for cell in results
        if cell.seed == seed and cell.count == 0 and cell.method in LINES and cell.kind in (kind, "true")
    }


def main() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--out", type=Path, default=Path("misleading-past-runs.png"))
    parser.add_argument("--seed", type=int, default=400)
    options = parser.parse_args()
    results = read(options.file)
    shape = len(KINDS), len(TABLES)
    figure, grid = plt.subplots(*shape, figsize=(2.7 * shape[1], 2.1 * shape[0]), sharex=True, layout="constrained")
    for row, kind in zip(grid, KINDS, strict=True):
        cells = chosen(results, kind, options.seed)
        for panel, table in zip(row, TABLES, strict=True):
            curves = curves_of(results, cells, table, kind).regrets
            for method, (label, colour, dashes) in LINES.items():
                mean = curves[method].mean(axis=0)
                panel.plot(np.arange(1, len(mean) + 1), mean, dashes, color=colour, label=label, linewidth=1.6)
            panel.set_yscale("symlog", linthresh=0.1)
            panel.set_ylim(bottom=0.0)
            panel.set_title(table, fontsize="medium")
            panel.grid(alpha=0.3)
            panel.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel(f"past runs {kind}")
    for panel in grid[-1]:
        panel.set_xlabel("trials")
    figure.supylabel("100 x normalised regret, mean", fontsize="medium")
    figure.legend(*grid[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(options.out, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
