"""What past runs were worth: their weights, how their spaces fit, how well they rank a task, how good their best is.

Weights are recorded with the trials; those below half a percent not one by one: they are part of the rest, or count as
0. Tasks that were imported, or whose method has no weights, have no such records.
Notation: m suggestions that weighed past runs, k past runs that were ever named there.

Rank agreement: of all pairs of this run's trials with different values, the share that the past run's model puts in the
right order; chance has one half. The models are those that the method used: they come from the cache of fits.

The best configuration of a past run has the rank of its value if it was tried here. Otherwise a model of this task
predicts its value, and its rank is that among the model's predictions for the trials.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recollect.analysis.memory_tasks import StoredTask
from recollect.analysis.run_data import RunData
from recollect.errors import NumericalError, RecollectWarning
from recollect.numerics.arrays import BoolArray, FloatArray, IntArray, row_key
from recollect.optimizer.explanation import transfer_verdict
from recollect.optimizer.method import Method
from recollect.optimizer.past_runs import PastRun, align_past_runs, fit_past_runs
from recollect.runs.run import Run, sign_of
from recollect.space.alignment import Alignment, align
from recollect.space.space import Space
from recollect.transfer.source_fitting import fit_sources
from recollect.transfer.sources import SourceData, SourceFit
from recollect.transfer.weighting.ranking import MAX_COMPARED, misranked_different

# How this task is modelled to rank configurations that it has not tried.
QUICK_FIT = SourceFit(restarts=2, max_observations=400, max_fit_observations=150)


@dataclass(frozen=True, slots=True, eq=False)
class WeightHistory:
    """Weights of m suggestions and of k past runs, largest mean weight first."""

    trials: IntArray  # (m,): trial numbers
    target: FloatArray  # (m,): weights of this task's own model
    sources: tuple[str, ...]
    source_weights: FloatArray  # (m, k)
    dropped: BoolArray  # (m, k)
    first_named: IntArray  # (k,): the first suggestion that names a past run

    @property
    def means(self) -> dict[str, float]:
        """The mean weight of each past run."""
        return dict(zip(self.sources, self.source_weights.mean(axis=0).tolist(), strict=True))

    @property
    def target_only(self) -> int:
        """The number of suggestions that this task's own model decided alone."""
        return int(np.count_nonzero(self.target >= 1.0))

    def times_dropped(self, source: str) -> tuple[int, int]:
        """Return how often a past run was dropped, and of how many suggestions."""
        if source not in self.sources:
            return 0, len(self.trials)
        column = self.sources.index(source)
        return int(self.dropped[:, column].sum()), len(self.trials) - int(self.first_named[column])


