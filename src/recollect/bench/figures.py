"""Figures of finished experiments, each as PNG and SVG.

    regret      one for each benchmark: `recollect.bench.figure_regret`
    ranks       one for all benchmarks that have the methods of a line-up: `recollect.bench.figure_ranks`
    weights     one for each method and benchmark with runs that kept their weights: `recollect.bench.figure_weights`
    difference  one for each benchmark, of the methods that have all runs, where there are many only of those without a
                suffix: `recollect.bench.figure_ranks`
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np

from recollect.bench.figure_ranks import difference_figure, line_up_ranks, rank_figure
from recollect.bench.figure_regret import regret_figure
from recollect.bench.figure_style import save
from recollect.bench.figure_weights import weight_figure
from recollect.bench.problem import hint
from recollect.bench.results import Finished
from recollect.bench.significance import rank_test
from recollect.bench.statistics import common_places
from recollect.bench.study import Study, make_study
from recollect.errors import InputError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FigureKind = Literal["regret", "ranks", "weights", "difference"]
KINDS: tuple[FigureKind, ...] = get_args(FigureKind)
MOST_RANKED = 25  # methods in a diagram of differences: the more there are, the less can be told apart
NEEDS = {
    "regret": "a finished run",
    "ranks": "runs of at least three methods of a line-up on one benchmark",
    "weights": "runs that kept their weights",
    "difference": "two methods with runs on the same tasks",
}
Named: TypeAlias = "Iterator[tuple[str, Figure]]"


def draw_figures(
    runs: Sequence[Finished], folder: Path, *, kinds: Sequence[FigureKind] = KINDS, benchmark: str | None = None
) -> list[Path]:
    """Draw the figures of these kinds into a folder and return the files.

    benchmark: only this one. A kind for which the runs do not suffice is passed over, unless it is the only one.
    """
    if benchmark is not None:
        present = tuple(sorted({run.key.benchmark for run in runs}))
        if benchmark not in present:
            raise InputError(f"there are no results on the benchmark {benchmark!r}{hint(benchmark, present)}")
        runs = [run for run in runs if run.key.benchmark == benchmark]
    study = make_study(runs)
    files: list[Path] = []
    for kind in kinds:
        for name, figure in _DRAW[kind](study, runs):
            files += save(figure, folder / re.sub(r"[^\w.+-]", "_", name))
    if not files:
        raise InputError(f"figures: expected {' or '.join(NEEDS[kind] for kind in kinds)}, but there are none")
    return files


def _regret(study: Study, runs: Sequence[Finished]) -> Named:  # noqa: ARG001 (as the others)
    for benchmark, outcomes in study.outcomes.items():
        yield f"regret-{benchmark}", regret_figure(list(outcomes.values()))


def _ranks(study: Study, runs: Sequence[Finished]) -> Named:  # noqa: ARG001 (as the others)
    if any(any(line_up_ranks(study, benchmark)) for benchmark in study.outcomes):
        yield "ranks", rank_figure(study)


def _weights(study: Study, runs: Sequence[Finished]) -> Named:
    for benchmark, outcomes in study.outcomes.items():
        for method in outcomes:
            kept = [run for run in runs if run.key[:2] == (benchmark, method) and _weighed(run)]
            if kept:
                yield f"weights-{benchmark}-{method}", weight_figure(kept)


def _weighed(run: Finished) -> bool:
    """Whether a run has weights at some step; not every method ever asks models."""
    return run.weights is not None and bool(np.isfinite(run.weights).any())


def _difference(study: Study, runs: Sequence[Finished]) -> Named:  # noqa: ARG001 (as the others)
    for benchmark, outcomes in study.outcomes.items():
        horizon = study.horizons[benchmark]
        many = len(outcomes) > MOST_RANKED
        regrets = {name: outcome.runs_at(horizon) for name, outcome in outcomes.items() if "+" not in name or not many}
        most = max(map(len, regrets.values()), default=0)
        full = {method: found for method, found in regrets.items() if len(found) == most}
        if len(full) > 1 and len({task for task, _ in common_places(list(full.values()))}) > 1:
            yield f"difference-{benchmark}", difference_figure(
                benchmark,
                rank_test(full),
                evaluations=horizon,
                left_out=[method for method in regrets if method not in full],
                variants=len(outcomes) - len(regrets),
            )


_DRAW: dict[FigureKind, Callable[[Study, Sequence[Finished]], Named]] = {
    "regret": _regret,
    "ranks": _ranks,
    "weights": _weights,
    "difference": _difference,
}
