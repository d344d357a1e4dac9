"""Which hyperparameters mattered: Optuna's PED-ANOVA (Watanabe, Bansal, Hutter, IJCAI 2023).

It measures how differently the best trials are distributed from all trials, one hyperparameter at a time. Of Optuna's
evaluators it is the one that needs no further library, supports conditional hyperparameters and is quick with many
trials. Trials that a tuner chose lie where it expected good values, so the result is about what mattered among those.
"""

from __future__ import annotations

import contextlib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.analysis.run_data import RunData
from recollect.errors import ConfigError
from recollect.runs.run import Run
from recollect.space.space import Space
from recollect.storage.optuna_conversion import distributions, frozen_trial
from recollect.storage.optuna_log import quiet_optuna

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

MIN_TRIALS = 10  # trials with a value: of fewer, no part can be called the best
MIN_BEST_TRIALS, BEST_SHARE = 5, 0.1  # the best are at least this many, and at least this share


@dataclass(frozen=True, slots=True)
class Importance:
    """Shares of hyperparameters, which sum to 1, largest first."""

    shares: dict[str, float]
    best: int  # number of trials that counted as the best
    trials: int  # that succeeded
    unassessed: tuple[str, ...] = ()  # hyperparameters that vary but have no share


def importance(data: RunData) -> Importance | None:
    """Return the importance of hyperparameters; None with too few trials or if all values are equal."""
    run, space = data.run, data.space
    if space is None or len(run.succeeded) < MIN_TRIALS or len({trial.value for trial in run.succeeded}) == 1:
        return None
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

    count = len(run.succeeded)
    quantile = max(BEST_SHARE, MIN_BEST_TRIALS / count)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about few trials, which the page says itself
        evaluator = PedAnovaImportanceEvaluator(target_quantile=quantile)
        shares = get_param_importances(_optuna_study(run, space), evaluator=evaluator)
    varying = [name for name, varies in zip(space.names, space.varying, strict=True) if varies]
    assessed = {name: float(share) for name, share in shares.items() if name in varying}
    if not assessed or not sum(assessed.values()) > 0:
        return None
    ordered = dict(sorted(assessed.items(), key=lambda pair: (-pair[1], pair[0])))
    unassessed = tuple(name for name in varying if name not in assessed)
    return Importance(ordered, int(np.ceil(quantile * count)), count, unassessed)


def _optuna_study(run: Run, space: Space) -> Study:
    """Return the trials that succeeded and belong to the space as an Optuna study."""
    from optuna import create_study
    from optuna.storages import InMemoryStorage
    from optuna.trial import TrialState

    every = distributions(space)
    trials = []
    for number, trial in enumerate(run.succeeded):
        config = {name: value for name, value in trial.config.items() if name in every}
        with contextlib.suppress(ConfigError):  # a value outside the space
            trials.append(frozen_trial(config, every, TrialState.COMPLETE, number=number, value=trial.value))

    class GivenTrials(InMemoryStorage):
        """A storage that has these trials; Optuna's own copies each that it is given, which takes most of the time."""

        def get_all_trials(self, *_: Any, **__: Any) -> list[FrozenTrial]:
            return trials

    with quiet_optuna():
        return create_study(storage=GivenTrials(), direction=run.direction)
