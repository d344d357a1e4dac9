"""A damaged cell of a database spoils nothing but the trial or study it belongs to."""

from __future__ import annotations

import json
import sqlite3
import warnings
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

import optuna
import pytest
from tests.helpers.dashboard import ask
from typer.testing import CliRunner

import recollect
from recollect import Memory, RecollectWarning, Run, minimize
from recollect.analysis.memory_tasks import read_memory_contents
from recollect.analysis.run_data import read_run_data
from recollect.cli.main import app
from recollect.report.dashboard.read_only import open_read_only, read_study_states
from recollect.storage import studies
from recollect.storage.sql_read import read_studies

SPACE = {"x": (0.0, 1.0), "n": (1, 9), "c": ["a", "b"]}
CONFIGS = [{"x": 0.1 * n, "n": n, "c": "ab"[n % 2]} for n in range(1, 5)]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory(path) as memory:
        for task in ("one", "two"):
            memory.add(Run(task, CONFIGS, [1.0, 2.0, 3.0, recollect.FAILED], space=SPACE), "p")
    return path


def damage(path: Path, *changes: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for change in changes:
            assert connection.execute(f"update {change}").rowcount == 1


def check(path: Path) -> list[tuple[str, str]]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return [(entry.place, entry.reason) for entry in Memory(path).check()]


def test_a_study_that_is_created_while_studies_are_read_is_not_taken_for_damaged(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, queries = Memory(file), []
    reading = memory.store.reading

    def add_and_fetch(query: str) -> list[Any]:
        queries.append(query)
        with Memory(file) as other:
            other.add(Run(f"new {len(queries)}", CONFIGS, [1.0, 2.0, 3.0, 4.0], space=SPACE), "p")
        with reading() as fetch:  # as on a server, where every query sees what was written before it
            return list(fetch(query))

    monkeypatch.setattr(memory.store, "reading", lambda: nullcontext(add_and_fetch))
    names = [study.name for study in read_studies(memory.store)]
    assert len(queries) == 3
    assert names == ["p/one", "p/two", "p/new 1"]


TRIAL = [
    "trials set datetime_start = 'x' where trial_id = 2",
    "trials set datetime_complete = 1.5 where trial_id = 2",
    "trials set datetime_complete = '2026-01-01 00:00:00+01:00' where trial_id = 2",
    "trials set state = 'NONE' where trial_id = 2",
    "trials set number = 'x' where trial_id = 2",
    "trial_params set param_value = null where trial_id = 2 and param_name = 'n'",
    "trial_params set param_value = 'nan' where trial_id = 2 and param_name = 'x'",
    "trial_params set param_value = -1 where trial_id = 2 and param_name = 'c'",
    "trial_params set distribution_json = '{' where trial_id = 2 and param_name = 'x'",
    "trial_params set distribution_json = '[]' where trial_id = 2 and param_name = 'x'",
    "trial_params set distribution_json = null where trial_id = 2 and param_name = 'x'",
    "trial_params set distribution_json = cast(x'22ff22' as text) where trial_id = 2 and param_name = 'x'",
    "trial_params set param_name = x'00' where trial_id = 2 and param_name = 'x'",
    "trial_values set value = 'x' where trial_id = 2",
    "trial_values set value = null where trial_id = 2",
    "trial_values set trial_id = 4 where trial_id = 2",
]


@pytest.mark.parametrize("change", TRIAL)
def test_a_damaged_trial_is_left_out_with_a_warning_that_names_it(file: Path, change: str) -> None:
    damage(file, change)
    with pytest.warns(RecollectWarning, match=r"trial .* of study 'p/one'"):
        one, two = Memory(file).runs("p")
    assert [trial.value for trial in one.trials] == [1.0, 3.0, None]
    assert len(two.trials) == 4
    assert "'p/one'" in check(file)[0][0]


STUDY = [
    "study_directions set direction = 'UP' where study_id = 1",
    "studies set study_name = x'00' where study_id = 1",
    *(
        f"study_user_attributes set value_json = '{text}' where study_id = 1 and key = 'recollect:{key}'"
        for key, text in (("format", "{"), ("task", "5"), ("space", '{"a": 1}'), ("problem", "[" * 50_000))
    ),
    "study_user_attributes set key = 'x' where study_id = 1 and key = 'recollect:task'",
    "study_user_attributes set value_json = cast(x'22ff22' as text) where study_id = 1 and key = 'recollect:format'",
]


@pytest.mark.parametrize("change", STUDY)
def test_a_damaged_study_is_left_out_by_every_reader(file: Path, change: str) -> None:
    damage(file, change)
    assert len(check(file)) == 1
    with pytest.warns(RecollectWarning, match="damaged and left out: study"):
        assert [run.task for run in Memory(file).runs("p")] == ["two"]
    with pytest.warns(RecollectWarning, match="damaged and left out: study"):
        assert [state.entry.task for state in read_study_states(open_read_only(str(file)))] == ["two"]
    with pytest.warns(RecollectWarning, match="damaged and left out: study"):
        assert read_run_data(Memory(file), "p", "two").run.task == "two"
    settings: dict[str, Any] = {"method": "random", "progress": False}
    with pytest.warns(RecollectWarning, match="damaged and left out: study"):
        result = minimize(lambda c: c["x"], SPACE, trials=3, memory=file, problem="p", task="new", **settings)
    assert len(result.run) == 3


def test_a_run_whose_search_space_is_damaged_is_read_without_it(file: Path) -> None:
    damage(file, "study_user_attributes set value_json = '\"[[\"' where study_id = 1 and key = 'recollect:space'")
    with pytest.warns(RecollectWarning, match="the search space of study 'p/one'"):
        one, two = Memory(file).runs("p")
    assert one.space is None
    assert two.space is not None
    assert len(one) == 4
    with pytest.warns(RecollectWarning, match="the search space"):
        assert len(read_memory_contents(Memory(file)).tasks) == 2
    assert [place for place, _ in check(file)] == ["the search space of study 'p/one'"]


def test_the_task_itself_is_refused_with_the_reason_if_its_study_is_damaged(file: Path) -> None:
    damage(file, STUDY[2])
    with pytest.raises(recollect.StorageError, match=r"'p/one' is damaged.*recollect memory check"):
        minimize(lambda c: c["x"], SPACE, trials=9, memory=file, problem="p", task="one", progress=False)


def test_a_task_with_a_damaged_trial_is_resumed(file: Path) -> None:
    damage(file, TRIAL[5])
    settings: dict[str, Any] = {"method": "random", "progress": False}
    with pytest.warns(RecollectWarning, match="trial 1 of study 'p/one'"):
        result = minimize(lambda c: c["x"], SPACE, trials=6, memory=file, problem="p", task="one", **settings)
    assert len(result.run) == 6


def test_damage_is_named_once_per_memory(file: Path) -> None:
    damage(file, TRIAL[0])
    memory = Memory(file)
    with pytest.warns(RecollectWarning, match="trial 1"):
        memory.runs()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        memory.runs()


def test_notes_that_are_no_list_are_ignored(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("insert into trial_user_attributes values (99, 1, 'recollect:notes', '5')")
    assert Memory(file).run("one", "p").trials[0].notes == ()


def test_a_sound_memory_has_no_damage_also_after_a_run_was_removed(file: Path) -> None:
    Memory(file).remove("one", "p")
    assert check(file) == []


def test_the_command_lists_all_damage_and_what_to_do(file: Path) -> None:
    runner = CliRunner()
    sound = runner.invoke(app, ["memory", "check", str(file)])
    assert (sound.exit_code, "no damage" in sound.output) == (0, True)
    damage(file, TRIAL[0], STUDY[0].replace("= 1", "= 2"), "trials set study_id = 77 where trial_id = 4")
    listed = runner.invoke(app, ["memory", "check", str(file), "--json"])
    assert listed.exit_code == 1
    places = [entry["place"] for entry in json.loads(listed.output)]
    assert places == ["study 'p/two'", "trial 1 of study 'p/one'", "table trials"]
    shown = runner.invoke(app, ["memory", "check", str(file)])
    assert shown.exit_code == 1
    assert "recollect memory import" in shown.output


def test_what_is_sound_can_be_copied_to_another_memory(file: Path, tmp_path: Path) -> None:
    damage(file, TRIAL[0])
    with pytest.warns(RecollectWarning, match="trial 1"):
        Memory(tmp_path / "new.db").import_(str(file))
    assert check(tmp_path / "new.db") == []
    assert [len(run) for run in Memory(tmp_path / "new.db").runs("p")] == [3, 4]


def test_a_study_whose_process_was_killed_while_creating_it_is_completed(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(studies, "CREATION_SECONDS", 0.0)
    memory = Memory(file)
    run = Run("new", CONFIGS, [1.0, 2.0, 3.0, 4.0], space=SPACE)
    with monkeypatch.context() as patch:
        patch.setattr(type(memory.store.optuna), "set_study_user_attr", interrupt)
        with pytest.raises(KeyboardInterrupt):
            studies.get_or_create_study(memory.store, "p", "new", space=run.space, direction="minimize")
    memory.add(run, "p")
    assert len(memory.run("new", "p")) == 4


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_the_dashboard_shows_the_rest(file: Path) -> None:
    pytest.importorskip("plotly", reason="pages need plotly")
    pytest.importorskip("starlette", reason="the dashboard needs it")
    from recollect.report.dashboard.app import dashboard_app

    damage(file, TRIAL[0], STUDY[0].replace("= 1", "= 2"))
    app = dashboard_app(open_read_only(str(file)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecollectWarning)
        answers = [ask(app, path) for path in ("/", "/problem?name=p", "/run?problem=p&task=one")]
    assert [answer.status for answer in answers] == [200] * 3


def test_a_sampler_learns_from_the_rest(file: Path) -> None:
    from recollect.optuna import TransferSampler

    damage(file, TRIAL[8], STUDY[0].replace("= 1", "= 2"))
    with pytest.warns(RecollectWarning, match="damaged and left out"):
        sampler = TransferSampler(f"sqlite:///{file}")
    study = optuna.create_study(sampler=sampler)
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=2)
    assert len(study.trials) == 2


def test_what_is_sound_in_a_study_of_optuna_can_be_imported(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'o.db'}"
    study = optuna.create_study(storage=url, study_name="foreign")
    study.optimize(lambda trial: trial.suggest_float("x", 0.0, 1.0), n_trials=3)
    damage(tmp_path / "o.db", TRIAL[0])
    with pytest.warns(RecollectWarning, match="trial 1 of study 'foreign'"):
        (run,) = recollect.read_runs(url)
    assert len(run) == 2
