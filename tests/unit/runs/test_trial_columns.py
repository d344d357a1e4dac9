"""Runs whose trials are kept by column are the same as runs of trials, and nothing is created that nobody looks at."""

from __future__ import annotations

import copy
import pickle
from contextlib import nullcontext
from typing import Any

import numpy as np
import pytest

from recollect import FAILED, Run, State, Trial
from recollect.runs import run as run_module
from recollect.runs.run import Direction
from recollect.runs.trial_columns import TrialColumns

TRIALS = {
    "all succeeded": [Trial({"a": 0.5, "k": 1}, 2.0, seconds=1.5, number=0), Trial({"a": 0.25, "k": 2}, 1.0, number=1)],
    "conditional": [
        Trial({"c": "x", "a": None}, 1.0),
        Trial({"c": "y", "b": [1]}, -0.5),
        Trial({"c": "x", "a": 3}, 0.0),
    ],
    "every state": [
        Trial({"a": 1}, None, FAILED, notes=("why",)),
        Trial({"a": 2}, 4.0, notes=("odd",), number=7),
        Trial({"a": 3}, None, State.PRUNED, estimate=0.25),
        Trial({}, None, State.PRUNED),
    ],
    "without hyperparameters": [Trial({}, 1.0), Trial({}, 2.0)],
    "none": [],
}


@pytest.fixture(params=TRIALS)
def trials(request: pytest.FixtureRequest) -> list[Trial]:
    return TRIALS[request.param]


@pytest.fixture(params=["minimize", "maximize"])
def pair(request: pytest.FixtureRequest, trials: list[Trial]) -> tuple[Run, Run]:
    """Return a run by column, and the same run of trials."""
    direction: Direction = request.param
    by_column = Run.from_columns("t", TrialColumns.of(trials), direction=direction)
    return by_column, Run("t", trials=trials, direction=direction)


def test_a_run_by_column_equals_the_run_of_its_trials(pair: tuple[Run, Run]) -> None:
    by_column, run = pair
    assert by_column == run
    assert run == by_column
    assert repr(by_column) == repr(run)
    assert [trial.number for trial in by_column.trials] == [trial.number for trial in run.trials]


def test_what_models_need_is_the_same_without_a_trial(pair: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch) -> None:
    by_column, run = pair
    expected: list[dict[str, Any]] = [trial.config for trial in run.usable]
    y = run.y
    monkeypatch.setattr(run_module, "Trial", None)  # no trial can be created
    assert len(by_column) == len(run)
    np.testing.assert_array_equal(by_column.y, y)
    assert by_column.learned_values == run.learned_values
    assert sorted(by_column.hyperparameters) == sorted(run.hyperparameters)
    assert by_column.columns.usable_configs().configs() == expected
    with pytest.raises(TypeError) if len(run) else nullcontext():
        assert not by_column.trials


def test_runs_by_column_can_be_copied_and_sent_to_other_processes(pair: tuple[Run, Run]) -> None:
    by_column, run = pair
    for copied in (pickle.loads(pickle.dumps(by_column)), copy.deepcopy(by_column)):
        assert copied == run
