"""Runs of Weights & Biases: from its server, as JSON, and as CSV in both forms."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from recollect.errors import InputError, MissingExtraError, RecollectWarning, StorageError
from recollect.runs.run import FAILED, Run
from recollect.storage.importers.detection import read_runs

RUNS: list[dict[str, Any]] = [
    {
        "name": "swift-1", "state": "finished", "sweep": "s1", "created_at": "2026-01-02",
        "config": {"lr": 0.1, "optimizer": {"name": "adam", "betas": [0.9, 0.99]}, "_wandb": {"x": 1}, "gpu": None},
        "summary": {"loss": 0.25, "_runtime": 12.5, "acc": {"max": 0.9}},
    },
    {
        "name": "calm-2", "state": "finished", "sweep": "s1", "created_at": "2026-01-01",
        "config": {"lr": {"desc": None, "value": 0.5}, "layers": {"value": 3}},
        "summary": {"loss": 0.5, "_runtime": 3, "acc": {"max": 0.5}},
    },
    *(
        {"name": name, "state": state, "sweep": "s1", "created_at": day, "config": {"lr": lr}, "summary": {}}
        for name, state, day, lr in (
            ("lost-3", "crashed", "2026-01-03", 9.0),
            ("new-4", "running", "2026-01-04", 1.0),
            ("mute-5", "finished", "2026-01-05", 1.0),
        )
    ),
    {
        "name": "other-6", "state": "finished", "group": "g", "created_at": "2026-01-06", "config": {"lr": 2.0},
        "summary": {"loss": 0.75, "acc": {"max": 0.1}},
    },
]  # fmt: skip
NESTED = {"lr": 0.1, "optimizer.name": "adam", "optimizer.betas": "[0.9, 0.99]"}


def check(runs: list[Run]) -> None:
    first, second = runs
    assert [run.task for run in runs] == ["s1", "g"]
    assert [dict(trial.config) for trial in first.trials] == [{"lr": 0.5, "layers": 3}, NESTED, {"lr": 9.0}]
    assert [trial.value for trial in first.trials] == [0.5, 0.25, None]
    assert [trial.seconds for trial in first.trials] == [3.0, 12.5, None]
    assert first.trials[2].state is FAILED
    assert second.values == [0.75]
    assert {run.direction for run in runs} == {"minimize"}


def left_out() -> Any:
    return pytest.warns(
        RecollectWarning, match=r"runs that are still running \(1\), finished runs without 'loss' \(1\)"
    )


@pytest.mark.parametrize("name", ["runs.json", "runs.jsonl"])
def test_runs_are_trials_in_the_order_in_which_they_were_created(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("\n".join(map(json.dumps, RUNS)) if name.endswith("l") else json.dumps(RUNS))
    with left_out():
        check(read_runs(path))
    with left_out():
        assert [run.task for run in read_runs(path, task="s1", value="loss", direction="maximize")] == ["s1"]
    with pytest.warns(RecollectWarning):
        best, _ = read_runs(path, value="acc.max", direction="maximize")
    assert [trial.value for trial in best.succeeded] == [0.5, 0.9]


@pytest.mark.parametrize("write", [json.dumps, repr])
def test_a_table_with_config_and_summary_is_read_in_json_and_as_pandas_writes_dicts(tmp_path: Path, write: Any) -> None:
    import pandas as pd

    rows = [{**run, "config": write(run["config"]), "summary": write(run["summary"])} for run in RUNS]
    pd.DataFrame(rows).to_csv(tmp_path / "project.csv")  # with the index, as in W&B's own example
    with left_out():
        check(read_runs(tmp_path / "project.csv"))


def test_the_runs_table_is_read_with_the_metric_named_and_other_metrics_ignored(tmp_path: Path) -> None:
    path = tmp_path / "wandb_export.csv"
    path.write_text(
        '"Name","State","Notes","User","Tags","Created","Runtime","Sweep","lr","units","loss","acc","_step"\n'
        '"a","finished","-","me","","2026-01-02T00:00:00.000Z","12","s1","0.1","16","0.25","0.9","5"\n'
        '"b","finished","-","me","","2026-01-01T00:00:00.000Z","3","s1","0.5","","0.5","0.8","5"\n'
        '"c","failed","-","me","","2026-01-03T00:00:00.000Z","","s1","9","32","","",""\n'
    )
    (run,) = read_runs(path, value="loss", columns={"acc": "ignore"})
    assert run.task == "s1"
    assert [dict(trial.config) for trial in run.trials] == [
        {"lr": 0.5}, {"lr": 0.1, "units": 16}, {"lr": 9.0, "units": 32}
    ]  # fmt: skip
    assert [(trial.value, trial.seconds) for trial in run.trials] == [(0.5, 3.0), (0.25, 12.0), (None, None)]
    refused: list[tuple[dict[str, Any], str]] = [
        ({}, "one of: lr, units, loss, acc"),
        ({"value": "x"}, "one of: lr, units, loss, acc"),
        ({"value": "loss", "columns": {"z": "ignore"}}, "'z'"),
    ]
    for options, said in refused:
        with pytest.raises(InputError, match=said):
            read_runs(path, **options)


def test_runs_without_sweep_and_group_are_one_task_that_can_be_named(tmp_path: Path) -> None:
    rows = [{"name": "a", "config": {"lr": 1.0}, "summary": {"loss": 1.0}}]
    (tmp_path / "mine.json").write_text(json.dumps(rows))
    assert [run.task for run in read_runs(tmp_path / "mine.json")] == ["mine"]
    assert [run.task for run in read_runs(tmp_path / "mine.json", task="given")] == ["given"]


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([{"config": {}, "summary": {"a": 1, "b": 2}}], {}, "one of: a, b"),
        ([{"config": {}, "summary": {"a": 1}}], {"value": "c"}, "no run has the metric 'c'"),
        ([{"config": {}, "summary": {"a": 1}}], {"columns": {"a": "ignore"}}, "columns has no meaning"),
        ([{"config": 3, "summary": {"a": 1}}], {}, "entry 0, config: expected an object"),
        ([{"config": {}, "summary": {"a": 1}}, 7], {}, "entry 1"),
        ([{"config": {}, "summary": {"a": 1}, "group": "g"}], {"task": "x"}, "no sweep or group 'x', only 'g'"),
        ([{"config": {}, "summary": {"trials": 1}, "job_type": "task"}], {}, "there are none"),
    ],
)
def test_what_cannot_be_interpreted_is_an_error_that_says_where(
    tmp_path: Path, rows: Any, options: dict[str, Any], said: str
) -> None:
    (tmp_path / "runs.json").write_text(json.dumps(rows))
    with pytest.raises(InputError, match=said):
        read_runs(tmp_path / "runs.json", **options)


def server(monkeypatch: pytest.MonkeyPatch, runs: Any) -> list[Any]:
    calls: list[Any] = []

    class Api:
        def runs(self, path: str, **options: Any) -> Any:
            calls.append((path, options))
            return runs()

    module = ModuleType("wandb")
    module.Api = Api  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", module)
    return calls


def test_a_project_is_read_from_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def runs() -> list[Any]:
        return [
            SimpleNamespace(
                **{"job_type": None, "group": None, **run}, summary_metrics=run["summary"], sweep_name=run.get("sweep")
            )
            for run in RUNS
        ]

    calls = server(monkeypatch, runs)
    with left_out():
        check(read_runs("wandb:team/project"))
    assert calls[0][0] == "team/project"


def test_what_the_server_refuses_and_a_library_that_is_missing_are_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Any:
        raise ValueError("could not find project")

    server(monkeypatch, refuse)
    with pytest.raises(StorageError, match=r"team/project: ValueError: could not find project"):
        read_runs("wandb:team/project")
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtraError, match=r"recollect\[wandb\]"):
        read_runs("wandb:team/project")
