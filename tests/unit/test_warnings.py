"""Warnings point to the code that called recollect, however deep within recollect they arise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import optuna
import pytest

from recollect import Memory, RecollectWarning, Run, minimize, read_runs
from recollect.optuna import TransferSampler

SPACE = {"x": (0.0, 1.0)}
OTHER = Run("other", [{"y": 0.1}, {"y": 0.2}, {"y": 0.3}], [1.0, 2.0, 3.0])


def tune_beside_a_run_of_another_space(folder: Path) -> None:
    with Memory(folder / "m.db") as memory:
        memory.add(OTHER, "p")
        minimize(lambda c: c["x"], SPACE, trials=2, memory=memory, problem="p", method="random", progress=False)


def ask_for_the_past(folder: Path) -> None:
    with Memory(folder / "m.db") as memory:
        memory.add(OTHER, "p")
        memory.past(SPACE, "p")


def import_a_table_with_a_running_trial(folder: Path) -> None:
    (folder / "t.csv").write_text("x,value,state\n0.5,1,ok\n0.25,,running\n")
    Memory(folder / "m.db").import_(folder / "t.csv")


def read_a_table_with_a_running_trial(folder: Path) -> None:
    (folder / "t.csv").write_text("x,value,state\n0.5,1,ok\n0.25,,running\n")
    read_runs(folder / "t.csv")


def sample_beside_a_run_of_another_space(_folder: Path) -> None:
    study = optuna.create_study(sampler=TransferSampler(past=[OTHER], method="random"))
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=3)


@pytest.mark.parametrize(
    "call",
    [
        tune_beside_a_run_of_another_space,
        ask_for_the_past,
        import_a_table_with_a_running_trial,
        read_a_table_with_a_running_trial,
        sample_beside_a_run_of_another_space,
    ],
)
def test_a_warning_points_to_the_line_that_called_recollect(call: Callable[[Path], None], tmp_path: Path) -> None:
    with pytest.warns(RecollectWarning) as told:
        call(tmp_path)
    assert {warning.filename for warning in told if issubclass(warning.category, RecollectWarning)} == {__file__}
