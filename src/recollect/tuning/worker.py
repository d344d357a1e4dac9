"""A worker: one process's part in tuning a task. It reads the queue, suggests, evaluates and writes until it is done.

The result of a trial goes to the queue first, and the optimizer learns it from there, as it learns the results of
other workers. So there is one path for news, and a resumed run knows the same as one that was never interrupted.

Starts, results, failures and retries are logged to the logger ``recollect`` of the standard library.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from recollect._text import plural
from recollect._warnings import warn_caller
from recollect.errors import (
    ExhaustedError,
    FailedTrialWarning,
    ReadOnlyStorageError,
    Stop,
    StorageError,
    TaskRemovedError,
)
from recollect.optimizer.explanation import Explanation
from recollect.optimizer.optimizer import Optimizer
from recollect.runs.run import FAILED, Config, Run, State, Trial
from recollect.tuning.heartbeat import Heartbeat
from recollect.tuning.objective import Evaluation, Evaluator
from recollect.tuning.stop_rules import Budget, stop_reason
from recollect.tuning.suggestion_notes import influence_note
from recollect.tuning.trial_queue import ClaimedTrial, TrialQueue

T = TypeVar("T")

RETRY_SECONDS = (0.5, 1.0, 2.0, 4.0, 8.0)  # to wait between attempts when the storage does not answer
POLL_SECONDS = 0.5  # between two reads of the queue while evaluations run
FIRST_PAUSE, MAX_DOUBLINGS = 0.01, 5  # seconds at most after a lost claim, and how often they double
FIRST = "one of the configurations to try first"
PACKAGE = __name__.partition(".")[0]


Report: TypeAlias = Callable[[Trial, Run], None]
"""Called with every trial that this worker has finished and the run so far; may raise `recollect.Stop`."""

logger = logging.getLogger(PACKAGE)
logger.addHandler(logging.NullHandler())  # without it, Python would print warnings of a program that has no handlers


@dataclass(frozen=True, slots=True)
class WorkerStatus:
    """Where a worker stands: finished and running trials of the task, and the best one."""

    trials: int
    running: int
    best: Trial | None
    past_weight: float | None  # of all past runs in the last suggestion; None before anything was weighted

    def __str__(self) -> str:
        """Return the best value and the weight of past runs in a few words."""
        words = ["no value yet" if self.best is None or self.best.value is None else f"best {self.best.value:.6g}"]
        if self.past_weight is not None:
            words.append(f"past runs {self.past_weight:.0%}")
        if self.running > 1:
            words.append(f"{self.running} running")
        return ", ".join(words)


class Worker:
    """Works on one task. ``stopped`` says why it stopped; it is empty before that."""

    def __init__(
        self,
        queue: TrialQueue,
        optimizer: Optimizer,
        evaluator: Evaluator,
        budget: Budget,
        *,
        first: Sequence[Config] = (),
        report: Report = lambda _trial, _run: None,
        rule: Callable[[Run], str] = lambda _run: "",
    ) -> None:
        """Work on a queue with an optimizer that has not been told any of this task's trials.

        The configurations of ``first`` that nobody has tried are tried before any that the optimizer suggests.
        ``rule`` returns why the run so far is enough, "" if it is not.
        """
        self._queue, self._optimizer, self._evaluator, self.budget = queue, optimizer, evaluator, budget
        self._first, self._report, self._run, self._rule = list(first), report, optimizer.run, rule
        self._pending: dict[int, Config] = {}
        self._evaluating: dict[int, ClaimedTrial] = {}
        self._unreported: list[int] = []  # numbers of trials that this worker has finished
        self._earlier: int | None = None  # trials that had finished before this worker started
        self._requested_stop = ""
        self._random = random.Random()  # of this worker alone, whatever the program seeds
        self._start = time.monotonic()
        self.unsaved: list[Trial] = []  # results that could not be written to the storage
        self._exhausted = False
        self._complete = False
        self._past_weight: float | None = None
        self.stopped = ""

    def run(self, show: Callable[[WorkerStatus], None]) -> None:
        """Work until the budget is spent; call ``show`` after every change."""
        with Heartbeat(self._queue.write_heartbeat) as heartbeat:
            while True:
                self._retry(self._queue.read)
                self._update_optimizer()
                if self._earlier is None:
                    self._earlier = len(self._run)
                self._report_finished()
                self.stopped = self._stop_reason()
                if not self.stopped:
                    self._start_trials()
                show(self._status())
                if self._queue.claimed:
                    heartbeat.set_trials([trial.id for trial in self._queue.claimed])
                    ended = self._evaluator.wait(POLL_SECONDS)
                    self._finish([(self._evaluating.pop(number), evaluation) for number, evaluation in ended])
                elif self.stopped and not (self._complete and self._queue.state.alive):
                    logger.info("stopped: %s", self.stopped)
                    return
                else:
                    time.sleep(POLL_SECONDS)

    def explain(self) -> Explanation:
        """Return what past runs contributed and what drove the last suggestion."""
        return self._optimizer.explain()

    def interrupt(self, reason: str) -> None:
        """Give up the trials of this process; they do not count and may be tried again."""
        for trial in self._queue.claimed:
            self._queue.release(trial, reason)

    def _update_optimizer(self) -> None:
        """Tell the optimizer what the queue contained when it was last read."""
        state = self._queue.state
        for trial in state.pop_finished():
            self._optimizer.tell(trial.config, FAILED if trial.value is None else trial.value, seconds=trial.seconds)
            self._run = self._run.with_trial(trial)
        pending = state.pending()
        for number in [number for number in self._pending if number not in pending]:
            config = self._pending.pop(number)
            if number in state.void and config in self._optimizer.pending:
                self._optimizer.cancel(config)
        for number, config in pending.items():
            if number not in self._pending:
                self._optimizer.expect(config)
                self._pending[number] = config

    def _start_trials(self) -> None:
        """Start as many trials as the evaluator can take and the budget allows."""
        lost = 0
        while (free := self._evaluator.capacity - len(self._queue.claimed)) > 0:
            waiting = self._queue.claim_waiting(limit=self.budget.trials, retry=self._retry)
            claims: list[ClaimedTrial | None] = [] if waiting is None else [waiting]
            if waiting is None and (left := self.budget.trials - len(self._queue.state.planned())) > 0:
                claims = self._suggest(min(free, left))
            if not claims:
                return
            self._update_optimizer()
            for trial in (claim for claim in claims if claim is not None):
                logger.info("trial %d started: %s", trial.number, trial.config)
                self._evaluating[trial.number] = trial
                self._evaluator.start(trial.number, trial.config)
            if None in claims:
                self._give_way(lost)
                lost += 1

    def _give_way(self, before: int) -> None:
        """Wait for a random time after a lost claim, longer after each, and read what others have claimed.

        Workers with the same seed and results suggest the same. Without pauses, many that start at once would claim it
        again and again at the same time.
        """
        time.sleep(self._random.uniform(0.0, FIRST_PAUSE * 2 ** min(before, MAX_DOUBLINGS)))
        self._retry(self._queue.read)
        self._update_optimizer()

    def _report_finished(self) -> None:
        """Report the trials that this worker has finished; another one may have taken over one of them."""
        finished = self._queue.state.finished
        own, self._unreported = [finished[number] for number in self._unreported if number in finished], []
        for trial in own:
            try:
                self._report(trial, self._run)
            except Stop as stop:
                self._requested_stop = str(stop) or "a callback raised recollect.Stop"

    def _claim_first(self) -> ClaimedTrial | None:
        """Claim the next of the configurations to try first; None if they have all been tried or claimed."""
        while self._first:
            config = self._first.pop(0)
            if not self._queue.has(config) and (trial := self._claim([(config, {"reason": FIRST})])[0]) is not None:
                return trial
        return None

    def _claim(self, configs: Sequence[tuple[Config, dict[str, Any]]]) -> list[ClaimedTrial | None]:
        return self._queue.claim_all(configs, limit=self.budget.trials, retry=self._retry)

    def _suggest(self, count: int) -> list[ClaimedTrial | None]:
        """Claim a configuration to try first or, when there is none left, ``count`` suggestions in one step.

        None stands for a claim lost to another worker. Its configuration is known now, and the next suggestion is
        another one.
        """
        if (requested := self._claim_first()) is not None:
            return [requested]
        configs: list[tuple[Config, dict[str, Any]]] = []
        while len(configs) < count:
            try:
                config = self._optimizer.ask()
            except ExhaustedError:
                self._exhausted = True
                break
            explanation = self._optimizer.explain()
            if any(entry.weight is not None for entry in explanation.past):
                self._past_weight = 1.0 - (explanation.target.weight or 0.0)
            configs.append((config, influence_note(explanation)))
        trials = self._claim(configs) if configs else []
        for trial, (config, _) in zip(trials, configs, strict=True):
            if trial is None:
                self._optimizer.cancel(config)
            else:
                self._pending[trial.number] = config
        self._update_optimizer()
        return trials

    def _finish(self, results: Sequence[tuple[ClaimedTrial, Evaluation]]) -> None:
        if not results:
            return
        for trial, evaluation in results:
            if evaluation.ok:
                logger.info("trial %d finished: %r in %.3g s", trial.number, evaluation.value, evaluation.seconds)
            else:
                message = f"trial {trial.number} failed: {evaluation.notes[0]}"
                logger.warning("trial %d failed in %.3g s: %s", trial.number, evaluation.seconds, evaluation.notes[0])
                warn_caller(message, FailedTrialWarning)
        try:
            self._retry(lambda: self._queue.finish_all(results))
        except StorageError:
            for trial, own in results:
                state = State.OK if own.ok else State.FAILED
                self.unsaved.append(Trial(trial.config, own.value, state, own.seconds, own.notes))
            raise
        self._unreported += [trial.number for trial, _ in results]

    def _stop_reason(self) -> str:
        """Return why no further trial is started; empty if one is."""
        state, budget = self._queue.state, self.budget
        early = self._requested_stop or stop_reason(budget, self._run, earlier=self._earlier or 0)
        early = early or self._rule(self._run)
        if early:
            return early
        if budget.seconds is not None and time.monotonic() - self._start >= budget.seconds:
            return f"time budget of {budget.seconds:g} s spent"
        count = len(state.started())
        self._complete = count >= budget.trials or (self._exhausted and not state.waiting)
        if not self._complete:
            return ""
        if self._exhausted:
            return "all configurations have been tried"
        if count > budget.trials:
            return f"the task has {plural(count, 'trial')}, more than the {budget.trials} requested"
        return f"{count} of {plural(budget.trials, 'trial')} finished"

    def _status(self) -> WorkerStatus:
        state = self._queue.state
        return WorkerStatus(len(state.finished), len(state.running), self._optimizer.best, self._past_weight)

    def _retry(self, action: Callable[[], T]) -> T:
        """Access the storage; if it does not answer, try again for a while."""
        for seconds in RETRY_SECONDS:
            try:
                return action()
            except (ReadOnlyStorageError, TaskRemovedError):  # no further attempt changes that
                raise
            except StorageError as error:
                logger.warning("the storage does not answer, next attempt in %g s: %s", seconds, error)
                time.sleep(seconds)
        return action()
