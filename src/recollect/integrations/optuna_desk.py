"""The optimizer behind one study: told what has finished, warned of what is running, asked for what comes next.

A desk belongs to one study and one scheme. It is kept from trial to trial and hears only the news; when the scheme
changes, a new desk takes its place and hears everything.

Trials are known by their number. ``promised`` is what each unfinished trial evaluates, as far as it is known: what this
desk suggested for it, what another process published for it, or what the user queued. A trial that was begun shortly
before by somebody else, and of which nothing is known yet, is about to get a suggestion there: the next suggestion here
is put aside for it, so that processes which begin at the same moment do not all begin with the same configuration.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import numpy as np
from optuna.storages import BaseStorage
from optuna.trial import FrozenTrial, TrialState

from recollect.errors import ExhaustedError, RecollectWarning
from recollect.history.optuna_runs import Completed, config_of, finished, step_count
from recollect.history.run import FAILED, Config, Direction, Run, Trial
from recollect.integrations.optuna_space import Scheme, inward
from recollect.optimizer.method import Method
from recollect.optimizer.optimizer import Optimizer
from recollect.space.sampling import uniform

PUBLISHED = "recollect:suggested"
"""Under this key of a trial's system attributes other processes find what was suggested for it."""

LONGEST_ATTRIBUTE = 2000
"""Longer texts are published in pieces: some storages cut them off."""

PATIENCE = timedelta(seconds=60)
"""For so long a suggestion is kept aside for a trial of which nothing is heard."""


@dataclass(frozen=True, slots=True)
class Wishes:
    """What the user asked for."""

    method: str | Method
    horizon: int
    seed: int


class Desk:
    """An `Optimizer` that follows a study."""

    def __init__(self, scheme: Scheme, past: Sequence[Run], *, direction: Direction, wishes: Wishes) -> None:
        """Begin with nothing told."""
        self.scheme = scheme
        self.optimizer = Optimizer(
            scheme.space,
            past=[_inward(run, scheme) for run in past],
            method=wishes.method,
            horizon=wishes.horizon,
            seed=wishes.seed,
            direction=direction,
        )
        self._direction = direction
        self._seed = wishes.seed
        self._completed = Completed(direction)
        self._settled: set[int] = set()
        self._promised: dict[int, Config] = {}
        self._aside: set[int] = set()

    def follow(self, trials: Sequence[FrozenTrial], number: int) -> None:
        """Hear what is new in a study, before suggesting for its trial ``number``."""
        news = [trial for trial in trials if trial.state.is_finished() and trial.number not in self._settled]
        told = {frozen.number: trial for frozen, trial in finished(news, self._direction, completed=self._completed)}
        for frozen in news:
            self._settled.add(frozen.number)
            self._settle(frozen, told.get(frozen.number))
        silent = []
        for frozen in trials:
            if not frozen.state.is_finished() and frozen.number != number and not self._hear(frozen):
                silent.append(frozen)
        for frozen in silent:  # what others evaluate is known by now, so that none of it is kept aside
            self._mind(frozen, own=trials[number])

    def _settle(self, frozen: FrozenTrial, trial: Trial | None) -> None:
        """Tell what came of a finished trial.

        A trial that failed or was pruned before it had asked for everything would have gone on with what was suggested
        for it. What cannot be placed in the space stays promised, so that it is not suggested again and again; so does
        a pruned trial of which nothing can be said.
        """
        whole = frozen.state == TrialState.COMPLETE
        config = self.scheme.config_of(config_of(frozen) if whole else foreseen(frozen, self.scheme))
        if config is None:
            if whole and self.scheme.binding:
                message = f"trial {frozen.number} is left out: {config_of(frozen)} does not belong to the space stated"
                warnings.warn(message, RecollectWarning, stacklevel=2)
            return
        self._release(frozen.number, unless=config)
        if trial is None:
            self._promise(frozen.number, config)
            return
        self._promised.pop(frozen.number, None)
        self.optimizer.tell(config, trial.value if trial.ok else FAILED, seconds=trial.seconds)
        if config in self._promised.values():  # telling ended what is pending, but another trial evaluates the same
            self.optimizer.expect(config)

    def suggest(self, number: int) -> Config:
        """Return what trial ``number`` shall evaluate; when everything has been tried, something again at random."""
        self._aside.discard(number)
        if number not in self._promised:
            try:
                self._promised[number] = self.optimizer.ask()
            except ExhaustedError:
                rng = np.random.default_rng((self._seed, number))
                return self.scheme.space.decode(uniform(self.scheme.space, 1, rng))[0]
        return dict(self._promised[number])

    def _hear(self, frozen: FrozenTrial) -> bool:
        """Take note of what an unfinished trial evaluates, if that is known."""
        config = self.scheme.config_of(foreseen(frozen, self.scheme))
        if config is None:
            return False
        self._aside.discard(frozen.number)
        self._release(frozen.number, unless=config)
        self._promise(frozen.number, config)
        return True

    def _mind(self, frozen: FrozenTrial, *, own: FrozenTrial) -> None:
        """Keep a suggestion aside for a silent trial that was begun shortly before our own: it goes first."""
        if frozen.number in self._aside and not _just_before(frozen, own):
            self._aside.discard(frozen.number)
            self._release(frozen.number)
        elif frozen.number not in self._promised and not frozen.params and _just_before(frozen, own):
            self.suggest(frozen.number)
            self._aside.add(frozen.number)

    def _promise(self, number: int, config: Config) -> None:
        if number not in self._promised:
            self._promised[number] = config
            self.optimizer.expect(config)

    def _release(self, number: int, *, unless: Config | None = None) -> None:
        """Take back what was promised for a trial, unless it is just that configuration."""
        config = self._promised.get(number)
        if config is None or config == unless:
            return
        del self._promised[number]
        if config not in self._promised.values() and config in self.optimizer.pending:
            self.optimizer.cancel(config)