def weight_history(data: RunData) -> WeightHistory | None:
    """Return the weights of a run, None if none were recorded."""
    weighed = [(trial, note) for trial, note in data.suggestions if note.target_weight is not None]
    if not weighed:
        return None
    names = list(dict.fromkeys(task for _, note in weighed for task in note.sources))
    columns = {task: column for column, task in enumerate(names)}
    weights = np.zeros((len(weighed), len(names)))
    dropped, named = np.zeros_like(weights, dtype=np.bool_), np.zeros_like(weights, dtype=np.bool_)
    for row, (_, note) in enumerate(weighed):
        for task, weight in note.source_weights.items():
            weights[row, columns[task]] = weight
        dropped[row, [columns[task] for task in note.dropped]] = True
        named[row, [columns[task] for task in note.sources]] = True
    order = np.argsort(-weights.mean(axis=0), kind="stable")
    return WeightHistory(
        trials=np.array([trial for trial, _ in weighed], dtype=np.intp),
        target=np.array([note.target_weight for _, note in weighed], dtype=np.float64),
        sources=tuple(names[column] for column in order),
        source_weights=weights[:, order],
        dropped=dropped[:, order],
        first_named=named[:, order].argmax(axis=0),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PriorHistory:
    """How much the past counted in m suggestions, by a method with a prior from past runs: probabilities (m,)."""

    trials: IntArray  # (m,): trial numbers
    alike: FloatArray  # that the task is like past ones
    reversed: FloatArray  # that what was good in past runs is bad here
    own: FloatArray  # that past runs do not say where good values are

    @property
    def past(self) -> FloatArray:
        """How much the past counted (m,)."""
        return self.alike + self.reversed


def prior_history(data: RunData) -> PriorHistory | None:
    """Return how much the past counted; None for methods without a prior."""
    rows = [
        (number, note.prior.alike, note.prior.reversed, note.prior.own_model)
        for number, note in data.suggestions
        if note.prior is not None
    ]
    if not rows:
        return None
    trials, alike, reverse, own = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    return PriorHistory(trials.astype(np.intp), alike, reverse, own)


@dataclass(frozen=True, slots=True, eq=False)
class TransferMatrix:
    """Mean weights of s past tasks, largest total weight first, behind the suggestions for t tasks."""

    tasks: tuple[str, ...]
    sources: tuple[str, ...]
    weights: FloatArray  # (t, s)
    target_weights: FloatArray  # (t,): mean weight of each task's own model
    drop_rates: FloatArray  # (s,): share of the suggestions from which a past task was dropped
    trials: IntArray  # (t,): number of trials with recorded weights


def transfer_matrix(tasks: Sequence[StoredTask]) -> TransferMatrix | None:
    """Return the weights that are recorded on the trials of all tasks; None if there are none."""
    weighed = [task for task in tasks if task.notes]
    names = list(dict.fromkeys(name for task in weighed for note in task.notes for name in note.sources))
    if not names:
        return None
    columns = {name: column for column, name in enumerate(names)}
    weights = np.zeros((len(weighed), len(names)))
    dropped, suggestions = np.zeros(len(names)), np.zeros(len(names))
    for row, task in zip(weights, weighed, strict=True):
        for note in task.notes:
            for name, weight in note.source_weights.items():
                row[columns[name]] += weight / len(task.notes)
            dropped[[columns[name] for name in note.dropped]] += 1
        named = {columns[name] for note in task.notes for name in note.sources}
        suggestions[list(named)] += len(task.notes)
    order = np.argsort(-weights.sum(axis=0), kind="stable")
    return TransferMatrix(
        tuple(task.name for task in weighed),
        tuple(names[column] for column in order),
        weights[:, order],
        np.array([np.mean([note.target_weight for note in task.notes]) for task in weighed]),
        (dropped / suggestions)[order],
        np.array([len(task.notes) for task in weighed], dtype=np.intp),
    )


@dataclass(frozen=True, slots=True)
class BestConfigRank:
    """Rank of a past run's best configuration among the trials that succeeded; None if it was tried here and failed."""

    rank: int | None
    tried: bool


@dataclass(frozen=True, slots=True, eq=False)
class SourceUsefulness:
    """A past run as this run saw it; None where something is unknown."""

    task: str
    trials: int | None  # None: it is not in the memory
    overlap: float | None  # share of its values that could be used unchanged
    changes: str = ""  # what was done to the others
    agreement: float | None = None  # rank agreement
    weight: float | None = None  # in the last suggestion
    mean_weight: float | None = None
    dropped_last: bool | None = None
    times_dropped: tuple[int, int] | None = None  # how often, and of how many suggestions
    best: BestConfigRank | None = None
    coefficient: float | None = None  # in the last prediction, for methods with a prior from past runs


@dataclass(frozen=True, slots=True, eq=False)
class RankAgreement:
    """How well past runs rank a run's trials.

    past: the past runs in the space of the run; shares: the rank agreement of each, None without a model; pairs: number
    of ordered pairs of different values, None without models.
    """

    past: tuple[PastRun, ...]
    shares: tuple[float | None, ...]
    pairs: int | None


def rank_agreement(data: RunData, method: Method, history: WeightHistory | None = None) -> RankAgreement:
    """Compare the past runs of a run in a known space with its results; of too many, those with the most weight."""
    assert data.space is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecollectWarning)  # about runs that are of no use: the table says so
        past = align_past_runs(data.past, data.space, data.run.direction, method)
    shares: list[float | None] = [None] * len(past)
    X, y = _observations(data.run, data.space)
    modelled = _modelled(past, method, history)
    sources = fit_past_runs(modelled, data.space, method) if len(y) > 1 else None
    if sources is None:
        return RankAgreement(past, tuple(shares), None)
    misranked, pairs = misranked_different(sources.means(X[:MAX_COMPARED]), y)
    used = [number for number, entry in enumerate(modelled) if entry.used]
    for number, wrong in zip(used, misranked.tolist(), strict=True):
        shares[number] = 1.0 - wrong / pairs if pairs else None
    return RankAgreement(past, tuple(shares), pairs)


