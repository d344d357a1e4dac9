"""Write runs into a memory: as trials that Optuna stores."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from recollect.errors import InputError
from recollect.runs.run import Run, State, Trial
from recollect.space.inference import PLAIN_TYPES, InferredRange, infer_values, values_by_name
from recollect.storage.optuna_conversion import distributions, frozen_trial, native
from recollect.storage.sql_read import ESTIMATE_KEY
from recollect.storage.studies import NOTES_KEY

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial


def distributions_of(run: Run) -> dict[str, BaseDistribution]:
    """Return Optuna's distributions for a run: those of its space, or ranges that contain all its values."""
    for name in dict.fromkeys(name for config in run.configs for name in config):
        if name != name.encode("utf-8", "replace").decode("utf-8"):
            raise InputError(f"run {run.task!r}: expected names of hyperparameters in valid Unicode, got {name!r}")
    if run.space is not None:
        return distributions(run.space)
    tried = [{name: native(value) for name, value in config.items()} for config in run.configs]
    return {name: _distribution_of(name, values, run.task) for name, values in values_by_name(tried).items()}


def _distribution_of(name: str, values: Sequence[Any], task: str) -> BaseDistribution:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    for value in values:
        number = isinstance(value, int | float)
        if type(value) not in PLAIN_TYPES or (number and not abs(value) <= sys.float_info.max):
            expected = "text, numbers in the range of floats, booleans or None"
            raise InputError(f"run {task!r}, {name!r}: expected {expected}, got {value!r:.80}")
    inferred = infer_values(values, log_scales=False)
    if not isinstance(inferred, InferredRange):
        return CategoricalDistribution(inferred)
    if isinstance(inferred.low, int):
        return IntDistribution(inferred.low, int(inferred.high))
    return FloatDistribution(inferred.low, inferred.high)


def stored_trial(trial: Trial, known: dict[str, BaseDistribution]) -> FrozenTrial:
    """Return a finished trial as Optuna stores it; its times only tell how long it took."""
    from optuna.trial import TrialState

    end = datetime.now()
    notes: dict[str, Any] = {NOTES_KEY: list(trial.notes)} if trial.notes else {}
    return frozen_trial(
        trial.config,
        known,
        {State.OK: TrialState.COMPLETE, State.FAILED: TrialState.FAIL, State.PRUNED: TrialState.PRUNED}[trial.state],
        value=trial.value,
        datetime_start=end - timedelta(seconds=trial.seconds or 0.0),
        datetime_complete=end,
        user_attrs=notes | ({} if trial.estimate is None else {ESTIMATE_KEY: trial.estimate}),
    )
