"""The sampler's view of one study: its trials, the space inferred from them, current plans, and the optimizer.

A `StudyOptimizer` belongs to one study and one inferred space. It is told what has finished, expects what is running,
and suggests what comes next. It is kept from trial to trial and only receives what is new; when the inferred space
changes, a new one replaces it and receives everything. Trials are identified by number. ``_assigned`` maps each
unfinished trial to the configuration that it evaluates, if that is known: suggested here, published by another process,
or enqueued by the user. If another process has just started a trial and has not published its configuration yet, the
next suggestion is reserved for that trial. So processes that start at the same moment do not all start with the same
configuration.

A plan in `StudyView` is the configuration that was suggested for a running trial. Parameters that the study has
requested before go to Optuna as relative parameters. Those that are only assumed, from past studies or a stated space,
stay in the plan until the objective requests them: Optuna refuses a relative parameter whose kind or choices differ
from the request, whereas a planned value that does not fit is simply not used.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.storages import BaseStorage
from optuna.study import Study
from optuna.trial import FrozenTrial, TrialState

from recollect._text import name_list
from recollect._warnings import warn_caller
from recollect.errors import ConfigError, ExhaustedError
from recollect.integrations.optuna import inferred_space, past_studies
from recollect.integrations.optuna.inferred_space import InferredSpace, StatedSpace, to_space
from recollect.integrations.optuna.past_studies import PastStudy
from recollect.optimizer.method import Method
from recollect.optimizer.optimizer import Optimizer
from recollect.runs.run import FAILED, Config, Direction, Run, State, Trial
from recollect.space.notations.optuna_distributions import step_count
from recollect.space.sampling import uniform
from recollect.space.space import Space
from recollect.storage import optuna_conversion as conversion
from recollect.storage.optuna_conversion import config_of
from recollect.storage.studies import ENQUEUED_KEY, INFLUENCE_KEY, SAMPLER_KEY
from recollect.tuning.suggestion_notes import influence_note

SUGGESTION_KEY = "recollect:suggested"  # of system attributes: here other processes find what was suggested for a trial
MAX_ATTRIBUTE_LENGTH = 2000  # longer texts are published in pieces, because some storages truncate them
RESERVATION_TIME = timedelta(seconds=60)  # how long a suggestion stays reserved for a trial that publishes nothing


@dataclass(frozen=True, slots=True)
class SamplerSettings:
    """The settings of a sampler that an optimizer needs."""

    method: str | Method
    horizon: int
    seed: int


class StudyOptimizer:
    """An `Optimizer` that follows a study."""

    def __init__(
        self, inferred: InferredSpace, past: Sequence[Run], *, direction: Direction, settings: SamplerSettings
    ) -> None:
        """Start without any trial."""
        self.inferred = inferred
        runs, method, horizon = [_run_to_space(run, inferred) for run in past], settings.method, settings.horizon
        self._direction, self._seed = direction, settings.seed
        self.optimizer = Optimizer(inferred.space, runs, method, horizon=horizon, seed=self._seed, direction=direction)
        self._completed = conversion.CompletedReports(direction)
        self._told: set[int] = set()
        self._assigned: dict[int, Config] = {}
        self._reserved: set[int] = set()
        self.notes: dict[int, dict[str, Any]] = {}  # why each assigned configuration was suggested

    def update(self, trials: Sequence[FrozenTrial], number: int) -> None:
        """Process what is new in a study, before suggesting for its trial ``number``."""
        news = [trial for trial in trials if trial.state.is_finished() and trial.number not in self._told]
        pairs = conversion.finished_trials(news, self._direction, completed=self._completed)
        results = {frozen.number: trial for frozen, trial in pairs}
        for frozen in news:
            self._told.add(frozen.number)
            self._tell_optimizer(frozen, results[frozen.number])
        others = [frozen for frozen in trials if not frozen.state.is_finished() and frozen.number != number]
        unpublished = [frozen for frozen in others if not self._expect_running(frozen)]
        for frozen in unpublished:  # after all running configurations are known, so that none of them is reserved
            self._reserve(frozen, own=trials[number])

    def _tell_optimizer(self, frozen: FrozenTrial, trial: Trial) -> None:
        """Tell the optimizer the result of a finished trial.

        A trial that failed or was pruned before it had asked for everything is completed with what was suggested for
        it. A configuration outside the space stays assigned, so that it is not suggested again and again; so does a
        pruned trial without an estimate.
        """
        whole = frozen.state == TrialState.COMPLETE
        config = self.inferred.config_of(config_of(frozen) if whole else expected_params(frozen, self.inferred))
        if config is None:
            if whole and self.inferred.fixed:
                message = f"trial {frozen.number} is left out: {config_of(frozen)} does not belong to the stated space"
                warn_caller(message)
            return
        self._release(frozen.number, unless=config)
        value = FAILED if trial.state is State.FAILED else trial.learned_value
        if value is None:
            self._assign(frozen.number, config)
            return
        self._assigned.pop(frozen.number, None)
        self.optimizer.tell(config, value, seconds=trial.seconds)
        if config in self._assigned.values():  # another trial is still evaluating the same configuration
            self.optimizer.expect(config)

    def suggest(self, number: int) -> Config:
        """Return the configuration for trial ``number``; a random one again if all have been tried."""
        self._reserved.discard(number)
        if number not in self._assigned:
            try:
                self._assigned[number] = self.optimizer.ask()
                self.notes[number] = influence_note(self.optimizer.explain())
            except ExhaustedError:
                rng = np.random.default_rng((self._seed, number))
                return self.inferred.space.decode(uniform(self.inferred.space, 1, rng))[0]
        return dict(self._assigned[number])

    def _expect_running(self, frozen: FrozenTrial) -> bool:
        """Expect the configuration of an unfinished trial; return False if it is not known."""
        config = self.inferred.config_of(expected_params(frozen, self.inferred))
        if config is None:
            return False
        self._reserved.discard(frozen.number)
        self._release(frozen.number, unless=config)
        self._assign(frozen.number, config)
        return True

    def _reserve(self, frozen: FrozenTrial, *, own: FrozenTrial) -> None:
        """Reserve a suggestion for a trial that another process has just started and not published yet."""
        if frozen.number in self._reserved and not _just_before(frozen, own):
            self._reserved.discard(frozen.number)
            self._release(frozen.number)
        elif frozen.number not in self._assigned and not frozen.params and _just_before(frozen, own):
            self.suggest(frozen.number)
            self._reserved.add(frozen.number)

    def _assign(self, number: int, config: Config) -> None:
        if number not in self._assigned:
            self._assigned[number] = config
            self.optimizer.expect(config)

    def _release(self, number: int, *, unless: Config | None = None) -> None:
        """Take back what was assigned to a trial, unless it is this configuration."""
        config = self._assigned.get(number)
        if config is None or config == unless:
            return
        del self._assigned[number]
        self.notes.pop(number, None)
        if config not in self._assigned.values() and config in self.optimizer.pending:
            self.optimizer.cancel(config)


def publish(storage: BaseStorage, trial: FrozenTrial, config: Config, inferred: InferredSpace) -> None:
    """Publish what was suggested for a trial to other processes, in Optuna's internal representation."""
    params = inferred.params_of(config)
    text = json.dumps({name: inferred.distributions[name].to_internal_repr(value) for name, value in params.items()})
    pieces = [text[begin : begin + MAX_ATTRIBUTE_LENGTH] for begin in range(0, len(text), MAX_ATTRIBUTE_LENGTH)]
    for index, piece in reversed(list(enumerate(pieces))):  # the first piece last: a process that sees it sees all
        storage.set_trial_system_attr(trial._trial_id, f"{SUGGESTION_KEY}:{index}", piece)


