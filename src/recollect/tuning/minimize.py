"""`minimize`: tune an objective, remember every trial, learn from every earlier run of the same problem."""

from __future__ import annotations

import math
import os
import platform
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect.errors import InputError, InputTypeError, StorageError
from recollect.history.memory import DEFAULT_PROBLEM, Memory
from recollect.history.run import Direction, Run, Trial
from recollect.history.storage import faults
from recollect.history.studies import SETTINGS_KEY, begin
from recollect.optimizer.catalog import method as named
from recollect.optimizer.method import Method
from recollect.optimizer.optimizer import Optimizer
from recollect.space.space import SpaceLike, compile_space
from recollect.transfer.weights import as_count
from recollect.tuning.board import Board
from recollect.tuning.children import Children
from recollect.tuning.evaluators import Evaluator, InThisProcess
from recollect.tuning.outcome import Objective
from recollect.tuning.presence import GRACE
from recollect.tuning.progress import bar
from recollect.tuning.result import Result
from recollect.tuning.session import Limits, Progress, Session

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

Where: TypeAlias = "str | os.PathLike[str] | Memory | BaseStorage | None"
"""What a memory is given as; None: nothing is kept beyond the run."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What `minimize` is told besides the objective, the space and how to evaluate; its docstring explains them."""

    trials: int = 50
    memory: Where = None
    problem: str = DEFAULT_PROBLEM
    task: str | None = None
    past: Iterable[Run] = ()
    method: str | Method = "rgpe-taf"
    direction: Direction = "minimize"
    seconds: float | None = None
    target: float | None = None
    seed: int | None = 0
    progress: bool = True


def minimize(  # noqa: PLR0913 - the public interface
    objective: Objective,
    space: SpaceLike,
    *,
    trials: int = 50,
    memory: Where = None,
    problem: str = DEFAULT_PROBLEM,
    task: str | None = None,
    past: Iterable[Run] = (),
    method: str | Method = "rgpe-taf",
    direction: Direction = "minimize",
    workers: int = 1,
    seconds: float | None = None,
    target: float | None = None,
    trial_seconds: float | None = None,
    seed: int | None = 0,
    progress: bool = True,
) -> Result:
    """Tune ``objective``, a function of a configuration (dict) that returns a number.

    ``memory`` (a file name, a storage URL or a `Memory`) keeps every trial as it happens. All its earlier runs of the
    same ``problem`` are past runs to learn from, with those given in ``past``; a ``task`` that has been begun there is
    gone on with. Any number of processes may work on the same task at the same time.

    It is over when the task has ``trials`` trials, after ``seconds``, or when a value as good as ``target`` is found;
    trials that run then are finished. With ``workers`` above 1 or a time limit ``trial_seconds`` the objective is
    evaluated in child processes; if one is killed, only its trial is lost. A trial that raises, returns no finite
    number or is killed has failed; the reason is kept, the run goes on, the configuration is not tried again.
    """
    if not callable(objective):
        raise InputTypeError(f"objective: expected a function of a configuration, got {type(objective).__name__}")
    evaluator = _evaluator(objective, as_count("workers", workers, least=1), trial_seconds)
    told = (trials, memory, problem, task, past, method, direction, seconds, target, seed, progress)
    return tune_with(evaluator, space, Settings(*told))


