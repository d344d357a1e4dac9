"""The contents of a memory."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from tests.helpers.example_memory import COMPILED, SPACE, example_run, points, slope

from recollect import FAILED, Memory, Run, minimize
from recollect.analysis.memory_tasks import read_memory_contents
from recollect.storage.sql_read import read_finished
from recollect.storage.studies import task_studies


@pytest.fixture
def memory() -> Memory:
    return Memory(optuna.storages.InMemoryStorage())


@pytest.mark.parametrize("stored", [False, True], ids=["in memory", "in a file"])
def test_runs_dates_and_failures_are_read_as_they_are_stored(memory: Memory, tmp_path: Path, stored: bool) -> None:
    memory = Memory(tmp_path / "tuning.db") if stored else memory
    memory.add(Run("a", points(3), [0.5, FAILED, 0.25], space=COMPILED), "svm")
    memory.add(example_run("b", direction="maximize"), "svm")
    optuna.create_study(storage=memory.store.optuna, study_name="somebody's")
    optuna.create_study(storage=memory.store.optuna, study_name="two", directions=["minimize", "maximize"])
    contents = read_memory_contents(memory)
    assert [(one.problem, one.name, len(one.run), one.failed) for one in contents.tasks] == [
        ("svm", "a", 3, 1), ("svm", "b", 12, 0), (None, "somebody's", 0, 0),
    ]  # fmt: skip
    assert contents.multi_objective == 1
    assert contents.problems == ("svm",)
    ids = {entry.task: entry.id for entry in task_studies(memory.store)}
    records = read_finished(memory.store, [ids["a"]], keys=())[ids["a"]]
    assert contents.tasks[0].started == min(record.datetime_start for record in records if record.datetime_start)
    assert contents.tasks[0].ended == max(record.datetime_complete for record in records if record.datetime_complete)
    assert [one.name for one in read_memory_contents(memory, "svm").tasks] == ["a", "b"]
    assert [one.space is None for one in contents.tasks] == [False, False, True]
    assert read_memory_contents(memory, spaces=False).tasks[0].space is None


def test_notes_with_weights_are_read_and_others_are_passed_over(tmp_path: Path) -> None:
    with Memory(tmp_path / "tuning.db") as memory:
        memory.add(example_run("first"), "svm")
        minimize(
            slope, SPACE, trials=5, memory=memory, problem="svm", task="second", method="rgpe-mean", progress=False
        )
        optuna_trial = memory.store.optuna.create_new_trial(task_studies(memory.store)[1].id)
        memory.store.optuna.set_trial_user_attr(optuna_trial, "recollect:influence", {"past": "nonsense", "target": 2})
        memory.store.optuna.set_trial_state_values(optuna_trial, optuna.trial.TrialState.FAIL)
        second = read_memory_contents(memory).tasks[1]
    assert len(second.run) == 6
    assert second.notes
    for note in second.notes:
        assert note.target_weight is not None
        assert note.target_weight + sum(note.source_weights.values()) == pytest.approx(1, abs=0.01)
        assert set(note.source_weights) | note.dropped <= {"first"}
