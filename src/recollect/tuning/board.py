"""The board: one task in a memory, on which any number of processes work together without a coordinator.

All that is known is in the storage. A worker puts up a configuration as a running trial, with its sign of life, in one
step; the storage numbers trials one after another. What could go wrong between processes is settled by these numbers:

    two have the same configuration             the one with the lower number runs it, the other is void
    there are more than the task shall have     the first so many run, the others are void

A void trial counts for nothing. A running trial whose worker is gone becomes void and is queued again, once; if it is
lost a second time it has failed. Changes of state are made by comparing and setting, so that of several processes that
find the same dead worker exactly one queues its trial.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from recollect.errors import ConfigError, RecollectWarning
from recollect.history.changes import move, write
from recollect.history.optuna_runs import distributions, params_of
from recollect.history.reading import Record, read_after
from recollect.history.run import Config, Trial
from recollect.history.storage import Store, faults
from recollect.history.studies import INFLUENCE_KEY, NOTES_KEY, VOID_KEY, Entry
from recollect.space.identity import row_key
from recollect.space.space import Space
from recollect.tuning.outcome import Outcome
from recollect.tuning.presence import BEAT_KEY, Watch, sign

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial, TrialState

AGAIN_KEY, WISH_KEY = "recollect:again", "fixed_params"
LOST = "the worker that ran it stopped giving signs of life"


@dataclass(frozen=True, slots=True)
class Slip:
    """A trial that this process runs."""

    id: int
    number: int
    config: Config


@dataclass(slots=True, eq=False)
class View:
    """What the board showed when it was last read, by the numbers of trials.

    awaited: running trials whose workers give signs of life; fresh: those whose end is still news; influences: why
    finished trials were suggested.
    """

    finished: dict[int, Trial] = field(default_factory=dict)
    running: dict[int, Config] = field(default_factory=dict)
    queued: dict[int, Slip] = field(default_factory=dict)
    void: set[int] = field(default_factory=set)
    awaited: set[int] = field(default_factory=set)
    fresh: list[Trial] = field(default_factory=list)
    influences: dict[int, Mapping[str, Any]] = field(default_factory=dict)

    def news(self) -> list[Trial]:
        """Return the trials that have finished since this was last asked for."""
        news = list(self.fresh)
        self.fresh.clear()
        return news

    def counted(self) -> list[int]:
        """Return the numbers of all trials that count, begun or finished, in order."""
        return sorted([*self.finished, *self.running])

    def planned(self) -> list[int]:
        """Return the numbers of all trials that count or will count, in order: those that are queued as well."""
        return sorted([*self.finished, *self.running, *self.queued])

    def expected(self) -> dict[int, Config]:
        """Return the configurations that somebody evaluates now or will evaluate."""
        return self.running | {number: slip.config for number, slip in self.queued.items()}


class Board:
    """One task in a memory, shared by all who work on it."""

    def __init__(self, store: Store, entry: Entry, space: Space, *, grace: float) -> None:
        """Look at the study of a task; ``grace`` seconds without a sign of life make a worker dead."""
        self._store, self._entry, self._space = store, entry, space
        self._distributions: dict[str, BaseDistribution] = distributions(space)
        self._watch = Watch(grace)
        self._mine: dict[int, Slip] = {}
        self._keys: dict[int, bytes] = {}
        self._settled = -1  # trials with ids up to this have ended, and are known
        self.view = View()

    @property
    def mine(self) -> Sequence[Slip]:
        """The trials that this process runs."""
        return tuple(self._mine.values())

    def read(self) -> View:
        """Read what has happened; trials of workers that are gone are queued again."""
        with faults(self._store.name):
            last = self.view
            self.view = View(last.finished, void=last.void, fresh=last.fresh, influences=last.influences)
            records = read_after(self._store, self._entry.id, self._settled)
            for record in records:
                if record.number not in last.finished and record.number not in last.void:
                    self._look_at(record)
            unfinished = [record.id for record in records if record.state in ("RUNNING", "WAITING")]
            self._settled = min(unfinished) - 1 if unfinished else max((r.id for r in records), default=self._settled)
            self._mine = {number: slip for number, slip in self._mine.items() if number in self.view.running}
            return self.view

    def put_up(self, config: Config, *, most: int, influence: Mapping[str, Any] | None = None) -> Slip | None:
        """Begin a trial; None if it is one too many, or somebody else runs the same configuration."""
        from optuna.trial import TrialState

        with faults(self._store.name):
            attributes = {} if influence is None else {INFLUENCE_KEY: dict(influence)}
            frozen = self._frozen(config, TrialState.RUNNING, user=attributes, system={BEAT_KEY: sign()})
            ((trial, number),) = write(self._store, self._entry.id, [frozen])
            slip = self._mine[number] = Slip(trial, number, config)
        return slip if self._stands(slip, most) else None

    def take_queued(self, *, most: int) -> Slip | None:
        """Begin a trial that was queued, by a lost worker or by a user; None if there is none."""
        from optuna.trial import TrialState

        for number, slip in sorted(self.view.queued.items()):
            if self.view.planned().index(number) >= most:
                return None
            with faults(self._store.name):
                taken = move(self._store, slip.id, (TrialState.WAITING, TrialState.RUNNING), system={BEAT_KEY: sign()})
                if taken:
                    self._grant(slip)
                    self._mine[number] = slip
            if taken and self._stands(slip, most):
                return slip
        return None

    def _stands(self, slip: Slip, most: int) -> bool:
        """Whether a trial that was just begun may go on, now that everybody can see it; it is withdrawn if not."""
        view = self.read()
        if slip.number not in view.running:
            return False  # somebody took this process for dead
        twins = (other for other in view.planned() if self._keys[other] == self._keys[slip.number])
        first = next(twins)
        if first != slip.number:
            self.withdraw(slip, f"the same configuration as trial {first}")
        elif view.planned().index(slip.number) >= most:
            self.withdraw(slip, f"one more than the {most} trials of the task")
        else:
            return True
        return False

    def _grant(self, slip: Slip) -> None:
        """Give a trial the parameters that were wished for with Optuna; one of ours has them."""
        for frozen in self._store.optuna.get_all_trials(self._entry.id, deepcopy=False):
            if frozen._trial_id == slip.id:
                for name, value in params_of(slip.config, self._distributions).items():
                    if name not in frozen.params:
                        known = self._distributions[name]
                        self._store.optuna.set_trial_param(slip.id, name, known.to_internal_repr(value), known)

    def finish(self, slip: Slip, outcome: Outcome) -> None:
        """Write what came of a trial."""
        from optuna.trial import TrialState

        state = TrialState.COMPLETE if outcome.ok else TrialState.FAIL
        notes = {NOTES_KEY: list(outcome.notes)} if outcome.notes else {}
        with faults(self._store.name):
            done = move(self._store, slip.id, (TrialState.RUNNING, state), value=outcome.value, user=notes)
        self._mine.pop(slip.number, None)
        if not done:
            warnings.warn(
                f"trial {slip.number} took so long without a sign of life that others took it over: "
                f"its value {outcome.value} is not used",
                RecollectWarning,
                stacklevel=2,
            )

    def withdraw(self, slip: Slip, reason: str) -> None:
        """Give a trial up: it counts for nothing."""
        from optuna.trial import TrialState

        with faults(self._store.name):
            move(self._store, slip.id, (TrialState.RUNNING, TrialState.FAIL), user={VOID_KEY: reason})
        self._mine.pop(slip.number, None)
        self.view.running.pop(slip.number, None)
        self.view.void.add(slip.number)

    def beat(self, trial: int, life: dict[str, Any]) -> None:
        """Write a sign of life to a trial; one that has ended meanwhile needs none."""
        from optuna.exceptions import OptunaError

        try:
            with faults(self._store.name):
                self._store.optuna.set_trial_system_attr(trial, BEAT_KEY, life)
        except (OSError, OptunaError, KeyError):
            return  # the next one may succeed; whoever finishes the trial meets the same fault and reports it

    def _look_at(self, record: Record) -> None:
        number, view = record.number, self.view
        if VOID_KEY in record.user_attrs:
            view.void.add(number)
        elif record.state == "WAITING":
            wish = record.params or record.system_attrs.get(WISH_KEY, {})
            if self._placed(number, wish):  # others are wishes that only Optuna can grant
                view.queued[number] = Slip(record.id, number, dict(wish))
        elif not self._placed(number, record.params):
            self._leave_out(record)
        elif record.state == "RUNNING":
            life = record.system_attrs.get(BEAT_KEY)
            if number not in self._mine and self._watch.gone(number, life):
                self._bury(record)
                return
            view.running[number] = record.params
            if life is not None:
                view.awaited.add(number)
        elif (trial := record.plain()) is not None:
            notes = record.user_attrs.get(NOTES_KEY)
            trial = trial if notes is None else replace(trial, notes=tuple(map(str, notes)))
            view.finished[number] = trial
            view.fresh.append(trial)
            if INFLUENCE_KEY in record.user_attrs:
                view.influences[number] = record.user_attrs[INFLUENCE_KEY]
        else:  # pruned by somebody else
            view.void.add(number)

    def _placed(self, number: int, config: Config) -> bool:
        """Whether a configuration belongs to the space; its place there is remembered."""
        if number not in self._keys:
            try:
                self._keys[number] = row_key(self._space.encode([config])[0])
            except ConfigError:
                return False
        return True

    def _leave_out(self, record: Record) -> None:
        """Leave out a trial of another space; one that still runs may not have all its parameters yet."""
        if record.state != "RUNNING":
            self.view.void.add(record.number)
            trial = f"trial {record.number} of {self._entry.name!r}"
            message = f"{self._store.name}: {trial} is left out: not of this space"
            warnings.warn(message, RecollectWarning, stacklevel=4)

    def _bury(self, record: Record) -> None:
        from optuna.trial import TrialState

        again = record.system_attrs.get(AGAIN_KEY, 0)
        attributes = {NOTES_KEY: [f"{LOST}, twice"]} if again else {VOID_KEY: f"{LOST}: queued again"}
        if move(self._store, record.id, (TrialState.RUNNING, TrialState.FAIL), user=attributes) and not again:
            system = {BEAT_KEY: sign(), AGAIN_KEY: again + 1}
            retry = self._frozen(record.params, TrialState.WAITING, user={}, system=system)
            ((trial, number),) = write(self._store, self._entry.id, [retry])
            self._keys[number] = self._keys[record.number]
            self.view.queued[number] = Slip(trial, number, record.params)

    def _frozen(
        self, config: Config, state: TrialState, *, user: dict[str, Any], system: dict[str, Any]
    ) -> FrozenTrial:
        from optuna.trial import FrozenTrial, TrialState

        params = params_of(config, self._distributions)
        return FrozenTrial(
            number=-1,
            trial_id=-1,
            state=state,
            value=None,
            datetime_start=datetime.now() if state == TrialState.RUNNING else None,
            datetime_complete=None,
            params=params,
            distributions={name: self._distributions[name] for name in params},
            user_attrs=user,
            system_attrs=system,
            intermediate_values={},
        )
