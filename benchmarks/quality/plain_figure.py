"""Regret of plain Bayesian optimization and its peers after each trial: the figure of docs/plain-bo.md.

    python benchmarks/quality/plain_figure.py benchmarks/results/plain.csv.gz --out docs/figures/plain-bo.png

Draws one panel for each problem that every contestant has run, with the median over seeds and the quartiles of `gp`,
and a last one with the mean rank over these problems, from what benchmarks/quality/plain.py has written.
"""

from __future__ import annotations

import argparse
import io
from pathlib import Path
from typing import Any

import numpy as np

from plain import Runs, read_runs
from plain_problems import TABLES

LINES = {
    "gp": ("recollect gp", "#0072b2", "-"),
    "optuna-gp": ("Optuna GPSampler", "#d55e00", "--"),
    "optuna-tpe": ("Optuna TPE", "#009e73", "-."),
    "smac": ("SMAC3", "#cc79a7", (0, (3, 1.2))),
    "smac-forest": ("SMAC3, random forest", "#56b4e9", (0, (5, 1.2))),
    "skopt": ("scikit-optimize", "#e69f00", (0, (1.2, 1.2))),
    "random": ("random search", "0.55", ":"),
}
COLUMNS = 5


def curves(runs: Runs, problem: str, contestants: list[str]) -> dict[str, np.ndarray]:
    """Return the regrets (seeds, trials) of each contestant, over the seeds that all of them have."""
    seeds = sorted(set.intersection(*(set(runs.get((problem, own), {})) for own in contestants)))
    return {own: np.array([runs[problem, own][seed] for seed in seeds]) for own in contestants} if seeds else {}


def mean_ranks(runs: Runs, problems: list[str], contestants: list[str], trials: int) -> np.ndarray:
    """Return (contestants, trials): ranks within each problem and seed, averaged over seeds, then over problems."""
    from scipy.stats import rankdata

    ranks = []
    for problem in problems:
        own = curves(runs, problem, contestants)
        values = np.stack([own[contestant][:, :trials] for contestant in contestants])
        ranks.append(rankdata(values, axis=0).mean(axis=1))
    return np.mean(ranks, axis=0)


def draw(panel: Any, own: dict[str, np.ndarray]) -> None:
    """Draw the median regret of each contestant, and the quartiles of `gp`."""
    for contestant, regrets in own.items():
        label, colour, dashes = LINES[contestant]
        trials, (low, middle, high) = np.arange(1, regrets.shape[1] + 1), np.percentile(regrets, [25, 50, 75], axis=0)
        panel.plot(trials, middle, linestyle=dashes, color=colour, label=label, linewidth=1.6)
        if contestant == "gp":
            panel.fill_between(trials, low, high, color=colour, alpha=0.15, linewidth=0)


def draw_ranks(panel: Any, runs: Runs, problems: list[str], contestants: list[str]) -> None:
    """Draw mean ranks, up to the end of the shortest run."""
    trials = min(len(curve) for key, own in runs.items() if key[0] in problems for curve in own.values())
    for contestant, ranks in zip(contestants, mean_ranks(runs, problems, contestants, trials), strict=True):
        _, colour, dashes = LINES[contestant]
        panel.plot(np.arange(1, trials + 1), ranks, linestyle=dashes, color=colour, linewidth=1.6)
    panel.set(title=f"mean rank, {len(problems)} problems", xlabel="trials")


def main() -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from PIL import Image

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--out", type=Path, default=Path("plain-bo.png"))
    parser.add_argument("--contestants", nargs="+", default=list(LINES), choices=list(LINES))
    options = parser.parse_args()
    runs = read_runs(options.files)[0]
    contestants = [own for own in options.contestants if any(key[1] == own for key in runs)]
    problems = [name for name in dict.fromkeys(key[0] for key in runs) if curves(runs, name, contestants)]
    rows = -(-(len(problems) + 1) // COLUMNS)
    figure, grid = plt.subplots(rows, COLUMNS, figsize=(2.6 * COLUMNS, 2.2 * rows), layout="constrained")
    panels = list(grid.ravel())
    for panel, name in zip(panels, problems, strict=False):
        own = curves(runs, name, contestants)
        draw(panel, own)
        panel.set_title(f"{name} ({len(own[contestants[0]])} seeds)")
        # Regret reaches zero on tables only.
        panel.set_yscale(**{"value": "symlog", "linthresh": 0.1} if name in TABLES else {"value": "log"})
    draw_ranks(panels[len(problems)], runs, problems, contestants)
    for panel in panels[: len(problems) + 1]:
        panel.grid(alpha=0.3)
        panel.title.set_fontsize("small")
        panel.spines[["top", "right"]].set_visible(False)
    for panel in panels[len(problems) + 1 :]:
        panel.set_axis_off()
    figure.supylabel("regret: median, and quartiles of gp", fontsize="medium")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=110)
    Image.open(buffer).convert("RGB").quantize(64).save(options.out, optimize=True)


if __name__ == "__main__":
    main()
