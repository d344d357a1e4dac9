"""What the sampler knows of one study: its completed trials, the scheme they fit, the desk, and the plans being tried.

A plan is the configuration that was suggested for a trial which is running. Parameters that the study has asked for
before go to Optuna as relative ones. Those that are only assumed, from past studies or a stated space, are kept in the
plan until the objective asks for them: Optuna refuses a relative parameter of another kind or with other choices than
it then is asked for, whereas a planned value that does not fit is simply not used.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from recollect.errors import ConfigError, RecollectWarning
from recollect.history.optuna_runs import direction_of, fit_value
from recollect.history.run import Config
from recollect.integrations.optuna_desk import Desk, Wishes, is_published, publish
from recollect.integrations.optuna_past import PastStudy, eligible, identity_of, refuse_opposite, sharing
from recollect.integrations.optuna_space import Scheme, Stated, infer_scheme, narrow_scheme
from recollect.space.space import Space


class StudyView:
    """One study as the sampler sees it."""

    def __init__(self, study: Study, past: Sequence[PastStudy], stated: Stated | None) -> None:
        """Begin with nothing read; a past that was named and is of another direction is refused."""
        self._storage = weakref.ref(study._storage)
        self._name = study.study_name
        self._direction = direction_of(study)
        refuse_opposite(past, self._name, self._direction)
        self._stated = stated
        self._past = past
        self._begin()

    def _begin(self) -> None:
        self._teachers: list[PastStudy] | None = None
        self._trials: Sequence[FrozenTrial] = ()
        self._read_for: int | None = None
        self._completed: dict[int, FrozenTrial] = {}
        self._foreign: set[int] = set()
        self._asked: dict[str, BaseDistribution | None] = {}
        self._scheme: Scheme | None = None
        self._plans: dict[int, Config] = {}
        self.desk: Desk | None = None

    def is_of(self, storage: BaseStorage) -> bool:
        """Whether this is a study of that very storage."""
        return self._storage() is storage

    def relative_space(self, study: Study, number: int) -> dict[str, BaseDistribution]:
        """Read the study for its trial ``number``; return what is tuned and was asked for by the study itself."""
        self._read(study, number)
        return self._relative()

    def suggest(
        self, study: Study, trial: FrozenTrial, search_space: Mapping[str, BaseDistribution], *, wishes: Wishes
    ) -> dict[str, Any]:
        """Make the plan of a trial; return what of it belongs to Optuna's relative search space."""
        if self._read_for != trial.number:
            self._read(study, trial.number)
        self._read_for = None
        scheme = self._scheme
        if dict(search_space) != self._relative():
            scheme = narrow_scheme(scheme, search_space)
        if scheme is None:
            return {}
        desk = self._seated(scheme, wishes)
        desk.follow(self._trials, trial.number)
        config = desk.suggest(trial.number)
        publish(study._storage, trial, config, desk.scheme)
        self._plans[trial.number] = desk.scheme.params_of(config)
        fitted = {name: self.planned(trial.number, name, known) for name, known in search_space.items()}
        return {name: value[0] for name, value in fitted.items() if value}

    def planned(self, number: int, name: str, distribution: BaseDistribution) -> list[Any]:
        """Return the value that a plan has for a parameter, in a list; an empty one if it has none that fits."""
        plan = self._plans.get(number, {})
        if name not in plan:
            return []
        try:
            return [fit_value(name, distribution, plan[name])]
        except ConfigError:
            return []

    def space(self, study: Study) -> Space | None:
        """Return the space in which the study is tuned as things stand."""
        self._read(study, -1)
        return None if self._scheme is None else self._scheme.space

    def forget(self, number: int) -> None:
        """Drop the plan of a trial that has ended."""
        self._plans.pop(number, None)

    def _read(self, study: Study, number: int) -> None:
        trials = self._whole_trials(study)
        if self._replaced(trials):
            self._begin()
        self._trials, self._read_for = trials, number
        if self._teachers is None:
            own = identity_of(self._name, self._trials)
            self._teachers = eligible(self._past, own=own, direction=self._direction)
            self._scheme = infer_scheme((), self._teachers, self._stated)
        news = [
            trial
            for trial in self._trials
            if trial.state == TrialState.COMPLETE and trial.number not in self._completed
        ]
        for trial in news:
            self._completed[trial.number] = trial
            for name, distribution in trial.distributions.items():
                same = self._asked.get(name, distribution) == distribution
                self._asked[name] = distribution if same else None
            self._warn_of_constraints(trial)
        if any(self._scheme is None or not self._scheme.explains(trial) for trial in news):
            self._scheme = infer_scheme(list(self._completed.values()), self._teachers, self._stated)

    def _whole_trials(self, study: Study) -> Sequence[FrozenTrial]:
        """Read the trials; again, where one shows what it asked for without what was suggested for it before.

        SQL storages read attributes and parameters one after the other, and a trial may have got both in between. What
        is seen twice is a trial of another sampler.
        """
        while True:
            trials: Sequence[FrozenTrial] = study._storage.get_all_trials(study._study_id, deepcopy=False)
            running = [trial for trial in trials if not trial.state.is_finished()]
            torn = {trial.number for trial in running if trial.params and not is_published(trial)} - self._foreign
            if not torn:
                return trials
            self._foreign |= torn

    def _replaced(self, trials: Sequence[FrozenTrial]) -> bool:
        """Whether the study was deleted and another one has taken its place."""
        if not self._completed:
            return False
        number, last = next(reversed(self._completed.items()))
        return number >= len(trials) or trials[number].datetime_complete != last.datetime_complete

    def _relative(self) -> dict[str, BaseDistribution]:
        if self._scheme is None:
            return {}
        return {name: known for name, known in sorted(self._scheme.known.items()) if self._asked.get(name) == known}

    def _seated(self, scheme: Scheme, wishes: Wishes) -> Desk:
        if self.desk is None or not scheme.same(self.desk.scheme):
            assert self._teachers is not None
            runs = [entry.run for entry in sharing(self._teachers, scheme.known)]
            self.desk = Desk(scheme, runs, direction=self._direction, wishes=wishes)
        return self.desk

    def _warn_of_constraints(self, trial: FrozenTrial) -> None:
        if any(key.startswith("constraints") for key in trial.system_attrs):
            message = f"study {self._name!r} has constraints, which TransferSampler does not take into account"
            warnings.warn(message, RecollectWarning, stacklevel=2)
