"""Optuna's studies and storages as runs."""

from __future__ import annotations

from pathlib import Path

import optuna
import pytest

from recollect.errors import InputError, RecollectError, RecollectWarning, StorageError
from recollect.runs.run import Run, State, Trial
from recollect.storage.importers.detection import read_runs
from recollect.storage.memory import Memory
from recollect.storage.studies import VOID_KEY

optuna.logging.set_verbosity(optuna.logging.WARNING)


def fill(study: optuna.Study, *, trials: int = 3, running: int = 0) -> optuna.Study:
    space = {
        "x": optuna.distributions.FloatDistribution(0.0, 1.0),
        "depth": optuna.distributions.IntDistribution(1, 9),
        "kind": optuna.distributions.CategoricalDistribution(["a", None, True]),
    }
    for number in range(trials):
        params = {"x": number / 10, "depth": number + 1, "kind": ("a", None, True)[number % 3]}
        study.add_trial(optuna.create_trial(params=params, distributions=space, value=float(number)))
    for _ in range(running):
        study.ask(space)
    return study


def storage_file(folder: Path) -> str:
    url = f"sqlite:///{folder}/studies.db"
    fill(optuna.create_study(storage=url, study_name="iris/1", direction="maximize"))
    fill(optuna.create_study(storage=url, study_name="wine"), trials=2, running=2)
    return url


def test_a_study_is_a_run_with_its_own_direction() -> None:
    study = fill(optuna.create_study(study_name="iris", direction="maximize"))
    (run,) = read_runs(study)
    assert (run.task, run.direction) == ("iris", "maximize")
    assert run.configs[:2] == [{"x": 0.0, "depth": 1, "kind": "a"}, {"x": 0.1, "depth": 2, "kind": None}]
    assert run.values == [0.0, 1.0, 2.0]
    assert read_runs(study, task="other", direction="maximize")[0].task == "other"
    with pytest.raises(InputError, match=r"direction is 'maximize', but .*'minimize'"):
        read_runs(study, direction="minimize")
    with pytest.raises(InputError, match="value has no meaning here: a study"):
        read_runs(study, value="x")


def test_running_trials_are_left_out_and_counted() -> None:
    with pytest.warns(RecollectWarning, match=r"Study: left out trials that have not finished \(2\)"):
        (run,) = read_runs(fill(optuna.create_study(), running=2))
    assert len(run) == 3


def test_a_study_with_several_objectives_is_refused() -> None:
    with pytest.raises(RecollectError, match="2 objectives"):
        read_runs(optuna.create_study(directions=["minimize", "maximize"]))


@pytest.mark.parametrize("form", ["url", "path", "text", "object"])
def test_all_studies_of_a_storage_are_read_from_any_form_of_it(form: str, tmp_path: Path) -> None:
    url = storage_file(tmp_path)
    path = tmp_path / "studies.db"
    source = {"url": url, "path": path, "text": str(path), "object": optuna.storages.RDBStorage(url)}[form]
    with pytest.warns(RecollectWarning, match=r"left out trials that have not finished \(2\)"):
        runs = read_runs(source)
    assert [(run.task, run.direction, len(run)) for run in runs] == [("iris/1", "maximize", 3), ("wine", "minimize", 2)]


def test_one_study_of_a_storage_can_be_read(tmp_path: Path) -> None:
    url = storage_file(tmp_path)
    (run,) = read_runs(url, task="iris/1")
    assert run.values == [0.0, 1.0, 2.0]
    with pytest.raises(InputError, match=r"there is no study 'abalone', only 'iris/1' and 'wine'"):
        read_runs(url, task="abalone")


def test_studies_that_are_no_runs_are_left_out_and_counted(tmp_path: Path) -> None:
    storage = optuna.storages.InMemoryStorage()
    fill(optuna.create_study(storage=storage, study_name="good"))
    optuna.create_study(storage=storage, study_name="empty")
    optuna.create_study(storage=storage, study_name="two", directions=["minimize", "minimize"])
    with pytest.warns(RecollectWarning) as told:
        (run,) = read_runs(storage)
    assert run.task == "good"
    assert "studies with several objectives (1)" in str(told[0].message)
    assert "studies without a finished trial (1)" in str(told[0].message)
    with pytest.raises(RecollectError, match="2 objectives"):
        read_runs(storage, task="two")


def test_a_study_of_a_memory_is_read_as_the_memory_has_it(tmp_path: Path) -> None:
    space, memory = {"x": (0.0, 1.0)}, Memory(tmp_path / "m.db")
    trials = [Trial({"x": 0.5}, 1.0, seconds=2.0), Trial({"x": 0.25}, None, State.FAILED, 1.0, ("out of luck",))]
    memory.add(Run("wine", trials=trials, space=space), "svm")
    study = optuna.load_study(study_name="svm/wine", storage=f"sqlite:///{tmp_path}/m.db")
    study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.FAIL, user_attrs={VOID_KEY: "begun twice"}))
    study.ask()
    for source, given in ((tmp_path / "m.db", {}), (tmp_path / "m.db", {"task": "svm/wine"}), (study, {})):
        with pytest.warns(RecollectWarning, match=r"left out trials that have not finished \(1\)"):
            (run,) = read_runs(source, **given)
        assert (run.task, run.trials) == ("wine", tuple(trials))
        assert run.space is not None
        assert run.space.names == ("x",)
    with pytest.warns(RecollectWarning, match=r"left out trials .* \(1\)"):
        assert read_runs(study, task="other")[0].task == "other"


def test_a_task_is_looked_for_by_its_own_name_and_then_by_that_of_its_study(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    for number, (problem, task) in enumerate([("svm", "wine"), ("tree", "wine"), ("tree", "svm/wine")]):
        memory.add(Run(task, [{"x": 0.5}], [float(number)]), problem)
    assert [run.values for run in read_runs(tmp_path / "m.db", task="wine")] == [[0.0], [1.0]]
    assert [run.values for run in read_runs(tmp_path / "m.db", task="tree/wine")] == [[1.0]]
    assert [run.values for run in read_runs(tmp_path / "m.db", task="svm/wine")] == [[2.0]]
    with pytest.raises(InputError, match=r"there is no task 'svm', only 'wine' and 'svm/wine'$"):
        read_runs(tmp_path / "m.db", task="svm")


def test_a_journal_is_read(tmp_path: Path) -> None:
    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "j.log"))
    fill(optuna.create_study(storage=optuna.storages.JournalStorage(backend), study_name="iris"))
    (run,) = read_runs(f"journal:{tmp_path}/j.log")
    assert run.values == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("kind", ["sqlite:///", "journal:"])
def test_a_storage_that_is_not_there_is_refused_and_not_made(kind: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such memory"):
        read_runs(f"{kind}{tmp_path}/none.db")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_cannot_be_opened_is_an_error_without_its_password() -> None:
    with pytest.raises(StorageError) as told:
        read_runs("postgresql://me:secret@127.0.0.1:9/none")
    assert "me:***@" in str(told.value)
    assert "secret" not in str(told.value)
