"""The memory: runs in Optuna storages, found again as they were, by us and by Optuna."""

from __future__ import annotations

import pickle
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest
import sqlalchemy
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer

from recollect import FAILED, InputError, InputTypeError, RecollectWarning, Run, Trial, write_runs
from recollect.errors import MissingExtraError, ReadOnlyStorageError, StorageError
from recollect.storage import open as storages
from recollect.storage.memory import Memory
from recollect.storage.studies import FORMAT_KEY, study_name

HOSTILE = [
    "it's; drop table studies; --",
    '"><script>alert(1)</script>',
    "a/b",
    "a%2Fb",
    "smile \U0001f600",
    "[red]bold[/red]",
    "\u202eright to left",
    "  spaces  ",
    "x" * 400,
]


def conditional() -> ConfigurationSpace:
    space = ConfigurationSpace(seed=0)
    kernel = Categorical("kernel", ["rbf", "linear"])
    gamma = Float("gamma", (1e-3, 1e1), log=True)
    space.add(kernel, gamma, Integer("n", (1, 9)), Float("C", (0.1, 10.0)), EqualsCondition(gamma, kernel, "rbf"))
    return space


def example(task: str = "one", **given: Any) -> Run:
    configs = [
        {"kernel": "rbf", "gamma": 0.1, "n": 3, "C": 1.5},
        {"kernel": "linear", "n": 4, "C": 0.1},
        {"kernel": "rbf", "gamma": 10.0, "n": 9, "C": 10.0},
    ]
    return Run(task, configs, [0.25, FAILED, 0.125], **given)