def verdict(data: RunData, agreement: RankAgreement, history: WeightHistory | None) -> str:
    """Return the sentence that explains what past runs brought, as `recollect.Explanation.summary` says it."""
    priors = [note.prior for _, note in data.suggestions if note.prior is not None]
    entries = zip(agreement.past, agreement.shares, strict=True)
    used = {entry.task: share for entry, share in entries if entry.used}
    return transfer_verdict(
        used if history is not None else dict.fromkeys(used), unused=len(agreement.past) - len(used),
        pairs=agreement.pairs, results=len(data.run.usable), prior=priors[-1] if priors else None,
        past_weight=None if history is None else 1.0 - float(history.target.mean()),
    )  # fmt: skip


def source_usefulness(
    data: RunData, method: Method, history: WeightHistory | None, agreement: RankAgreement | None = None
) -> list[SourceUsefulness]:
    """Return all past runs of a run in a known space, largest weight first; agreement: if it is known already."""
    agreement = rank_agreement(data, method, history) if agreement is None else agreement
    useful, past = [], agreement.past
    for entry, own, best in zip(past, agreement.shares, _best_ranks(data, past), strict=True):
        share, changes = overlap(entry.alignment, entry.alignment.X.shape[1]), str(entry.alignment)
        useful.append(SourceUsefulness(entry.task, entry.trials, share, changes, agreement=own, best=best))
    if history is not None:
        absent = set(history.sources) - {entry.task for entry in past}
        useful += [SourceUsefulness(task, None, None) for task in sorted(absent)]
        useful = [_with_weights(source, history) for source in useful]
    factors = next((note.coefficients for _, note in reversed(data.suggestions) if note.prior), None)
    if factors is not None:
        useful = [replace(source, coefficient=factors.get(source.task, 0.0)) for source in useful]
    return sorted(useful, key=lambda source: (-(source.weight or 0.0), -(source.mean_weight or 0.0), source.task))


def overlap(alignment: Alignment, columns: int) -> float:
    """Return the share of values of past configurations that could be used unchanged."""
    lost = sum(alignment.dropped.values())
    changed = sum(sum(counts.values()) for counts in (alignment.filled, alignment.ignored, alignment.outside))
    every = (len(alignment.kept) + lost) * columns
    return max(0.0, 1.0 - (lost * columns + changed) / every) if every else 0.0


def _with_weights(source: SourceUsefulness, history: WeightHistory) -> SourceUsefulness:
    weight, dropped = 0.0, False
    if source.task in history.sources:
        column = history.sources.index(source.task)
        weight, dropped = float(history.source_weights[-1, column]), bool(history.dropped[-1, column])
    mean, times = history.means.get(source.task, 0.0), history.times_dropped(source.task)
    return replace(source, weight=weight, mean_weight=mean, dropped_last=dropped, times_dropped=times)


def _modelled(past: tuple[PastRun, ...], method: Method, history: WeightHistory | None) -> tuple[PastRun, ...]:
    """Return the past runs with the data of those that get a model: of too many, those that had the most weight."""
    limit = method.screening.limit
    if sum(entry.used for entry in past) <= limit:
        return past
    named = set(() if history is None else history.sources[:limit])
    return tuple(entry if entry.task in named else replace(entry, data=None) for entry in past)


