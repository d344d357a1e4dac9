"""A sampler of Optuna as a contestant: one study in memory per run, asked and told.

A conditional hyperparameter is suggested only where it is active. If another configuration was evaluated than the one
that was asked for, the study holds that one instead, with what the sampler had noted on its own.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from recollect.bench.experiment.contestants import RunSetting
from recollect.errors import InputError, MissingExtraError
from recollect.runs.run import Config
from recollect.storage.optuna_conversion import distributions, params_of

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.samplers import BaseSampler
    from optuna.trial import Trial as OptunaTrial


def sampler_names() -> tuple[str, ...]:
    """Return the names of Optuna's samplers."""
    from optuna import samplers

    return tuple(name for name in samplers.__all__ if name.endswith("Sampler") and not name.startswith("Base"))


def create_sampler(name: str, settings: Mapping[str, Any], seed: int) -> BaseSampler:
    """Return a sampler, with a seed if it takes one; InputError or MissingExtraError if it cannot be created."""
    from optuna import samplers

    kind = getattr(samplers, name)
    seeds = {"seed": seed} if "seed" in inspect.signature(kind).parameters else {}
    try:
        sampler: BaseSampler = kind(**(seeds | dict(settings)))
    except (TypeError, ValueError) as error:
        raise InputError(f"optuna:{name} cannot be created: {error}") from error
    except ImportError as error:
        reason = str(error).partition("\n")[0]
        raise MissingExtraError(f"optuna:{name} needs a library that is not installed: {reason}") from error
    return sampler


class OptunaContestant:
    """A study with a sampler of Optuna."""

    def __init__(self, name: str, settings: Mapping[str, Any], setting: RunSetting) -> None:
        """Create the study of one run."""
        import optuna

        self._space = setting.space
        self._distributions: dict[str, BaseDistribution] = distributions(setting.space)
        with _quiet():
            self._study = optuna.create_study(sampler=create_sampler(name, settings, setting.seed))
        self._trial: OptunaTrial | None = None

    def ask(self) -> Config:
        """Return what the sampler suggests."""
        with _quiet():
            trial = self._trial = self._study.ask()
            X = np.full((1, len(self._space.names)), np.nan)
            config: Config = {}
            for position, (column, condition) in enumerate(
                zip(self._space.columns, self._space.conditions, strict=True)
            ):
                if condition is None or condition(X)[0]:
                    config[column.name] = _suggest(trial, column.name, self._distributions[column.name])
                    X[0, position] = column.codes([config[column.name]])[0]
        return config

    def tell(self, config: Config, value: float) -> None:
        """Add the value to the study."""
        from optuna.trial import TrialState, create_trial

        assert self._trial is not None
        params = params_of(config, self._distributions)
        with _quiet():
            if params == self._trial.params:
                self._study.tell(self._trial, value)
                return
            attributes = self._study.tell(self._trial, state=TrialState.FAIL).system_attrs
            used = {name: self._distributions[name] for name in params}
            self._study.add_trial(create_trial(value=value, params=params, distributions=used, system_attrs=attributes))


def _suggest(trial: OptunaTrial, name: str, distribution: BaseDistribution) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    suggest: Any = trial.suggest_float if isinstance(distribution, FloatDistribution) else trial.suggest_int
    return suggest(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from announcing studies, and from warning that a sampler is experimental."""
    from optuna import logging
    from optuna.exceptions import ExperimentalWarning

    level = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ExperimentalWarning)
            yield
    finally:
        logging.set_verbosity(level)
