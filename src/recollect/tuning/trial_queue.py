"""The trial queue of a task: any number of processes work on it together without a coordinator.

Everything is in the storage. A worker claims a configuration by writing it as a running trial, with its heartbeat, in
one step; the storage numbers trials consecutively. These numbers settle conflicts between processes:

    two trials have the same configuration      the one with the lower number runs, the other is void
    there are more trials than the limit        the ones with the lowest numbers run, the others are void

A void trial does not count. A running trial whose worker is dead becomes void and is queued again, once; if its worker
dies a second time, the trial has failed. States change by compare-and-set, so exactly one of several processes that
notice a dead worker queues its trial.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

from recollect._warnings import warn_caller
from recollect.errors import ConfigError, InputTypeError
from recollect.numerics.arrays import row_key
from recollect.runs.run import Config, Trial
from recollect.space.space import Space
from recollect.storage.open import Store, storage_errors
from recollect.storage.optuna_conversion import distributions, frozen_trial, params_of
from recollect.storage.sql_read import SECONDS_KEY, UNFINISHED_STATES, StoredTrial, read_after
from recollect.storage.sql_write import Attributes, StateChange
from recollect.storage.studies import (
    ENQUEUED_KEY,
    INFLUENCE_KEY,
    NOTES_KEY,
    PLACE_KEY,
    VOID_KEY,
    TaskStudy,
    with_notes,
)
from recollect.storage.transitions import change_attribute, move_trial, move_trials, write_trials
from recollect.tuning.heartbeat import HEARTBEAT_KEY, HeartbeatMonitor, heartbeat
from recollect.tuning.objective import Evaluation

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState

RETRY_KEY = "recollect:again"
logger = logging.getLogger("recollect")
Retry: TypeAlias = Callable[[Callable[[], Any]], Any]
"""Does something with the storage and returns its result; may try again if the storage does not answer."""
DEAD_WORKER = "the worker that ran it stopped sending heartbeats"


def once(action: Callable[[], Any]) -> Any:
    """Do something without trying again."""
    return action()


@dataclass(frozen=True, slots=True)
class ClaimedTrial:
    """A trial that this process runs or can claim."""

    id: int
    number: int
    config: Config


class TrialNumbers(Collection[int]):
    """The numbers of the trials in some of the groups of a `QueueState`. Counting them takes constant time."""

    def __init__(self, groups: Sequence[Mapping[int, Any]], last: int) -> None:
        """Look at these groups; ``last`` is the highest number of all trials."""
        self._groups, self._last = groups, last

    def __len__(self) -> int:
        """Count the trials."""
        return sum(map(len, self._groups))

    def __iter__(self) -> Iterator[int]:
        """Iterate over the numbers in order."""
        return iter(sorted(chain.from_iterable(self._groups)))

    def __contains__(self, number: object) -> bool:
        """Return whether a trial is among them."""
        return any(number in group for group in self._groups)

    def before(self, number: int) -> int:
        """Count the trials with lower numbers, by counting the others: a new trial is among the last."""
        return len(self) - sum(other in self for other in range(number, self._last + 1))


@dataclass(slots=True, eq=False)
class QueueState:
    """The trials of a task when the queue was last read, by number."""

    finished: dict[int, Trial] = field(default_factory=dict)
    running: dict[int, Config] = field(default_factory=dict)
    waiting: dict[int, ClaimedTrial] = field(default_factory=dict)  # that any worker may claim
    void: set[int] = field(default_factory=set)  # that do not count
    alive: set[int] = field(default_factory=set)  # running, and their workers send heartbeats
    unread: list[Trial] = field(default_factory=list)  # finished, but not returned by `pop_finished` yet
    influences: dict[int, Mapping[str, Any]] = field(default_factory=dict)  # why finished trials were suggested
    last: int = -1  # the highest number of all trials

    def pop_finished(self) -> list[Trial]:
        """Return the trials that have finished since the last call."""
        trials = list(self.unread)
        self.unread.clear()
        return trials

    def started(self) -> TrialNumbers:
        """Return the numbers of all running and finished trials."""
        return TrialNumbers((self.finished, self.running), self.last)

    def planned(self) -> TrialNumbers:
        """Return the numbers of all running, finished and waiting trials."""
        return TrialNumbers((self.finished, self.running, self.waiting), self.last)

    def pending(self) -> dict[int, Config]:
        """Return the configurations that are or will be evaluated."""
        return self.running | {number: trial.config for number, trial in self.waiting.items()}


class TrialQueue:
    """One task in a memory, shared by all processes that work on it."""

    def __init__(
        self, store: Store, study: TaskStudy, space: Space, *, grace: float, place: Mapping[str, str] | None = None
    ) -> None:
        """Open the queue of a task; workers without a heartbeat for ``grace`` seconds are presumed dead.

        ``place`` is stored with every trial that this process claims: the host, and the folders of logs and work.
        """
        self._store, self._study, self._space = store, study, space
        self._place: dict[str, Any] = {PLACE_KEY: dict(place)} if place else {}
        self._distributions: dict[str, BaseDistribution] = distributions(space)
        self._monitor = HeartbeatMonitor(grace)
        self._claimed: dict[int, ClaimedTrial] = {}
        self._keys: dict[int, bytes] = {}
        self._numbers: dict[bytes, list[int]] = {}  # trials by the key of their configuration
        self._last_read = -1  # trials with ids up to this have been read
        self._unfinished: tuple[int, ...] = ()  # of these, the ids of those that had not ended
        self.state = QueueState()

    @property
    def claimed(self) -> Sequence[ClaimedTrial]:
        """The trials that this process runs."""
        return tuple(self._claimed.values())

    def read(self) -> QueueState:
        """Read what has happened; queue the trials of dead workers again."""
        with storage_errors(self._store.name):
            last = self.state
            self.state = QueueState(
                last.finished, void=last.void, unread=last.unread, influences=last.influences, last=last.last
            )
            records = read_after(self._store, self._study.key, self._last_read, also=self._unfinished)
            for record in records:
                if record.number not in last.finished and record.number not in last.void:
                    self._sort_in(record)
            self._unfinished = tuple(record.id for record in records if record.state in UNFINISHED_STATES)
            self._last_read = max(self._last_read, *(record.id for record in records), -1)
            self._claimed = {number: trial for number, trial in self._claimed.items() if number in self.state.running}
            return self.state

    def has(self, config: Config) -> bool:
        """Return whether a configuration has been tried, is running or waits, as of the last read."""
        key = row_key(self._space.encode([config])[0])
        return any(self._keys.get(number) == key for number in self.state.planned())

    def claim(self, config: Config, *, limit: int, influence: Mapping[str, Any] | None = None) -> ClaimedTrial | None:
        """Claim a configuration as a new trial; None if there are ``limit`` trials or another worker runs the same."""
        return self.claim_all([(config, influence)], limit=limit)[0]

    def claim_all(
        self, configs: Sequence[tuple[Config, Mapping[str, Any] | None]], *, limit: int, retry: Retry = once
    ) -> list[ClaimedTrial | None]:
        """Claim several configurations, each with its influence, in one step; None for each that is not to be run.

        ``retry`` does each access to the storage. The step as a whole must not be repeated: the claims may be written.
        """
        trials: list[ClaimedTrial] = retry(lambda: self._write_claims(configs))
        retry(self.read)
        return [trial if retry(partial(self._stands, trial, limit)) else None for trial in trials]

    def claim_waiting(self, *, limit: int, retry: Retry = once) -> ClaimedTrial | None:
        """Claim a trial that was queued by a user or because its worker died; None if there is none.

        ``retry`` does each access to the storage, as in `claim_all`.
        """
        for number, trial in sorted(self.state.waiting.items()):
            if self.state.planned().before(number) >= limit:
                return None
            if retry(partial(self._take, trial)):
                retry(self.read)
                if retry(partial(self._stands, trial, limit)):
                    return trial
        return None

    def _write_claims(self, configs: Sequence[tuple[Config, Mapping[str, Any] | None]]) -> list[ClaimedTrial]:
        """Write configurations as running trials of this process."""
        from optuna.trial import TrialState

        with storage_errors(self._store.name):
            system, frozen = {HEARTBEAT_KEY: heartbeat()}, []
            for config, influence in configs:
                user = self._place | ({} if influence is None else {INFLUENCE_KEY: dict(influence)})
                frozen.append(self._frozen(config, TrialState.RUNNING, user=user, system=system))
            keys = write_trials(self._store, self._study.key, frozen)
            trials = [ClaimedTrial(*key, config) for key, (config, _) in zip(keys, configs, strict=True)]
            self._claimed |= {trial.number: trial for trial in trials}
            return trials

    def _take(self, trial: ClaimedTrial) -> bool:
        """Turn a waiting trial into a running one of this process; False if another process was first."""
        from optuna.trial import TrialState

        with storage_errors(self._store.name):
            if trial.number not in self._claimed:  # by an attempt that failed after that
                states, system = (TrialState.WAITING, TrialState.RUNNING), {HEARTBEAT_KEY: heartbeat()}
                if not move_trial(self._store, self._study.key, trial.id, states, user=self._place, system=system):
                    return False
                self._claimed[trial.number] = trial
            self._write_params(trial)
            return True

    def _stands(self, trial: ClaimedTrial, limit: int) -> bool:
        """Return whether a new claim stands, read after all workers can see it; release it if not."""
        state = self.state
        if trial.number not in state.running:
            return False  # another worker presumed this process dead
        first = self._first_with(self._keys[trial.number])
        if first != trial.number:
            self.release(trial, f"the same configuration as trial {first}")
        elif state.planned().before(trial.number) >= limit:
            self.release(trial, f"one more than the {limit} trials of the task")
        else:
            return True
        return False

    def _write_params(self, trial: ClaimedTrial) -> None:
        """Write the parameters of a trial that was enqueued with Optuna; one of ours has them already."""
        for frozen in self._store.optuna.get_all_trials(self._study.id, deepcopy=False):
            if frozen._trial_id == trial.id:
                for name, value in params_of(trial.config, self._distributions).items():
                    if name not in frozen.params:
                        distribution = self._distributions[name]
                        internal = distribution.to_internal_repr(value)
                        self._store.optuna.set_trial_param(trial.id, name, internal, distribution)

    def finish(self, trial: ClaimedTrial, evaluation: Evaluation) -> None:
        """Write the result of a trial."""
        self.finish_all([(trial, evaluation)])

    def finish_all(self, results: Sequence[tuple[ClaimedTrial, Evaluation]]) -> None:
        """Write the results of trials in one step."""
        ordered = sorted(results, key=lambda result: result[0].id)
        with storage_errors(self._store.name):
            moved = move_trials(
                self._store, self._study.key, [_ending(trial, evaluation) for trial, evaluation in ordered]
            )
            unmoved = [trial.id for (trial, _), own in zip(ordered, moved, strict=True) if not own]
            records = read_after(self._store, self._study.key, self._last_read, also=unmoved) if unmoved else []
        measured = {one.id: one.user_attrs.get(SECONDS_KEY) for one in records if VOID_KEY not in one.user_attrs}
        for (trial, evaluation), own in zip(ordered, moved, strict=True):
            self._claimed.pop(trial.number, None)
            if not own and measured.get(trial.id) != evaluation.seconds:  # equal: written, but not acknowledged
                reason = "sent no heartbeat for so long that another worker took it over"
                message = f"trial {trial.number} {reason}: its value {evaluation.value} is not used"
                warn_caller(message)

    def release(self, trial: ClaimedTrial, reason: str) -> None:
        """Give up a claimed trial: it becomes void."""
        from optuna.trial import TrialState

        states = (TrialState.RUNNING, TrialState.FAIL)
        with storage_errors(self._store.name):
            move_trial(self._store, self._study.key, trial.id, states, user={VOID_KEY: reason})
        self._claimed.pop(trial.number, None)
        self.state.running.pop(trial.number, None)
        self.state.void.add(trial.number)

    def write_heartbeat(self, trial: int, latest: dict[str, Any]) -> None:
        """Write a heartbeat to a trial; one that has ended in the meantime needs none."""
        from optuna.exceptions import OptunaError

        try:
            with storage_errors(self._store.name):
                change_attribute(self._store, self._study.key, trial, HEARTBEAT_KEY, latest)
        except (OSError, OptunaError, KeyError):
            return  # the next one may succeed; finishing the trial meets the same fault and reports it

    def _first_with(self, key: bytes) -> int | None:
        """Return the lowest number of the planned trials that have the configuration with this key."""
        planned = self.state.planned()
        return min((number for number in self._numbers.get(key, ()) if number in planned), default=None)

    def _set_key(self, number: int, key: bytes) -> None:
        self._keys[number] = key
        self._numbers.setdefault(key, []).append(number)

    def _sort_in(self, record: StoredTrial) -> None:
        """Add a stored trial to the state."""
        number, state = record.number, self.state
        state.last = max(state.last, number)
        if VOID_KEY in record.user_attrs:
            state.void.add(number)
        elif record.state == "WAITING":
            config = record.params or record.system_attrs.get(ENQUEUED_KEY, {})
            if self._in_space(number, config):  # others can only be run by Optuna
                state.waiting[number] = ClaimedTrial(record.id, number, dict(config))
        elif not self._in_space(number, record.params):
            self._leave_out(record)
        elif record.state == "RUNNING":
            latest = record.system_attrs.get(HEARTBEAT_KEY)
            if number not in self._claimed and self._monitor.is_dead(number, latest):
                self._requeue(record)
                return
            state.running[number] = record.params
            if latest is not None:
                state.alive.add(number)
        elif (trial := record.as_trial()) is not None:
            trial = state.finished[number] = with_notes(trial, record)
            state.unread.append(trial)
            if INFLUENCE_KEY in record.user_attrs:
                state.influences[number] = record.user_attrs[INFLUENCE_KEY]
        else:  # pruned by another program
            state.void.add(number)

    def _in_space(self, number: int, config: Config) -> bool:
        """Return whether a trial's configuration belongs to the space; remember its key."""
        if number not in self._keys:
            try:
                self._set_key(number, row_key(self._space.encode([config])[0]))
            except (ConfigError, InputTypeError):  # the latter: damaged, no configuration at all
                return False
        return True

    def _leave_out(self, record: StoredTrial) -> None:
        """Leave out a trial of another space; one that is running may not have all its parameters yet."""
        if record.state != "RUNNING":
            self.state.void.add(record.number)
            trial = f"trial {record.number} of {self._study.name!r}"
            message = f"{self._store.name}: {trial} is left out: it does not belong to this search space"
            warn_caller(message)

    def _requeue(self, record: StoredTrial) -> None:
        """Queue the trial of a dead worker again; one that was queued again before has failed.

        A worker may have died before it could release a claim lost to another trial: that one is void.
        What is not void stays among the running ones until the next read, so that nobody repeats it meanwhile: a trial
        that has failed now, and one whose state was changed after it was read (its worker may have finished it last).
        """
        from optuna.trial import TrialState

        states, key = (TrialState.RUNNING, TrialState.FAIL), self._keys[record.number]
        first = self._first_with(key)
        if first is not None:
            user: dict[str, Any] = {VOID_KEY: f"{DEAD_WORKER}; the same configuration as trial {first}"}
        else:
            again = RETRY_KEY in record.system_attrs
            user = {NOTES_KEY: [f"{DEAD_WORKER}, twice"]} if again else {VOID_KEY: f"{DEAD_WORKER}: queued again"}
        moved = move_trial(self._store, self._study.key, record.id, states, user=user)
        if not moved or VOID_KEY not in user:
            self.state.running[record.number] = record.params
            return
        logger.warning("trial %d: %s", record.number, user[VOID_KEY])
        self.state.void.add(record.number)
        if first is None:
            system = {HEARTBEAT_KEY: heartbeat(), RETRY_KEY: 1}
            retry = self._frozen(record.params, TrialState.WAITING, user={}, system=system)
            ((trial_id, number),) = write_trials(self._store, self._study.key, [retry])
            self._set_key(number, key)
            self.state.last = max(self.state.last, number)
            self.state.waiting[number] = ClaimedTrial(trial_id, number, record.params)

    def _frozen(
        self, config: Config, state: TrialState, *, user: dict[str, Any], system: dict[str, Any]
    ) -> FrozenTrial:
        from optuna.trial import TrialState

        start = datetime.now() if state == TrialState.RUNNING else None
        fields: dict[str, Any] = {"datetime_start": start, "user_attrs": user, "system_attrs": system}
        return frozen_trial(config, self._distributions, state, **fields)


def _ending(trial: ClaimedTrial, evaluation: Evaluation) -> StateChange:
    from optuna.trial import TrialState

    notes: dict[str, Any] = {NOTES_KEY: list(evaluation.notes)} if evaluation.notes else {}
    notes[SECONDS_KEY] = evaluation.seconds  # Optuna's times are naive: wrong across a change of summer time
    after = TrialState.COMPLETE if evaluation.ok else TrialState.FAIL
    return StateChange(trial.id, TrialState.RUNNING, after, evaluation.value, Attributes(notes, {}))
