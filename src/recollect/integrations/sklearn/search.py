"""`TransferSearchCV`: a scikit-learn search that stores every fit and starts the next one from there.

It is used like ``GridSearchCV`` and public as `recollect.sklearn`. The search itself is `recollect.maximize` with
candidates that scikit-learn evaluates (`candidates`). Choices that a memory cannot store (tuples, estimators,
functions) are tuned under their text. See the page scikit-learn.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any, Literal

import numpy as np
from joblib import effective_n_jobs

from recollect.errors import InputError, MissingExtraError
from recollect.integrations.sklearn.candidates import CandidateEvaluator, FoldScores, ScoringRules, SearchAborted
from recollect.optimizer.method import Method
from recollect.space.serialization import to_json
from recollect.space.space import SpaceLike
from recollect.storage.memory import Memory
from recollect.tuning.callbacks import Callback
from recollect.tuning.minimize import MemoryLike, TuningSettings, tune_with
from recollect.tuning.result import Result

if find_spec("sklearn") is None:
    raise MissingExtraError("TransferSearchCV needs scikit-learn: pip install 'recollect[sklearn]'")

from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.utils import check_random_state

from recollect.integrations.sklearn.names import data_name, default_problem, pickled, short
from recollect.integrations.sklearn.storable_space import StorableSpace, make_storable
from recollect.optimizer.default_method import DEFAULT_METHOD

IRRELEVANT_PARAMS = ("n_jobs", "verbose")  # of an estimator: they do not change its scores
DEFAULT_TRIALS = 30


class TransferSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Hyperparameter search with cross-validation that starts from what earlier fits found.

    A drop-in for ``GridSearchCV`` and ``RandomizedSearchCV``, with all their attributes.

    Args:
        estimator: The estimator to tune.
        space: Search space, in any notation that `recollect.compile_space` understands, with names as ``set_params``
            takes them: ``{"C": (1e-3, 1e3, "log"), "kernel": ["rbf", "poly"]}``, ``{"C": loguniform(1e-3, 1e3)}``, or
            a list of dicts.
        param_distributions: The same, under the name that ``RandomizedSearchCV`` has for it.
        trials: Number of candidates per dataset, including those of an interrupted fit; 30 by default.
        n_iter: The same, under the name that ``RandomizedSearchCV`` has for it.
        memory: File name, storage URL or `recollect.Memory` that stores every trial; None stores nothing.
        problem: Fits with the same problem learn from each other; by default the classes of the estimator and of all
            inside it, and the metric: ``"Pipeline(StandardScaler, SVC): accuracy"``.
        task: Name of the dataset; by default derived from the data and the scoring.
        rename: New names of parameters of earlier fits by their old ones, such as ``{"svc__C": "C"}``.
        tags: Labels for selecting the run later; added to those that the task has.
        note: A remark on the run; replaces an earlier one.
        method: Name from `recollect.methods`, or a `recollect.Method`.
        scoring: As in ``GridSearchCV``. With several metrics the one that ``refit`` names is maximized, otherwise the
            first.
        cv: As in ``GridSearchCV``, like the other arguments not listed here.
        random_state: Seed of the search.
        seconds: Time budget: start no new candidate after this many seconds.
        patience: Stop when this many candidates in a row have not improved the best score.
        max_failures: Stop when this many candidates in a row have failed for the same reason before any has succeeded;
            None never stops.
        stop_when: ``"unlikely"`` stops when a worthwhile improvement in the candidates left is unlikely, judged by the
            model of this dataset and by how earlier fits continued from there.
        min_improvement: Smallest improvement of the score that counts, for ``patience`` and ``stop_when``.
        first: Candidates (dicts of parameters) to try before all others.
        callbacks: Functions that are called with the trial and the run so far after every candidate of this fit. One
            that raises `recollect.Stop` ends the search.

    Attributes:
        problem_: Name of the problem under which the trials are stored.
        task_: Name of the task under which the trials are stored.
        explanation_: What each earlier fit contributed; ``print`` it.

    Examples:
        >>> space = {"C": (1e-3, 1e3, "log"), "gamma": (1e-5, 10.0, "log")}
        >>> search = TransferSearchCV(SVC(), space, trials=12, memory="tuning.db").fit(X, y)
        >>> search.best_params_, search.best_score_
    """

    def __init__(  # noqa: PLR0913 - the public interface
        self,
        estimator: Any,
        space: SpaceLike | None = None,
        *,
        param_distributions: SpaceLike | None = None,
        trials: int | None = None,
        n_iter: int | None = None,
        memory: MemoryLike = None,
        problem: str | None = None,
        task: str | None = None,
        rename: Mapping[str, str] | None = None,
        tags: str | Sequence[str] = (),
        note: str = "",
        method: str | Method = DEFAULT_METHOD,
        scoring: Any = None, cv: Any = None, refit: bool | str | Callable[[Any], int] = True,
        n_jobs: int | None = None, random_state: Any = None, error_score: Any = math.nan,
        return_train_score: bool = False, verbose: int = 0, pre_dispatch: int | str = "2*n_jobs",
        seconds: float | None = None, patience: int | None = None, max_failures: int | None = 5,
        stop_when: Literal["unlikely"] | None = None,
        min_improvement: float | None = None,
        first: Sequence[Mapping[str, Any]] = (),
        callbacks: Sequence[Callback] = (),
    ) -> None:  # fmt: skip
        """Store the parameters; `fit` checks them."""
        super().__init__(
            estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
            pre_dispatch=pre_dispatch, error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip
        self.space, self.param_distributions = space, param_distributions
        self.trials, self.n_iter = trials, n_iter
        self.memory, self.problem, self.task, self.method = memory, problem, task, method
        self.rename, self.tags, self.note = rename, tags, note
        self.random_state = random_state
        self.seconds, self.patience, self.max_failures = seconds, patience, max_failures
        self.stop_when, self.min_improvement = stop_when, min_improvement
        self.first, self.callbacks = first, callbacks

    def fit(self, X: Any, y: Any = None, **params: Any) -> TransferSearchCV:
        """Search, then fit the best candidate to all data.

        Args:
            X: Training data.
            y: Targets.
            **params: Passed on to the estimator, the scorer and the folds, as in ``GridSearchCV``.

        Returns:
            The search itself.

        Raises:
            InputError: No candidate could be fitted, the task has trials that were scored differently, or an argument
                was passed under both of its names.
        """
        self._validate_params()
        space = self._one_of("space", self.space, "param_distributions", self.param_distributions)
        self._searched = make_storable(space)
        trials = DEFAULT_TRIALS if self.trials is self.n_iter is None else self.trials
        self._budget = self._one_of("trials", trials, "n_iter", self.n_iter)
        is_named = self.memory is None or self.task is not None
        self._data = None if is_named else data_name(X, y, params)
        is_iterator = isinstance(self.cv, Iterator)  # looking at it would use it up
        self._folds = self.cv if is_iterator else check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        super().fit(X, y, **params)
        return self

    def _one_of(self, name: str, value: Any, alias: str, other: Any) -> Any:
        """Return the argument that was passed under one of its two names."""
        if (value is None) == (other is None):
            found = "neither" if value is None else "both"
            raise InputError(f"TransferSearchCV: expected {name}, or {alias} as in RandomizedSearchCV; got {found}")
        return other if value is None else value

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]]) -> None:
        """Try candidates until the budget is spent, and write all of them to the results; called by scikit-learn."""
        storable = self._searched
        folds = None if isinstance(self._folds, Iterator) else _FixedFolds(self._folds)
        candidates = CandidateEvaluator(
            lambda chosen: evaluate_candidates(chosen, cv=folds),
            params=storable.params,
            rules=self._rules(storable),
            jobs=effective_n_jobs(self.n_jobs),
        )
        try:
            result = self._tune(candidates, storable)
        except SearchAborted as stop:
            raise stop.reason from None
        self._write_results(candidates, result, storable)
        self.problem_, self.task_, self.explanation_ = result.problem, result.run.task, result.explain()

    def _rules(self, storable: StorableSpace) -> ScoringRules:
        metric = self.refit if isinstance(self.refit, str) else None
        missing = math.nan if isinstance(self.error_score, str) else float(self.error_score)
        bare = without_irrelevant_params(self.estimator, storable.space.names)
        scoring_id = short(pickled((bare, self.scoring, metric, self._folds, missing)))
        return ScoringRules(scoring_id, metric, missing)

    def _tune(self, candidates: CandidateEvaluator, storable: StorableSpace) -> Result:
        problem = self.problem
        if problem is None:
            problem = default_problem(self.estimator, self.scoring, candidates.rules.metric, storable.space.names)
        task, scoring_id = self.task, candidates.rules.scoring_id
        if self._data is not None:
            task = f"{self._data}-{short(scoring_id, to_json(storable.space))}"
        stored = self.memory
        with nullcontext(stored) if stored is None or isinstance(stored, Memory) else Memory(stored) as memory:
            if memory is not None and self.task is not None:
                _check_scoring(memory, problem, self.task, scoring_id=scoring_id)
            settings = TuningSettings(
                trials=self._budget, memory=memory, problem=problem, task=task, method=self.method,
                rename=self.rename, tags=self.tags, note=self.note, direction="maximize", seconds=self.seconds,
                patience=self.patience, max_failures=self.max_failures, stop_when=self.stop_when,
                min_improvement=self.min_improvement, callbacks=self.callbacks, progress=False,
                first=[storable.config(params) for params in self.first],
                seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            )  # fmt: skip
            return tune_with(candidates, storable.space, settings)

    def _write_results(self, candidates: CandidateEvaluator, result: Result, storable: StorableSpace) -> None:
        """Write the results of all trials of the task to where scikit-learn expects those of its last call."""
        scores = {number: own for number, trial in enumerate(result.run.trials) if (own := FoldScores.of(trial))}
        if result.run.best is None:
            raise _no_success(result, remembered=self.memory is not None)
        if candidates.last is None:  # nothing was left to try, but scikit-learn needs an evaluation
            (scores[result.run.trials.index(result.run.best)],), reasons = candidates.measure([result.run.best.config])
            if candidates.last is None:
                raise InputError(f"the best candidate of {result.run.task!r} can no longer be fitted: {reasons[0]}")
        names = next(own.test for own in scores.values() if own.test)
        splits, missing = candidates.splits, candidates.rules.missing
        rows = [own.folds(splits, names, missing=missing) for own in scores.values()]
        params = [storable.params(result.run.trials[number].config) for number in scores]
        formatted = super()._format_results(params, splits, [fold for row in rows for fold in row])
        candidates.last.clear()
        candidates.last.update(formatted)

    def _format_results(
        self,
        candidate_params: Any,  # noqa: ARG002 - what scikit-learn calls it with
        n_splits: int,  # noqa: ARG002
        out: list[dict[str, Any]],
        more_results: Any = None,  # noqa: ARG002
    ) -> dict[str, Any]:
        """Return the folds unchanged; they are formatted when the search is over."""
        return {"folds": out}


