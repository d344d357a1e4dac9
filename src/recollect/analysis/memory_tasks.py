"""The tasks of a memory, read at once, and models of a problem's tasks: which are alike, what to try on a new one.

The common space of a problem is the one that most tasks were tuned in, the newest of those tied. If no task has one,
such as those read from tables, it is inferred from the configurations (`recollect.space.inference`).

The models are those that a new run would use for its past runs, with the same settings, so they share the cache of
fits. The common points are a Sobol sequence over the space and what was tried on any task.

Notation: k tasks with a model, ``means (k, m)`` their predictions at m common points, lower is better.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from recollect.analysis.trial_records import STATES, RecordState
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, rank_correlations, unique_rows
from recollect.optimizer.catalog import method
from recollect.optimizer.design import learned_design, predicted_costs
from recollect.optimizer.method import Method
from recollect.runs.run import Config, Run
from recollect.runs.usability import MIN_TRIALS
from recollect.space.alignment import Alignment, align_all
from recollect.space.inference import infer_space
from recollect.space.sampling import sobol
from recollect.space.serialization import to_json
from recollect.space.space import Space
from recollect.storage.memory import Memory
from recollect.storage.open import storage_errors
from recollect.storage.run_reading import valid_trials
from recollect.storage.sql_read import RUNNING, StoredTrial, count_trials, read_finished
from recollect.storage.studies import INFLUENCE_KEY, NOTES_KEY, VOID_KEY, TaskStudy, task_studies
from recollect.storage.study_spaces import read_study_spaces
from recollect.surrogate.scaling import transform
from recollect.transfer.fit_cache import FitCache
from recollect.transfer.source_fitting import fit_sources
from recollect.transfer.sources import SourceData, Sources
from recollect.tuning.suggestion_notes import SuggestionNote, read_note

SOBOL_POINTS, MAX_TRIED_POINTS = 512, 1536
FLAT = 1e-3  # a model that varies by less, in standard deviations of the task's values, has found no pattern
PORTFOLIO_METHOD, PORTFOLIO_SIZE = "smfo", 8
MIN_GAIN = 0.001  # of the gap: a further configuration that closes less of it is not worth a trial
MAX_OPTIMAL = 300  # tasks whose order is the best one of their tree


@dataclass(frozen=True, slots=True, eq=False)
class StoredTask:
    """A task of a memory."""

    problem: str | None  # None: a study of another program
    run: Run  # without a space, since other programs may have added trials outside of it
    space: Space | None  # None: unknown
    started: datetime | None
    ended: datetime | None
    notes: tuple[SuggestionNote, ...]  # on trials whose suggestion weighed past tasks
    running: int = 0  # trials that have not ended; they are not part of the run

    @property
    def name(self) -> str:
        """The name of the task."""
        return self.run.task

    @property
    def failed(self) -> int:
        """The number of its trials that failed."""
        return len(self.run.failed)

    @property
    def pruned(self) -> int:
        """The number of its trials that were stopped early."""
        return len(self.run.pruned)

    @property
    def counts(self) -> dict[RecordState, int]:
        """The number of its trials in each state."""
        ended = {"finished": len(self.run.succeeded), "failed": self.failed, "pruned": self.pruned}
        return {state: ended.get(state, self.running) for state in STATES}


@dataclass(frozen=True, slots=True, eq=False)
class MemoryContents:
    """All tasks of a memory, oldest first; multi_objective: number of studies left out for their several objectives."""

    tasks: tuple[StoredTask, ...]
    multi_objective: int

    @property
    def problems(self) -> tuple[str, ...]:
        """The problems, oldest first."""
        return tuple(dict.fromkeys(task.problem for task in self.tasks if task.problem is not None))

    def tasks_of(self, problem: str | None) -> tuple[StoredTask, ...]:
        """Return the tasks of a problem; None for the studies of other programs."""
        return tuple(task for task in self.tasks if task.problem == problem)


def started(tasks: Sequence[StoredTask]) -> datetime | None:
    """Return when the first trial of all tasks started."""
    return min((task.started for task in tasks if task.started is not None), default=None)


def ended(tasks: Sequence[StoredTask]) -> datetime | None:
    """Return when the last trial of all tasks ended."""
    return max((task.ended for task in tasks if task.ended is not None), default=None)


def read_memory_contents(memory: Memory, problem: str | None = None, *, spaces: bool = True) -> MemoryContents:
    """Read all tasks of a memory, or those of one problem; with or without their search spaces."""
    store = memory.store
    with storage_errors(store.name):
        chosen = [entry for entry in task_studies(store) if problem is None or entry.problem == problem]
        usable = [entry for entry in chosen if entry.direction is not None]
        records = read_finished(store, [entry.id for entry in usable], keys=(NOTES_KEY, VOID_KEY, INFLUENCE_KEY))
        known = read_study_spaces(store, usable, records) if spaces else {}
        running = count_trials(store, [entry.id for entry in usable], states=(RUNNING,))
    tasks = [
        replace(_stored_task(entry, records[entry.id], known.get(entry.id)), running=running.get(entry.id, 0))
        for entry in usable
    ]
    return MemoryContents(tuple(tasks), len(chosen) - len(usable))


def _stored_task(entry: TaskStudy, records: Sequence[StoredTrial], space: Space | None) -> StoredTask:
    assert entry.direction is not None
    valid = [record for record in records if VOID_KEY not in record.user_attrs]
    run = Run(entry.task, trials=valid_trials(valid, entry.direction), direction=entry.direction)
    starts = [record.datetime_start for record in valid if record.datetime_start is not None]
    ends = [record.datetime_complete for record in valid if record.datetime_complete is not None]
    notes = [read_note(record.user_attrs.get(INFLUENCE_KEY)) for record in valid]
    weighed = tuple(note for note in notes if note is not None and note.target_weight is not None)
    return StoredTask(entry.problem, run, space, min(starts, default=None), max(ends, default=None), weighed)


@dataclass(frozen=True, slots=True, eq=False)
class CommonSpace:
    """A space in which tasks are compared; tasks: how many were tuned in it; inferred: from what was tried."""

    space: Space
    tasks: int
    inferred: bool


def common_space(tasks: Sequence[StoredTask]) -> CommonSpace | None:
    """Return the space in which tasks are compared; None if nothing was tried anywhere."""
    spaces = [task.space for task in tasks if task.space is not None]
    distinct = {id(space): space for space in spaces}  # many tasks share one
    by_id = {key: to_json(space) for key, space in distinct.items()}
    texts = [by_id[id(space)] for space in spaces]
    if not texts:
        configs = [config for task in tasks for config in task.run.configs]
        inferred = infer_space(configs, log_scales=True, list_tiny_ranges=False)
        return None if inferred is None else CommonSpace(inferred, 0, inferred=True)
    counts, newest = Counter(texts), {text: place for place, text in enumerate(texts)}
    chosen = max(counts, key=lambda text: (counts[text], newest[text]))
    return CommonSpace(spaces[newest[chosen]], counts[chosen], inferred=False)


@dataclass(frozen=True, slots=True, eq=False)
class TaskModels:
    """The k tasks of a problem that could be modelled."""

    common: CommonSpace
    method: Method
    sources: Sources
    alignments: dict[str, Alignment]  # what was done to the trials of all tasks, by name
    means: FloatArray  # (k, m): predictions at the common points
    flat: BoolArray  # (k,): no pattern was found

    @property
    def space(self) -> Space:
        """The space that they share."""
        return self.common.space

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks that have a model."""
        return self.sources.tasks