def expected_params(frozen: FrozenTrial, inferred: InferredSpace) -> dict[str, Any]:
    """Return the parameters that an unfinished trial will have: suggested, enqueued and already requested ones."""
    pieces: list[str] = []
    while (piece := frozen.system_attrs.get(f"{SUGGESTION_KEY}:{len(pieces)}")) is not None:
        pieces.append(piece)
    published, own = json.loads("".join(pieces) or "{}"), inferred.distributions
    usable = {name: value for name, value in published.items() if name in own and own[name]._contains(value)}
    values = {name: own[name].to_external_repr(value) for name, value in usable.items()}
    return {**values, **frozen.system_attrs.get(ENQUEUED_KEY, {}), **config_of(frozen)}


def _just_before(frozen: FrozenTrial, own: FrozenTrial) -> bool:
    """Return whether a trial started before our own, and so recently that its process may still be deciding."""
    if frozen.number > own.number or frozen.datetime_start is None or own.datetime_start is None:
        return False
    return own.datetime_start - frozen.datetime_start <= RESERVATION_TIME


def _run_to_space(run: Run, inferred: InferredSpace) -> Run:
    """Return a past run with its values as the space represents them."""
    stepped = {name: entry for name, entry in inferred.distributions.items() if step_count(entry)}
    if not stepped:
        return run
    trials = []
    for trial in run.trials:
        moved = {name: to_space(stepped[name], trial.config[name]) for name in stepped.keys() & trial.config.keys()}
        trials.append(replace(trial, config={**trial.config, **moved}))
    return Run(run.task, trials=trials, direction=run.direction)


