"""Callbacks for experiment trackers, with the trackers themselves: an MLflow store, and W&B offline."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from recollect import FAILED, FailedTrialWarning, RecollectWarning, minimize, read_runs
from recollect.integrations.trackers.tracking import tracking_id
from recollect.storage.importers.mlflow import ALLOW_FOLDERS
from recollect.trackers import MLflowCallback, WandbCallback
from recollect.tuning.callbacks import callback_named

SPACE = {"a": (0.0, 1.0), "k": ["x", "y"]}


def value(config: dict[str, Any]) -> Any:
    return FAILED if config["a"] == 0.75 else config["a"]


def tune(trials: int, **options: Any) -> Any:
    first = [{"a": 0.5, "k": "x"}, {"a": 0.75, "k": "y"}, {"a": 0.25, "k": "y"}]
    named = {"problem": "p", "task": "t", "method": "random", "progress": False}
    return minimize(value, SPACE, trials=trials, first=first, **named, **options)


def test_mlflow_has_a_run_per_task_with_a_child_per_trial_also_when_a_task_is_resumed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracking = pytest.importorskip("mlflow.tracking", reason="part of the extra mlflow")
    monkeypatch.setenv(ALLOW_FOLDERS, "true")
    where = (tmp_path / "mlruns").as_uri()
    with pytest.warns(FailedTrialWarning):
        tune(2, memory=tmp_path / "m.db", callbacks=[MLflowCallback(where)])
    monkeypatch.setenv("MLFLOW_TRACKING_URI", where)
    tune(3, memory=tmp_path / "m.db", callbacks=[callback_named("mlflow")])
    client = tracking.MlflowClient(where)
    experiment = client.get_experiment_by_name("p")
    runs = client.search_runs([experiment.experiment_id])
    (parent,) = [run for run in runs if "mlflow.parentRunId" not in run.data.tags]
    children = sorted((run for run in runs if run is not parent), key=lambda run: run.info.run_name)
    assert [run.info.run_name for run in children] == ["trial 0", "trial 1", "trial 2"]
    assert {run.data.tags["mlflow.parentRunId"] for run in children} == {parent.info.run_id}
    assert [run.info.status for run in (parent, *children)] == ["FINISHED", "FINISHED", "FAILED", "FINISHED"]
    assert [run.data.metrics.get("value") for run in children] == [0.5, None, 0.25]
    assert (parent.info.run_name, parent.data.metrics["value"]) == ("t", 0.25)
    (again,) = read_runs(tmp_path / "mlruns")
    assert {(trial.config["a"], trial.value) for trial in again.trials} == {(0.5, 0.5), (0.75, None), (0.25, 0.25)}


def test_a_tracker_that_is_down_gives_a_warning_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("mlflow.tracking", reason="part of the extra mlflow")
    for name in ("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT"):
        monkeypatch.setenv(name, "1")
    with pytest.warns(RecollectWarning, match="could not be reported to MLflow"):
        result = tune(1, callbacks=[MLflowCallback("http://127.0.0.1:9")])
    assert result.best_value == 0.5


def test_wandb_has_a_group_per_task_with_a_run_per_trial_and_one_of_the_task(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb", reason="part of the extra wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    with pytest.warns(FailedTrialWarning):
        tune(2, callbacks=[WandbCallback("tuning", mode="offline", dir=str(tmp_path))])
    folders = sorted((tmp_path / "wandb").glob("offline-run-*"))
    ids = {tracking_id("p", "t", what) for what in (0, 1, "task")}
    assert {folder.name.rpartition("-")[2] for folder in folders} == ids
    logs = [log for folder in folders for log in folder.glob("*.wandb")]
    until = time.monotonic() + 30  # a process of W&B's own writes them
    while not all(b"p/t" in log.read_bytes() for log in logs):
        assert time.monotonic() < until
        time.sleep(0.1)