@dataclass(frozen=True, slots=True, eq=False)
class SourcePredictions:
    """How the models of past runs rank the trials of a run: ranks (k, n), 1 is best, by past run and trial number."""

    ranks: IntArray
    rows: Mapping[str, int]
    columns: Mapping[int, int]

    def rank(self, task: str, number: int) -> int | None:
        """Return the rank that a past run predicts for a trial; None if it has no model or the trial no place."""
        row, column = self.rows.get(task), self.columns.get(number)
        return None if row is None or column is None else int(self.ranks[row, column])


def source_predictions(data: RunData, method: Method) -> SourcePredictions | None:
    """Return how past runs rank the trials that succeeded; None if there are no models of past runs."""
    if data.space is None or not method.transfers or not data.past:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecollectWarning)
        past = align_past_runs(data.past, data.space, data.run.direction, method)
    past = _modelled(past, method, weight_history(data))
    ok = [number for number, trial in zip(data.numbers, data.run.trials, strict=True) if trial.ok]
    aligned = align(data.space, [trial.config for trial in data.run.succeeded])
    sources = fit_past_runs(past, data.space, method) if len(aligned.X) else None
    if sources is None:
        return None
    ranks = 1 + np.argsort(np.argsort(sources.means(aligned.X), axis=1, kind="stable"), axis=1)
    rows = {task: row for row, task in enumerate(entry.task for entry in past if entry.used)}
    columns = {ok[place]: column for column, place in enumerate(aligned.kept.tolist())}
    return SourcePredictions(ranks, rows, columns)


def _best_ranks(data: RunData, past: tuple[PastRun, ...]) -> list[BestConfigRank | None]:
    """Return the rank of each past run's best configuration in this run."""
    assert data.space is not None
    rows = [_best_row(run, entry.alignment) for run, entry in zip(data.past, past, strict=True)]
    aligned = align(data.space, [trial.config for trial in data.run.succeeded])
    values = np.array([trial.value for trial in data.run.succeeded], dtype=np.float64)
    X, y = aligned.X, sign_of(data.run.direction) * values[aligned.kept]
    tried = {row_key(x): float(value) for x, value in zip(X, y, strict=True)}
    failed = {row_key(x) for x in align(data.space, [trial.config for trial in data.run.failed]).X}
    untried = [number for number, x in enumerate(rows) if x is not None and row_key(x) not in tried]
    predicted = _predicted_ranks(data.space, X, y, [rows[number] for number in untried])
    ranks: list[BestConfigRank | None] = [None] * len(rows)
    for number, x in enumerate(rows):
        if x is None:
            continue
        if (key := row_key(x)) in tried:
            ranks[number] = BestConfigRank(1 + int(np.count_nonzero(y < tried[key])), tried=True)
        elif key in failed:
            ranks[number] = BestConfigRank(None, tried=True)
        elif predicted is not None:
            ranks[number] = BestConfigRank(predicted[untried.index(number)], tried=False)
    return ranks


def _best_row(run: Run, alignment: Alignment) -> FloatArray | None:
    """Return the encoding of a past run's best configuration, None if it has no place in the space."""
    best = run.best
    row = np.empty(0, dtype=np.intp) if best is None else np.flatnonzero(alignment.kept == run.usable.index(best))
    return np.asarray(alignment.X[row[0]]) if len(row) else None


def _predicted_ranks(space: Space, X: FloatArray, y: FloatArray, rows: Sequence[FloatArray | None]) -> list[int] | None:
    """Return the ranks of configurations that a model of this task predicts, None if there is no such model."""
    if len(y) < 2 or y.min() == y.max() or not rows:
        return None
    try:
        model = fit_sources([SourceData("", X, y)], shape=space.kernel_shape, settings=QUICK_FIT, cache=None, jobs=1)
        ours, theirs = model.means(X)[0], model.means(np.array(rows))[0]
    except NumericalError:
        return None
    return [1 + int(np.count_nonzero(ours < value)) for value in theirs.tolist()]


def _observations(run: Run, space: Space) -> tuple[FloatArray, FloatArray]:
    """Return the usable trials that have a place in the space: X (m, d), y (m,), lower is better."""
    aligned = align(space, [trial.config for trial in run.usable])
    return aligned.X, run.y[aligned.kept]
