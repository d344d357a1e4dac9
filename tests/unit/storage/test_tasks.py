"""Tasks of a memory as a whole: listed, counted, renamed, tagged, copied, removed; and memories that do not exist."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import optuna
import pandas as pd
import pytest

from recollect import FAILED, InputError, InputTypeError, Memory, Run, minimize
from recollect.errors import StorageError
from recollect.storage.studies import INFLUENCE_KEY, SETTINGS_KEY

SPACE: dict[str, Any] = {"lr": (1e-4, 1.0, "log"), "opt": ["adam", "sgd"]}
CONFIGS = [{"lr": 0.1, "opt": "adam"}, {"lr": 0.01, "opt": "sgd"}, {"lr": 0.5, "opt": "sgd"}]


def example(task: str, **given: Any) -> Run:
    return Run(task, CONFIGS, [0.25, FAILED, 0.125], **{"space": SPACE, **given})


@pytest.fixture(params=["file", "journal", "given"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    """A memory with two problems, three runs and a study of another program."""
    if request.param == "given":
        opened = Memory(optuna.storages.InMemoryStorage())
    else:
        opened = Memory(tmp_path / "m.db" if request.param == "file" else f"journal:{tmp_path / 'm.log'}")
    opened.add(example("wine"), "svm", tags=["gpu", "2026"], note="the first")
    opened.add(example("iris", direction="maximize"), "svm", tags="gpu")
    opened.add(example("wine", space=None), "tree")
    study = optuna.create_study(storage=opened.store.optuna, study_name="old")
    study.optimize(lambda trial: trial.suggest_float("lr", 0.1, 1.0), n_trials=1)
    return opened


def names(memory: Memory) -> list[tuple[str | None, str]]:
    return [(stored.problem, stored.run.task) for stored in memory.stored_runs()]


def test_problems_tasks_and_runs_are_listed_and_counted(memory: Memory) -> None:
    assert memory.problems() == ["svm", "tree"]
    assert memory.tasks("svm") == ["wine", "iris"]
    assert memory.tasks() == ["wine", "iris", "wine", "old"]
    assert len(memory) == 4
    assert [run.task for run in memory] == ["wine", "iris", "wine", "old"]
    assert [run.values for run in memory] == [run.values for run in memory.runs()]
    sizes = [(size.problem, size.runs, size.trials) for size in memory.problem_sizes()]
    assert sizes == [("svm", 2, 6), ("tree", 1, 3), (None, 1, 1)]
    with pytest.raises(InputError, match="no problem 'svn'"):
        memory.tasks("svn")


def test_a_memory_without_runs_is_true_and_has_length_0() -> None:
    memory = Memory(optuna.storages.InMemoryStorage())
    assert bool(memory)
    assert len(memory) == 0
    assert list(memory) == []


def test_a_renamed_task_keeps_all_it_had(memory: Memory) -> None:
    before = memory.stored_run("wine", "svm")
    memory.rename("red wine", task="wine", problem="svm")
    after = memory.stored_run("red wine", "svm")
    assert (after.tags, after.note, after.run.trials) == (before.tags, before.note, before.run.trials)
    assert sorted(memory.tasks("svm")) == ["iris", "red wine"]
    study = optuna.load_study(study_name="svm/red wine", storage=memory.store.optuna)
    assert [trial.value for trial in study.trials] == [0.25, None, 0.125]


def test_a_renamed_problem_keeps_its_tasks(memory: Memory) -> None:
    memory.rename("svc", problem="svm")
    assert sorted(memory.problems()) == ["svc", "tree"]
    assert sorted(memory.tasks("svc")) == ["iris", "wine"]
    assert memory.run("iris", "svc").direction == "maximize"


def test_a_name_that_is_taken_is_refused_and_nothing_is_renamed(memory: Memory) -> None:
    before = names(memory)
    with pytest.raises(InputError, match="problem 'svm' has a task 'wine' already; nothing was renamed"):
        memory.rename("svm", problem="tree")
    with pytest.raises(InputError, match="problem 'svm' has a task 'iris' already"):
        memory.rename("iris", task="wine", problem="svm")
    with pytest.raises(InputError, match="expected a task or a problem"):
        memory.rename("new")
    with pytest.raises(InputError, match="at least one printable character"):
        memory.rename(" ", problem="svm")
    assert names(memory) == before


@pytest.mark.parametrize(
    ("task", "expected"),
    [("x\0y", "without NUL"), ("x\ud800y", "valid Unicode"), ("", "printable"), ("\t", "printable")],
)
def test_a_name_is_refused_for_what_is_wrong_with_it(memory: Memory, task: str, expected: str) -> None:
    with pytest.raises(InputError, match=expected):
        memory.rename(task, task="wine", problem="svm")


def test_problems_without_a_common_task_can_be_joined(memory: Memory) -> None:
    memory.remove("wine", "svm")
    memory.rename("svm", problem="tree")
    assert sorted(memory.tasks("svm")) == ["iris", "wine"]
    assert memory.problems() == ["svm"]


def test_a_whole_problem_is_removed_and_nothing_else(memory: Memory) -> None:
    memory.remove(problem="svm")
    assert names(memory) == [("tree", "wine"), (None, "old")]
    assert memory.check() == []
    with pytest.raises(InputError, match="no problem 'svm'"):
        memory.remove(problem="svm")
    with pytest.raises(InputError, match="expected a task or a problem"):
        memory.remove()


def test_tags_and_notes_are_stored_changed_and_selected_by(memory: Memory) -> None:
    assert [run.task for run in memory.runs("svm", tags="gpu")] == ["wine", "iris"]
    assert [run.task for run in memory.runs(tags=["gpu", "2026"])] == ["wine"]
    memory.tag("iris", "svm", add=["slow", "gpu"], note="again")
    memory.tag("wine", "svm", remove="gpu", note="")
    iris, wine = memory.stored_run("iris", "svm"), memory.stored_run("wine", "svm")
    assert (iris.tags, iris.note) == (("gpu", "slow"), "again")
    assert (wine.tags, wine.note) == (("2026",), "")
    assert [run.task for run in memory.past(SPACE, tags="2026")] == ["wine"]


@pytest.mark.parametrize(("tags", "kind"), [("a,b", InputError), ([""], InputError), ([3], InputTypeError)])
def test_what_is_not_a_word_is_no_tag(memory: Memory, tags: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match="tags: expected"):
        memory.tag("wine", "tree", add=tags)
    assert memory.stored_run("wine", "tree").tags == ()


def test_runs_are_selected_by_when_they_last_changed(memory: Memory) -> None:
    now, hour = datetime.now(), timedelta(hours=1)
    everything = ["wine", "iris", "wine", "old"]
    in_tokyo = pd.Timestamp.now(tz="Asia/Tokyo") - hour
    for earlier in (now - hour, datetime.now(UTC) - hour, in_tokyo, date.today(), (now - hour).isoformat()):
        assert [run.task for run in memory.runs(since=earlier)] == everything, earlier
    for later in (now + hour, datetime.now(UTC) + hour, date.today() + timedelta(days=2), (now + hour).isoformat()):
        assert memory.runs(since=later) == [], later
    assert [run.task for run in memory.past(SPACE, "tree", since=now - hour)] == ["wine"]
    with pytest.raises(InputError, match="since: expected a date"):
        memory.runs(since="yesterday")
    with pytest.raises(InputTypeError, match="since: expected a date"):
        memory.runs(since=3)  # type: ignore[arg-type]


def test_a_copy_has_everything_that_is_stored(memory: Memory, tmp_path: Path) -> None:
    minimize(lambda config: float(config["lr"]), SPACE, trials=3, memory=memory, problem="tree", task="tuned")
    reports: list[tuple[int, int]] = []
    assert memory.copy_to(tmp_path / "copy.db", report=lambda *done: reports.append(done)) == 5
    assert reports == [(5, 5)]
    copied = Memory(tmp_path / "copy.db")
    assert names(copied) == names(memory)
    for before, after in zip(memory.stored_runs(), copied.stored_runs(), strict=True):
        assert (after.tags, after.note, after.run.trials) == (before.tags, before.note, before.run.trials)
        assert (after.run.space is None) == (before.run.space is None)
    pair = [optuna.load_study(study_name="tree/tuned", storage=place.store.optuna) for place in (memory, copied)]
    assert pair[0].user_attrs[SETTINGS_KEY] == pair[1].user_attrs[SETTINGS_KEY]
    first, second = ([trial.user_attrs[INFLUENCE_KEY] for trial in study.trials] for study in pair)
    assert first == second


def test_what_the_other_memory_has_is_refused_or_skipped(memory: Memory, tmp_path: Path) -> None:
    with Memory(tmp_path / "copy.db") as copy:
        assert memory.copy_to(copy, "svm") == 2
        with pytest.raises(InputError, match="'svm/wine' already; nothing was copied"):
            memory.copy_to(copy)
        assert names(copy) == [("svm", "wine"), ("svm", "iris")]
        assert memory.copy_to(copy, skip_existing=True) == 2
        assert len(copy) == 4


def test_export_of_all_problems_keeps_them_with_tags_and_notes(memory: Memory, tmp_path: Path) -> None:
    assert memory.export(tmp_path / "all.jsonl", problem=None) == 4
    copied = Memory(tmp_path / "copy.db")
    copied.import_(tmp_path / "all.jsonl")
    assert names(copied) == [("svm", "wine"), ("svm", "iris"), ("tree", "wine"), ("default", "old")]
    assert (copied.stored_run("wine", "svm").tags, copied.stored_run("wine", "svm").note) == (
        ("gpu", "2026"),
        "the first",
    )
    only = Memory(tmp_path / "only.db")
    only.import_(tmp_path / "all.jsonl", "svm")
    assert names(only) == [("svm", "wine"), ("svm", "iris")]


@pytest.mark.parametrize("address", ["{}/no.db", "sqlite:///{}/no.db", "journal:{}/no.log"])
def test_reading_a_memory_that_does_not_exist_is_an_error_and_writing_creates_it(tmp_path: Path, address: str) -> None:
    memory = Memory(address.format(tmp_path))
    reads = (memory.runs, memory.problems, memory.tasks, memory.check, lambda: list(memory), lambda: len(memory))
    for read in (*reads, lambda: memory.past(SPACE), lambda: memory.run("t"), lambda: memory.remove("t")):
        with pytest.raises(StorageError, match="there is no such memory"):
            read()
    with pytest.raises(InputError):
        memory.add(Run("t", [{"x": [1]}], [1.0]))
    assert list(tmp_path.iterdir()) == []
    memory.add(example("wine"), "svm")
    assert names(memory) == [("svm", "wine")]


def test_an_import_that_is_refused_creates_no_memory(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("lr,value\n0.1,x\n")
    with pytest.raises(InputError):
        Memory(tmp_path / "m.db").import_(tmp_path / "t.csv")
    assert not (tmp_path / "m.db").exists()


def test_minimize_creates_the_memory(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    minimize(lambda config: float(config["lr"]), SPACE, trials=2, memory=memory, task="t", progress=False)
    assert memory.tasks() == ["t"]
