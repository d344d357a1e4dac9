"""Callbacks after every trial, the log, lines of progress, and configurations to try first."""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from recollect import (
    ConfigError,
    FailedTrialWarning,
    InputError,
    InputTypeError,
    Memory,
    Run,
    Stop,
    Trial,
    maximize,
    minimize,
)
from recollect.tuning import callbacks as module
from recollect.tuning.callbacks import callback_named, progress_line

SPACE = {"a": (0.0, 1.0), "k": ["x", "y"]}
QUIET: dict[str, Any] = {"method": "random", "progress": False}


def value(config: dict[str, Any]) -> float:
    return float(config["a"])


def test_a_callback_gets_every_trial_with_its_number_and_the_run_so_far() -> None:
    seen: list[tuple[Trial, Run]] = []
    result = minimize(value, SPACE, trials=4, task="t", callbacks=[lambda *both: seen.append(both)], **QUIET)
    assert [trial.number for trial, _ in seen] == [0, 1, 2, 3]
    assert [len(run) for _, run in seen] == [1, 2, 3, 4]
    assert [run.trials[-1] for _, run in seen] == [trial for trial, _ in seen] == list(result.run.trials)
    assert {run.task for _, run in seen} == {"t"}


def test_what_a_callback_does_with_a_configuration_changes_neither_the_run_nor_what_others_get() -> None:
    seen: list[Trial] = []

    def change(trial: Trial, run: Run) -> None:
        for config in (trial.config, *run.configs):
            config |= {"a": -1.0, "new": 1}

    callbacks = [change, lambda trial, run: seen.extend((trial, run.trials[-1]))]
    plain, result = (minimize(value, SPACE, trials=3, callbacks=own, **QUIET) for own in ([], callbacks))
    assert result.run.configs == [trial.config for trial in seen[::2]] == [trial.config for trial in seen[1::2]]
    assert (result.run.configs, result.best_config) == (plain.run.configs, plain.best_config)


def test_a_callback_ends_a_run_with_its_own_reason_and_all_others_are_still_called() -> None:
    others: list[Trial] = []

    def enough(trial: Trial, run: Run) -> None:
        if len(run) == 3:
            raise Stop("three are enough")

    result = minimize(value, SPACE, trials=9, callbacks=[enough, lambda t, _r: others.append(t)], **QUIET)
    assert (len(result.run), len(others)) == (3, 3)
    assert result.stopped == "three are enough"


def test_any_other_exception_of_a_callback_ends_the_run_and_loses_no_trial(tmp_path: Path) -> None:
    def fault(trial: Trial, run: Run) -> None:
        raise RuntimeError("tracker is down")

    with pytest.raises(RuntimeError, match="tracker is down"):
        minimize(value, SPACE, trials=9, callbacks=[fault], memory=tmp_path / "m.db", task="t", **QUIET)
    assert len(Memory(tmp_path / "m.db").run("t")) == 1


class Recorder:
    def __init__(self) -> None:
        self.events: list[Any] = []

    def open(self, problem: str, task: str) -> None:
        self.events.append((problem, task))

    def __call__(self, trial: Trial, _run: Run) -> None:
        self.events.append(trial.number)
        if trial.number == 1:
            raise RuntimeError

    def close(self) -> None:
        self.events.append("closed")


def test_a_callback_is_opened_and_closed_however_the_run_ends() -> None:
    recorder = Recorder()
    with pytest.raises(RuntimeError):
        minimize(value, SPACE, trials=9, problem="p", task="t", callbacks=[recorder], **QUIET)
    assert recorder.events == [("p", "t"), 0, 1, "closed"]


def test_a_callback_is_found_by_the_name_of_its_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("mine", f"{__name__}:Recorder", module.ENTRY_POINTS)
    monkeypatch.setattr(EntryPoint, "load", lambda _entry: Recorder)
    monkeypatch.setattr(module, "entry_points", lambda group: [entry] if group == "recollect.callbacks" else [])
    assert isinstance(callback_named("mine"), Recorder)
    with pytest.raises(InputError, match=r"'yours'.*'mlflow', 'wandb' and 'mine'"):
        callback_named("yours")


