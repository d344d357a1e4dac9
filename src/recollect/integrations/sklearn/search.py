"""`TransferSearchCV`: a scikit-learn search that stores every fit and starts the next one from there.

It is used like ``GridSearchCV`` and public as `recollect.sklearn`. The search itself is `recollect.maximize` with
candidates that scikit-learn evaluates (`candidates`). Choices that a memory cannot store (tuples, estimators,
functions) are tuned under their text. See the page scikit-learn.

Names of data and scoring are the same for the same content, different for anything else. Data are named by content,
independent of the memory layout: an array in rows or in columns, a sparse matrix in any format. The scoring (estimator,
metrics, folds) is named by its pickle. What cannot be named reliably gets a different name each time; then a search
cannot be resumed, but two measurements are never mixed.
"""

from __future__ import annotations

import hashlib
import math
import re
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from recollect.errors import InputError, MissingExtraError, SpaceError
from recollect.integrations.sklearn.candidates import CandidateEvaluator, FoldScores, ScoringRules, SearchAborted
from recollect.optimizer.method import Method
from recollect.runs.run import Config
from recollect.space.notations.optuna_distributions import native
from recollect.space.serialization import to_json
from recollect.space.space import Space, SpaceLike, compile_space
from recollect.storage.memory import Memory
from recollect.tuning.minimize import MemoryLike, TuningSettings, tune_with
from recollect.tuning.result import Result

if find_spec("sklearn") is None:
    raise MissingExtraError("TransferSearchCV needs scikit-learn: pip install 'recollect[sklearn]'")

from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")  # in the text of an object
IRRELEVANT_PARAMS = ("n_jobs", "verbose")  # of an estimator: they do not change its scores
NAME_DIGITS = 12  # hexadecimal


class TransferSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Hyperparameter search with cross-validation that starts from what earlier fits found.

    A drop-in for ``GridSearchCV`` and ``RandomizedSearchCV``, with all their attributes.

    Args:
        estimator: The estimator to tune.
        space: Search space: a dict such as ``{"C": (1e-3, 1e3, "log"), "kernel": ["rbf", "poly"]}`` or a
            ``ConfigurationSpace``, with names as ``set_params`` takes them.
        trials: Number of candidates per dataset, including those of an interrupted fit.
        memory: File name, storage URL or `recollect.Memory` that stores every trial; None stores nothing.
        problem: Fits with the same problem learn from each other; by default the estimator's class, with the names of
            its steps for a pipeline.
        task: Name of the dataset; by default derived from the data and the scoring.
        method: Name from `recollect.methods`, or a `recollect.Method`.
        scoring: As in ``GridSearchCV``. With several metrics the one that ``refit`` names is maximized, otherwise the
            first.
        cv: As in ``GridSearchCV``, like the other arguments not listed here.
        random_state: Seed of the search.
        seconds: Time budget: start no new candidate after this many seconds.

    Attributes:
        problem_: Name of the problem under which the trials are stored.
        task_: Name of the task under which the trials are stored.
        explanation_: What each earlier fit contributed; ``print`` it.

    Example:
        >>> space = {"C": (1e-3, 1e3, "log"), "gamma": (1e-5, 10.0, "log")}
        >>> search = TransferSearchCV(SVC(), space, trials=20, memory="tuning.db").fit(X, y)
        >>> search.best_params_, search.best_score_
    """

    def __init__(  # noqa: PLR0913 - the public interface
        self,
        estimator: Any,
        space: SpaceLike,
        *,
        trials: int = 30,
        memory: MemoryLike = None,
        problem: str | None = None,
        task: str | None = None,
        method: str | Method = "rgpe-taf",
        scoring: Any = None,
        cv: Any = None,
        refit: bool | str | Callable[[Any], int] = True,
        n_jobs: int | None = None,
        random_state: Any = None,
        error_score: Any = math.nan,
        return_train_score: bool = False,
        verbose: int = 0,
        seconds: float | None = None,
        pre_dispatch: int | str = "2*n_jobs",
    ) -> None:
        """Store the parameters; `fit` checks them."""
        super().__init__(
            estimator=estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose,
            pre_dispatch=pre_dispatch, error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip
        self.space = space
        self.trials = trials
        self.memory = memory
        self.problem = problem
        self.task = task
        self.method = method
        self.random_state = random_state
        self.seconds = seconds

    def fit(self, X: Any, y: Any = None, **params: Any) -> TransferSearchCV:
        """Search, then fit the best candidate to all data.

        Args:
            X: Training data.
            y: Targets.
            **params: Passed on to the estimator, the scorer and the folds, as in ``GridSearchCV``.

        Returns:
            The search itself.

        Raises:
            InputError: No candidate could be fitted, or the task has trials that were scored differently.
        """
        self._validate_params()
        is_named = self.memory is None or self.task is not None
        self._data = None if is_named else data_name(X, y, params)
        is_iterator = isinstance(self.cv, Iterator)  # looking at it would use it up
        self._folds = self.cv if is_iterator else check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        super().fit(X, y, **params)
        return self

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]]) -> None:
        """Try candidates until the budget is spent, and write all of them to the results; called by scikit-learn."""
        storable = make_storable(self.space)
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
        problem = default_problem(self.estimator) if self.problem is None else self.problem
        task, scoring_id = self.task, candidates.rules.scoring_id
        if self._data is not None:
            task = f"{self._data}-{short(scoring_id, to_json(storable.space))}"
        stored = self.memory
        with nullcontext(stored) if stored is None or isinstance(stored, Memory) else Memory(stored) as memory:
            if memory is not None and self.task is not None:
                _check_scoring(memory, problem, self.task, scoring_id=scoring_id)
            settings = TuningSettings(
                trials=self.trials, memory=memory, problem=problem, task=task, method=self.method,
                direction="maximize", seconds=self.seconds, progress=False,
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


def default_problem(estimator: Any) -> str:
    """Return the class name of an estimator, with the names of its steps for a pipeline."""
    steps = f"({', '.join(name for name, _ in estimator.steps)})" if isinstance(estimator, Pipeline) else ""
    return type(estimator).__name__ + steps


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


@dataclass(frozen=True, slots=True, eq=False)
class StorableSpace:
    """A space whose choices can all be stored, and the choice behind each text, by hyperparameter."""

    space: Space
    choices_by_text: Mapping[str, Mapping[str, Any]]

    def params(self, config: Config) -> Config:
        """Return a configuration of the space as parameters for an estimator."""
        choices = self.choices_by_text
        return {k: choices.get(k, {}).get(v, v) if isinstance(v, str) else v for k, v in config.items()}


def make_storable(space: SpaceLike) -> StorableSpace:
    """Return a space with texts for the choices that cannot be stored; only a dict can have such choices."""
    if not isinstance(space, dict):
        return StorableSpace(compile_space(space), {})
    choices_by_text: dict[str, dict[str, Any]] = {}
    texts_only = dict(space)
    for name, choices in space.items():
        if isinstance(choices, list) and not all(map(_storable, choices)):
            texts = [choice if _storable(choice) else text_of(choice) for choice in choices]
            choices_by_text[name] = {text_of(choice): choice for choice in choices if not _storable(choice)}
            if len(set(texts)) < len(choices):
                raise SpaceError(f"{name!r}: choices must differ as text, because they are stored as text; got {texts}")
            texts_only[name] = texts
    return StorableSpace(compile_space(texts_only), choices_by_text)


def text_of(choice: Any) -> str:
    """Return a choice as text, the same in every process."""
    named = getattr(choice, "__qualname__", None)
    text = named if isinstance(named, str) else ADDRESS.sub("", repr(choice))
    return " ".join(text.split())


def _storable(choice: Any) -> bool:
    return native(choice) is None or isinstance(native(choice), str | int | float | bool)


def data_name(X: Any, y: Any, others: Mapping[str, Any]) -> str:
    """Return a name for a dataset and its weights or groups: size, type and a hash of the content."""
    size = getattr(X, "shape", None) or ((len(X),) if isinstance(X, Sized) else ())
    kind = getattr(X, "dtype", type(X).__name__)
    parts = [content(X), content(y), *(part for name in sorted(others) for part in (name, content(others[name])))]
    return f"{' x '.join(map(str, size))} {kind} {short(*parts)}"


def short(*parts: str) -> str:
    """Return a short name for several texts in this order."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(f"{len(part)} {part}".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()[:NAME_DIGITS]