class _FixedFolds:
    """Folds that are drawn once, so that they are the same for all candidates."""

    def __init__(self, splitter: Any) -> None:
        self._splitter = splitter
        self._splits: list[Any] | None = None

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        if self._splits is None:
            self._splits = list(self._splitter.split(X, y, **params))
        return self._splits


def without_irrelevant_params(estimator: Any, searched: Iterable[str]) -> Any:
    """Return a copy whose parameters that are searched or never change a score are None."""
    bare = clone(estimator)
    params = bare.get_params()
    chosen = {name for name in params if name in searched or name.rpartition("__")[2] in IRRELEVANT_PARAMS}
    for name in sorted(chosen, key=len, reverse=True):  # parameters of a step before the step
        bare.set_params(**{name: None})
    return bare


def _no_success(result: Result, *, remembered: bool) -> InputError:
    task, problem = result.run.task, result.problem
    reasons = [trial.notes[0] for trial in result.run.trials if trial.notes]
    forget = f"; Memory(...).remove({task!r}, {problem!r}) forgets these trials" if remembered else ""
    return InputError(f"no trial of {task!r} succeeded{forget}: {reasons[-1] if reasons else result.stopped}")


def _check_scoring(memory: Memory, problem: str, task: str, *, scoring_id: str) -> None:
    """Refuse a task with trials that were scored differently; a task named after the data has none."""
    if not memory.exists:
        return
    try:
        run = memory.run(task, problem)
    except InputError:  # not started yet
        return
    scores = [(trial, FoldScores.of(trial)) for trial in run.trials]
    if any(trial.ok if own is None else own.scoring_id != scoring_id for trial, own in scores):
        raise InputError(
            f"{memory!r}: task {task!r} of problem {problem!r} has trials that were scored differently "
            "(estimator, scoring, cv or error_score): give the task another name, or remove it first"
        )
