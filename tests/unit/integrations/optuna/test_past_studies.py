"""The past of a study, read from studies, databases, other storages and runs: the same from wherever it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.samplers import RandomSampler

from recollect import Memory, RecollectWarning, Run, StorageError
from recollect.integrations.optuna.past_studies import (
    PastStudy,
    assumed_distributions,
    identity_of,
    read_past,
    split_by_shared_parameters,
    usable_studies,
    warn_left_out,
)


@pytest.fixture(autouse=True)
def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def objective(trial: optuna.Trial) -> float:
    """Conditional, with a range that changes, a step, pruned, failed and infinite trials."""
    kernel = trial.suggest_categorical("kernel", ["linear", "rbf", None])
    value = trial.suggest_float("C", 1e-3, 1e3, log=True) + trial.suggest_int("n", 2, 8, step=2)
    value += trial.suggest_float("changing", 0.0, 1.0 + trial.number % 2)
    if kernel == "rbf":
        value += trial.suggest_float("gamma", 0.0, 1.0)
    trial.report(value / 2, 0)
    if trial.number % 5 == 2:
        raise optuna.TrialPruned
    if trial.number % 5 == 3:
        raise RuntimeError("on purpose")
    return float("inf") if trial.number % 5 == 4 else value


def filled(storage: object, name: str = "svm", direction: str = "minimize") -> optuna.Study:
    study = optuna.create_study(storage=storage, study_name=name, direction=direction, sampler=RandomSampler(seed=1))  # type: ignore[arg-type]
    study.optimize(objective, n_trials=12, catch=RuntimeError)
    study.ask()
    return study


def same(one: PastStudy, other: PastStudy) -> bool:
    return (
        one.run == other.run
        and one.distributions == other.distributions
        and [record.values for record in one.records] == [record.values for record in other.records]
        and {record.scope for record in one.records} == {record.scope for record in other.records}
        and one.identity[0] == other.identity[0]
        and bool(one.identity[1] & other.identity[1])
    )


def test_a_database_read_at_once_gives_what_optuna_reads_study_by_study(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    study = filled(url)
    filled(url, "upwards", "maximize")
    (expected,) = read_past(study)
    assert {trial.ok for trial in expected.run.trials} == {True, False}
    assert any(trial.notes and "pruned" in trial.notes[0] for trial in expected.run.trials)
    assert set(expected.distributions) == {"kernel", "C", "n", "gamma", "changing"}
    for given in (url, tmp_path / "studies.db", optuna.storages.RDBStorage(url), study._storage):
        first, second = read_past(given)
        assert same(first, expected)
        assert not first.listed
        assert second.run.direction == "maximize"


def test_a_storage_that_is_no_database_gives_the_same(tmp_path: Path) -> None:
    journal = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(str(tmp_path / "j.log")))
    for storage in (optuna.storages.InMemoryStorage(), journal):
        study = filled(storage)
        ((entry,), (expected,)) = read_past(storage), read_past(study)
        assert same(entry, expected)
    (from_file,) = read_past(f"journal:{tmp_path}/j.log")
    assert same(from_file, expected)


def test_a_memory_of_recollect_is_a_past_itself_or_by_its_file_or_by_its_runs(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "memory.db")
    space = {"lr": (1e-4, 1.0, "log"), "loss": ["hinge", "log"]}
    configs = [{"lr": 0.1, "loss": "log"}, {"lr": 0.01, "loss": "hinge"}]
    memory.add(Run("iris", configs, [0.5, 0.25], space=space), problem="svm")
    (by_file,), (by_run,) = read_past(tmp_path / "memory.db"), read_past(memory.runs("svm"))
    assert by_file.distributions == by_run.distributions
    assert by_file.distributions["lr"] == FloatDistribution(1e-4, 1.0, log=True)
    for given in (memory, [memory]):
        (itself,) = read_past(given)
        assert same(itself, by_file)
        assert not itself.listed
    assert by_file.run.configs == by_run.run.configs == configs
    assert by_file.run.values == by_run.run.values == [0.5, 0.25]


def test_a_study_is_known_again_also_while_its_first_trial_is_still_running(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/studies.db"
    study = optuna.create_study(storage=url, study_name="now")
    study.ask()
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    past = read_past(url)
    assert len(past[0].run) == 2
    assert usable_studies(past, own=identity_of("now", study.trials), direction="minimize") == []
    assert usable_studies(past, own=identity_of("other", study.trials), direction="minimize") == list(past)
    assert usable_studies(past, own=identity_of("now", []), direction="minimize") == list(past)


def test_nothing_is_taken_from_studies_without_a_completed_trial() -> None:
    empty = optuna.create_study()
    failed = optuna.create_study()
    failed.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0) / 0, n_trials=2, catch=ZeroDivisionError)
    past = read_past([empty, failed, Run("nothing", [], [])])
    assert assumed_distributions(past) == ({}, ())
    assert usable_studies(past, own=identity_of("now", []), direction="minimize") == []


def test_many_that_are_left_out_are_counted_rather_than_listed() -> None:
    past = read_past([Run(f"run {number}", [{"x": 1.0}], [1.0]) for number in range(9)])
    with pytest.warns(RecollectWarning, match="none of the parameters y: 'run 0', 'run 1', 'run 2' and 6 more"):
        warn_left_out(split_by_shared_parameters(past, ["y"])[1], "they have none of the parameters y")
    assert split_by_shared_parameters(past, ["x", "y"]) == (list(past), [])


def studies_with(name: str, *distributions: BaseDistribution) -> list[optuna.Study]:
    studies = []
    for distribution in distributions:
        study = optuna.create_study()
        low = distribution.to_external_repr(distribution.to_internal_repr(getattr(distribution, "low", "a")))
        study.add_trial(optuna.create_trial(params={name: low}, distributions={name: distribution}, value=1.0))
        studies.append(study)
    return studies


@pytest.mark.parametrize(
    ("used", "assumed"),
    [
        ([FloatDistribution(0, 1), FloatDistribution(0, 1)], FloatDistribution(0, 1)),
        ([FloatDistribution(0, 1), FloatDistribution(0, 1), FloatDistribution(0, 2)], FloatDistribution(0, 2)),
        ([FloatDistribution(1, 9, log=True), FloatDistribution(1, 8)], FloatDistribution(1, 8)),
        ([FloatDistribution(1, 9, log=True)] * 2 + [FloatDistribution(0, 8)], FloatDistribution(1, 9, log=True)),
        ([IntDistribution(1, 9, step=2)] * 2 + [IntDistribution(2, 20, step=2)], IntDistribution(1, 9, step=2)),
        ([IntDistribution(1, 9)] * 2 + [FloatDistribution(0, 99)], IntDistribution(1, 9)),
        ([CategoricalDistribution("ab")] * 2 + [CategoricalDistribution("abc")], CategoricalDistribution("ab")),
        ([CategoricalDistribution("ab"), CategoricalDistribution("abc")], CategoricalDistribution("abc")),
    ],
)
def test_most_past_studies_decide_and_of_those_tied_the_newest(used: list[BaseDistribution], assumed: Any) -> None:
    distributions, disputed = assumed_distributions(read_past(studies_with("p", *used)))
    assert distributions == {"p": assumed}
    assert disputed == (() if len(set(used)) == 1 else ("p",))


def test_parameters_are_renamed_everywhere_in_a_past_study() -> None:
    (study,) = studies_with("learning_rate", FloatDistribution(0, 1))
    (entry,) = read_past(study, {"learning_rate": "lr"})
    assert entry.run.configs == [{"lr": 0.0}]
    assert entry.distributions == {"lr": FloatDistribution(0, 1)}
    assert [(dict(record.values), record.scope) for record in entry.records] == [({"lr": 0.0}, frozenset({"lr"}))]


@pytest.mark.parametrize("where", ["sqlite:///m.db", "journal:m.log", None])
def test_a_study_that_was_deleted_is_an_error_of_recollect(
    where: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    storage = optuna.storages.InMemoryStorage() if where is None else Memory(where).store.optuna
    study = filled(storage)
    optuna.delete_study(study_name=study.study_name, storage=storage)
    with pytest.raises(StorageError, match="svm"):
        read_past([study])
