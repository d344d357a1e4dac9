"""The story of a run as a memory tells it: which past runs it could learn from, and what is not known."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from recollect import FAILED, InputError, Memory, Run, minimize
from recollect.cli.main import main
from recollect.history.changes import write
from recollect.history.storage import quiet
from recollect.history.studies import FORMAT_KEY, INFLUENCE_KEY, SETTINGS_KEY, begin, find
from recollect.report.page import render
from recollect.report.run import report_run, run_report
from recollect.report.run.teachers import teachers
from recollect.report.run.weights import weighed
from recollect.report.story import Note, note_of, read_story, searched, story_of
from recollect.space.space import compile_space
from recollect.tuning.result import Result

SPACE: dict[str, Any] = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
NOON = datetime(2026, 5, 4, 12, 0, 0)


def bowl(config: dict[str, Any]) -> float:
    return float((config["a"] - 0.3) ** 2 + (config["b"] - 0.7) ** 2)


def tuned(memory: Path | None, task: str, *, problem: str = "p", method: str = "random", **given: Any) -> Result:
    return minimize(
        bowl, SPACE, memory=memory, task=task, problem=problem, method=method, progress=False, **{"trials": 6, **given}
    )


def put(
    memory: Memory, task: str, *, minutes: list[float], settings: Any = None, notes: dict[int, Any] | None = None
) -> None:
    """Write a run whose trials end at these minutes after noon, each of which began half a minute before."""
    entry = begin(memory.store, "p", task, space=compile_space(SPACE), direction="minimize")
    if settings is not None:
        memory.store.optuna.set_study_user_attr(entry.id, SETTINGS_KEY, settings)
    known = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in SPACE}
    trials = []
    for number, minute in enumerate(minutes):
        end = NOON + timedelta(minutes=minute)
        trial = optuna.trial.create_trial(
            params={"a": number / 10, "b": 0.5},
            distributions=known,
            value=float(number),
            user_attrs={INFLUENCE_KEY: notes[number]} if notes and number in notes else {},
        )
        trial.datetime_start, trial.datetime_complete = end - timedelta(minutes=0.5), end
        trials.append(trial)
    write(memory.store, entry.id, trials)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    """A memory in which `last` has learned from three earlier runs, and was given a fourth."""
    path = tmp_path_factory.mktemp("memory") / "tuning.db"
    for number, task in enumerate(("one", "two", "three")):
        tuned(path, task, seed=number)
    given = Run("given", [{"a": x / 7, "b": x / 7} for x in range(7)], [float(x) for x in range(7)])
    result = tuned(path, "last", method="rgpe-taf", trials=8, past=[given])
    tuned(path, "last", problem="alone", method="gp", trials=8)
    tuned(path, "later")
    return path, result


def test_a_memory_tells_the_same_as_the_result(stored: tuple[Path, Result]) -> None:
    path, result = stored
    told, direct = read_story(Memory(path), "p", "last"), story_of(result)
    assert told.run.trials == direct.run.trials
    assert told.notes == direct.notes
    assert told.settings == direct.settings
    assert told.space is not None
    assert direct.space is not None
    assert told.space.names == direct.space.names
    assert [run.task for run in told.past] == ["one", "two", "three"], "not the run that came later"
    assert [run.task for run in direct.past] == ["given", "one", "two", "three"]
    assert [run.trials for run in told.past] == [run.trials for run in direct.past[1:]]
    assert (told.source, direct.source) == (str(path), "")
    assert told.times is not None
    assert told.times[0] < told.times[1]


def test_a_past_run_that_was_given_is_named_though_it_is_not_in_the_memory(stored: tuple[Path, Result]) -> None:
    told = read_story(Memory(stored[0]), "p", "last")
    assert told.method is not None
    found = {teacher.task: teacher for teacher in teachers(told, told.method, weighed(told))}
    assert set(found) == {"given", "one", "two", "three"}
    assert found["given"].trials is None
    assert found["given"].done == "it is not in this memory"
    assert found["one"].agreement is not None
    assert found["one"].overlap == 1.0


def test_a_run_of_the_same_task_without_transfer_is_found(stored: tuple[Path, Result]) -> None:
    paired = read_story(Memory(stored[0]), "p", "last").paired
    assert paired is not None
    assert (paired.problem, paired.method, len(paired.run)) == ("alone", "gp", 8)
    assert read_story(Memory(stored[0]), "alone", "last").paired is None, "one that transfers is no comparison"
    assert read_story(Memory(stored[0]), "p", "one").paired is None


def test_it_is_known_which_past_runs_were_made_without_transfer(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        put(memory, "first", minutes=[1, 2, 3], settings={"method": "rgpe-taf", "trials": 3})
        put(memory, "beside", minutes=[1, 2, 4], settings={"method": "rgpe-taf", "trials": 3})
        put(memory, "plain", minutes=[6, 7, 8], settings={"method": "gp", "trials": 3})
        put(memory, "learned", minutes=[16, 17, 18], settings={"method": "rgpe-taf", "trials": 3})
        put(memory, "imported", minutes=[20, 20, 20])
        put(memory, "odd", minutes=[21, 21, 21], settings={"method": "of tomorrow"})
        put(memory, "own", minutes=[30, 31], settings={"method": "rgpe-taf", "trials": 2})
        told = read_story(memory, "p", "own")
    assert {task: told.origins[task] for task in told.origins if task != "own"} == {
        **{"first": "alone", "beside": "alone", "plain": "alone", "learned": "taught"},
        **{"imported": "unknown", "odd": "unknown"},
    }


def test_past_runs_are_as_they_were_when_the_run_began(tmp_path: Path) -> None:
    note = {"reason": "", "target": 0.5, "past": {"came later": 0.5}, "dropped": []}
    with Memory(tmp_path / "m.db") as memory:
        put(memory, "done", minutes=[1, 2, 3])
        put(memory, "at the same time", minutes=[4, 5, 11, 12, 13])
        put(memory, "too late", minutes=[11, 12, 13])
        put(memory, "came later", minutes=[11, 12, 13, 50])
        put(memory, "too short", minutes=[1])
        put(memory, "own", minutes=[10, 20, 30], notes={2: note})
        told = read_story(memory, "p", "own")
    assert {run.task: len(run) for run in told.past} == {"done": 3, "at the same time": 2, "came later": 3}


def test_what_is_noted_may_be_of_any_form() -> None:
    assert note_of(None) is None
    assert note_of("text") is None
    assert note_of({}) == Note("")
    assert note_of({"reason": 3, "target": "much"}) == Note("3")
    assert note_of({"target": 0.5, "past": [1, 2]}) == Note("")
    assert note_of({"target": float("nan"), "past": {}}) == Note("")
    odd = {"reason": "r", "target": 2, "past": {"a": "x", "b": 0.25, "c": None}, "dropped": "abc"}
    assert note_of(odd) == Note("r", 1.0, {"b": 0.25}, frozenset())


def test_damaged_attributes_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    tuned(path, "one")
    tuned(path, "two", method="rgpe-taf")
    with sqlite3.connect(path) as database:
        database.execute("update trial_user_attributes set value_json = '[1, 2]' where key = ?", (INFLUENCE_KEY,))
        database.execute("update study_user_attributes set value_json = '\"x\"' where key = ?", (SETTINGS_KEY,))
    told = read_story(Memory(path), "p", "two")
    assert told.notes == (None,) * 6
    assert told.settings == {}
    assert told.method is None
    assert "How it was tuned is not known" in render(run_report(told))


def test_trials_of_another_space_are_placed_as_well_as_possible(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    tuned(path, "own", trials=12)
    with sqlite3.connect(path) as database:
        database.execute("update trial_params set param_value = 7.5 where param_id = 3")
    told = read_story(Memory(path), "p", "own")
    assert len(told.run) == 12
    render(run_report(told))


def test_studies_of_other_programs_have_a_page_too(tmp_path: Path) -> None:
    with quiet():
        study = optuna.create_study(storage=f"sqlite:///{tmp_path / 'optuna.db'}", study_name="theirs")

    def objective(trial: optuna.Trial) -> float:
        depth = trial.suggest_int("depth", 1, 4)
        kind = trial.suggest_categorical("kind", ["x", "y", None])
        extra = trial.suggest_float("extra", 0.1, 0.9) if kind == "x" else 0.0
        trial.report(depth, 0)
        if trial.number == 5:
            raise optuna.TrialPruned
        return depth + extra

    with quiet():
        study.optimize(objective, n_trials=14)
    memory = Memory(tmp_path / "optuna.db")
    told = read_story(memory, None, "theirs")
    assert told.problem is None
    assert told.space is not None
    assert set(told.space.names) == {"depth", "kind", "extra"}
    assert set(told.notes) == {None}
    assert told.past == ()
    assert "a study of another program" in render(report_run(memory, None, "theirs"))


def test_a_space_is_made_of_what_was_tried_where_none_was_kept() -> None:
    configs = [
        {"n": 1, "x": 0.5, "c": "a", "k": 3, "l": [1], "t": 1e-20},
        {"n": 4, "x": 2, "c": None, "k": 3, "t": 2e-20},
    ]
    space = searched(Run("bare", configs, [1.0, FAILED]))
    assert space is not None
    assert set(space.names) == {"n", "x", "c", "k", "t"}, "no list can be a value"
    assert space.decode(space.encode([{name: configs[0][name] for name in space.names}]))[0]["n"] == 1
    assert int(space.varying.sum()) == 4
    assert searched(Run("empty")) is None


def test_a_task_that_is_not_there_or_not_unique_is_named(stored: tuple[Path, Result]) -> None:
    memory = Memory(stored[0])
    with pytest.raises(InputError, match=r"problem 'p': there is no task 'nowhere', only 'one', 'two'"):
        read_story(memory, "p", "nowhere")
    with pytest.raises(InputError, match=r"there are several tasks 'last', say of which problem: 'p', 'alone'"):
        read_story(memory, None, "last")
    with pytest.raises(InputError, match=r"problem 'q': there is no task 'last', only nothing at all"):
        read_story(memory, "q", "last")
    assert read_story(memory, None, "one").problem == "p"


def test_a_task_without_a_finished_trial_has_a_page(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        put(memory, "earlier", minutes=[1, 2, 3])
        put(memory, "begun", minutes=[], settings={"method": "rgpe-taf", "trials": 5, "seed": 1})
        assert "No trial has ended yet." in render(report_run(memory, "p", "begun"))


def test_void_and_running_trials_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    tuned(path, "own", trials=4)
    with Memory(path) as memory:
        entry = find(memory.store, "p", "own")
        assert entry is not None
        store = memory.store.optuna
        running = store.create_new_trial(entry.id)
        void = store.create_new_trial(entry.id)
        store.set_trial_user_attr(void, "recollect:void", "interrupted")
        store.set_trial_state_values(void, TrialState.FAIL)
        assert len(read_story(memory, "p", "own").run) == 4
        store.set_trial_state_values(running, TrialState.FAIL)
        assert len(read_story(memory, "p", "own").run) == 5


def test_a_result_writes_its_page(stored: tuple[Path, Result], tmp_path: Path) -> None:
    stored[1].report(tmp_path / "folder" / "report.html")
    text = (tmp_path / "folder" / "report.html").read_text(encoding="utf-8")
    assert "Tuning report: last" in text
    for name in ("given", "one", "two", "three"):
        assert f">{name}</th>" in text


# The command

Recollect = Callable[..., tuple[int, str, str]]


@pytest.fixture
def recollect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recollect:
    """Return the command line as `main` runs it."""

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["recollect", "report", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return int(ended.value.code or 0), out, err

    return run


def test_the_command_writes_the_page_and_says_where(
    stored: tuple[Path, Result], tmp_path: Path, recollect: Recollect
) -> None:
    out = tmp_path / "page.html"
    code, said, err = recollect("--memory", stored[0], "--problem", "p", "--task", "last", "--out", out)
    assert (code, said, err) == (0, f"{out}\n", "")
    specs = re.findall(r'<script type="application/json" class="spec">(.*?)</script>', out.read_text(encoding="utf-8"))
    assert len(specs) == 4
    assert all(json.loads(spec)["traces"] for spec in specs)
    assert recollect("--memory", stored[0], "--problem", "p", "--task", "last", "--out", out)[0] == 0, (
        "a page is replaced"
    )


def test_without_a_task_it_is_a_page_of_the_whole_memory(
    stored: tuple[Path, Result], tmp_path: Path, recollect: Recollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect.report import overview
    from recollect.report.page import Page

    asked = []

    def page_of(memory: Memory, problem: str | None) -> Page:
        asked.append((memory.store.name, problem))
        return Page("All of it", "", ())

    monkeypatch.setattr(overview, "overview_page", page_of)
    assert recollect("--memory", stored[0], "--problem", "p", "--out", tmp_path / "all.html")[0] == 0
    assert asked == [(str(stored[0]), "p")]
    assert "All of it" in (tmp_path / "all.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--memory", "{}/none.db", "--task", "last"), "there is no such memory"),
        (("--memory", "{db}", "--task", "nowhere"), "there is no task 'nowhere'"),
        (("--memory", "{db}", "--task", "last"), "there are several tasks 'last'"),
        (("--memory", "{db}", "--task", "one", "--out", "{}"), "this is a folder"),
        (("--memory", "{db}", "--task", "one", "--out", "{}/own.txt"), "it is not a page of recollect's"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(
    arguments: tuple[str, ...], sentence: str, stored: tuple[Path, Result], tmp_path: Path, recollect: Recollect
) -> None:
    (tmp_path / "own.txt").write_text("precious")
    code, out, err = recollect(*(text.format(tmp_path, db=stored[0]) for text in arguments))
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.txt"], "nothing was made"
    assert (tmp_path / "own.txt").read_text() == "precious"


def test_a_study_of_a_newer_format_is_refused(tmp_path: Path, recollect: Recollect) -> None:
    tuned(tmp_path / "m.db", "one")
    with sqlite3.connect(tmp_path / "m.db") as database:
        database.execute("update study_user_attributes set value_json = '99' where key = ?", (FORMAT_KEY,))
    code, _, err = recollect("--memory", tmp_path / "m.db", "--task", "one")
    assert code == 2
    assert "install a newer version" in err
