"""What tells whether anything has changed."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest
from tests.helpers.dashboard import example

from recollect import Memory
from recollect.report.dashboard.read_only import combined_token, read_study_states

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")


@pytest.mark.parametrize("where", ["file", "memory"])
def test_marks_change_when_a_trial_starts_or_ends_and_only_for_its_study(where: str, file: Path) -> None:
    memory = Memory(file) if where == "file" else Memory(optuna.storages.InMemoryStorage())
    if where == "memory":
        memory.add(example("first"), "svm")
        memory.add(example("second"), "svm")
    first, second = read_study_states(memory)
    assert read_study_states(memory) == (first, second)
    study = optuna.load_study(storage=memory.store.optuna, study_name="svm/second")
    trial = study.ask({"x": optuna.distributions.FloatDistribution(0, 1)})
    running = read_study_states(memory)
    assert running[0] == first
    assert running[1].token != second.token
    study.tell(trial, 0.3)
    after = read_study_states(memory)
    assert after[0] == first
    assert after[1].token not in (second.token, running[1].token)
    memory.remove("first", "svm")
    assert [state.entry.task for state in read_study_states(memory)] == ["second"]
    assert combined_token(after) != combined_token(after[1:])
