"""All trials of a task as they are stored: states, times, workers, reports, numbers from 0."""

from __future__ import annotations

import json
import shlex
from ast import literal_eval
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import pytest

import recollect
from recollect.analysis.config_text import config_arguments, config_json, config_python
from recollect.analysis.run_data import read_run_data
from recollect.analysis.trial_records import RecordState, TrialRecord, state_counts, stored_records
from recollect.analysis.trial_timeline import timeline, value_distribution
from recollect.runs.run import Trial
from recollect.storage.memory import Memory
from recollect.storage.sql_read import StoredTrial
from recollect.storage.studies import PLACE_KEY
from recollect.tuning.heartbeat import HEARTBEAT_KEY
from recollect.tuning.suggestion_notes import read_note

CONFIG = {"lr": 0.1 + 0.2, "depth": np.int64(3), "one": 1.0, "kernel": "a 'b' \N{GREEK SMALL LETTER MU}", "flag": True}


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of Optuna: finished, failed, pruned and running trials."""
    path = tmp_path_factory.mktemp("records") / "tuning.db"
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    own = optuna.create_study(study_name="mlp", storage=f"sqlite:///{path}")
    for number in range(6):
        trial = own.ask({"x": optuna.distributions.FloatDistribution(0.0, 1.0)})
        for step in range(number + 1):
            trial.report(float(10 * number + step), step)
        if number == 5:
            break
        state = {1: optuna.trial.TrialState.FAIL, 3: optuna.trial.TrialState.PRUNED}.get(number)
        own.tell(trial, None if state else float(number), state=state)
    return path


def test_every_state_is_read_with_the_numbers_of_the_storage(study: Path) -> None:
    data = read_run_data(Memory(str(study)), None, "mlp")
    records = data.records
    assert [record.number for record in records] == [0, 1, 2, 3, 4, 5]
    assert [record.state for record in records] == ["finished", "failed", "finished", "pruned", "finished", "running"]
    assert [record.value for record in records] == [0.0, None, 2.0, 33.0, 4.0, None]
    assert records[2].reports == ((0, 20.0), (1, 21.0), (2, 22.0))
    assert state_counts(records) == {"finished": 3, "failed": 1, "pruned": 1, "running": 1}
    assert set(data.numbers) >= {0, 1, 2, 4}
    assert 5 not in data.numbers
    assert len(data.states) == len(data.run)


def test_tuning_records_what_the_model_expected_and_who_ran_the_trial(tmp_path: Path) -> None:
    path = str(tmp_path / "tuning.db")
    space = {"x": (0.0, 1.0)}
    for task in ("a", "b"):
        recollect.minimize(lambda c: c["x"] ** 2, space, problem="p", task=task, memory=path, trials=6, seed=0)
    records = read_run_data(Memory(path), "p", "b").records
    assert all(record.worker and record.seconds is not None and record.started for record in records)
    modelled = [record.suggestion for record in records if record.suggestion and record.suggestion.expected]
    assert modelled
    assert all(note.expected[1] > 0 for note in modelled if note.expected)
    weighed = [note for note in modelled if note.target_weight is not None]
    assert any(set(note.shares) <= {"a"} for note in weighed)


@pytest.mark.parametrize(("mean", "std"), [(None, 1.0), (float("nan"), 1.0), ("much", 1.0), (True, 1.0), (1.0, None)])
def test_a_prediction_that_is_no_pair_of_numbers_is_unknown(mean: Any, std: Any) -> None:
    note = read_note({"reason": "r", "mean": mean, "std": std})
    assert note is not None
    assert note.expected is None


def test_the_host_and_the_log_of_a_program_are_named() -> None:
    place = {"host": "node7", "logs": "/logs/covertype"}
    stored = StoredTrial(
        *(1, 5, "COMPLETE", None, None, [1.0], {"x": 1.0}, {PLACE_KEY: place}),
        *({HEARTBEAT_KEY: {"pid": 12}}, {}),
    )
    (record,) = stored_records([stored], {5: Trial({"x": 1.0}, 1.0)})
    assert (record.worker, record.log) == ("process 12 on node7", "/logs/covertype/5.out")
    (unknown,) = stored_records([replace(stored, user_attrs={PLACE_KEY: "?"}, system_attrs={})], {})
    assert (unknown.worker, unknown.log) == (None, None)


def test_configurations_to_copy_keep_all_digits_and_types() -> None:
    assert json.loads(config_json(CONFIG)) == CONFIG
    back = literal_eval(config_python(CONFIG))
    assert back == CONFIG
    assert [type(value) for value in back.values()] == [float, int, float, str, bool]
    arguments = dict(word.removeprefix("--").split("=", 1) for word in shlex.split(config_arguments(CONFIG)))
    assert arguments == {
        "lr": "0.30000000000000004",
        "depth": "3",
        "one": "1.0",
        "kernel": CONFIG["kernel"],
        "flag": "true",
    }


BEGAN = datetime(2026, 1, 1)


def ran(number: int, start: float, end: float, worker: str | None, state: RecordState = "finished") -> TrialRecord:
    moments = {"started": BEGAN + timedelta(seconds=start), "ended": BEGAN + timedelta(seconds=end)}
    return TrialRecord(number, state, {}, worker=worker, **moments)


def test_lanes_never_overlap_and_a_worker_that_runs_two_at_once_has_two() -> None:
    lanes = timeline([ran(0, 0, 10, "w0"), ran(1, 0, 4, "w1"), ran(2, 4, 10, "w1"), ran(3, 5, 9, "w1")])
    assert lanes is not None
    assert lanes.by_worker
    assert lanes.lanes == ("w0", "w1, slot 1", "w1, slot 2")
    assert lanes.workers == 2
    assert [(span.record.number, span.lane) for span in lanes.spans] == [(0, 0), (1, 1), (2, 1), (3, 2)]
    assert lanes.busy == pytest.approx((10 + 4 + 6 + 4) / 30)


def test_without_workers_there_are_as_many_lanes_as_trials_at_once() -> None:
    lanes = timeline([ran(0, 0, 10, None), ran(1, 5, 12, None), ran(2, 10, 11, None)])
    assert lanes is not None
    assert not lanes.by_worker
    assert lanes.lanes == ("slot 1", "slot 2")
    assert lanes.workers == 0
    assert [span.lane for span in lanes.spans] == [0, 1, 0]
    assert timeline([ran(0, 0, 1, None)]) is None
    assert timeline([TrialRecord(0, "finished", {}), TrialRecord(1, "finished", {})]) is None


def test_a_running_trial_keeps_its_lane_until_the_last_known_moment() -> None:
    running = [
        replace(ran(number, start, start, None), ended=None, state="running") for number, start in ((1, 2), (3, 9))
    ]
    lanes = timeline([ran(0, 0, 3, None), running[0], ran(2, 4, 8, None), running[1]])
    assert lanes is not None
    spans = {span.record.number: (span.lane, span.start, span.end) for span in lanes.spans}
    assert spans == {0: (0, 0.0, 3.0), 1: (1, 2.0, 9.0), 2: (0, 4.0, 8.0), 3: (0, 9.0, 9.0)}


def test_a_run_that_was_added_has_durations_but_no_timeline(tmp_path: Path) -> None:
    memory = Memory(str(tmp_path / "tuning.db"))
    trials = [Trial({"x": 0.1 * k}, float(k), seconds=1.0 + k) for k in range(4)]
    memory.add(recollect.Run("t", trials=trials), "p")
    records = read_run_data(memory, "p", "t").records
    assert [record.seconds for record in records] == [1.0, 2.0, 3.0, 4.0]
    assert len({record.ended for record in records}) == 1
    assert timeline(records) is None


def test_the_distribution_of_values_is_the_share_at_or_below_each() -> None:
    run = recollect.Run("t", [{"x": float(k)} for k in range(5)], [3.0, recollect.FAILED, 1.0, 2.0, 2.0])
    values, shares = value_distribution(run)
    for value, share in zip(values.tolist(), shares.tolist(), strict=True):
        below = sum(own is not None and own <= value for own in run.values) / 4
        assert share <= below
    assert values.tolist() == [1.0, 2.0, 2.0, 3.0]
    assert shares.tolist() == [0.25, 0.5, 0.75, 1.0]
