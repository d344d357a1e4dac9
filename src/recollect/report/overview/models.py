"""A model of each task of a problem, all in one space, and what all of them say at common points.

The models are those that a new run would use as past runs, with the same settings, so that both find each other's fits
in the cache. Common points are a Sobol sequence over the space and what was tried on any task.

Notation: k tasks with a model, ``means (k, m)`` their predictions at m common points, lower is better.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.optimizer.catalog import method
from recollect.optimizer.method import Method
from recollect.report.overview.reading import Told
from recollect.report.overview.spaces import Common, common_space
from recollect.space.align import Alignment, align
from recollect.space.sampling import sobol, unique_rows
from recollect.space.space import Space
from recollect.surrogate.kernels import KernelShape
from recollect.surrogate.scaling import transform
from recollect.transfer.cache import FitCache
from recollect.transfer.fitting import fit_sources
from recollect.transfer.sources import FEWEST, SourceData, Sources

SPREAD, TRIED = 512, 1536  # common points: of the Sobol sequence, and at most so many that were tried
FLAT = 1e-3  # standard deviations of a task's values that its model varies by: below, it has found nothing
PORTFOLIO = "smfo"


@dataclass(frozen=True, slots=True, eq=False)
class Models:
    """The tasks of a problem that could be modelled. alignments: of all tasks, by name; flat (k,): no pattern found."""

    common: Common
    method: Method
    sources: Sources
    alignments: dict[str, Alignment]
    means: FloatArray
    flat: BoolArray

    @property
    def space(self) -> Space:
        """The space that they share."""
        return self.common.space

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that have a model."""
        return self.sources.tasks


def model_tasks(tasks: Sequence[Told], jobs: int | None = None) -> Models | None:
    """Return models of tasks; None if no task has two trials that succeeded and can be compared.

    ``jobs``: processes that fit, None for as many as there are cores.
    """
    common = common_space(tasks)
    if common is None:
        return None
    chosen, space = method(PORTFOLIO), common.space
    alignments: dict[str, Alignment] = {}
    data = []
    for told in tasks:
        found = alignments[told.task] = align(space, [trial.config for trial in told.run.succeeded])
        y = told.run.y[found.kept]
        if len(y) >= FEWEST:
            data.append(SourceData(told.task, found.X, transform(y, chosen.scaling)))
    if not data:
        return None
    shape = KernelShape(np.asarray(space.categorical), space.conditional)
    sources = fit_sources(data, shape=shape, settings=chosen.sources, cache=FitCache.default(), jobs=jobs)
    means = sources.means(common_points(space, [entry.X for entry in data]))
    return Models(common, chosen, sources, alignments, means, np.ptp(means, axis=1) < FLAT)


def common_points(space: Space, tried: Sequence[FloatArray]) -> FloatArray:
    """Return points (m, d) at which all tasks are compared; the same for the same trials."""
    rows = np.concatenate(tried)
    rows = rows[unique_rows(rows)]
    if len(rows) > TRIED:
        rows = rows[np.linspace(0, len(rows) - 1, TRIED).round().astype(np.intp)]
    points = np.concatenate([sobol(space, SPREAD, np.random.default_rng(0)), rows])
    return points[unique_rows(points)]