def test_the_log_reports_starts_results_failures_and_the_end(caplog: pytest.LogCaptureFixture) -> None:
    def sometimes(config: dict[str, Any]) -> float:
        if len([record for record in caplog.records if "started" in record.message]) == 2:
            raise ValueError("out of luck")
        return 0.5

    with caplog.at_level(logging.INFO, logger="recollect"), pytest.warns(FailedTrialWarning):
        minimize(sometimes, SPACE, trials=2, **QUIET)
    records = [(record.name, record.levelname, " ".join(record.message.split()[:3])) for record in caplog.records]
    assert records == [
        ("recollect", "INFO", "trial 0 started:"),
        ("recollect", "INFO", "trial 0 finished:"),
        ("recollect", "INFO", "trial 1 started:"),
        ("recollect", "WARNING", "trial 1 failed"),
        ("recollect", "INFO", "stopped: 2 of"),
    ]
    assert "out of luck" in caplog.records[3].message


@pytest.mark.parametrize(("seconds", "shown"), [(2.5, " in 2.5 s"), (1e-5, ""), (None, "")])
def test_a_line_has_the_duration_of_a_trial_unless_it_is_negligible(seconds: float | None, shown: str) -> None:
    run = Run("t", trials=[Trial({"a": 1}, 0.25, seconds=seconds)])
    assert progress_line(run.trials[0], run, 3) == f"trial 0: 0.25{shown}, best 0.25, 1 of 3 trials"


def test_without_a_terminal_there_is_a_line_per_trial(capsys: pytest.CaptureFixture[str]) -> None:
    result = minimize(value, SPACE, trials=3, method="random", first=[{"a": 0.25, "k": "x"}])
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(":")[0] for line in lines] == ["trial 0", "trial 1", "trial 2"]
    assert lines[0].startswith("trial 0: 0.25")
    assert "best 0.25, 1 of 3 trials" in lines[0]
    assert f"best {result.best_value:.6g}, 3 of 3 trials" in lines[2]
    minimize(value, SPACE, trials=3, **QUIET)
    assert capsys.readouterr().err == ""


def test_a_run_continues_when_nobody_reads_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w", buffering=1) as stream:
        monkeypatch.setattr("sys.stderr", stream)
        assert len(minimize(value, SPACE, trials=3, method="random").run) == 3
        monkeypatch.undo()
        with suppress(BrokenPipeError):
            stream.close()


FIRST = [{"a": 0.75, "k": "y"}, {"a": 0.5, "k": "x"}]


@pytest.mark.parametrize("tune", [minimize, maximize])
@pytest.mark.parametrize("method", ["random", "gp"])
def test_configurations_to_try_first_come_first_and_say_so(tune: Any, method: str) -> None:
    result = tune(value, SPACE, trials=4, method=method, first=FIRST, progress=False)
    assert result.run.configs[:2] == FIRST
    assert ["first" in note["reason"] for note in result.influences] == [True, True, False, False]
    assert len({str(config) for config in result.run.configs}) == 4


def test_what_was_tried_first_is_not_tried_again_when_a_run_is_resumed(tmp_path: Path) -> None:
    options: dict[str, Any] = {"memory": tmp_path / "m.db", "task": "t", "first": [*FIRST, FIRST[0]], **QUIET}
    minimize(value, SPACE, trials=1, **options)
    result = minimize(value, SPACE, trials=4, **options)
    assert result.run.configs[:2] == FIRST
    assert sum(config in FIRST for config in result.run.configs) == 2


def test_a_configuration_that_is_not_in_the_space_is_refused_by_its_position() -> None:
    with pytest.raises(ConfigError, match=r"first\[1\].*'k'"):
        minimize(value, SPACE, trials=4, first=[FIRST[0], {"a": 0.5, "k": "z"}], **QUIET)
    with pytest.raises(InputTypeError, match="first must be a list of configurations, got dict"):
        minimize(value, SPACE, trials=4, first=FIRST[0], **QUIET)
