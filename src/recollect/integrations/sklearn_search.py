"""`TransferSearchCV`: a scikit-learn search that remembers every fit and starts the next one from there.

It is used as ``GridSearchCV`` is. The search itself is `recollect.minimize` with candidates that scikit-learn evaluates
(`sklearn_candidates`); the name of the data is found by `sklearn_fingerprint`. See docs/scikit-learn.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import numpy as np
from joblib import effective_n_jobs

from recollect.errors import InputError, MissingExtraError
from recollect.history.memory import Memory
from recollect.integrations.sklearn_candidates import Abandoned, Candidates, Measured, Rules
from recollect.integrations.sklearn_choices import Wording, reword
from recollect.integrations.sklearn_fingerprint import data_name, pickled, short
from recollect.optimizer.method import Method
from recollect.space.serial import to_json
from recollect.space.space import SpaceLike
from recollect.tuning.minimize import Settings, Where, tune_with
from recollect.tuning.result import Result

if find_spec("sklearn") is None:
    raise MissingExtraError("TransferSearchCV needs scikit-learn: pip install 'recollect[sklearn]'")

from sklearn.base import clone, is_classifier
from sklearn.model_selection import check_cv
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state

WITHOUT_EFFECT = ("n_jobs", "verbose")
"""Parameters of an estimator that do not change its scores."""


class TransferSearchCV(BaseSearchCV):  # type: ignore[misc]
    """Search with cross-validation that starts from what earlier fits found.

    Parameters
    ----------
    estimator : the estimator to tune
    space : what to try: a dict such as ``{"C": (1e-3, 1e3, "log"), "kernel": ["rbf", "poly"]}``, or a
        ``ConfigurationSpace``; names as ``set_params`` takes them
    trials : how many candidates to try for one data set in all
    memory : a file name or a storage URL that keeps every trial; None to forget them
    problem : fits of the same problem learn from each other; by default the estimator's class, with the names of its
        steps if it is a pipeline
    task : the name of the data set; by default made from the data and the way they are scored
    method : a name of ``recollect.methods()``
    scoring, cv, refit, n_jobs, error_score, return_train_score, verbose, pre_dispatch : as in ``GridSearchCV``. Of
        several metrics the one that ``refit`` names is maximized, otherwise the first
    random_state : of the search
    seconds : begin no candidate after so many seconds

    Attributes
    ----------
    those of ``GridSearchCV``, and
    problem_, task_ : the names under which the trials are kept
    explanation_ : what each earlier fit contributed (``print`` it)
    """

    def __init__(  # noqa: PLR0913 - the public interface
        self,
        estimator: Any,
        space: SpaceLike,
        *,
        trials: int = 30,
        memory: Where = None,
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
        """Keep the parameters; they are looked at in ``fit``."""
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
        """Search, and fit the best candidate to all data; ``params`` go to the estimator, the scorer and the folds."""
        self._validate_params()
        named = self.memory is None or self.task is not None
        self._data = None if named else data_name(X, y, params)
        once = isinstance(self.cv, Iterator)  # to look at it would use it up
        self._folds = self.cv if once else check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        super().fit(X, y, **params)
        return self

    def _run_search(self, evaluate_candidates: Callable[..., dict[str, Any]]) -> None:
        """Try candidates until there are enough, and put what is known of all of them into the results."""
        wording = reword(self.space)
        folds = None if isinstance(self._folds, Iterator) else _Once(self._folds)
        candidates = Candidates(
            lambda chosen: evaluate_candidates(chosen, cv=folds),
            params=wording.params,
            rules=self._rules(wording),
            jobs=effective_n_jobs(self.n_jobs),
        )
        try:
            result = self._tune(candidates, wording)
        except Abandoned as stop:
            raise stop.reason from None
        self._tell(candidates, result, wording)
        self.problem_, self.task_, self.explanation_ = result.problem, result.run.task, result.explain()

    def _rules(self, wording: Wording) -> Rules:
        metric = self.refit if isinstance(self.refit, str) else None
        missing = math.nan if isinstance(self.error_score, str) else float(self.error_score)
        bare = without_effect(self.estimator, wording.space.names)
        way = short(pickled((bare, self.scoring, metric, self._folds, missing)))
        return Rules(way, metric, missing)

    def _tune(self, candidates: Candidates, wording: Wording) -> Result:
        problem = problem_of(self.estimator) if self.problem is None else self.problem
        task, way = self.task, candidates.rules.way
        if self._data is not None:
            task = f"{self._data}-{short(way, to_json(wording.space))}"
        given = self.memory
        with nullcontext(given) if given is None or isinstance(given, Memory) else Memory(given) as memory:
            if memory is not None and self.task is not None:
                _check_way(memory, problem, self.task, way=way)
            settings = Settings(
                trials=self.trials, memory=memory, problem=problem, task=task, method=self.method,
                direction="maximize", seconds=self.seconds, progress=False,
                seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            )  # fmt: skip
            return tune_with(candidates, wording.space, settings)

    def _tell(self, candidates: Candidates, result: Result, wording: Wording) -> None:
        """Write the results of all trials of the task where scikit-learn expects those of its last call."""
        known = {number: found for number, trial in enumerate(result.run.trials) if (found := Measured.of(trial))}
        if result.run.best is None:
            raise _hopeless(result, remembered=self.memory is not None)
        if candidates.last is None:  # nothing was left to try, but scikit-learn needs an evaluation
            (known[result.run.trials.index(result.run.best)],), reasons = candidates.measure([result.run.best.config])
            if candidates.last is None:
                raise InputError(f"the best candidate of {result.run.task!r} cannot be fitted any more: {reasons[0]}")
        names = next(found.test for found in known.values() if found.test)
        splits, missing = candidates.splits, candidates.rules.missing
        rows = [found.folds(splits, names, missing=missing) for found in known.values()]
        params = [wording.params(result.run.trials[number].config) for number in known]
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
        """Hand the folds on as they are: they are put into form when the search is over."""
        return {"folds": out}


class _Once:
    """Folds that are drawn once, so that all candidates have the same."""

    def __init__(self, splitter: Any) -> None:
        self._splitter = splitter
        self._splits: list[Any] | None = None

    def split(self, X: Any, y: Any = None, **params: Any) -> list[Any]:
        if self._splits is None:
            self._splits = list(self._splitter.split(X, y, **params))
        return self._splits


def problem_of(estimator: Any) -> str:
    """Return the class of an estimator, with the names of its steps if it is a pipeline."""
    steps = f"({', '.join(name for name, _ in estimator.steps)})" if isinstance(estimator, Pipeline) else ""
    return type(estimator).__name__ + steps


def without_effect(estimator: Any, searched: Iterable[str]) -> Any:
    """Return a copy in which parameters that are searched, or never change a score, are None."""
    bare = clone(estimator)
    known = bare.get_params()
    chosen = {name for name in known if name in searched or name.rpartition("__")[2] in WITHOUT_EFFECT}
    for name in sorted(chosen, key=len, reverse=True):  # parameters of a step before the step
        bare.set_params(**{name: None})
    return bare


def _hopeless(result: Result, *, remembered: bool) -> InputError:
    task, problem = result.run.task, result.problem
    reasons = [trial.notes[0] for trial in result.run.trials if trial.notes]
    forget = f"; Memory(...).remove({task!r}, {problem!r}) forgets these trials" if remembered else ""
    return InputError(f"no trial of {task!r} succeeded{forget}: {reasons[-1] if reasons else result.stopped}")


def _check_way(memory: Memory, problem: str, task: str, *, way: str) -> None:
    """Refuse a task with trials that were scored in another way; a name made from the data never has any."""
    try:
        run = memory.run(task, problem)
    except InputError:  # not begun yet
        return
    found = [(trial, Measured.of(trial)) for trial in run.trials]
    if any(trial.ok if measured is None else measured.way != way for trial, measured in found):
        raise InputError(
            f"{memory!r}: task {task!r} of problem {problem!r} has trials that were scored in another way (estimator, "
            "scoring, cv, error_score): give the task another name, or remove it first"
        )
