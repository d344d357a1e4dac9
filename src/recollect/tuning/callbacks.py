"""Callbacks: functions that are called after every trial, by themselves or by the name of an entry point.

A callback takes the trial and the run so far. It may raise `recollect.Stop` to end the run; any other exception ends
the run as an error, with all finished trials stored. A callback may also have two methods: ``open(problem, task)`` is
called before the first trial, and ``close()`` after the last one, however the run ends. Callbacks are called in the
process that called `minimize`, never in a worker process, and only for trials that this call has evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeAlias

from recollect._text import name_list, plural
from recollect.errors import InputError, InputTypeError, Stop
from recollect.runs.copies import copy_trial
from recollect.runs.run import Run, Trial
from recollect.validation import as_list

Callback: TypeAlias = Callable[[Trial, Run], Any]
"""Called with a trial that has finished and the run so far; may raise `recollect.Stop`."""

ENTRY_POINTS = "recollect.callbacks"
TRACKERS = {"mlflow": "MLflowCallback", "wandb": "WandbCallback"}
"""The classes of `recollect.trackers`, by name."""

MIN_SECONDS_SHOWN = 0.001  # shorter durations say nothing


def check_callbacks(callbacks: Iterable[Callback]) -> list[Callback]:
    """Return callbacks as a list; InputTypeError for anything that cannot be called."""
    checked = as_list("callbacks", callbacks, of="functions of a trial and a run")
    for index, callback in enumerate(checked):
        if not callable(callback):
            expected = "a function of a trial and a run"
            raise InputTypeError(f"callbacks[{index}]: expected {expected}, got {type(callback).__name__}")
    return checked


def callback_named(name: str) -> Callback:
    """Return a new callback by name: "mlflow", "wandb", or an entry point of the group `recollect.callbacks`.

    An entry point names a class or function that is called without arguments and returns the callback.
    """
    if name in TRACKERS:
        factory: Callable[[], Callback] = getattr(import_module("recollect.trackers"), TRACKERS[name])
        return factory()
    others = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    if name not in others:
        names = name_list(map(repr, [*TRACKERS, *sorted(others)]))
        raise InputError(
            f"there is no callback {name!r}; there are {names}; packages add others as entry points of {ENTRY_POINTS!r}"
        )
    made = others[name].load()()
    return check_callbacks([made])[0]


@contextmanager
def opened(callbacks: Sequence[Callback], problem: str, task: str) -> Iterator[None]:
    """Open the callbacks that can be opened, and close those that can be closed at the end."""
    with ExitStack() as stack:
        for callback in callbacks:
            if callable(close := getattr(callback, "close", None)):
                stack.callback(close)
            if callable(begin := getattr(callback, "open", None)):
                begin(problem, task)
        yield


class Notifier:
    """Calls callbacks with copies. Each has a run of its own, so that only new trials are copied after a trial."""

    def __init__(self, callbacks: Sequence[Callback], empty: Run) -> None:
        """Start with a run without trials."""
        self._callbacks, self._shown = callbacks, [empty] * len(callbacks)

    def __call__(self, trial: Trial, run: Run) -> None:
        """Call all callbacks, even if one of them wants to stop; then stop. ``run`` only grows from call to call."""
        stops = []
        for place, callback in enumerate(self._callbacks):
            shown = self._shown[place].trials
            self._shown[place] = run.with_trials((*shown, *map(copy_trial, run.trials[len(shown) :])))
            try:
                callback(copy_trial(trial), self._shown[place])
            except Stop as stop:
                stops.append(stop)
        if stops:
            raise stops[0]


def progress_line(trial: Trial, run: Run, budget: int) -> str:
    """Return what is printed about a finished trial where there is no progress bar."""
    number = len(run) - 1 if trial.number is None else trial.number
    ended = "failed" if trial.value is None else f"{trial.value:.6g}"
    took = "" if trial.seconds is None or trial.seconds < MIN_SECONDS_SHOWN else f" in {trial.seconds:.3g} s"
    best = "" if run.best is None else f", best {run.best.value:.6g}"
    return f"trial {number}: {ended}{took}{best}, {len(run)} of {plural(budget, 'trial')}"