def content(value: Any) -> str:
    """Return a name for the content of a value."""
    from scipy.sparse import issparse

    if issparse(value):
        return _sparse(value)
    pandas = sys.modules.get("pandas")  # if it has not been imported, this is not one of its tables
    if pandas is not None and isinstance(value, pandas.DataFrame | pandas.Series):
        return _table(value, pandas)
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return _array(value)
    return pickled(value)


def pickled(value: Any) -> str:
    """Return a name for the pickle of a value; a new one each time if it cannot be pickled."""
    import cloudpickle
    import joblib

    try:
        return str(joblib.hash(value))
    except Exception:  # noqa: BLE001 - whatever an object raises when it is pickled: functions of a script, open files
        pass
    try:
        return hashlib.sha256(cloudpickle.dumps(value)).hexdigest()
    except Exception:  # noqa: BLE001 - the same
        return uuid.uuid4().hex


def _array(array: np.ndarray[Any, Any]) -> str:
    digest = hashlib.sha256(f"{array.dtype.str} {array.shape}".encode())
    digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


def _sparse(matrix: Any) -> str:
    rows = matrix.tocsr(copy=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    places = [part.astype(np.int64) for part in (rows.indptr, rows.indices)]
    return short("sparse", str(rows.shape), *map(_array, (*places, rows.data)))


def _table(table: Any, pandas: Any) -> str:
    columns = table.to_frame() if isinstance(table, pandas.Series) else table
    try:
        rows = pandas.util.hash_pandas_object(columns, index=False).to_numpy()
    except TypeError:  # cells that cannot be hashed, such as lists
        return pickled(columns.to_dict("list"))
    return short("table", *(f"{name!r} {kind}" for name, kind in columns.dtypes.items()), _array(rows))
