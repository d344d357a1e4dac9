"""Past runs as training data: aligned to the new space, brought to the method's scale, checked and fitted.

Notation: past run i gives ``X (n_i, d)`` in the new space's encoding and ``y (n_i,)``, lower is better.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recollect._system import no_garbage_collection
from recollect.errors import InputError, InputTypeError, RecollectWarning
from recollect.optimizer.method import Method
from recollect.runs.run import Run
from recollect.runs.usability import MIN_TRIALS, Unusable, left_out_message, why_unusable
from recollect.space.alignment import Alignment, align_all
from recollect.space.columns import Steps
from recollect.space.sampling import latin_hypercube
from recollect.space.space import Space
from recollect.surrogate.scaling import transform
from recollect.transfer.fit_cache import FitCache
from recollect.transfer.screening import ScreenedSources, Screener
from recollect.transfer.source_fitting import fit_sources
from recollect.transfer.source_library import SourceLibrary, fitting_bar
from recollect.transfer.sources import SourceData, Sources
from recollect.transfer.weighting.kl import DivergenceWeighting, refuse_unless_continuous
from recollect.validation import as_list

MAX_MAGNITUDE = 2.0**960  # values beyond this are divided by 2^64: sums and differences of predictions stay finite
LANDMARKS = 64  # points at which past runs are compared


@dataclass(frozen=True, slots=True, eq=False)
class PastRun:
    """One past run as the optimizer sees it.

    Attributes:
        task: Name of its task.
        trials: How many trials it has, failed ones included.
        alignment: How its configurations fit the new space.
        data: Its observations in the new space's encoding; None if the run is left out.
        unusable: Why the run is left out; None if it is used.
    """

    task: str
    trials: int
    alignment: Alignment
    data: SourceData | None
    unusable: Unusable | None

    @property
    def used(self) -> bool:
        """Whether the optimizer learns from the run."""
        return self.data is not None


def list_of_runs(past: Iterable[Run]) -> list[Run]:
    """Return past runs as a list; InputTypeError for anything else."""
    expected = "recollect.Run, as recollect.read_runs returns it"
    runs = as_list("past", past, of=expected)
    for number, run in enumerate(runs):
        if not isinstance(run, Run):
            raise InputTypeError(
                f"past must be a list of {expected}, but past[{number}] is of type {type(run).__name__}"
            )
    return runs


def align_past_runs(runs: Sequence[Run], space: Space, direction: str, method: Method) -> tuple[PastRun, ...]:
    """Align all runs to the space; those that are unusable stay in the result and are warned about."""
    for number, run in enumerate(runs):
        if run.direction != direction:
            raise InputError(
                f"past[{number}] ({run.task!r}) has direction {run.direction!r}, but this optimizer has {direction!r}: "
                f"pass Run(..., direction={direction!r}) if its values are meant that way"
            )
    names = set(space.names)
    with no_garbage_collection():
        alignments = align_all(space, [run.columns.usable_configs() for run in runs])
        past = tuple(_past_run(run, alignment, names, method) for run, alignment in zip(runs, alignments, strict=True))
    if method.prior is not None:
        past = _without_copies(past)
    _warn_unusable([entry for entry in past if not entry.used])
    return past


def warn_about_integers(runs: Sequence[Run], space: Space) -> None:
    """Say how to write a float, where a range of integers meets past runs with floats between them."""
    for column in space.columns:
        if not isinstance(column, Steps) or column.choices is not None:
            continue
        values = (value for run in runs for value in run.columns.usable_configs().column(column.name))
        between = next((value for value in values if isinstance(value, float) and not value.is_integer()), None)
        if between is not None:
            low, high = column.lower, column.lower + column.size - 1
            message = (
                f"{column.name!r} is a range of integers from {low} to {high}, but past runs have {between!r}; write "
                f"{low}.0 and {high}.0 for a range of floats"
            )
            warnings.warn(message, RecollectWarning, stacklevel=3)


def source_data(past: Iterable[PastRun]) -> list[SourceData]:
    """Return the observations of the runs that are used."""
    return [entry.data for entry in past if entry.data is not None]


def leave_out_all(past: tuple[PastRun, ...]) -> tuple[PastRun, ...]:
    """Leave out the runs that were used, because they have nothing in common, and warn about it."""
    message = left_out_message([repr(entry.task) for entry in past if entry.used], Unusable.NO_AGREEMENT.value)
    warnings.warn(message, RecollectWarning, stacklevel=4)
    return tuple(replace(entry, data=None, unusable=Unusable.NO_AGREEMENT) if entry.used else entry for entry in past)


def _past_run(run: Run, alignment: Alignment, names: set[str], method: Method) -> PastRun:
    unusable = why_unusable(run, names)
    if unusable is None and len(alignment.kept) < MIN_TRIALS:
        unusable = Unusable.TOO_FEW_TRIALS
    if unusable is not None:
        return PastRun(run.task, len(run), alignment, None, unusable)
    y = run.y[alignment.kept]
    if np.abs(y).max() > MAX_MAGNITUDE:
        y = np.ldexp(y, -64)
    return PastRun(run.task, len(run), alignment, SourceData(run.task, alignment.X, transform(y, method.scaling)), None)


def _without_copies(past: tuple[PastRun, ...]) -> tuple[PastRun, ...]:
    """Leave out runs with the same observations as an earlier one: a run stored twice says no more about tasks."""
    seen: set[tuple[bytes, bytes]] = set()
    kept = []
    for entry in past:
        key = None if entry.data is None else (entry.data.X.tobytes(), entry.data.y.tobytes())
        kept.append(replace(entry, data=None, unusable=Unusable.COPY) if key in seen else entry)
        if key is not None:
            seen.add(key)
    return tuple(kept)


def _warn_unusable(left_out: Sequence[PastRun]) -> None:
    messages = []
    for reason in (Unusable.NO_SHARED_PARAMETER, Unusable.COPY):
        if tasks := [repr(entry.task) for entry in left_out if entry.unusable is reason]:
            messages.append(left_out_message(tasks, reason.value))
    for entry in left_out:
        if entry.unusable is Unusable.TOO_FEW_TRIALS:
            usable = len(entry.alignment.kept)
            message = f"past run {entry.task!r} is left out: {usable} of its {entry.trials} trials can be used"
            messages.append(f"{message}, but at least {MIN_TRIALS} are needed. {entry.alignment}".rstrip())
    for message in messages:
        warnings.warn(message, RecollectWarning, stacklevel=4)


def fit_past_runs(past: tuple[PastRun, ...], space: Space, method: Method) -> Sources | None:
    """Fit the runs that are used, or take their fits from the cache; None if there are none to fit."""
    data = source_data(past)
    if not data or not method.models_past:
        return None
    with fitting_bar() as progress:
        settings, cache = method.sources, FitCache.default()
        return fit_sources(data, shape=space.kernel_shape, settings=settings, cache=cache, progress=progress)


def screen_past_runs(
    past: tuple[PastRun, ...], space: Space, method: Method, *, rng: np.random.Generator
) -> ScreenedSources | None:
    """Prepare to choose among the runs that are used; None if they are few enough, or the method needs all."""
    data = source_data(past)
    if len(data) <= method.screening.limit or not method.models_past or method.joint is not None:
        return None
    library = SourceLibrary(data, shape=space.kernel_shape, settings=method.sources, cache=FitCache.default())
    landmarks = latin_hypercube(space, LANDMARKS, rng)
    screener = Screener(method.screening, library, landmarks=landmarks, rng=rng)
    return ScreenedSources(screener, library, starts_small=method.acquisition is not None)


def check_method(method: Method, space: Space, past: tuple[PastRun, ...]) -> None:
    """Refuse a method that cannot work in this space, with these past runs or with this installation."""
    data = source_data(past)
    if data and method.joint is not None:
        method.joint.check(data)
    if data and isinstance(method.weighting, DivergenceWeighting):
        # A constant has a column of its own, but nothing varies along it.
        varying = space.categorical & space.varying
        refuse_unless_continuous(varying, space.names, conditional=space.conditional)
        if not space.varying.any():
            raise InputError("kl needs a hyperparameter with more than one value; all of this space are constants")