@pytest.fixture(params=["file", "journal", "given"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    if request.param == "given":
        return Memory(optuna.storages.InMemoryStorage())
    opened = Memory(tmp_path / "m.db" if request.param == "file" else f"journal:{tmp_path / 'm.log'}")
    assert opened.store.optuna is not None  # which creates the file
    return opened


def test_a_run_comes_back_as_it_was_added(memory: Memory) -> None:
    run = Run(
        "one",
        trials=[
            Trial({"kernel": "rbf", "gamma": 0.1, "n": 3, "C": 1.5}, 0.25, seconds=2.0),
            Trial({"kernel": "linear", "n": 4, "C": 0.1}, None, FAILED, notes=("out of memory", "twice")),
        ],
        space=conditional(),
        direction="maximize",
    )
    memory.add(run, "svm")
    (found,) = memory.runs("svm")
    assert found.task == "one"
    assert found.direction == "maximize"
    assert found.configs == run.configs
    assert [type(value) for value in found.configs[0].values()] == [type(value) for value in run.configs[0].values()]
    assert found.values == run.values
    assert found.trials[1].notes == ("out of memory", "twice")
    assert found.trials[0].seconds == pytest.approx(2.0)
    assert found.trials[1].seconds is None  # as before: unknown
    assert found.space is not None
    assert found.space.names == run.space.names if run.space is not None else False


def test_values_of_every_kind_keep_their_type_without_a_space(memory: Memory) -> None:
    configs = [{"i": 3, "f": 2.0, "b": True, "s": "x", "n": None}, {"i": -4, "f": 1e-300, "b": False, "s": "3", "n": 1}]
    memory.add(Run("t", configs, [1.0, 2.0]))
    found = memory.run("t").configs
    assert found == configs
    assert [[type(value) for value in config.values()] for config in found] == [[int, float, bool, str, type(None)], [
        int, float, bool, str, int]]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_names_of_any_characters_are_kept_apart_and_found_again(tmp_path: Path, name: str) -> None:
    memory = Memory(tmp_path / "m.db")
    memory.add(example(name), "p")
    memory.add(example("a"), "p/" + name[:50])
    assert memory.run(name, "p").task == name
    assert {run.task for run in memory.runs("p")} == {name}
    memory.remove(name, "p")
    assert len(memory.runs()) == 1


def test_slashes_do_not_mix_problems_and_tasks() -> None:
    names = [study_name(p, t) for p, t in (("a", "b/c"), ("a/b", "c"), ("a%2Fb", "c"), ("a", "b%2Fc"))]
    assert len(set(names)) == 4


@pytest.mark.parametrize(
    ("name", "kind"), [("", InputError), ("\0", InputError), (3, InputTypeError), ("x" * 600, InputError)]
)
def test_names_that_cannot_be_kept_are_refused(tmp_path: Path, name: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind, match=r"problem|characters"):
        Memory(tmp_path / "m.db").add(example(), name)


def test_optuna_reads_a_memory_and_a_memory_reads_optunas_studies(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    memory.add(example(space=conditional()), "svm")
    study = optuna.load_study(study_name="svm/one", storage=f"sqlite:///{tmp_path / 'm.db'}")
    assert study.best_params == {"kernel": "rbf", "gamma": 10.0, "n": 9, "C": 10.0}
    assert [trial.state.name for trial in study.trials] == ["COMPLETE", "FAIL", "COMPLETE"]
    assert [trial.number for trial in study.trials] == [0, 1, 2]
    mine = optuna.create_study(study_name="mine", storage=f"sqlite:///{tmp_path / 'm.db'}", direction="maximize")
    mine.optimize(lambda trial: trial.suggest_float("C", 0, 1), n_trials=3)
    assert [(kept.problem, kept.run.task) for kept in memory.stored_runs()] == [("svm", "one"), (None, "mine")]
    assert memory.runs()[1].values == [trial.value for trial in mine.trials]
    assert memory.runs("svm")[0].task == "one"


def test_past_runs_leave_out_the_task_other_problems_and_what_does_not_fit(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    for task in ("one", "two", "three"):
        memory.add(example(task), "svm")
    memory.add(example("four"), "other")
    memory.add(example("five", direction="maximize"), "svm")
    memory.add(Run("six", [{"depth": depth} for depth in (1, 2, 3)], [1.0, 2.0, 3.0]), "svm")
    memory.add(Run("empty"), "svm")
    with pytest.warns(RecollectWarning) as said:
        found = memory.past(conditional(), "svm", exclude="two")
    assert [run.task for run in found] == ["one", "three"]
    texts = [str(warning.message) for warning in said]
    assert any("'five' (maximize)" in text for text in texts)
    assert any("no hyperparameter in common: 'six'" in text for text in texts)
    with pytest.warns(RecollectWarning):
        assert {run.task for run in memory.past(conditional(), exclude=["one", "two"])} == {"three", "four"}


def test_past_runs_may_have_hyperparameters_under_old_names(memory: Memory) -> None:
    memory.add(Run("old", [{"learning_rate": 0.1}, {"learning_rate": 0.2}], [1.0, 2.0]), "svm")
    memory.add(Run("new", [{"lr": 0.1}, {"lr": 0.3}], [1.0, 2.0]), "svm")
    past = memory.past({"lr": (0.0, 1.0)}, "svm", rename={"learning_rate": "lr"})
    assert [run.configs for run in past] == [[{"lr": 0.1}, {"lr": 0.2}], [{"lr": 0.1}, {"lr": 0.3}]]
    assert memory.run("old", "svm").configs[0] == {"learning_rate": 0.1}


def test_past_runs_cannot_be_renamed_to_what_the_space_lacks(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="'lrr'"):
        Memory(tmp_path / "memory.db").past({"lr": (0.0, 1.0)}, rename={"learning_rate": "lrr"})


def test_a_task_that_has_trials_is_not_added_twice(memory: Memory) -> None:
    memory.add(example(), "svm")
    with pytest.raises(InputError, match="'one' of problem 'svm' has trials already"):
        memory.add(example(), "svm")
    assert len(memory.runs()) == 1


def test_an_unknown_task_is_named_with_those_that_are_there(memory: Memory) -> None:
    memory.add(example(), "svm")
    with pytest.raises(InputError, match=r"no task 'two'.*'one'$"):
        memory.run("two", "svm")
    with pytest.raises(InputError, match=r"there is no problem 'tree'.*'svm'$"):
        memory.remove("one", "tree")


def test_a_problem_that_is_not_there_is_neither_read_nor_exported(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no problem 'default'.*no problems yet$"):
        memory.export(tmp_path / "runs.jsonl")
    memory.add(example(), "svm")
    memory.add(example(), "tree")
    with pytest.raises(InputError, match=r"there is no problem 'svn'.*'svm' and 'tree'$"):
        memory.export(tmp_path / "runs.jsonl", "svn")
    assert not (tmp_path / "runs.jsonl").exists()
    with pytest.raises(InputError, match=r"there is no problem 'svn'.*'svm' and 'tree'$"):
        memory.runs("svn")


def names(memory: Memory) -> list[tuple[str | None, str]]:
    return [(kept.problem, kept.run.task) for kept in memory.stored_runs()]


@pytest.fixture
def other(tmp_path: Path) -> Path:
    """A memory with two problems, and a study of another tool in it."""
    path = tmp_path / "other.db"
    with Memory(path) as memory:
        for problem, task in (("svm", "wine"), ("svm", "iris"), ("tree", "monday")):
            memory.add(example(task, space=conditional()), problem)
        study = optuna.create_study(storage=memory.store.optuna, study_name="old")
        study.optimize(lambda trial: trial.suggest_float("C", 0.1, 10.0), n_trials=1)
    return path


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, [("svm", "wine"), ("svm", "iris"), ("tree", "monday"), ("default", "old")]),
        ({"problem": "svm"}, [("svm", "wine"), ("svm", "iris")]),
        ({"problem": "new"}, [("new", "wine"), ("new", "iris"), ("new", "monday"), ("new", "old")]),
        ({"task": "wine"}, [("svm", "wine")]),
        ({"task": "tree/monday", "problem": "new"}, [("new", "monday")]),
        ({"task": "old", "problem": "new"}, [("new", "old")]),
    ],
)
def test_runs_of_another_memory_keep_their_names(
    memory: Memory, other: Path, given: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    runs = memory.import_(other, **given)
    assert names(memory) == expected
    assert [run.task for run in runs] == [task for _, task in expected]
    with Memory(other) as source:
        there = {run.task: run for run in source.runs()}
    for run in memory.runs():
        assert (run.configs, run.values) == (there[run.task].configs, there[run.task].values)
        assert (run.space is None) == (there[run.task].space is None)


def test_a_task_that_another_problem_has_is_not_imported(memory: Memory, other: Path) -> None:
    with pytest.raises(InputError, match=r"there is no task 'monday', only 'wine' and 'iris'$"):
        memory.import_(other, "svm", task="monday")
    assert names(memory) == []


def test_two_runs_never_become_one_task(memory: Memory, other: Path, tmp_path: Path) -> None:
    memory.import_(other, "svm")
    with pytest.raises(InputError, match="problem 'svm' has the task 'wine' already; nothing was imported"):
        memory.import_(other)
    with Memory(other) as source:
        source.add(example("monday"), "svm")
    with pytest.raises(InputError, match="2 runs would become task 'monday' of problem 'new'; nothing was imported"):
        memory.import_(other, "new")
    write_runs([example("a"), example("b"), example("b")], tmp_path / "runs.jsonl")
    with pytest.raises(InputError, match="2 runs would become task 'b' of problem 'default'; nothing was imported"):
        memory.import_(tmp_path / "runs.jsonl")
    assert names(memory) == [("svm", "wine"), ("svm", "iris")]


def test_a_memory_is_not_imported_into_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.db").symlink_to(tmp_path / "m.db")
    kept, journal, within = Memory("m.db"), Memory("journal:m.log"), optuna.storages.InMemoryStorage()
    url = f"sqlite:///{tmp_path}/m.db"
    sources: list[tuple[Memory, Any]] = [
        *((kept, source) for source in ("m.db", tmp_path / "link.db", "sqlite:///m.db", url)),
        (kept, optuna.storages.RDBStorage(url)),
        (journal, f"journal:{tmp_path}/m.log"),
        (Memory(within), within),
    ]
    for memory in (kept, journal, sources[-1][0]):
        memory.add(example(), "svm")
    for memory, source in sources:
        with pytest.raises(InputError, match="a memory cannot be imported into itself"):
            memory.import_(source, "new")
        assert names(memory) == [("svm", "one")]


def test_a_study_in_the_same_storage_can_be_copied_into_a_problem(other: Path) -> None:
    with Memory(other) as memory:
        memory.import_(optuna.load_study(study_name="old", storage=memory.store.optuna), "svm")
        assert ("svm", "old") in names(memory)


def test_export_and_import_are_each_others_inverse(memory: Memory, tmp_path: Path) -> None:
    memory.add(example("one", space=conditional()), "svm")
    memory.add(example("two", direction="maximize"), "svm")
    assert memory.export(tmp_path / "runs.jsonl", "svm") == 2
    other = Memory(tmp_path / "other.db")
    assert [run.task for run in other.import_(tmp_path / "runs.jsonl", "svm")] == ["one", "two"]
    for before, after in zip(memory.runs(), other.runs(), strict=True):
        assert (after.task, after.configs, after.values) == (before.task, before.configs, before.values)
        assert after.direction == before.direction
    with pytest.raises(InputError, match="has the task 'one' already; nothing was imported"):
        other.import_(tmp_path / "runs.jsonl", "svm")


def test_ten_thousand_trials_are_written_and_read_in_seconds(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    count = 10_000
    run = Run("big", [{"a": i / count, "k": "xy"[i % 2]} for i in range(count)], [float(i % 97) for i in range(count)])
    start = time.perf_counter()
    memory.add(run, "p")
    assert Memory(tmp_path / "m.db").run("big", "p").configs == run.configs
    assert time.perf_counter() - start < 60


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "m.db").write_text("not a database, but long enough to be taken for one " * 40)
    with pytest.raises(StorageError, match=r"m\.db: file is not a database"):
        Memory(tmp_path / "m.db")


def test_a_damaged_database_gives_one_sentence(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    memory.add(example(), "svm")
    memory.close()
    data = bytearray((tmp_path / "m.db").read_bytes())
    data[4096:] = bytes(len(data) - 4096)
    (tmp_path / "m.db").write_bytes(bytes(data))
    with pytest.raises(StorageError, match=r"m\.db: "):
        Memory(tmp_path / "m.db").runs()


def test_a_database_of_something_else_is_refused_and_left_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection, connection:
        connection.execute("create table customers (name text)")
    with pytest.raises(StorageError, match="database of another program, with the tables customers"):
        Memory(tmp_path / "m.db")
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection, connection:
        assert connection.execute("select name from sqlite_master").fetchall() == [("customers",)]


@pytest.mark.parametrize(
    ("where", "kind", "said"),
    [
        ("nonsense://host/x", StorageError, "not a storage that can be opened"),
        ("postgresql://me:secret@127.0.0.1:1/x", StorageError, r"me:\*\*\*@127.0.0.1"),
        ("/no/such/folder/m.db", StorageError, "there is no folder /no/such/folder"),
        ("/", StorageError, "this is a folder"),
        ("journal:/no/such/folder/m.log", StorageError, "there is no folder"),
        ("", InputTypeError, "expected a file name or a storage URL"),
        (7, InputTypeError, "expected a file name, a storage URL or an Optuna storage, got int"),
        ("oracle+none://x/y", StorageError, "not a storage that can be opened"),
    ],
)
def test_a_wrong_address_is_told_from_the_start(where: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said) as caught:
        Memory(where)
    assert "secret" not in str(caught.value)


def test_a_missing_driver_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storages, "_driver", lambda _name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'pymysql'"):
        Memory("mysql://someone@127.0.0.1/x")


@pytest.mark.parametrize(("found", "cure"), [(0, "the version that wrote it"), (2, "newer version"), ("1", "wrote it")])
def test_another_format_is_refused_with_a_cure(tmp_path: Path, found: Any, cure: str) -> None:
    memory = Memory(tmp_path / "m.db")
    memory.add(example(), "svm")
    memory.store.optuna.set_study_user_attr(1, FORMAT_KEY, found)
    reason = f"has format {found!r}, this version reads format 1: .*{cure}"
    with pytest.raises(StorageError, match=reason):
        memory.run("one", "svm")
    with pytest.warns(RecollectWarning, match=reason):
        assert memory.runs() == []


def test_a_database_that_stays_locked_gives_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Memory(tmp_path / "m.db").close()
    monkeypatch.setattr(storages, "SQLITE_TIMEOUT", 0.2)
    memory = Memory(tmp_path / "m.db")
    holder = sqlite3.connect(tmp_path / "m.db")
    holder.execute("begin exclusive")
    with pytest.raises(StorageError, match=r"m\.db: database is locked"):
        memory.add(example(), "svm")
    holder.close()


def test_a_database_that_may_only_be_read_is_read_and_not_written(tmp_path: Path) -> None:
    Memory(tmp_path / "m.db").add(example(), "svm")
    memory = Memory(f"sqlite:///file:{tmp_path / 'm.db'}?mode=ro&uri=true")
    assert len(memory.runs()) == 1
    with pytest.raises(ReadOnlyStorageError):
        memory.add(example("two"), "svm")


def test_a_study_with_several_objectives_is_no_past_run(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    study = optuna.create_study(study_name="two aims", storage=url, directions=["minimize", "maximize"])
    study.optimize(lambda trial: (trial.suggest_float("C", 0.1, 1), 1.0), n_trials=2)
    memory = Memory(tmp_path / "m.db")
    assert memory.runs() == []
    with pytest.warns(RecollectWarning, match=r"two aims.*several objectives"):
        assert memory.past({"C": (0.1, 1.0)}) == []


def test_what_is_no_run_is_not_added(tmp_path: Path) -> None:
    with pytest.raises(InputTypeError, match=r"expected a recollect\.Run, got dict"):
        Memory(tmp_path / "m.db").add({"a": 1})  # type: ignore[arg-type]


def test_a_memory_is_copied_as_an_address(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    memory.add(example(), "svm")
    assert pickle.loads(pickle.dumps(memory)).runs("svm") == memory.runs("svm")
    with pytest.raises(InputTypeError, match="only in this process"):
        pickle.dumps(Memory(optuna.storages.InMemoryStorage()))


@pytest.mark.parametrize(
    ("address", "file"),
    [
        ("m.db", "m.db"),
        ("~/m.db", str(Path.home() / "m.db")),
        ("sqlite:///m.db", "m.db"),
        ("sqlite+pysqlite:////a/m.db?timeout=3", "/a/m.db"),
        ("sqlite:///file:/a/m.db?mode=ro&uri=true", "/a/m.db"),
        ("journal:m.log", "m.log"),
        ("journal:///a/m.log", "/a/m.log"),
        ("sqlite:///:memory:", None),
        (":memory:", None),
        ("postgresql://host/m.db", None),
        ("redis://host:6379", None),
    ],
)
def test_an_address_tells_which_file_it_is_about(address: str, file: str | None) -> None:
    assert storages.file_of(address) == (None if file is None else Path(file))


@pytest.mark.parametrize("address", [":memory:", "sqlite:///:memory:"])
def test_a_memory_within_the_process_writes_no_file(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Memory(address) as memory:
        memory.add(example(), "svm")
        assert memory.tasks() == [example().task]
        assert (list(tmp_path.iterdir()), Memory(address).runs()) == ([], [])


def test_tables_of_another_version_of_optuna_are_refused_with_the_command_that_upgrades_them(tmp_path: Path) -> None:
    Memory(tmp_path / "m.db").add(example(), "svm")
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection, connection:
        connection.execute("update alembic_version set version_num = 'v2.6.0.a'")
    with pytest.raises(StorageError, match=rf"{tmp_path}/m.db: .*upgrade --storage sqlite:///{tmp_path}/m.db`"):
        Memory(tmp_path / "m.db")


def test_while_another_process_creates_the_tables_opening_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLAlchemy looks for a table and creates it in two steps, between which somebody else may create it."""
    address = f"sqlite:///{tmp_path / 'm.db'}"
    attempts = []

    def create(self: optuna.storages.RDBStorage, *given: Any, **options: Any) -> None:
        attempts.append(given)
        if len(attempts) == 1:
            original(self, *given, **options)
            raise sqlalchemy.exc.OperationalError("create table studies", {}, Exception("table studies already exists"))
        original(self, *given, **options)

    original = optuna.storages.RDBStorage.__init__
    monkeypatch.setattr(optuna.storages.RDBStorage, "__init__", create)
    monkeypatch.setattr(storages, "CREATION_PAUSES", (0.0,))
    assert Memory(address).store.optuna.get_all_studies() == []
    assert len(attempts) == 3  # twice to create the tables, once to open them


@pytest.mark.parametrize("config", [{"x": 10**400}, {"x": float("inf")}, {"\ud800": 1}, {"x": [1]}])
def test_a_configuration_that_no_storage_holds_is_refused_before_anything_is_stored(
    tmp_path: Path, config: dict[str, Any]
) -> None:
    memory = Memory(str(tmp_path / "m.db"))
    with pytest.raises(InputError, match=r"run 't'.*expected"):
        memory.add(Run("t", [config], [0.5]))
    assert not (tmp_path / "m.db").exists()


def test_a_memory_exists_once_something_was_written(tmp_path: Path) -> None:
    with Memory(tmp_path / "new.db") as memory:
        assert not memory.exists
        memory.add(Run("a", [{"x": 0.5}], [1.0], space={"x": (0.0, 1.0)}))
        assert memory.exists


def test_a_problem_without_past_runs_is_warned_of_where_there_are_others(tmp_path: Path) -> None:
    memory, space = Memory(tmp_path / "m.db"), {"C": (0.0, 1.0)}
    memory.add(Run("wine", [{"C": 0.1}, {"C": 1.0}], [1.0, 2.0]), problem="svm")
    assert len(memory.past(space, "svm")) == 1
    with pytest.warns(RecollectWarning, match="no past runs of problem 'smv'; the problems are: 'svm'"):
        assert memory.past(space, "smv") == []
    with pytest.raises(InputError, match="direction must be"):
        memory.past(space, "svm", direction="min")  # type: ignore[arg-type]


@pytest.mark.parametrize("since", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00"])
def test_a_moment_without_a_local_time_is_refused(tmp_path: Path, since: str) -> None:
    memory = Memory(tmp_path / "m.db")
    memory.add(example(), problem="p")
    with pytest.raises(InputError, match="since: expected a date"):
        memory.runs("p", since=since)
