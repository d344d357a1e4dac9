"""`MLflowCallback`: every trial as a run of MLflow below one run of the task.

Any number of processes may report trials of the same task. The run of the task is found by a tag; if two processes
create it at the same moment, the older one stays.
"""

from __future__ import annotations

import time
from typing import Any

from recollect.integrations.trackers.tracking import faults_are_warnings, import_tracker, tracking_id
from recollect.runs.run import Run, Trial

TASK_TAG, PARENT_TAG, METRIC = "recollect.task_id", "mlflow.parentRunId", "value"
TRACKER = "MLflow"


class MLflowCallback:
    """Reports every trial to MLflow: a parent run per task, a child run per trial (extra ``mlflow``).

    A child has the configuration as parameters and the metric "value"; the parent has the best value so far. If MLflow
    does not answer, a warning says so and the run continues.

    Args:
        tracking_uri: Address of the tracking server or store; by default MLflow's own (``MLFLOW_TRACKING_URI``).
        experiment: Name of the experiment; by default the problem.

    Raises:
        MissingExtraError: MLflow is not installed.

    Examples:
        >>> tracker = MLflowCallback("http://localhost:5000")
        >>> recollect.minimize(error, space, callbacks=[tracker])  # doctest: +SKIP
    """

    def __init__(self, tracking_uri: str | None = None, experiment: str | None = None) -> None:
        """Prepare; nothing is sent before the first trial."""
        self._client = import_tracker("mlflow.tracking", "mlflow").MlflowClient(tracking_uri=tracking_uri)
        self._experiment = experiment
        self._problem = self._task = ""
        self._parent: tuple[str, str] | None = None  # ids of the experiment and of the task's run

    def open(self, problem: str, task: str) -> None:
        """Remember what is tuned."""
        self._problem, self._task, self._parent = problem, task, None

    def __call__(self, trial: Trial, run: Run) -> None:
        """Report a trial."""
        number = len(run) - 1 if trial.number is None else trial.number
        with faults_are_warnings(TRACKER, f"trial {number}"):
            if self._parent is None:
                self._parent = self._find_parent()
            experiment, parent = self._parent
            end = _now()
            start = end - round(1000 * (trial.seconds or 0.0))
            tags = {
                PARENT_TAG: parent,
                "recollect.trial": str(number),
                "recollect.notes": "\n".join(trial.notes)[:5000],
            }
            name = f"trial {number}"
            child = self._client.create_run(experiment, start_time=start, tags=tags, run_name=name).info.run_id
            for parameter, value in trial.config.items():
                self._client.log_param(child, parameter, value)
            if trial.value is not None:
                self._client.log_metric(child, METRIC, trial.value)
            self._client.set_terminated(child, "FINISHED" if trial.ok else "FAILED", end_time=end)
            if run.best is not None and run.best.value is not None:
                self._client.log_metric(parent, METRIC, run.best.value, step=number)

    def close(self) -> None:
        """Mark the run of the task as finished."""
        if self._parent is not None:
            with faults_are_warnings(TRACKER, "the end of the run"):
                self._client.set_terminated(self._parent[1], "FINISHED")

    def _find_parent(self) -> tuple[str, str]:
        name = self._experiment or self._problem or "recollect"
        found = self._client.get_experiment_by_name(name)
        experiment = self._client.create_experiment(name) if found is None else found.experiment_id
        tag = tracking_id(self._problem, self._task)
        if (oldest := self._oldest(experiment, tag)) is not None:
            return experiment, oldest
        tags = {TASK_TAG: tag, "recollect.problem": self._problem, "recollect.task": self._task}
        own = self._client.create_run(experiment, tags=tags, run_name=self._task or None).info.run_id
        oldest = self._oldest(experiment, tag) or own
        if oldest != own:
            self._client.delete_run(own)
        return experiment, oldest

    def _oldest(self, experiment: str, tag: str) -> str | None:
        matches: Any = self._client.search_runs([experiment], filter_string=f"tags.`{TASK_TAG}` = '{tag}'")
        ids = sorted((match.info.start_time, match.info.run_id) for match in matches)
        return ids[0][1] if ids else None


def _now() -> int:
    return round(1000 * time.time())
