"""Past runs made ready: aligned to the new space, brought to the method's scale, checked for being of use.

Notation: past run i gives ``X (n_i, d)`` in the new space's encoding and ``y (n_i,)``, lower is better.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from recollect.errors import InputError, InputTypeError, RecollectWarning
from recollect.history.run import Run
from recollect.optimizer.method import Method
from recollect.space.align import Alignment, align_all
from recollect.space.space import Space
from recollect.surrogate.kernels import KernelShape
from recollect.surrogate.scaling import transform
from recollect.transfer.cache import FitCache
from recollect.transfer.fitting import fit_sources
from recollect.transfer.kl import refuse_unless_continuous
from recollect.transfer.sources import SourceData, Sources
from recollect.transfer.weighting import DivergenceWeighting

LEAST = 2
"""A past run with fewer usable observations has no ranking to teach."""

LARGEST = 2.0**960
"""Past values beyond this are divided by 2^64, so that sums and differences of predictions stay finite."""

SHOWN = 5
"""How many of the runs that are left out a warning names."""

WORTH_A_BAR = 8
"""Fewer fits than this are over before a progress bar helps."""


@dataclass(frozen=True, slots=True, eq=False)
class PastRun:
    """One past run as the optimizer sees it; ``data`` is None when it was left out.

    foreign: it has trials, but no hyperparameter in common with the new space; aligned, it would be all defaults.
    """

    task: str
    trials: int
    alignment: Alignment
    data: SourceData | None
    foreign: bool

    @property
    def used(self) -> bool:
        """Whether the run takes part."""
        return self.data is not None


def gather(runs: Iterable[Run], space: Space, direction: str, method: Method) -> tuple[PastRun, ...]:
    """Align all runs; left out with a warning are those with no hyperparameter of the space or no two observations."""
    if not isinstance(runs, Iterable):
        raise InputTypeError(f"past must be a list of recollect.Run, got {type(runs).__name__}")
    given = list(runs)
    for number, run in enumerate(given):
        if not isinstance(run, Run):
            raise InputTypeError(f"past[{number}] must be a recollect.Run, got {type(run).__name__}")
        if run.direction != direction:
            raise InputError(
                f"past[{number}] ({run.task!r}) is to {run.direction}, but this optimizer is to {direction}: "
                f"give Run(..., direction={direction!r}) if its values are meant so"
            )
    alignments = align_all(space, [[trial.config for trial in run.succeeded] for run in given])
    pairs = zip(given, alignments, strict=True)
    gathered = tuple(_one(run, alignment, space=space, method=method) for run, alignment in pairs)
    _warn_of([entry for entry in gathered if not entry.used])
    return gathered


def _one(run: Run, alignment: Alignment, *, space: Space, method: Method) -> PastRun:
    foreign = run.foreign_to(set(space.names))
    return PastRun(run.task, len(run), alignment, None if foreign else _data(run, alignment, method), foreign)


def _warn_of(left_out: Sequence[PastRun]) -> None:
    foreign = [repr(entry.task) for entry in left_out if entry.foreign]
    if foreign:
        shown = ", ".join(foreign[:SHOWN]) + (", ..." if len(foreign) > SHOWN else "")
        message = f"left out as past runs, no hyperparameter in common: {shown}"
        warnings.warn(message, RecollectWarning, stacklevel=4)
    for entry in left_out:
        if not entry.foreign:
            usable = len(entry.alignment.kept)
            message = f"past run {entry.task!r} is left out: {usable} of its {entry.trials} trials can be used"
            warnings.warn(f"{message}, {LEAST} are needed. {entry.alignment}".rstrip(), RecollectWarning, stacklevel=4)


def _data(run: Run, alignment: Alignment, method: Method) -> SourceData | None:
    y = run.y[alignment.kept]
    if len(y) < LEAST:
        return None
    if np.abs(y).max() > LARGEST:
        y = np.ldexp(y, -64)
    return SourceData(run.task, alignment.X, transform(y, method.scaling))


def fit_past(past: tuple[PastRun, ...], space: Space, method: Method) -> Sources | None:
    """Fit the runs that are used, or take their fits from the cache; None when there are none."""
    data = [entry.data for entry in past if entry.data is not None]
    if not data or not method.models_past:
        return None
    shape = KernelShape(np.asarray(space.categorical), space.conditional)
    bar = _Bar()
    try:
        return fit_sources(
            data, shape=shape, settings=method.sources, cache=FitCache.default(), progress=bar.at_terminal()
        )
    finally:
        bar.close()


def check_usable(method: Method, space: Space, past: tuple[PastRun, ...]) -> None:
    """Refuse a method that cannot work in this space, with these past runs or with this installation."""
    data = [entry.data for entry in past if entry.data is not None]
    if data and method.joint is not None:
        method.joint.check(data)
    if data and isinstance(method.weighting, DivergenceWeighting):
        # A constant has a column of its own, but nothing varies along it.
        varying = space.categorical & space.varying
        refuse_unless_continuous(varying, space.names, conditional=space.conditional)


def check_resumable(run: Run, direction: str) -> None:
    """Refuse to continue what is no run, or a run of the other direction."""
    if not isinstance(run, Run):
        raise InputTypeError(f"run must be a recollect.Run, got {type(run).__name__}")
    if run.direction != direction:
        raise InputError(f"the run to resume is to {run.direction}, this optimizer is to {direction}")


class _Bar:
    """A progress bar on standard error, shown only to somebody who sits at a terminal."""

    def __init__(self) -> None:
        self._close: Callable[[], None] | None = None
        self._update: Callable[[int], None] | None = None

    def at_terminal(self) -> Callable[[int, int], None] | None:
        """Return the callback for `fit_sources`, or None when nobody watches."""
        return self._show if sys.stderr is not None and sys.stderr.isatty() else None

    def _show(self, done: int, total: int) -> None:
        if total < WORTH_A_BAR:
            return
        if self._update is None:
            self._open(total)
        assert self._update is not None
        self._update(done)

    def _open(self, total: int) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("fitting past runs"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        progress = Progress(*columns, console=Console(stderr=True), transient=True)
        task = progress.add_task("", total=total)
        progress.start()
        self._update = lambda done: progress.update(task, completed=done)
        self._close = progress.stop

    def close(self) -> None:
        """Take the bar away."""
        if self._close is not None:
            self._close()
