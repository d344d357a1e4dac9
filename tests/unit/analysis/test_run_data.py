"""A run and how it came about, as a memory tells it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import optuna
import pytest
from optuna.trial import TrialState
from tests.helpers.stored_runs import put, store_example, tuned

from recollect import FAILED, InputError, Memory, Run
from recollect.analysis.run_data import (
    read_run_data,
    run_data_of,
    space_of,
)
from recollect.analysis.source_usefulness import source_usefulness, weight_history
from recollect.report.page import render
from recollect.report.run.run_page import page_of_run, run_page
from recollect.storage.optuna_log import quiet_optuna
from recollect.storage.studies import INFLUENCE_KEY, SETTINGS_KEY, find_study
from recollect.tuning.result import Result
from recollect.tuning.suggestion_notes import SuggestionNote, read_note


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    return store_example(tmp_path_factory.mktemp("memory") / "tuning.db")


def test_a_memory_tells_the_same_as_the_result(stored: tuple[Path, Result]) -> None:
    path, result = stored
    data, direct = read_run_data(Memory(path), "p", "last"), run_data_of(result)
    assert data.run.trials == direct.run.trials
    assert data.notes == direct.notes
    assert data.settings == direct.settings
    assert data.space is not None
    assert direct.space is not None
    assert data.space.names == direct.space.names
    assert [run.task for run in data.past] == ["one", "two", "three"], "not the run that came later"
    assert [run.task for run in direct.past] == ["given", "one", "two", "three"]
    assert [run.trials for run in data.past] == [run.trials for run in direct.past[1:]]
    assert (data.storage, direct.storage) == (str(path), "")
    assert data.times is not None
    assert data.times[0] < data.times[1]


def test_a_past_run_that_was_given_is_named_though_it_is_not_in_the_memory(stored: tuple[Path, Result]) -> None:
    data = read_run_data(Memory(stored[0]), "p", "last")
    assert data.method is not None
    found = {source.task: source for source in source_usefulness(data, data.method, weight_history(data))}
    assert set(found) == {"given", "one", "two", "three"}
    assert found["given"].trials is None
    assert found["one"].agreement is not None
    assert found["one"].overlap == 1.0


def test_a_run_of_the_same_task_without_transfer_is_found(stored: tuple[Path, Result]) -> None:
    paired = read_run_data(Memory(stored[0]), "p", "last").paired
    assert paired is not None
    assert (paired.problem, paired.method, len(paired.run)) == ("without transfer", "gp", 8)
    assert read_run_data(Memory(stored[0]), "without transfer", "last").paired is None, (
        "one that transfers is no comparison"
    )
    assert read_run_data(Memory(stored[0]), "p", "one").paired is None


def test_it_is_known_which_past_runs_were_made_without_transfer(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        put(memory, "first", minutes=[1, 2, 3], settings={"method": "rgpe-taf", "trials": 3})
        put(memory, "beside", minutes=[1, 2, 4], settings={"method": "rgpe-taf", "trials": 3})
        put(memory, "plain", minutes=[6, 7, 8], settings={"method": "gp", "trials": 3})
        put(memory, "learned", minutes=[16, 17, 18], settings={"method": "rgpe-taf", "trials": 3})
        put(memory, "imported", minutes=[20, 20, 20])
        put(memory, "odd", minutes=[21, 21, 21], settings={"method": "of tomorrow"})
        put(memory, "own", minutes=[30, 31], settings={"method": "rgpe-taf", "trials": 2})
        data = read_run_data(memory, "p", "own")
    by_origin: dict[str, list[str]] = {}
    for task, origin in data.origins.items():
        by_origin.setdefault(origin, []).append(task)
    assert by_origin["without transfer"] == ["first", "beside", "plain"]
    assert sorted(by_origin["with transfer"]) == ["learned", "own"]
    assert by_origin["unknown"] == ["imported", "odd"]


def test_past_runs_are_as_they_were_when_the_run_began(tmp_path: Path) -> None:
    note = {"reason": "", "target": 0.5, "past": {"came later": 0.5}, "dropped": []}
    with Memory(tmp_path / "m.db") as memory:
        put(memory, "done", minutes=[1, 2, 3])
        put(memory, "at the same time", minutes=[4, 5, 11, 12, 13])
        put(memory, "too late", minutes=[11, 12, 13])
        put(memory, "came later", minutes=[11, 12, 13, 50])
        put(memory, "too short", minutes=[1])
        put(memory, "own", minutes=[10, 20, 30], notes={2: note})
        data = read_run_data(memory, "p", "own")
    assert {run.task: len(run) for run in data.past} == {"done": 3, "at the same time": 2, "came later": 3}


def test_what_is_noted_may_be_of_any_form() -> None:
    assert read_note(None) is None
    assert read_note("text") is None
    assert read_note({}) == SuggestionNote("")
    assert read_note({"reason": 3, "target": "much"}) == SuggestionNote("3")
    assert read_note({"target": 0.5, "past": [1, 2]}) == SuggestionNote("")
    assert read_note({"target": float("nan"), "past": {}}) == SuggestionNote("")
    odd = {"reason": "r", "target": 2, "past": {"a": "x", "b": 0.25, "c": None}, "dropped": "abc"}
    assert read_note(odd) == SuggestionNote("r", 1.0, {"b": 0.25}, frozenset())


def test_damaged_attributes_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    tuned(path, "one")
    tuned(path, "two", method="rgpe-taf")
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("update trial_user_attributes set value_json = '[1, 2]' where key = ?", (INFLUENCE_KEY,))
        database.execute("update study_user_attributes set value_json = '\"x\"' where key = ?", (SETTINGS_KEY,))
    data = read_run_data(Memory(path), "p", "two")
    assert data.notes == (None,) * 6
    assert data.settings == {}
    assert data.method is None
    assert "How it was tuned is unknown" in render(page_of_run(data))


def test_trials_of_another_space_are_placed_as_well_as_possible(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    tuned(path, "own", trials=12)
    with closing(sqlite3.connect(path)) as database, database:
        database.execute("update trial_params set param_value = 7.5 where param_id = 3")
    data = read_run_data(Memory(path), "p", "own")
    assert len(data.run) == 12
    render(page_of_run(data))


def test_studies_of_other_programs_have_a_page_too(tmp_path: Path) -> None:
    with quiet_optuna():
        study = optuna.create_study(storage=f"sqlite:///{tmp_path / 'optuna.db'}", study_name="theirs")

    def objective(trial: optuna.Trial) -> float:
        depth = trial.suggest_int("depth", 1, 4)
        kind = trial.suggest_categorical("kind", ["x", "y", None])
        extra = trial.suggest_float("extra", 0.1, 0.9) if kind == "x" else 0.0
        trial.report(depth, 0)
        if trial.number == 5:
            raise optuna.TrialPruned
        return depth + extra

    with quiet_optuna():
        study.optimize(objective, n_trials=14)
    memory = Memory(tmp_path / "optuna.db")
    data = read_run_data(memory, None, "theirs")
    assert data.problem is None
    assert data.space is not None
    assert set(data.space.names) == {"depth", "kind", "extra"}
    assert set(data.notes) == {None}
    assert data.past == ()
    assert run_page(memory, None, "theirs").lead.startswith("An Optuna study.")


def test_a_space_is_made_of_what_was_tried_where_none_was_kept() -> None:
    configs = [
        {"n": 1, "x": 0.5, "c": "a", "k": 3, "l": [1], "t": 1e-20},
        {"n": 4, "x": 2, "c": None, "k": 3, "t": 2e-20},
    ]
    space = space_of(Run("bare", configs, [1.0, FAILED]))
    assert space is not None
    assert set(space.names) == {"n", "x", "c", "k", "t"}, "no list can be a value"
    assert space.decode(space.encode([{name: configs[0][name] for name in space.names}]))[0]["n"] == 1
    assert int(space.varying.sum()) == 4
    assert space_of(Run("empty")) is None


def test_a_task_that_is_not_there_or_not_unique_is_named(stored: tuple[Path, Result]) -> None:
    memory = Memory(stored[0])
    with pytest.raises(InputError, match=r"problem 'p': there is no task 'nowhere'.*'one', 'two'"):
        read_run_data(memory, "p", "nowhere")
    with pytest.raises(InputError, match=r"several problems have a task 'last'.*'p' and 'without transfer'"):
        read_run_data(memory, None, "last")
    with pytest.raises(InputError, match=r"there is no problem 'q'"):
        read_run_data(memory, "q", "last")
    assert read_run_data(memory, None, "one").problem == "p"


def test_void_and_running_trials_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    tuned(path, "own", trials=4)
    with Memory(path) as memory:
        entry = find_study(memory.store, "p", "own")
        assert entry is not None
        store = memory.store.optuna
        running = store.create_new_trial(entry.id)
        void = store.create_new_trial(entry.id)
        store.set_trial_user_attr(void, "recollect:void", "interrupted")
        store.set_trial_state_values(void, TrialState.FAIL)
        assert len(read_run_data(memory, "p", "own").run) == 4
        store.set_trial_state_values(running, TrialState.FAIL)
        assert len(read_run_data(memory, "p", "own").run) == 5