def tune_with(evaluator: Evaluator, space: SpaceLike, settings: Settings) -> Result:
    """Do what `minimize` does with an evaluator of any kind; it is closed in the end."""
    limits = _limits(settings)
    task = _unnamed() if settings.task is None else settings.task
    empty = Run(task, space=compile_space(space), direction=settings.direction)
    assert empty.space is not None
    memory = _memory(settings.memory)
    store, told = memory.store, _told(settings)
    try:
        with faults(store.name):
            entry = begin(store, settings.problem, task, space=empty.space, direction=settings.direction)
            store.optuna.set_study_user_attr(entry.id, SETTINGS_KEY, told)
        past = (*settings.past, *memory.past(empty.space, settings.problem, exclude=task, direction=empty.direction))
        board = Board(store, entry, empty.space, grace=GRACE)
        optimizer = _optimizer(past, empty, settings)
        past = tuple(run for run, found in zip(past, optimizer.past, strict=True) if found.used)
        session = Session(board, optimizer, evaluator, limits)
        with bar(task, limits.trials, show=settings.progress) as tell:
            _work(session, evaluator, tell, board=board, empty=empty)
    finally:
        evaluator.close()
        if memory is not settings.memory:
            memory.close()
    influences = tuple(board.view.influences.get(number) for number in sorted(board.view.finished))
    return Result(_known(board, empty), settings.problem, session.stopped, session.explain(), past, told, influences)


def _work(
    session: Session, evaluator: Evaluator, tell: Callable[[Progress], None], *, board: Board, empty: Run
) -> None:
    try:
        session.work(tell)
    except KeyboardInterrupt:
        evaluator.close()
        session.interrupt("interrupted")
        raise
    except StorageError as error:
        raise _rescued(error, _known(board, empty, session.unsaved)) from error


def _optimizer(past: Iterable[Run], empty: Run, settings: Settings) -> Optimizer:
    assert empty.space is not None
    return Optimizer(
        empty.space,
        past,
        settings.method,
        horizon=settings.trials,
        seed=settings.seed,
        direction=empty.direction,
        run=empty,
    )


def _told(settings: Settings) -> dict[str, Any]:
    """Return what is noted of the settings with the task."""
    packages = ("recollect", "numpy", "scipy", "ConfigSpace", "optuna")
    versions = {name: version(name) for name in packages} | {"python": platform.python_version()}
    name = named(settings.method).name
    return {"method": name, "trials": settings.trials, "seed": settings.seed, "versions": versions}


def _known(board: Board, empty: Run, unsaved: Iterable[Trial] = ()) -> Run:
    """Return the run as far as this process knows it."""
    finished = board.view.finished
    trials = [*(finished[number] for number in sorted(finished)), *unsaved]
    return Run(empty.task, trials=trials, space=empty.space, direction=empty.direction)


def _limits(settings: Settings) -> Limits:
    seconds, target = settings.seconds, settings.target
    for name, value in (("seconds", seconds), ("target", target)):
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value)):
            raise InputError(f"{name}: expected a number or None, got {value!r}")
    if seconds is not None and seconds <= 0:
        raise InputError(f"seconds: expected a positive number or None, got {seconds!r}")
    return Limits(as_count("trials", settings.trials, least=1), seconds, target)


def _evaluator(objective: Objective, workers: int, trial_seconds: float | None) -> Evaluator:
    if trial_seconds is not None and not (isinstance(trial_seconds, int | float) and trial_seconds > 0):
        raise InputError(f"trial_seconds: expected a positive number or None, got {trial_seconds!r}")
    if workers == 1 and trial_seconds is None:
        return InThisProcess(objective)
    return Children(objective, workers, limit=trial_seconds)


def _memory(where: Where) -> Memory:
    if isinstance(where, Memory):
        return where
    if where is None:
        from optuna.storages import InMemoryStorage

        return Memory(InMemoryStorage())
    return Memory(where)


def _unnamed() -> str:
    return time.strftime("run of %Y-%m-%d %H:%M:%S") + f", process {os.getpid()}"


def _rescued(error: StorageError, run: Run) -> StorageError:
    """Save what this process knows to a file, and say where."""
    from recollect.history.export import write_runs

    name = f"recollect-rescued-{os.getpid()}-{time.time_ns()}.jsonl"
    for folder in (Path.cwd(), Path(tempfile.gettempdir())):
        try:
            write_runs([run], folder / name)
        except OSError:
            continue
        return StorageError(f"{error}; the {len(run)} trials known here are saved in {folder / name}")
    return StorageError(f"{error}; the {len(run)} trials known here could not be saved to a file either")
