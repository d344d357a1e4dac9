"""A session: this process' part in tuning a task. It reads the board, asks, evaluates, writes, until it is over.

What came of a trial goes to the board first; the optimizer learns it from there, as it learns what others found. So
there is one way for news, and a run that is resumed knows the same as one that was never interrupted.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from recollect.errors import ExhaustedError, FailedTrialWarning, StorageError
from recollect.history.run import FAILED, Config, State, Trial, sign_of
from recollect.optimizer.explain import Explanation
from recollect.optimizer.optimizer import Optimizer
from recollect.tuning.board import Board, Slip
from recollect.tuning.evaluators import Evaluator
from recollect.tuning.outcome import Outcome
from recollect.tuning.presence import Pulse

T = TypeVar("T")

PATIENCE = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds to wait between attempts when the storage does not answer."""
LOOK = 0.5
"""Seconds between two looks at the board while only others work."""
PACKAGE = __name__.partition(".")[0]
SHOWN = 0.005
"""Weights below this are not noted on a trial."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When to stop: after so many trials of the task in all, so many seconds of this session, or at a value."""

    trials: int
    seconds: float | None = None
    target: float | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a session stands."""

    trials: int
    running: int
    best: Trial | None
    past: float | None
    """The weight of all past runs together in the last suggestion; None while nothing has been weighed."""


class Session:
    """One process that works on a task."""

    def __init__(self, board: Board, optimizer: Optimizer, evaluator: Evaluator, limits: Limits) -> None:
        """Work on a board with an optimizer that knows nothing yet of this task's trials."""
        self._board, self._optimizer, self._evaluator, self._limits = board, optimizer, evaluator, limits
        self._expected: dict[int, Config] = {}
        self._begun = time.monotonic()
        self._unsaved: list[Trial] = []
        self._exhausted = False
        self._complete = False
        self._past: float | None = None
        self.stopped = ""

    @property
    def unsaved(self) -> list[Trial]:
        """Trials that could not be written to the storage."""
        return list(self._unsaved)

    def work(self, tell: Callable[[Progress], None]) -> None:
        """Work until it is over; ``tell`` hears of every change."""
        with Pulse(self._board.beat) as pulse:
            while True:
                self._learn()
                self.stopped = self._reason()
                if not self.stopped:
                    self._fill()
                tell(self._progress())
                if self._board.mine:
                    pulse.running([slip.id for slip in self._board.mine])
                    for name, outcome in self._evaluator.wait(LOOK):
                        self._finish(name, outcome)
                elif self.stopped and not (self._complete and self._board.view.awaited):
                    return
                else:
                    time.sleep(LOOK)

    def explain(self) -> Explanation:
        """Say what past runs contributed and what drove the last suggestion."""
        return self._optimizer.explain()

    def interrupt(self, reason: str) -> None:
        """Give up what this process runs: it counts for nothing and is free to be tried again."""
        for slip in self._board.mine:
            self._board.withdraw(slip, reason)

    def _learn(self) -> None:
        """Read what has happened on the board, and tell it to the optimizer."""
        self._patiently(self._board.read)
        self._take_in()

    def _take_in(self) -> None:
        """Tell the optimizer what the board showed when it was last read."""
        view = self._board.view
        for trial in view.news():
            self._optimizer.tell(trial.config, FAILED if trial.value is None else trial.value, seconds=trial.seconds)
        expected = view.expected()
        for number in [number for number in self._expected if number not in expected]:
            config = self._expected.pop(number)
            if number in view.void and config in self._optimizer.pending:
                self._optimizer.cancel(config)
        for number, config in expected.items():
            if number not in self._expected:
                self._optimizer.expect(config)
                self._expected[number] = config

    def _fill(self) -> None:
        """Begin as many trials as there are places and the task needs."""
        while len(self._board.mine) < self._evaluator.places:
            slip = self._patiently(lambda: self._board.take_queued(most=self._limits.trials))
            if slip is None and len(self._board.view.planned()) < self._limits.trials:
                slip = self._suggest()
            if slip is None:
                return
            self._take_in()
            self._evaluator.begin(slip, slip.config)

    def _suggest(self) -> Slip | None:
        try:
            config = self._optimizer.ask()
        except ExhaustedError:
            self._exhausted = True
            return None
        explanation = self._optimizer.explain()
        if any(entry.weight is not None for entry in explanation.past):
            self._past = 1.0 - (explanation.target.weight or 0.0)
        note = influence(explanation)
        slip = self._patiently(lambda: self._board.put_up(config, most=self._limits.trials, influence=note))
        if slip is None:
            self._optimizer.cancel(config)
            self._take_in()
        else:
            self._expected[slip.number] = config
        return slip

    def _finish(self, slip: Any, outcome: Outcome) -> None:
        assert isinstance(slip, Slip)
        if not outcome.ok:
            message = f"trial {slip.number} failed: {outcome.notes[0]}"
            warnings.warn(message, FailedTrialWarning, stacklevel=_outside())
        try:
            self._patiently(lambda: self._board.finish(slip, outcome))
        except StorageError:
            state = State.OK if outcome.ok else State.FAILED
            self._unsaved.append(Trial(slip.config, outcome.value, state, outcome.seconds, outcome.notes))
            raise

    def _reason(self) -> str:
        """Say why no further trial is begun; nothing if one is."""
        view, limits, best = self._board.view, self._limits, self._optimizer.best
        if limits.target is not None and best is not None and best.value is not None:
            sign = sign_of(self._optimizer.run.direction)
            if sign * best.value <= sign * limits.target:
                return f"the target {limits.target:g} is reached"
        if limits.seconds is not None and time.monotonic() - self._begun >= limits.seconds:
            return f"{limits.seconds:g} s are over"
        self._complete = len(view.counted()) >= limits.trials or (self._exhausted and not view.queued)
        if not self._complete:
            return ""
        if self._exhausted:
            return "all configurations have been tried"
        if len(view.counted()) > limits.trials:
            return f"the task has more trials than the {limits.trials} asked for"
        return "the one trial is made" if limits.trials == 1 else f"all {limits.trials} trials are made"

    def _progress(self) -> Progress:
        view = self._board.view
        return Progress(len(view.finished), len(view.running), self._optimizer.best, self._past)

    def _patiently(self, action: Callable[[], T]) -> T:
        """Do something with the storage; if it does not answer, try again for a while."""
        for seconds in PATIENCE:
            try:
                return action()
            except StorageError as error:
                if "readonly" in str(error):
                    raise
                time.sleep(seconds)
        return action()


def _outside() -> int:
    """Return the stack level at which a warning of the caller points to whoever called recollect."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        level, frame = level + 1, frame.f_back
    return level


def influence(explanation: Explanation) -> dict[str, Any]:
    """Return what is noted on a trial of why it was suggested: a few words, and the weights that were used."""
    note: dict[str, Any] = {"reason": explanation.reason}
    if explanation.target.weight is not None and any(entry.weight is not None for entry in explanation.past):
        note["target"] = round(explanation.target.weight, 4)
        note["past"] = {
            entry.task: round(entry.weight, 4)
            for entry in explanation.past
            if entry.weight is not None and entry.weight >= SHOWN
        }
        note["dropped"] = [entry.task for entry in explanation.past if entry.dropped]
    return note