def model_tasks(tasks: Sequence[StoredTask], jobs: int | None = None) -> TaskModels | None:
    """Fit a model to each task with ``jobs`` processes (None: one per core); None if no task has two usable trials."""
    common = common_space(tasks)
    if common is None:
        return None
    portfolio, space = method(PORTFOLIO_METHOD), common.space
    aligned_tasks = align_all(space, [task.run.columns.usable_configs() for task in tasks])
    alignments = {task.name: aligned for task, aligned in zip(tasks, aligned_tasks, strict=True)}
    data = []
    for task, aligned in zip(tasks, aligned_tasks, strict=True):
        y = task.run.y[aligned.kept]
        if len(y) >= MIN_TRIALS:
            data.append(SourceData(task.name, aligned.X, transform(y, portfolio.scaling)))
    if not data:
        return None
    cache, settings = FitCache.default(), portfolio.sources
    sources = fit_sources(data, shape=space.kernel_shape, settings=settings, cache=cache, jobs=jobs)
    means = sources.means(common_points(space, [source.X for source in data]))
    return TaskModels(common, portfolio, sources, alignments, means, np.ptp(means, axis=1) < FLAT)


def common_points(space: Space, tried: Sequence[FloatArray]) -> FloatArray:
    """Return points (m, d) at which all tasks are compared; deterministic."""
    rows = np.concatenate(tried)
    rows = rows[unique_rows(rows)]
    if len(rows) > MAX_TRIED_POINTS:
        rows = rows[np.linspace(0, len(rows) - 1, MAX_TRIED_POINTS).round().astype(np.intp)]
    points = np.concatenate([sobol(space, SOBOL_POINTS, np.random.default_rng(0)), rows])
    return points[unique_rows(points)]


