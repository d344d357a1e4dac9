"""`TransferSampler`: an Optuna sampler that starts from what past studies know; public as `recollect.optuna`.

`past_studies` reads past studies, `inferred_space` infers the search space, and `study_optimizer` follows one study and
drives the `Optimizer` that suggests. See the page optuna.
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

from recollect.errors import InputError, InputTypeError
from recollect.integrations.optuna.inferred_space import parse_stated_space
from recollect.integrations.optuna.past_studies import read_past
from recollect.integrations.optuna.study_optimizer import SamplerSettings, StudyView
from recollect.optimizer.catalog import method as method_named
from recollect.optimizer.default_method import DEFAULT_METHOD
from recollect.optimizer.explanation import Explanation
from recollect.optimizer.method import Method
from recollect.space.space import Space, SpaceLike
from recollect.storage.optuna_conversion import direction_of
from recollect.validation import as_count

MAX_STUDIES = 8  # that a sampler keeps its knowledge of at the same time


class TransferSampler(BaseSampler):
    """An Optuna sampler that learns from past studies from the first trial on.

    Past studies that rank the new results badly are detected and ignored; what remains is plain Bayesian optimization.
    Search spaces may differ between studies and may be conditional. Studies have one objective; constraints are
    ignored.

    Examples:
        >>> sampler = TransferSampler(past="sqlite:///studies.db", horizon=12)
        >>> study = optuna.create_study(sampler=sampler)
        >>> study.optimize(objective, n_trials=12)
        >>> print(sampler.explain())
    """

    def __init__(
        self,
        past: Any = (),
        *,
        horizon: int = 50,
        method: str | Method = DEFAULT_METHOD,
        space: SpaceLike | Mapping[str, BaseDistribution] | None = None,
        rename: Mapping[str, str] | None = None,
        seed: int | None = None,
        independent_sampler: BaseSampler | None = None,
    ) -> None:
        """Read the past studies.

        Args:
            past: Optuna studies, storages, storage URLs, `recollect.Memory` and `recollect.Run`; one of them or a list.
            horizon: Planned number of trials of a study.
            method: Name from `recollect.methods`, or a `recollect.Method`.
            space: What the objective will ask for, where past studies do not show it or disagree: a dict or
                ``ConfigurationSpace`` as for `recollect.Optimizer`, or a dict of Optuna distributions.
            rename: New names of parameters of past studies by their old ones, such as ``{"learning_rate": "lr"}``.
            seed: Seed of the random streams; None for a different one every time.
            independent_sampler: Samples the parameters that cannot be planned; by default at random.

        Raises:
            InputTypeError: An entry of ``past`` is none of these, or ``independent_sampler`` is no sampler.
            InputError: A trial has a name that is renamed and the new one as well.
            StorageError: A storage cannot be read.
        """
        self._past, self._new_names = read_past(past, rename), frozenset((rename or {}).values())
        self._horizon = as_count("horizon", horizon, minimum=1)
        self._method = method_named(method)
        self._stated = parse_stated_space(space)
        self._seed = None if seed is None else as_count("seed", seed, minimum=0)
        if independent_sampler is None:
            independent_sampler = RandomSampler(seed=None if seed is None else seed % 2**32)
        if not isinstance(independent_sampler, BaseSampler):
            got = f"{independent_sampler!r} ({type(independent_sampler).__name__})"
            raise InputTypeError(f"independent_sampler: expected an Optuna sampler or None, got {got}")
        self._independent = independent_sampler
        self._lock = threading.RLock()
        self._views: dict[tuple[int, int], StudyView] = {}

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the tuned parameters that the study has requested before; called by Optuna."""
        with self._lock:
            return self._view(study).relative_space(study, trial.number)

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Plan a trial and return the part of the plan that lies in the search space; called by Optuna."""
        with self._lock:
            return self._view(study).suggest(study, trial, search_space, settings=self._settings())

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Return the planned value of a parameter, or an independent sample if none fits; called by Optuna."""
        with self._lock:
            planned = self._view(study).planned(trial.number, param_name, param_distribution)
            if planned:
                return planned[0]
            return self._independent.sample_independent(study, trial, param_name, param_distribution)

    def before_trial(self, study: Study, trial: FrozenTrial) -> None:
        """Refuse a study that cannot learn from this past; called by Optuna.

        An error raised here ends ``optimize`` regardless of its ``catch``.
        """
        try:
            with self._lock:
                self._view(study)
        except InputError:
            study._storage.set_trial_state_values(trial._trial_id, TrialState.FAIL)
            raise
        self._independent.before_trial(study, trial)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Forget the plan of the trial; called by Optuna."""
        with self._lock:
            self._view(study).forget(trial.number)
        self._independent.after_trial(study, trial, state, values)

    def reseed_rng(self) -> None:
        """Draw a new seed; called by Optuna when it runs copies of a sampler in parallel."""
        with self._lock:
            self._seed = None
            self._independent.reseed_rng()
            for view in self._views.values():
                view.optimizer = None

    def explain(self, study: Study | None = None) -> Explanation:
        """Return what each past study contributes and what drove the last suggestion of this process.

        Args:
            study: A study that this sampler has suggested for; None for the last one.

        Returns:
            The explanation; ``print`` it.

        Raises:
            InputError: This sampler has not suggested anything for the study yet.
        """
        with self._lock:
            view = next(reversed(self._views.values()), None) if study is None else self._view(study)
            optimizer = None if view is None else view.optimizer
            if optimizer is None:
                name = "" if study is None else f"study {study.study_name!r}: "
                raise InputError(f"{name}this sampler has not suggested anything{' for it' if study else ''} yet")
            return optimizer.optimizer.explain()

    def space(self, study: Study) -> Space | None:
        """Return the space in which a study is tuned.

        Args:
            study: The study.

        Returns:
            The space with the conditions inferred so far; None if nothing is known yet.
        """
        with self._lock:
            return self._view(study).space(study)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to this process; a copy reads it again."""
        with self._lock:
            return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_views")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the settings."""
        self.__dict__.update(state)
        self._lock = threading.RLock()
        self._views = {}

    def _view(self, study: Study) -> StudyView:
        direction_of(study)  # refuses several objectives
        storage = study._storage
        key = (id(storage), study._study_id)
        view = self._views.pop(key, None)
        if view is None or view.storage() is not storage:
            view = StudyView(study, self._past, self._stated, self._new_names)
        self._views[key] = view  # the most recently used comes last
        while len(self._views) > MAX_STUDIES:
            self._views.pop(next(iter(self._views)))
        return view

    def _settings(self) -> SamplerSettings:
        if self._seed is None:  # drawn late, so that copies of a sampler without a seed differ
            self._seed = int(np.random.SeedSequence().generate_state(1)[0])
        return SamplerSettings(self._method, self._horizon, self._seed)
