"""`WandbCallback`: every trial as a run of Weights & Biases, in one group with a run of the task.

Ids follow from problem, task and number, so that any number of processes may report trials of the same task. The run
of the task has a summary and no history: several processes that write a history would disagree about its steps.
"""

from __future__ import annotations

from typing import Any

from recollect.integrations.trackers.tracking import faults_are_warnings, import_tracker, tracking_id
from recollect.runs.run import Run, Trial

METRIC = "value"
TRACKER = "Weights & Biases"


class WandbCallback:
    """Reports every trial to Weights & Biases: a group per task, in it one run per trial and one of the task (extra
    ``wandb``).

    A trial's run has the configuration and the value; the task's run, written at the end, has the best of both. If the
    service does not answer, a warning says so and the run continues.

    Args:
        project: Name of the project; by default W&B's own (``WANDB_PROJECT``), or the problem.
        **settings: Further arguments of ``wandb.init``, such as ``entity``, ``mode="offline"`` or ``dir``.

    Raises:
        MissingExtraError: wandb is not installed.

    Examples:
        >>> tracker = WandbCallback("tuning", mode="offline")
        >>> recollect.minimize(error, space, callbacks=[tracker])  # doctest: +SKIP
    """

    def __init__(self, project: str | None = None, **settings: Any) -> None:
        """Prepare; nothing is sent before the first trial."""
        self._wandb = import_tracker("wandb", "wandb")
        self._project, self._settings = project, settings
        self._problem = self._task = ""
        self._last: Run | None = None

    def open(self, problem: str, task: str) -> None:
        """Remember what is tuned."""
        self._problem, self._task, self._last = problem, task, None

    def __call__(self, trial: Trial, run: Run) -> None:
        """Report a trial."""
        self._last = run
        number = len(run) - 1 if trial.number is None else trial.number
        with faults_are_warnings(TRACKER, f"trial {number}"):
            own = self._start(f"trial {number}", "trial", config=dict(trial.config), id=self._id(number))
            own.summary.update({"number": number, "seconds": trial.seconds, "notes": "\n".join(trial.notes)})
            if trial.value is not None:
                own.log({METRIC: trial.value})
            own.finish(exit_code=0 if trial.ok else 1)

    def close(self) -> None:
        """Write the run of the task: the number of trials, the best value and configuration."""
        if self._last is None:
            return
        with faults_are_warnings(TRACKER, "the end of the run"):
            best, trials = self._last.best, len(self._last)
            resume = {} if self._settings.get("mode") == "offline" else {"resume": "allow"}
            own = self._start(self._task or "run", "task", id=self._id("task"), **resume)
            own.summary.update({"trials": trials, METRIC: None if best is None else best.value})
            own.summary.update({} if best is None else {"best_config": dict(best.config)})
            own.finish()

    def _start(self, name: str, kind: str, **settings: Any) -> Any:
        group = f"{self._problem}/{self._task}"[:128]
        return self._wandb.init(
            project=self._project or (None if self._wandb.Settings().project else self._problem or "recollect"),
            name=name, group=group, job_type=kind, reinit="create_new", **(settings | self._settings),
        )  # fmt: skip

    def _id(self, what: object) -> str:
        return tracking_id(self._problem, self._task, what)
