"""Studies of other programs: their search space, log scales, conditions and pruned trials are kept wherever they go."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

import recollect
from recollect.analysis.memory_tasks import common_space, read_memory_contents
from recollect.analysis.run_data import read_run_data
from recollect.analysis.run_summary import run_summary
from recollect.runs.run import State
from recollect.space.columns import Interval
from recollect.storage.memory import Memory
from recollect.storage.study_spaces import widest


def svm(trial: optuna.Trial) -> float:
    kernel = trial.suggest_categorical("kernel", ["linear", "rbf"])
    loss = abs(math.log10(trial.suggest_float("C", 1e-3, 1e3, log=True)))
    if kernel == "rbf":
        loss += abs(math.log10(trial.suggest_float("gamma", 1e-4, 10.0, log=True)))
    for step in range(3):
        trial.report(loss + 3 - step, step)
        if trial.should_prune():
            raise optuna.TrialPruned
    if loss > 5:
        raise ValueError("too large")
    return loss


@pytest.fixture
def database(tmp_path: Path) -> str:
    address = f"sqlite:///{tmp_path / 'studies.db'}"
    pruner = optuna.pruners.MedianPruner(n_startup_trials=3, n_warmup_steps=0)
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(storage=address, study_name="wine", pruner=pruner, sampler=sampler)
    study.optimize(svm, n_trials=25, catch=ValueError)
    return address


def counts(run: recollect.Run) -> dict[State, int]:
    return {state: sum(trial.state is state for trial in run.trials) for state in State}


def optuna_counts(database: str) -> dict[State, int]:
    states = [trial.state.name for trial in optuna.load_study(study_name="wine", storage=database).trials]
    return {
        State.OK: states.count("COMPLETE"),
        State.FAILED: states.count("FAIL"),
        State.PRUNED: states.count("PRUNED"),
    }


def assert_svm_space(space: recollect.Space | None) -> None:
    assert space is not None
    columns = {column.name: column for column in space.columns}
    for name, low, high in (("C", 1e-3, 1e3), ("gamma", 1e-4, 10.0)):
        column = columns[name]
        assert isinstance(column, Interval)
        assert (column.lower, column.upper, column.log) == (low, high, True)
    assert space.condition_texts[space.names.index("gamma")] == "gamma | kernel in {'rbf'}"


def test_a_run_read_from_a_database_or_a_study_has_space_and_states(database: str) -> None:
    study = optuna.load_study(study_name="wine", storage=database)
    for source in (database, study):
        (run,) = recollect.read_runs(source)
        assert_svm_space(run.space)
        assert len(run) == 25
        assert counts(run) == optuna_counts(database)
        assert counts(run)[State.PRUNED] > 5
        assert run.best is not None
        assert run.best.value == study.best_value


def test_a_memory_reads_the_same_from_studies_of_other_programs(database: str) -> None:
    (read,), (stored,) = recollect.read_runs(database), Memory(database).runs()
    assert_svm_space(stored.space)
    assert stored.trials == read.trials


def test_reports_see_the_space_and_the_pruned_trials(database: str) -> None:
    with Memory(database) as memory:
        data, contents = read_run_data(memory, None, "wine"), read_memory_contents(memory)
    assert_svm_space(data.space)
    (task,) = contents.tasks
    assert_svm_space(task.space)
    common = common_space(contents.tasks)
    assert common is not None
    assert not common.inferred
    expected = optuna_counts(database)
    assert (data.pruned, data.failed) == (task.pruned, task.failed) == (expected[State.PRUNED], expected[State.FAILED])
    assert len(data.notes) == len(data.run) == 25


@pytest.mark.parametrize("ending", [".jsonl", ".db"])
def test_what_was_imported_is_stored_and_exported_whole(database: str, tmp_path: Path, ending: str) -> None:
    (run,) = recollect.read_runs(database)
    target = tmp_path / f"copy{ending}"
    if ending == ".db":
        with Memory(target) as memory:
            memory.import_(database, "svm")
            (again,) = memory.runs("svm")
    else:
        recollect.write_runs([run], target)
        (again,) = recollect.read_runs(target)
    assert_svm_space(again.space)
    assert [(t.state, t.value, t.estimate, t.config, t.notes) for t in again.trials if t.state is not State.FAILED] == [
        (t.state, t.value, t.estimate, t.config, t.notes) for t in run.trials if t.state is not State.FAILED
    ]
    assert again.y.tolist() == run.y.tolist()


def test_csv_keeps_the_state_and_says_that_estimates_are_lost(database: str, tmp_path: Path) -> None:
    (run,) = recollect.read_runs(database)
    with pytest.warns(recollect.RecollectWarning, match="the estimates of pruned trials"):
        recollect.write_runs([run], tmp_path / "runs.csv")
    (again,) = recollect.read_runs(tmp_path / "runs.csv")
    assert counts(again) == counts(run)


def test_a_space_that_does_not_hold_all_trials_is_no_space_of_the_run(tmp_path: Path) -> None:
    def erratic(trial: optuna.Trial) -> float:
        x = trial.suggest_float("x", 0.0, 1.0)
        return x + (trial.suggest_float("y", 0.0, 1.0) if x > 0.5 else 0.0)

    study = optuna.create_study(storage=f"sqlite:///{tmp_path / 's.db'}", sampler=optuna.samplers.RandomSampler(seed=1))
    study.optimize(erratic, n_trials=6)
    (run,) = recollect.read_runs(study)
    assert run.space is None
    with Memory(tmp_path / "s.db") as memory:
        assert memory.runs()[0].space is None
        assert read_run_data(memory, None, study.study_name).space is not None


def test_a_range_that_changed_is_widened_to_what_was_used(tmp_path: Path) -> None:
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    for high in (1.0, 2.0, 0.5):
        study.optimize(lambda trial, high=high: trial.suggest_float("lr", 1e-5, high, log=True), n_trials=2)
    (run,) = recollect.read_runs(study)
    assert run.space is not None
    (column,) = run.space.columns
    assert isinstance(column, Interval)
    assert (column.lower, column.upper, column.log) == (1e-5, 2.0, True)


@pytest.mark.parametrize(
    ("distributions", "expected"),
    [
        ([FloatDistribution(0, 1), FloatDistribution(0.5, 3)], FloatDistribution(0, 3)),
        ([FloatDistribution(-1, 1), FloatDistribution(1, 3, log=True)], FloatDistribution(-1, 3)),
        ([IntDistribution(1, 9, step=2), IntDistribution(3, 21, step=2)], IntDistribution(1, 21, step=2)),
        ([IntDistribution(1, 9, step=2), IntDistribution(2, 20, step=2)], IntDistribution(1, 20)),
        ([IntDistribution(1, 8, log=True), IntDistribution(2, 64, log=True)], IntDistribution(1, 64, log=True)),
        ([CategoricalDistribution("ab"), CategoricalDistribution("bc")], CategoricalDistribution("bca")),
        ([FloatDistribution(0, 1), IntDistribution(0, 1)], None),
    ],
)
def test_the_widest_distribution_holds_all_of_them(distributions: list[BaseDistribution], expected: Any) -> None:
    assert widest(distributions) == expected


def test_trials_have_the_numbers_that_optuna_gives_them(database: str) -> None:
    best = optuna.load_study(study_name="wine", storage=database).best_trial
    with Memory(database) as memory:
        data = read_run_data(memory, None, "wine")
    assert data.run.best is not None
    assert data.run.trials.index(data.run.best) == best.number
    assert any(f"found in trial {best.number}." in sentence for sentence in run_summary(data, None))
    assert data.run.to_frame()["value"].idxmin() == best.number
