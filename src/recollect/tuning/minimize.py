"""`minimize` and `maximize`: tune an objective, store every trial, learn from earlier runs of the same problem."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias
from uuid import uuid4

from recollect._system import available_cores
from recollect._text import plural
from recollect.errors import ConfigError, InputTypeError, StorageError
from recollect.optimizer.catalog import method as method_named
from recollect.optimizer.default_method import DEFAULT_METHOD
from recollect.optimizer.method import Method
from recollect.optimizer.optimizer import Optimizer
from recollect.optimizer.past_runs import PastRun, list_of_runs, warn_about_integers
from recollect.progress import is_interactive, progress_bars
from recollect.runs.renaming import check_new_names, rename_hyperparameters
from recollect.runs.run import Config, Direction, Run, Trial
from recollect.space.space import Space, SpaceLike, compile_space
from recollect.storage.administration import as_tags, describe
from recollect.storage.memory import Memory
from recollect.storage.open import Store, patiently, storage_errors
from recollect.storage.studies import DEFAULT_PROBLEM, SETTINGS_KEY, TaskStudy, get_or_create_study
from recollect.transfer.fit_cache import FitCache
from recollect.tuning.callbacks import Callback, Notifier, check_callbacks, opened, progress_line
from recollect.tuning.executor_evaluator import ExecutorEvaluator
from recollect.tuning.heartbeat import GRACE_SECONDS
from recollect.tuning.objective import Evaluator, InProcessEvaluator, Objective, PoolEvaluator, as_time_limit
from recollect.tuning.result import Result
from recollect.tuning.stop_rules import Budget
from recollect.tuning.suggestion_notes import read_note, with_recorded_weights
from recollect.tuning.trial_queue import TrialQueue
from recollect.tuning.worker import Report, Worker, WorkerStatus
from recollect.validation import as_count, as_list, as_text

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

MemoryLike: TypeAlias = "str | os.PathLike[str] | Memory | BaseStorage | None"
"""What a memory can be given as; None: nothing is stored beyond the run."""

NAME_WIDTH = 30  # characters of the task's name that the progress bar shows


@dataclass(frozen=True, slots=True)
class TuningSettings:
    """The arguments of `minimize` besides the objective, the space and the evaluator; its docstring explains them."""

    trials: int = 50
    memory: MemoryLike = None
    problem: str = DEFAULT_PROBLEM
    task: str | None = None
    past: Iterable[Run] = ()
    rename: Mapping[str, str] | None = None
    method: str | Method = DEFAULT_METHOD
    direction: Direction = "minimize"
    seconds: float | None = None
    target: float | None = None
    patience: int | None = None
    max_failures: int | None = 5
    stop_when: Literal["unlikely"] | None = None
    min_improvement: float | None = None
    first: Iterable[Mapping[str, Any]] = ()
    callbacks: Iterable[Callback] = ()
    tags: str | Iterable[str] = ()
    note: str = ""
    seed: int | None = 0
    progress: bool = True
    place: Mapping[str, str] = field(default_factory=dict)  # where the trials run; stored with each of them


def minimize(  # noqa: PLR0913 - the public interface
    objective: Objective,
    space: SpaceLike,
    *,
    trials: int = 50,
    memory: MemoryLike = None,
    problem: str = DEFAULT_PROBLEM,
    task: str | None = None,
    past: Iterable[Run] = (),
    rename: Mapping[str, str] | None = None,
    method: str | Method = DEFAULT_METHOD,
    direction: Direction = "minimize",
    workers: int | Executor | Any = 1,
    seconds: float | None = None,
    target: float | None = None,
    trial_seconds: float | None = None,
    patience: int | None = None,
    max_failures: int | None = 5,
    stop_when: Literal["unlikely"] | None = None,
    min_improvement: float | None = None,
    first: Iterable[Mapping[str, Any]] = (),
    callbacks: Iterable[Callback] = (),
    tags: str | Iterable[str] = (),
    note: str = "",
    seed: int | None = 0,
    progress: bool = True,
) -> Result:
    """Find the configuration with the lowest value, learning from past runs.

    A trial whose objective raises, returns no finite number or is killed has failed: the reason is stored, the run
    continues, and the configuration is not tried again. Any number of processes may work on the same task of the same
    memory at the same time.

    Args:
        objective: Function of a configuration (dict) that returns a number, or `recollect.FAILED`.
        space: Search space: a dict such as ``{"lr": (1e-5, 1.0, "log"), "kernel": ["rbf", "poly"]}``, or a
            ``ConfigurationSpace``.
        trials: Trial budget of the task, including trials of an earlier, interrupted call.
        memory: File name, storage URL, Optuna storage or `Memory` that stores every trial as it happens; its earlier
            runs of the same problem are past runs. None stores nothing.
        problem: Name of the model or program; runs with the same name learn from each other.
        task: Name of the dataset or instance of this run. An unfinished task of the memory is resumed.
        past: Further past runs to learn from.
        rename: New names of hyperparameters of past runs by their old ones, such as ``{"learning_rate": "lr"}``.
        method: Name from `recollect.methods`, or a `Method`.
        direction: ``"minimize"``, or ``"maximize"`` as in `maximize`.
        workers: Number of trials to evaluate at the same time, each in a process of its own if more than 1; -1 is one
            per core. If such a process is killed, only its trial is lost. Or where to evaluate: a
            ``concurrent.futures.Executor`` or a ``dask.distributed.Client``, which stay open.
        seconds: Time budget: start no new trial after this many seconds.
        target: Stop when a value is at least as good as this; running trials are finished.
        trial_seconds: Time limit of one trial; a trial that exceeds it has failed.
        patience: Stop when this many trials in a row have not improved the best value.
        max_failures: Stop when this many trials in a row have failed for the same reason before any has succeeded; None
            never stops.
        stop_when: ``"unlikely"`` stops when a worthwhile improvement in the trials left is unlikely, judged by the
            model of this task and by how past runs continued from there.
        min_improvement: Smallest improvement that counts, for ``patience`` and ``stop_when``, in the objective's units.
            None: any for ``patience``, 1 % of the distance between median and best value for ``stop_when``.
        first: Configurations to try before all others, such as the one in use; those that were tried are skipped.
        callbacks: Functions that are called with the trial and the run so far after every trial of this call. One that
            raises `recollect.Stop` ends the run.
        tags: Labels for selecting the run later; added to those that the task has.
        note: A remark on the run; replaces an earlier one.
        seed: Seed of the random streams; None for a different run every time.
        progress: Whether to show a progress bar at a terminal or in a notebook, and one line per trial elsewhere.

    Returns:
        The run with all its trials, the best configuration, and what past runs contributed.

    Raises:
        InputError: An argument has a value that makes no sense; `InputTypeError` for a wrong type.
        SpaceError: The search space is invalid, or differs from the one that the task was started with.
        StorageError: The memory could not be read or written; the trials so far are saved to a file.

    Examples:
        >>> def error(config):
        ...     return train(lr=config["lr"], kernel=config["kernel"])
        >>> space = {"lr": (1e-5, 1.0, "log"), "kernel": ["rbf", "poly"]}
        >>> result = recollect.minimize(error, space, trials=12, memory="runs.db", problem="svm", task="wine")
        >>> result.best_config, result.best_value
    """
    if not callable(objective):
        raise InputTypeError(f"objective: expected a function of a configuration, got {type(objective).__name__}")
    evaluator = _evaluator(objective, workers, trial_seconds)
    settings = TuningSettings(
        trials=trials, memory=memory, problem=problem, task=task, past=past, rename=rename, method=method,
        direction=direction, seconds=seconds, target=target, patience=patience, max_failures=max_failures,
        stop_when=stop_when, min_improvement=min_improvement, first=first, callbacks=callbacks, tags=tags, note=note,
        seed=seed, progress=progress,
    )  # fmt: skip
    return tune_with(evaluator, space, settings)


def maximize(  # noqa: PLR0913 - the public interface
    objective: Objective,
    space: SpaceLike,
    *,
    trials: int = 50,
    memory: MemoryLike = None,
    problem: str = DEFAULT_PROBLEM,
    task: str | None = None,
    past: Iterable[Run] = (),
    rename: Mapping[str, str] | None = None,
    method: str | Method = DEFAULT_METHOD,
    workers: int | Executor | Any = 1,
    seconds: float | None = None,
    target: float | None = None,
    trial_seconds: float | None = None,
    patience: int | None = None,
    max_failures: int | None = 5,
    stop_when: Literal["unlikely"] | None = None,
    min_improvement: float | None = None,
    first: Iterable[Mapping[str, Any]] = (),
    callbacks: Iterable[Callback] = (),
    tags: str | Iterable[str] = (),
    note: str = "",
    seed: int | None = 0,
    progress: bool = True,
) -> Result:
    """Find the configuration with the highest value, learning from past runs.

    The same as `minimize` with ``direction="maximize"``; see there for all arguments. Values, ``target`` and the
    result are the objective's own, not their negatives. Past runs must have ``direction="maximize"`` as well.

    Returns:
        The run with all its trials, the best configuration, and what past runs contributed.

    Examples:
        >>> recollect.maximize(accuracy, {"C": (1e-3, 1e3, "log")}, trials=12, memory="runs.db", task="wine")
    """
    return minimize(
        objective, space, trials=trials, memory=memory, problem=problem, task=task, past=past, rename=rename,
        method=method, direction="maximize", workers=workers, seconds=seconds, target=target,
        trial_seconds=trial_seconds, patience=patience, max_failures=max_failures, stop_when=stop_when,
        min_improvement=min_improvement, first=first, callbacks=callbacks, tags=tags, note=note, seed=seed,
        progress=progress,
    )  # fmt: skip


def tune_with(evaluator: Evaluator, space: SpaceLike, settings: TuningSettings) -> Result:
    """Do what `minimize` does, with an evaluator of any kind; close it at the end, whatever happens."""
    with closing(evaluator):
        return _tune(evaluator, space, settings)


def _tune(evaluator: Evaluator, space: SpaceLike, settings: TuningSettings) -> Result:
    budget = Budget(
        settings.trials, settings.seconds, settings.target, settings.patience, settings.max_failures,
        settings.stop_when, settings.min_improvement,
    )  # fmt: skip
    callbacks = check_callbacks(settings.callbacks)
    task = default_task() if settings.task is None else settings.task
    space = compile_space(space)
    empty = Run(task, space=space, direction=settings.direction)
    first = _check_first(settings.first, space)
    check_new_names(settings.rename, space.names)
    settings = replace(
        settings, trials=budget.trials, tags=as_tags(settings.tags), note=as_text("note", settings.note),
        seed=None if settings.seed is None else as_count("seed", settings.seed, minimum=0),
    )  # fmt: skip
    memory = patiently(lambda: _memory(settings.memory))
    store, note = memory.store, _settings_note(settings)
    try:
        study = patiently(lambda: _described_study(store, settings, empty, note))
        past = _past_runs(settings, memory, space, empty)
        warn_about_integers(past, space)
        queue = TrialQueue(store, study, space, grace=GRACE_SECONDS, place=settings.place)
        optimizer = Optimizer(
            space, past, settings.method, horizon=settings.trials, seed=settings.seed,
            direction=empty.direction, run=empty,
        )  # fmt: skip
        used = [(run, entry) for run, entry in zip(past, optimizer.past, strict=True) if entry.used]
        report = _reporter(callbacks, empty, budget.trials if settings.progress else None)
        rule = _rule(budget, space, used)
        worker = Worker(queue, optimizer, evaluator, budget, first=first, report=report, rule=rule)
        with opened(callbacks, settings.problem, task):
            _run_worker(worker, evaluator, queue, empty=empty, show=settings.progress)
    finally:
        if memory is not settings.memory:
            memory.close()
    influences = tuple(queue.state.influences.get(number) for number in sorted(queue.state.finished))
    learned = tuple(run for run, entry in zip(past, optimizer.past, strict=True) if entry.used)
    explanation = with_recorded_weights(worker.explain(), map(read_note, influences))
    return Result(_run_so_far(queue, empty), settings.problem, worker.stopped, explanation, learned, note, influences)


def _rule(budget: Budget, space: Space, past: Sequence[tuple[Run, PastRun]]) -> Callable[[Run], str]:
    """Return the rule of ``stop_when``."""
    if budget.stop_when is None:
        return lambda _run: ""
    from recollect.tuning.improvement_forecast import ImprovementForecast, UnlikelyRule

    observed = [(entry.alignment.X, run.y[entry.alignment.kept]) for run, entry in past]
    forecast = ImprovementForecast(space, observed, min_improvement=budget.min_improvement, cache=FitCache.default())
    return UnlikelyRule(forecast, budget.trials)


def _past_runs(settings: TuningSettings, memory: Memory, space: Space, empty: Run) -> tuple[Run, ...]:
    """Return the runs that were passed and those of the memory, with hyperparameters renamed."""
    passed = rename_hyperparameters(list_of_runs(settings.past), settings.rename)
    stored = memory.past(space, settings.problem, exclude=empty.task, direction=empty.direction, rename=settings.rename)
    return (*passed, *stored)


def _check_first(first: Iterable[Mapping[str, Any]], space: Space) -> list[Config]:
    """Return the configurations to try first; ConfigError for one that does not belong to the space."""
    configs = as_list("first", first, of="configurations")
    for number, config in enumerate(configs):
        if not isinstance(config, Mapping):
            raise InputTypeError(f"first[{number}]: expected a configuration (dict), got {type(config).__name__}")
        try:
            space.encode([config])
        except ConfigError as error:
            raise ConfigError(f"first[{number}]: {error.reason}") from error
    return [dict(config) for config in configs]


def _reporter(callbacks: Sequence[Callback], empty: Run, trials: int | None) -> Report:
    """Return what is done after every trial; ``trials``: print a line about it, where there is no progress bar."""
    notify = Notifier(callbacks, empty)

    def report(trial: Trial, run: Run) -> None:
        with suppress(OSError, ValueError):  # the end of a pipe or of a terminal has closed it
            if trials is not None and not is_interactive() and sys.stderr is not None:
                sys.stderr.write(f"{progress_line(trial, run, trials)}\n")
                sys.stderr.flush()
        notify(trial, run)

    return report


def _described_study(store: Store, settings: TuningSettings, empty: Run, note: dict[str, Any]) -> TaskStudy:
    """Return the study of a task, created if there is none, after storing how it is tuned."""
    with storage_errors(store.name):
        study = get_or_create_study(store, settings.problem, empty.task, space=empty.space, direction=empty.direction)
        store.optuna.set_study_user_attr(study.id, SETTINGS_KEY, note)
        tags = as_tags((*study.tags, *settings.tags))
        describe(store, study, tags=tags if tags != study.tags else None, note=settings.note or None)
        return study


def _run_worker(worker: Worker, evaluator: Evaluator, queue: TrialQueue, *, empty: Run, show: bool) -> None:
    with progress_bars("count", "note", "remaining", interactive=True) as update:

        def show_status(status: WorkerStatus) -> None:
            if show:
                update(empty.task[:NAME_WIDTH], status.trials, worker.budget.trials, note=str(status))

        try:
            worker.run(show_status)
        except StorageError as error:
            raise _with_rescue_file(error, _run_so_far(queue, empty, worker.unsaved)) from error
        except BaseException:  # Ctrl-C, a warning that is an error, a worker process that does not start
            evaluator.close()
            worker.interrupt("interrupted")
            raise


def _settings_note(settings: TuningSettings) -> dict[str, Any]:
    """Return what is stored with the task about how it is tuned."""
    packages = ("recollect", "numpy", "scipy", "ConfigSpace", "optuna")
    versions = {name: version(name) for name in packages} | {"python": platform.python_version()}
    name = method_named(settings.method).name
    return {"method": name, "trials": settings.trials, "seed": settings.seed, "versions": versions}


def _run_so_far(queue: TrialQueue, empty: Run, unsaved: Iterable[Trial] = ()) -> Run:
    """Return the run as far as this process has read it."""
    finished = queue.state.finished
    trials = [*(finished[number] for number in sorted(finished)), *unsaved]
    return Run(empty.task, trials=trials, space=empty.space, direction=empty.direction)


def worker_count(workers: int) -> int:
    """Return the number of trials to evaluate at the same time; -1 stands for one per core."""
    return available_cores() if workers == -1 else as_count("workers", workers, minimum=1)


def _evaluator(objective: Objective, workers: int | Executor | Any, trial_seconds: float | None) -> Evaluator:
    trial_seconds = as_time_limit(trial_seconds)
    if isinstance(workers, Executor) or hasattr(workers, "get_executor"):
        return ExecutorEvaluator(objective, workers, time_limit=trial_seconds)
    count = worker_count(workers)
    if count == 1 and trial_seconds is None:
        return InProcessEvaluator(objective)
    return PoolEvaluator(objective, count, time_limit=trial_seconds)


def _memory(memory: MemoryLike) -> Memory:
    if isinstance(memory, Memory):
        return memory
    if memory is None:
        from optuna.storages import InMemoryStorage

        return Memory(InMemoryStorage())
    return Memory(memory)


def default_task() -> str:
    """Return the name of a task that was given none."""
    return time.strftime("run of %Y-%m-%d %H:%M:%S") + f", {uuid4().hex[:8]}"


def _with_rescue_file(error: StorageError, run: Run) -> StorageError:
    """Save the run as far as it is known to a file, and return the error with the name of the file."""
    from recollect.storage.formats.export import write_runs

    trials = f"{plural(len(run), 'trial')} known to this process"
    name = f"recollect-rescued-{os.getpid()}-{time.time_ns()}.jsonl"
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        try:
            write_runs([run], folder / name)
        except OSError:
            continue
        return StorageError(f"{error}; {trials} saved in {folder / name}")
    return StorageError(f"{error}; {trials} could not be saved to a file either")