def publish(storage: BaseStorage, trial: FrozenTrial, config: Config, scheme: Scheme) -> None:
    """Let other processes know what was suggested for a trial, in Optuna's own representation of values."""
    params = scheme.params_of(config)
    text = json.dumps({name: scheme.known[name].to_internal_repr(value) for name, value in params.items()})
    pieces = [text[begin : begin + LONGEST_ATTRIBUTE] for begin in range(0, len(text), LONGEST_ATTRIBUTE)]
    for index, piece in reversed(list(enumerate(pieces))):  # whoever sees the first sees all
        storage.set_trial_system_attr(trial._trial_id, f"{PUBLISHED}:{index}", piece)


def is_published(frozen: FrozenTrial) -> bool:
    """Whether it is known what was suggested for a trial."""
    return f"{PUBLISHED}:0" in frozen.system_attrs


def foreseen(frozen: FrozenTrial, scheme: Scheme) -> dict[str, Any]:
    """Return what is known of an unfinished trial: what was suggested or queued for it, and what it has asked for."""
    pieces: list[str] = []
    while (piece := frozen.system_attrs.get(f"{PUBLISHED}:{len(pieces)}")) is not None:
        pieces.append(piece)
    values = {
        name: scheme.known[name].to_external_repr(value)
        for name, value in (json.loads("".join(pieces)) if pieces else {}).items()
        if name in scheme.known and scheme.known[name]._contains(value)
    }
    return {**values, **frozen.system_attrs.get("fixed_params", {}), **config_of(frozen)}


def _just_before(frozen: FrozenTrial, own: FrozenTrial) -> bool:
    """Whether a running trial was begun before our own, and so recently that its process can still be deciding."""
    if frozen.number > own.number or frozen.datetime_start is None or own.datetime_start is None:
        return False
    return own.datetime_start - frozen.datetime_start <= PATIENCE


def _inward(run: Run, scheme: Scheme) -> Run:
    """Return a past run with the values that the scheme's space has."""
    stepped = {name for name, known in scheme.known.items() if step_count(known)}
    if not stepped:
        return run
    trials = []
    for trial in run.trials:
        moved = {name: inward(scheme.known[name], trial.config[name]) for name in stepped & trial.config.keys()}
        trials.append(replace(trial, config={**trial.config, **moved}))
    return Run(run.task, trials=trials, direction=run.direction)
