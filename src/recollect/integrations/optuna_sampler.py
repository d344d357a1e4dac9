"""`TransferSampler`: an Optuna sampler that starts from what past studies know.

The public face of this package's ``optuna_`` modules: past studies are read by `optuna_past`, conditions inferred by
`optuna_conditions`, spaces made by `optuna_space`, one study is watched by `optuna_study`, and `optuna_desk` leads the
`Optimizer` that decides. See docs/optuna.md.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from recollect.errors import InputError
from recollect.history.optuna_runs import direction_of
from recollect.integrations.optuna_desk import Wishes
from recollect.integrations.optuna_past import read_past
from recollect.integrations.optuna_space import state_space
from recollect.integrations.optuna_study import StudyView
from recollect.optimizer.catalog import method as method_named
from recollect.optimizer.explain import Explanation
from recollect.optimizer.method import Method
from recollect.space.space import Space, SpaceLike
from recollect.transfer.weights import as_count

MOST_STUDIES = 8
"""Of so many studies at a time the sampler keeps what it has learned."""


class TransferSampler(BaseSampler):
    """Suggests by Bayesian optimization that starts from past studies and fades to plain one when they mislead."""

    def __init__(
        self,
        past: Any = (),
        *,
        horizon: int = 50,
        method: str | Method = "rgpe-taf",
        space: SpaceLike | Mapping[str, BaseDistribution] | None = None,
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        """Read the past.

        ``past``: Optuna studies, storages, storage URLs, `recollect.Memory` and `recollect.Run`, one or a list of them
        mixed. ``horizon``: the number of trials planned in all. ``method``: a name of the catalog. ``space``: what the
        objective will ask for, where past studies do not show it or disagree; a ConfigurationSpace, a dict as
        `Optimizer` takes it, or a dict of Optuna distributions. ``independent_sampler`` draws what cannot be planned,
        at random unless given.
        """
        self._past = read_past(past)
        self._horizon = as_count("horizon", horizon, least=1)
        self._method = method_named(method)
        self._stated = state_space(space)
        self._seed = None if seed is None else as_count("seed", seed, least=0)
        self._independent = RandomSampler(seed=seed) if independent_sampler is None else independent_sampler
        self._lock = threading.RLock()
        self._views: dict[tuple[int, int], StudyView] = {}

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return what is tuned together and was asked for by the study itself before."""
        with self._lock:
            return self._view(study).relative_space(study, trial.number)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Make the plan of a trial and return the part of it that lies in the search space."""
        with self._lock:
            return self._view(study).suggest(study, trial, search_space, wishes=self._wishes())

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return what the plan of the trial has for a parameter; what fits no plan is drawn independently."""
        with self._lock:
            planned = self._view(study).planned(trial.number, param_name, param_distribution)
            if planned:
                return planned[0]
            return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Refuse a study that cannot be tuned with this past: an error in here ends `optimize`, whatever it catches."""
        try:
            with self._lock:
                self._view(study)
        except InputError:
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            raise
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Drop the plan of the trial."""
        with self._lock:
            self._view(study).forget(trial.number)
        self._independent.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Draw a new seed, as Optuna asks for when it runs copies of a sampler in parallel."""
        with self._lock:
            self._seed = None
            self._independent.reseed_rng()
            for view in self._views.values():
                view.desk = None

    def explain(self, study: Study) -> Explanation:
        """Say what every past study contributes and what drove the last suggestion of this process."""
        with self._lock:
            desk = self._view(study).desk
            if desk is None:
                raise InputError(f"study {study.study_name!r}: nothing has been suggested for it by this sampler yet")
            return desk.optimizer.explain()

    def space(self, study: Study) -> Space | None:
        """Return the space in which the study is tuned, with the conditions inferred so far; None if there is none."""
        with self._lock:
            return self._view(study).space(study)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process: a copy learns it anew."""
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_views")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what was asked for."""
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._views = {}

    def _view(self, study: Study) -> StudyView:
        direction_of(study)  # refuses several objectives
        storage = study._storage
        key = (id(storage), study._study_id)
        view = self._views.pop(key, None)
        if view is None or not view.is_of(storage):
            view = StudyView(study, self._past, self._stated)
        self._views[key] = view  # the last used comes last
        while len(self._views) > MOST_STUDIES:
            self._views.pop(next(iter(self._views)))
        return view

    def _wishes(self) -> Wishes:
        if self._seed is None:  # drawn late, so that copies of a sampler without a seed differ
            self._seed = int(np.random.SeedSequence().generate_state(1)[0])
        return Wishes(self._method, self._horizon, self._seed)