class StudyView:
    """One study as the sampler sees it."""

    def __init__(
        self, study: Study, past: Sequence[PastStudy], stated: StatedSpace | None, new_names: frozenset[str]
    ) -> None:
        """Start without any trial; refuse listed past studies of the other direction.

        ``new_names`` are those of parameters of past studies that were renamed.
        """
        self.storage = weakref.ref(study._storage)
        self._name = study.study_name
        self._direction = conversion.direction_of(study)
        past_studies.check_directions(past, self._name, self._direction)
        self._stated = stated
        self._past, self._new_names = past, new_names
        self._reset()

    def _reset(self) -> None:
        self._sources: list[PastStudy] | None = None
        self._left_out: list[PastStudy] = []  # that the user has not been told about
        self._trials: Sequence[FrozenTrial] = ()
        self._read_for: int | None = None
        self._completed: dict[int, FrozenTrial] = {}
        self._foreign: set[int] = set()
        self._requested: dict[str, BaseDistribution | None] = {}
        self._inferred: InferredSpace | None = None
        self._plans: dict[int, Config] = {}
        self.optimizer: StudyOptimizer | None = None

    def relative_space(self, study: Study, number: int) -> dict[str, BaseDistribution]:
        """Read the study for its trial ``number``; return the tuned parameters that the study itself has requested."""
        self._read(study, number)
        return self._relative()

    def suggest(
        self, study: Study, trial: FrozenTrial, space: Mapping[str, BaseDistribution], *, settings: SamplerSettings
    ) -> dict[str, Any]:
        """Plan a trial; return the part of the plan that belongs to Optuna's relative search space."""
        if self._read_for != trial.number:
            self._read(study, trial.number)
        self._read_for = None
        inferred = self._inferred
        if dict(space) != self._relative():
            inferred = inferred_space.restrict_space(inferred, space)
        if inferred is None:
            return {}
        optimizer = self._optimizer_for(study, inferred, settings)
        optimizer.update(self._trials, trial.number)
        config = optimizer.suggest(trial.number)
        publish(study._storage, trial, config, optimizer.inferred)
        note = optimizer.notes.pop(trial.number, None)
        if note is not None and ENQUEUED_KEY not in trial.system_attrs:
            study._storage.set_trial_system_attr(trial._trial_id, INFLUENCE_KEY, note)
        self._plans[trial.number] = optimizer.inferred.params_of(config)
        fitted = {name: self.planned(trial.number, name, entry) for name, entry in space.items()}
        return {name: value[0] for name, value in fitted.items() if value}

    def planned(self, number: int, name: str, distribution: BaseDistribution) -> list[Any]:
        """Return the planned value of a parameter in a list, which is empty if there is none that fits."""
        plan = self._plans.get(number, {})
        with suppress(ConfigError):
            return [conversion.fit_value(name, distribution, plan[name])] if name in plan else []
        return []

    def space(self, study: Study) -> Space | None:
        """Return the space in which the study is currently tuned."""
        self._read(study, -1)
        return None if self._inferred is None else self._inferred.space

    def forget(self, number: int) -> None:
        """Forget the plan of a trial that has ended."""
        self._plans.pop(number, None)

    def _read(self, study: Study, number: int) -> None:
        trials = self._whole_trials(study)
        if self._replaced(trials):
            self._reset()
        self._trials, self._read_for = trials, number
        if self._sources is None:
            own = past_studies.identity_of(self._name, self._trials)
            self._sources = past_studies.usable_studies(self._past, own=own, direction=self._direction)
            self._inferred = inferred_space.infer_study_space((), self._sources, self._stated)
            self._say_what_is_assumed(trials)
        completed = [trial for trial in trials if trial.state == TrialState.COMPLETE]
        news = [trial for trial in completed if trial.number not in self._completed]
        for trial in news:
            self._completed[trial.number] = trial
            for name, distribution in trial.distributions.items():
                same = self._requested.get(name, distribution) == distribution
                self._requested[name] = distribution if same else None
            if any(key.startswith("constraints") for key in trial.system_attrs):
                message = f"study {self._name!r} has constraints, which TransferSampler ignores"
                warn_caller(message)
        if any(self._inferred is None or not self._inferred.matches(trial) for trial in news):
            self._inferred = inferred_space.infer_study_space(
                list(self._completed.values()), self._sources, self._stated
            )
        if self._completed or (self._stated is not None and self._stated.fixed):  # before, parameters are only assumed
            self._check_new_names()

    def _check_new_names(self) -> None:
        """Warn once about new names of past parameters that the study does not ask for."""
        asked = self._requested.keys() | (self._inferred.distributions.keys() if self._inferred else set())
        if strange := sorted(self._new_names - asked):
            names = f"{name_list(map(repr, strange))}; its parameters are {name_list(sorted(asked))}"
            message = f"rename: study {self._name!r} has no parameter {names}"
            warn_caller(message)
        self._new_names = frozenset()

    def _say_what_is_assumed(self, trials: Sequence[FrozenTrial]) -> None:
        """Say which parameters past studies disagree about, before the study itself has shown what it asks for."""
        assumed, disputed = past_studies.assumed_distributions(self._sources or ())
        stated = {} if self._stated is None else self._stated.distributions
        unclear = [name for name in disputed if name not in stated]
        if unclear and not any(trial.state == TrialState.COMPLETE for trial in trials):
            entries = ", ".join(f"{name!r}: {assumed[name]}" for name in unclear)
            message = (
                f"past studies differ in {name_list(map(repr, unclear))}; the first trial assumes {{{entries}}}. If "
                "the objective asks for something else, state it: TransferSampler(..., space={name: distribution}). "
                'If a parameter had another name: TransferSampler(..., rename={"old": "new"})'
            )
            warn_caller(message)

    def _whole_trials(self, study: Study) -> Sequence[FrozenTrial]:
        """Read the trials; read again if one has parameters but no published suggestion.

        SQL storages read attributes and parameters one after the other, and a trial may have got both in between. A
        trial that looks like this twice belongs to another sampler.
        """
        while True:
            trials: Sequence[FrozenTrial] = study._storage.get_all_trials(study._study_id, deepcopy=False)
            running = [trial for trial in trials if not trial.state.is_finished() and trial.params]
            torn = {trial.number for trial in running if f"{SUGGESTION_KEY}:0" not in trial.system_attrs}
            torn -= self._foreign
            if not torn:
                return trials
            self._foreign |= torn

    def _replaced(self, trials: Sequence[FrozenTrial]) -> bool:
        """Return whether the study was deleted and replaced by another one."""
        if not self._completed:
            return False
        number, last = next(reversed(self._completed.items()))
        return number >= len(trials) or trials[number].datetime_complete != last.datetime_complete

    def _relative(self) -> dict[str, BaseDistribution]:
        if self._inferred is None:
            return {}
        inferred = sorted(self._inferred.distributions.items())
        return {name: distribution for name, distribution in inferred if self._requested.get(name) == distribution}

    def _optimizer_for(self, study: Study, inferred: InferredSpace, settings: SamplerSettings) -> StudyOptimizer:
        if self.optimizer is None or not inferred.is_same_as(self.optimizer.inferred):
            assert self._sources is not None
            kept, self._left_out = past_studies.split_by_shared_parameters(self._sources, inferred.distributions)
            runs = [entry.run for entry in kept]
            self.optimizer = StudyOptimizer(inferred, runs, direction=self._direction, settings=settings)
            noted = {"method": self.optimizer.optimizer.method.name, "past": [run.task for run in runs]}
            study._storage.set_study_system_attr(study._study_id, SAMPLER_KEY, noted)
        if self._completed or self._stated is not None:  # before, the parameters are only assumed
            reason = f"they have none of the parameters {', '.join(sorted(inferred.distributions))}"
            past_studies.warn_left_out(self._left_out, reason)
            self._left_out = []
        return self.optimizer