def task_similarity(models: TaskModels) -> FloatArray:
    """Return Spearman's correlations (k, k) of the tasks' means; nan for a task whose model is flat."""
    similarity = rank_correlations(models.means)
    similarity[models.flat] = np.nan
    similarity[:, models.flat] = np.nan
    return similarity


def similarity_order(similarity: FloatArray) -> IntArray:
    """Return an order (k,) of the tasks in which similar ones are neighbours; flat ones come last."""
    flat = np.isnan(np.diag(similarity))
    order = np.flatnonzero(~flat)
    if len(order) > 2:
        from scipy.cluster.hierarchy import leaves_list, linkage
        from scipy.spatial.distance import squareform

        distance = 1.0 - similarity[np.ix_(order, order)]
        np.fill_diagonal(distance, 0.0)
        best_order = len(order) <= MAX_OPTIMAL  # its time grows with the third power
        tree = linkage(squareform(distance, checks=False), "average", optimal_ordering=best_order)
        order = order[leaves_list(tree)]
    return np.concatenate([order, np.flatnonzero(flat)]).astype(np.intp)


@dataclass(frozen=True, slots=True, eq=False)
class RecommendedPortfolio:
    """c configurations in the order to try them, recommended by a number of tasks (SMFO, paper section 5.3).

    gaps (c,): predicted gap to the best value of a task once the first ones have been tried, averaged over tasks, from
    0 (the best value that a task has seen) to 1 (its worst).
    """

    configs: tuple[Config, ...]
    gaps: FloatArray
    best_for: IntArray  # (c,): number of tasks on which each is predicted to be the best of all
    tasks: int
    stopped: bool = False  # whether further ones were left out, since they gain nothing


def recommended_portfolio(models: TaskModels, size: int = PORTFOLIO_SIZE) -> RecommendedPortfolio:
    """Return the configurations that all modelled tasks recommend, as long as each gains something; deterministic."""
    sources = models.sources
    rows = learned_design(models.method, models.space, None, sources=sources, size=size, rng=np.random.default_rng(0))
    if len(rows) == 0:
        return RecommendedPortfolio((), np.empty(0), np.empty(0, dtype=np.intp), len(sources))
    costs = predicted_costs(sources, tuple(map(sources.data, range(len(sources)))), rows, by_range=True)
    gaps = np.clip(np.minimum.accumulate(costs, axis=1), 0.0, 1.0).mean(axis=0)
    gains = np.flatnonzero(gaps[:-1] - gaps[1:] >= MIN_GAIN)
    count = 1 if len(gains) == 0 else int(gains[-1]) + 2
    best_for = np.bincount(np.argmin(costs[:, :count], axis=1), minlength=count).astype(np.intp)
    stopped = count < len(rows)
    configs = tuple(models.space.decode(rows[:count]))
    return RecommendedPortfolio(configs, gaps[:count], best_for, len(sources), stopped)
