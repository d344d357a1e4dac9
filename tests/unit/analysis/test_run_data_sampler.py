"""The report of an Optuna study that `TransferSampler` tuned says what the sampler's own explanation says."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from recollect import Memory
from recollect.analysis.headline import headline
from recollect.analysis.run_data import RunData, read_run_data
from recollect.analysis.source_usefulness import rank_agreement, verdict, weight_history
from recollect.optuna import TransferSampler
from recollect.runs.run import Direction
from recollect.storage.trial_details import read_trial


def objective(trial: optuna.Trial, shift: float, sign: float) -> float:
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    if x > 0.9:
        raise ValueError("diverged")
    return sign * ((x - shift) ** 2 + (y - 0.5) ** 2)


def tuned(url: str, method: str, direction: Direction) -> tuple[optuna.Study, TransferSampler]:
    sign = 1.0 if direction == "minimize" else -1.0
    for number in range(3):
        study = optuna.create_study(
            storage=url, study_name=f"past {number}", direction=direction, sampler=optuna.samplers.RandomSampler(number)
        )
        study.optimize(lambda trial: objective(trial, 0.1 * number, sign), n_trials=8, catch=ValueError)  # noqa: B023
    sampler = TransferSampler(past=url, horizon=12, method=method, seed=0)
    study = optuna.create_study(storage=url, study_name="new", direction=direction, sampler=sampler)
    study.enqueue_trial({"x": 0.95, "y": 0.5})
    study.optimize(lambda trial: objective(trial, 0.15, sign), n_trials=9, catch=ValueError)
    return study, sampler


def read(path: Path, task: str = "new") -> RunData:
    with Memory(path) as memory:
        return read_run_data(memory, None, task)


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("method", ["task-prior", "rgpe-taf"])
def test_the_report_of_a_study_agrees_with_the_sampler(tmp_path: Path, method: str, direction: Direction) -> None:
    study, sampler = tuned(f"sqlite:///{tmp_path / 'studies.db'}", method, direction)
    data, explanation = read(tmp_path / "studies.db"), sampler.explain(study)
    assert data.method is not None
    assert data.method.name == explanation.method == method
    assert sorted(run.task for run in data.past) == sorted(entry.task for entry in explanation.past)
    history = weight_history(data)
    assert history is not None
    assert history.means == {entry.task: pytest.approx(entry.mean_weight, abs=0.01) for entry in explanation.past}
    assert headline(data).past_use == "used"
    study.ask().suggest_float("x", 0.0, 1.0)  # the sampler has then seen all results
    data, explanation = read(tmp_path / "studies.db"), sampler.explain(study)
    history, agreement = weight_history(data), rank_agreement(data, data.method)  # type: ignore[arg-type]
    assert verdict(data, agreement, history) == explanation.summary


def test_every_trial_says_why_it_was_suggested(tmp_path: Path) -> None:
    tuned(f"sqlite:///{tmp_path / 'studies.db'}", "task-prior", "minimize")
    records = read(tmp_path / "studies.db").records
    reasons = [None if record.suggestion is None else record.suggestion.reason for record in records]
    assert reasons[0] == "enqueued by the user"
    assert all(reasons)
    with Memory(tmp_path / "studies.db") as memory:
        for record in records:
            shown = read_trial(memory.store, "new", record.number)
            assert record.suggestion is not None
            assert shown.suggestion["reason"] == record.suggestion.reason, "as the command line prints it"


def test_of_a_study_of_another_sampler_nothing_is_claimed(tmp_path: Path) -> None:
    tuned(f"sqlite:///{tmp_path / 'studies.db'}", "gp", "minimize")
    data = read(tmp_path / "studies.db", "past 0")
    assert (data.method, data.past, data.settings) == (None, (), {})
    assert headline(data).past_use == "unknown"
    assert not data.space_inferred, "Optuna stores the ranges"
