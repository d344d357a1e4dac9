"""``recollect memory``: what is listed, shown, brought in, written and removed, and what is refused in one sentence."""

from __future__ import annotations

import io
import json
import re
import shlex
import shutil
import sqlite3
import sys
import warnings
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import optuna
import pytest
from rich.console import Console
from rich.progress import Progress
from tests.helpers.command_line import Done, Recollect, command_line

from recollect import FAILED, Memory, RecollectWarning, Run
from recollect.cli.main import app
from recollect.cli.memory import messages, printable
from recollect.storage.importers.detection import read_runs

HOSTILE = [
    "it's; drop table studies; --",
    '"><script>alert(1)</script>',
    "a/b\\c",
    "a%2Fb $HOME `id`",
    "smile \U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "[red]bold[/red] [link=http://x]y[/link] :smile:",
    "  spaces  ",
    "x" * 200,
]
SPACE: dict[str, Any] = {"lr": (0.0, 1.0), "kernel": ["rbf", "poly"]}


@pytest.fixture
def recollect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recollect:
    return command_line(monkeypatch, capsys)


def example(task: str = "covertype", **given: Any) -> Run:
    configs = [{"lr": 0.1, "kernel": "rbf"}, {"lr": 0.2, "kernel": "poly"}, {"lr": 0.123456789, "kernel": "rbf"}]
    return Run(task, configs, [0.5, FAILED, 0.25], **{"space": SPACE, **given})


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the memories of the tests once: an empty one, and one with two problems."""
    folder = tmp_path_factory.mktemp("models")
    with Memory(folder / "empty.db") as memory:
        assert memory.store.optuna is not None  # which creates the file
    shutil.copy(folder / "empty.db", folder / "stored.db")
    with Memory(folder / "stored.db") as memory:
        memory.add(example(), "svm")
        memory.add(example("adult", direction="maximize"), "svm")
        memory.add(example(), "forest")
    return folder


@pytest.fixture
def empty(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(models / "empty.db", tmp_path / "empty.db"))


@pytest.fixture
def stored(models: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(models / "stored.db", tmp_path / "tuning.db"))


def refused(done: Done, *words: str) -> None:
    """Check that there was one sentence and nothing else."""
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err


def cells(text: str) -> list[list[str]]:
    """Return the cells of a table: two spaces or more separate them."""
    return [re.split(r" {2,}", line.strip()) for line in text.splitlines()]


# list


def test_all_runs_are_listed_with_their_facts(recollect: Recollect, stored: Path) -> None:
    done = recollect("memory", "list", stored)
    assert done.code == 0
    assert cells(done.out) == [
        ["problem", "task", "trials", "failed", "pruned", "best value", "direction", "hyperparameters"],
        ["svm", "covertype", "3", "1", "0", "0.25", "minimize", "2"],
        ["svm", "adult", "3", "1", "0", "0.5", "maximize", "2"],
        ["forest", "covertype", "3", "1", "0", "0.25", "minimize", "2"],
    ]


def test_one_problem_can_be_listed_and_json_has_the_same_facts(recollect: Recollect, stored: Path) -> None:
    done = recollect("memory", "list", stored, "--problem", "forest", "--json")
    assert json.loads(done.out) == [
        {
            "problem": "forest",
            "task": "covertype",
            "trials": 3,
            "failed": 1,
            "pruned": 0,
            "best_value": 0.25,
            "direction": "minimize",
            "hyperparameters": 2,
            "tags": [],
            "note": "",
        }
    ]


def test_a_memory_without_runs_is_said_to_be_so(recollect: Recollect, stored: Path, empty: Path) -> None:
    for form in ([], ["--json"]):
        done = recollect("memory", "list", stored, "--problem", "svn", *form)
        refused(done, f"recollect: {stored}: ", "no problem 'svn'", "'svm' and 'forest'\n")
    refused(recollect("memory", "list", empty, "--problem", "svm"), "no problem 'svm'")
    assert recollect("memory", "list", empty, "--json") == Done(0, "[]\n", "")
    assert recollect("memory", "list", empty).out == f"{empty}: no runs\n"


def test_studies_of_other_tools_and_runs_without_success_are_listed(recollect: Recollect, tmp_path: Path) -> None:
    path = tmp_path / "optuna.db"
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(study_name="theirs", storage=f"sqlite:///{path}")
    study.add_trial(optuna.create_trial(state=optuna.trial.TrialState.FAIL))
    assert cells(recollect("memory", "list", path).out)[1] == ["-", "theirs", "1", "1", "0", "-", "minimize", "0"]
    assert json.loads(recollect("memory", "show", path, "--task", "theirs", "--json").out)["best_config"] is None
    refused(recollect("memory", "remove", path, "--task", "theirs", "--yes"), "recollect did not create", "'theirs'")


def test_names_are_shown_as_they_are(recollect: Recollect, empty: Path) -> None:
    for name in HOSTILE:
        configs = [{name: 0.5, "choice": name}, {name: 0.25, "choice": "other"}]
        Memory(empty).add(Run(name, configs, [0.5, 1.0]), name)
    listed = recollect("memory", "list", empty).out.splitlines()[1:]
    assert all(line.count(name) == 2 for name, line in zip(HOSTILE, listed, strict=True))
    assert [entry["task"] for entry in json.loads(recollect("memory", "list", empty, "--json").out)] == HOSTILE
    for name in HOSTILE:
        shown = recollect("memory", "show", empty, "--task", name, "--problem", name, "--trials").out
        assert shown.count(name) == 6
    for name in HOSTILE[:3]:
        assert recollect("memory", "remove", empty, "--task", name, "--problem", name, "--yes").code == 0
    assert [run.task for run in Memory(empty).runs()] == HOSTILE[3:]


def test_control_characters_cannot_steer_the_terminal(recollect: Recollect, empty: Path) -> None:
    Memory(empty).add(example("\x1b]0;title\x07\nnext\x9b"))
    assert "\\x1b]0;title\\x07\\nnext\\x9b" in recollect("memory", "list", empty).out
    assert printable("tab\tß\u200d") == "tab\\tß\u200d"


def test_what_the_terminal_cannot_show_is_written_out(
    recollect: Recollect, empty: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Memory(empty).add(example("smile \U0001f600"))
    paper = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", paper)
    assert recollect("memory", "list", empty).code == 0
    paper.flush()
    assert b"smile \\U0001f600" in paper.buffer.getvalue()  # type: ignore[attr-defined]


def test_warnings_do_not_write_into_a_progress_bar() -> None:
    screen = io.StringIO()
    with Progress(console=Console(file=screen, force_terminal=True, width=80)) as bars, messages():
        bars.add_task("tuning")
        warnings.warn("trial 3 failed: [red]\x1b[31m", RecollectWarning, stacklevel=1)
    assert "recollect: trial 3 failed: [red]\\x1b[31m\n" in screen.getvalue()


# show


def test_a_run_is_shown_with_its_best_configuration_in_full(recollect: Recollect, stored: Path) -> None:
    done = recollect("memory", "show", stored, "--task", "covertype", "--problem", "svm")
    rows = cells(done.out)
    assert ["task", "covertype"] in rows
    assert ["best value", "0.25"] in rows
    assert ["lr", "0.123456789"] in rows
    assert ["kernel", "rbf"] in rows
    assert "trials:" not in done.out


def test_the_only_run_is_shown_without_its_name(recollect: Recollect, stored: Path, tmp_path: Path) -> None:
    refused(recollect("memory", "show", stored), "--task", "'covertype'", "'adult'")
    recollect("memory", "copy", stored, tmp_path / "one.db", "--problem", "forest")
    shown = recollect("memory", "show", tmp_path / "one.db", "--json").out
    assert shown == recollect("memory", "show", stored, "--problem", "forest", "--json").out
    assert json.loads(shown)["problem"] == "forest"


def test_all_trials_are_shown_when_asked_for(recollect: Recollect, stored: Path) -> None:
    done = recollect("memory", "show", stored, "--task", "adult", "--trials")
    rows = cells(done.out.partition("trials:\n")[2])
    assert rows[0][:3] == ["trial", "value", "seconds"]
    assert [row[0] for row in rows[1:]] == ["0", "1", "2"]
    assert rows[2][1] == "-"
    assert "failed" in rows[2][-1]


def test_a_run_as_json_has_its_trials_when_asked_for(recollect: Recollect, stored: Path) -> None:
    plain = json.loads(recollect("memory", "show", stored, "--task", "adult", "--json").out)
    assert plain["best_config"] == {"lr": 0.1, "kernel": "rbf"}
    assert "all_trials" not in plain
    full = json.loads(recollect("memory", "show", stored, "--task", "adult", "--trials", "--json").out)
    assert [trial["state"] for trial in full["all_trials"]] == ["ok", "failed", "ok"]
    assert full["all_trials"][2]["config"] == {"lr": 0.123456789, "kernel": "rbf"}


def test_a_task_that_is_not_there_or_not_alone_is_refused(recollect: Recollect, stored: Path) -> None:
    refused(recollect("memory", "show", stored, "--task", "c"), "no task 'c'", "'covertype' and 'adult'\n")
    refused(recollect("memory", "remove", stored, "--task", "c"), "no task 'c'", "'covertype' and 'adult'\n")
    refused(recollect("memory", "show", stored, "--task", "adult", "--problem", "forest"), "problem 'forest'")
    refused(recollect("memory", "show", stored, "--task", "adult", "--problem", "svn"), "no problem 'svn'", "'svm'")
    refused(recollect("memory", "show", stored, "--task", "covertype"), "several problems", "'svm' and 'forest'")


# import and export


def test_what_was_exported_can_be_imported(recollect: Recollect, stored: Path, empty: Path, tmp_path: Path) -> None:
    file, copy = tmp_path / "svm.jsonl", empty
    assert recollect("memory", "export", stored, file, "--problem", "svm").out == f"{file}: 2 runs\n"
    done = recollect("memory", "import", copy, file, "--problem", "svm")
    assert done == Done(0, f"{copy}: 2 runs with 6 trials imported\n", "")
    facts = recollect("memory", "list", stored, "--problem", "svm", "--json").out
    assert recollect("memory", "list", copy, "--json").out == facts
    refused(recollect("memory", "import", copy, file, "--problem", "svm"), "nothing was imported")
    assert recollect("memory", "import", copy, file, "--task", "adult").code == 0
    assert [run.task for run in Memory(copy).runs("default")] == ["adult"]


def test_a_table_is_imported_by_the_column_of_its_value(recollect: Recollect, tmp_path: Path) -> None:
    table, path = tmp_path / "results.csv", tmp_path / "m.db"
    table.write_text("lr,accuracy,state\n0.1,0.5,ok\n0.2,0.75,ok\n0.3,,running\n")
    done = recollect("memory", "import", path, table, "--task", "mine", "--value", "accuracy", "--maximize")
    assert done.out == f"{path}: 1 run with 2 trials imported\n"
    assert done.err == f"recollect: {table}: left out rows that are still running (1)\n"
    (run,) = Memory(path).runs("default")
    assert (run.task, run.direction, run.best.config if run.best else None) == ("mine", "maximize", {"lr": 0.2})


def test_a_memory_is_imported_with_its_own_names(recollect: Recollect, stored: Path, tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    refused(recollect("memory", "import", path, stored, "--problem", "new"), "2 runs would become task 'covertype'")
    refused(recollect("memory", "import", path, stored, "--problem", "forest", "--task", "adult"), "no task 'adult'")
    assert not path.exists()
    assert recollect("memory", "import", path, stored, "--problem", "svm", "--task", "adult").code == 0
    assert recollect("memory", "import", path, stored, "--problem", "forest").code == 0
    there = [(kept.problem, kept.run.task) for kept in Memory(path).stored_runs()]
    assert there == [("svm", "adult"), ("forest", "covertype")]
    refused(recollect("memory", "import", path, path), "a memory cannot be imported into itself")


@pytest.mark.parametrize("name", ["results.txt", "nowhere.csv"])
def test_a_file_that_is_not_recognised_is_refused_with_what_a_file_may_be(
    recollect: Recollect, tmp_path: Path, name: str
) -> None:
    (tmp_path / "results.txt").write_text("lr,value\n0.1,0.5\n")
    done = recollect("memory", "import", tmp_path / "m.db", tmp_path / name)
    refused(done, name, "expected a .csv, .jsonl or .json file")
    assert "optuna.Study" not in done.err
    assert "DataFrame" not in done.err


@pytest.mark.parametrize("content", [None, "", "lr,other\n1,2\n", "lr,value\n1,x\n"])
def test_what_cannot_be_imported_leaves_no_memory_behind(
    recollect: Recollect, tmp_path: Path, content: str | None
) -> None:
    table, path = tmp_path / "t.csv", tmp_path / "m.db"
    if content is not None:
        table.write_text(content)
    refused(recollect("memory", "import", path, table), str(table))
    assert not path.exists()


def test_runs_of_several_problems_are_not_mixed_in_one_file(recollect: Recollect, stored: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.jsonl"
    recollect("memory", "export", stored, file, "--problem", "svm")
    before = file.read_text()
    refused(recollect("memory", "export", stored, file), "several problems", "'svm' and 'forest'")
    refused(recollect("memory", "export", stored, file, "--problem", "none"), "no problem 'none'", "'svm' and 'forest'")
    refused(recollect("memory", "export", stored, file, "--problem", ""), "no problem ''", "'svm' and 'forest'")
    refused(recollect("memory", "export", stored, tmp_path / "file.xls", "--problem", "svm"), ".jsonl")
    assert file.read_text() == before


def test_a_memory_of_one_problem_is_exported_without_naming_it(
    recollect: Recollect, empty: Path, tmp_path: Path
) -> None:
    file = tmp_path / "one.csv"
    Memory(empty).add(example(), "only")
    refused(recollect("memory", "export", empty, file, "--problem", ""), "no problem ''")
    done = recollect("memory", "export", empty, file)
    assert done.out == f"{file}: 1 run\n"
    assert "CSV does not keep" in done.err
    assert [run.values for run in read_runs(file)] == [[0.5, None, 0.25]]


# remove


def test_a_run_is_removed_with_yes(recollect: Recollect, stored: Path) -> None:
    done = recollect("memory", "remove", stored, "--task", "covertype", "--problem", "svm", "--yes")
    assert done.out == f"{stored}: removed task 'covertype' of problem 'svm' with 3 trials\n"
    assert [(kept.problem, kept.run.task) for kept in Memory(stored).stored_runs()] == [
        ("svm", "adult"),
        ("forest", "covertype"),
    ]


def test_nothing_is_removed_where_nobody_can_be_asked(recollect: Recollect, stored: Path) -> None:
    refused(recollect("memory", "remove", stored, "--task", "adult"), "'adult'", "only with --yes")
    assert len(Memory(stored).runs()) == 3


@pytest.mark.parametrize(("answer", "left", "code"), [("y", 2, 0), ("n", 3, 1), ("", 3, 1)])
def test_somebody_at_a_terminal_is_asked(
    recollect: Recollect, stored: Path, monkeypatch: pytest.MonkeyPatch, answer: str, left: int, code: int
) -> None:
    keyboard = io.StringIO(f"{answer}\n")
    monkeypatch.setattr(keyboard, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stdin", keyboard)
    done = recollect("memory", "remove", stored, "--task", "adult")
    assert done.code == code
    assert len(Memory(stored).runs()) == left


def test_a_whole_problem_is_removed_with_its_size_in_the_message(recollect: Recollect, stored: Path) -> None:
    refused(recollect("memory", "remove", stored, "--problem", "svm"), "2 runs and 6 trials", "only with --yes")
    done = recollect("memory", "remove", stored, "--problem", "svm", "--yes")
    assert done.out == f"{stored}: removed problem 'svm' with 2 runs and 6 trials\n"
    assert Memory(stored).problems() == ["forest"]
    refused(recollect("memory", "remove", stored, "--yes"), "expected --task, or --problem")


# problems, tag, rename, copy


def test_problems_are_listed_with_their_sizes(recollect: Recollect, stored: Path, empty: Path) -> None:
    assert cells(recollect("memory", "problems", stored).out) == [
        ["problem", "runs", "trials"],
        ["svm", "2", "6"],
        ["forest", "1", "3"],
    ]
    facts = json.loads(recollect("memory", "problems", stored, "--json").out)
    assert facts[1] == {"problem": "forest", "runs": 1, "trials": 3}
    assert recollect("memory", "problems", empty).out == f"{empty}: no runs\n"


def test_tags_are_set_shown_and_selected_by(recollect: Recollect, stored: Path) -> None:
    change = ("memory", "tag", stored, "--task", "adult", "--add", "gpu", "--add", "slow", "--note", "new data")
    assert cells(recollect(*change).out) == [["tags", "gpu, slow"], ["note", "new data"]]
    assert cells(recollect("memory", "tag", stored, "--task", "adult", "--remove", "slow").out)[0] == ["tags", "gpu"]
    rows = cells(recollect("memory", "list", stored, "--tag", "gpu").out)
    assert [row[1] for row in rows[1:]] == ["adult"]
    assert (rows[0][-1], rows[1][-1]) == ("tags", "gpu")
    assert ["note", "new data"] in cells(recollect("memory", "show", stored, "--task", "adult").out)
    assert recollect("memory", "list", stored, "--since", "2100-01-01").out == f"{stored}: no runs\n"
    assert len(cells(recollect("memory", "list", stored, "--since", "2020-01-01").out)) == 4
    refused(recollect("memory", "list", stored, "--since", "soon"), "since: expected a date")


def test_tasks_and_problems_are_renamed(recollect: Recollect, stored: Path) -> None:
    done = recollect("memory", "rename", stored, "--problem", "svm", "--to", "svc")
    assert done.out == f"{stored}: problem 'svm' is now 'svc'\n"
    done = recollect("memory", "rename", stored, "--task", "adult", "--to", "census")
    assert done.out == f"{stored}: task 'adult' of problem 'svc' is now 'census'\n"
    assert Memory(stored).tasks("svc") == ["covertype", "census"]
    refused(recollect("memory", "rename", stored, "--problem", "svc", "--to", "forest"), "'covertype' already")
    refused(recollect("memory", "rename", stored, "--problem", "svm", "--to", "x"), "no problem 'svm'")


def test_runs_are_copied_to_a_memory_that_is_created(recollect: Recollect, stored: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    assert recollect("memory", "copy", stored, other, "--problem", "svm") == Done(0, f"{other}: 2 runs copied\n", "")
    refused(recollect("memory", "copy", stored, other), "'svm/covertype' already; nothing was copied")
    assert recollect("memory", "copy", stored, other, "--skip-existing").out == f"{other}: 1 run copied\n"
    assert len(Memory(other)) == 3


@pytest.mark.parametrize("name", ["e.jsonl", "e.csv", "e.jsonl.gz", "e.csv.gz"])
def test_an_export_replaces_an_earlier_one_but_no_other_file(
    recollect: Recollect, stored: Path, tmp_path: Path, name: str
) -> None:
    file, export = tmp_path / name, ("memory", "export", stored, tmp_path / name, "--problem", "svm")
    for content in (b"", b"lr,value\n0.1,2\n", b'{"lr": 0.1}\n', b"\0\xff"):
        file.write_bytes(content)
        refused(recollect(*export), str(file))
        assert file.read_bytes() == content
    file.unlink()
    recollect(*export)
    written = file.read_bytes()
    Memory(stored).remove("covertype", problem="svm")
    assert recollect(*export).code == 0
    assert file.read_bytes() != written


def test_everything_is_exported_with_its_problems(recollect: Recollect, stored: Path, tmp_path: Path) -> None:
    file, copy = tmp_path / "all.jsonl", tmp_path / "copy.db"
    assert recollect("memory", "export", stored, file, "--all").out == f"{file}: 3 runs\n"
    assert recollect("memory", "import", copy, file).code == 0
    assert recollect("memory", "list", copy, "--json").out == recollect("memory", "list", stored, "--json").out
    refused(recollect("memory", "export", stored, file, "--all", "--problem", "svm"), "either --all or --problem")
    done = recollect("memory", "import", copy, file, "--skip-existing")
    assert done.out == f"{copy}: 0 runs with 0 trials imported\n"
    assert "skipped 3 runs whose tasks exist" in done.err


# What is not a memory


COMMANDS = [["list"], ["show", "--task", "t"], ["export", "out.jsonl"], ["remove", "--task", "t", "--yes"]]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
@pytest.mark.parametrize(
    "address", ["{}/no.db", "sqlite:///{}/no.db", "sqlite+pysqlite:///{}/no.db", "journal:{}/no.log"]
)
def test_a_memory_that_is_not_there_is_not_made(
    recollect: Recollect, tmp_path: Path, command: list[str], address: str
) -> None:
    where = address.format(tmp_path)
    refused(recollect("memory", command[0], where, *command[1:]), f"recollect: {where}: there is no such memory")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_file_is_no_memory_and_stays_empty(recollect: Recollect, tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    refused(recollect("memory", "list", tmp_path / "empty.db"), "empty.db: the file is empty")
    assert (tmp_path / "empty.db").read_bytes() == b""


def test_files_of_something_else_are_refused_and_left_alone(recollect: Recollect, tmp_path: Path) -> None:
    text, other = tmp_path / "text.db", tmp_path / "other.db"
    text.write_text("this is no database, but it is long enough to be read as one " * 20)
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("create table books (title text)")
    before = text.read_bytes(), other.read_bytes()
    refused(recollect("memory", "list", text), str(text), "not a database")
    refused(recollect("memory", "list", other), str(other), "books")
    refused(recollect("memory", "list", tmp_path), str(tmp_path), "folder")
    assert (text.read_bytes(), other.read_bytes()) == before


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("nonsense://user:secret@host/name", "nonsense://user:***@host/name"),
        ("postgresql://user:secret@127.0.0.1:1/name", "user:***@"),
        ("x" * 5000, "File name too long"),
        ("", "memory"),
    ],
)
def test_addresses_that_lead_nowhere_are_one_sentence_without_the_password(
    recollect: Recollect, address: str, word: str
) -> None:
    done = recollect("memory", "list", address)
    refused(done, word)
    assert "secret" not in done.err


def test_runs_in_a_format_that_is_not_known_are_left_out_with_a_message(recollect: Recollect, stored: Path) -> None:
    with closing(sqlite3.connect(stored)) as connection, connection:
        connection.execute("update study_user_attributes set value_json = '99' where key = 'recollect:format'")
    listed = recollect("memory", "list", stored)
    assert (listed.code, "no runs" in listed.out) == (0, True)
    assert listed.err.startswith("recollect: ")
    assert "format 99" in listed.err
    assert "newer version of recollect" in listed.err


# Help and completion


@pytest.mark.parametrize(
    "command", ["list", "problems", "show", "import", "export", "check", "copy", "tag", "rename", "remove"]
)
def test_the_help_of_every_command_has_an_example_that_is_understood(recollect: Recollect, command: str) -> None:
    done = recollect("memory", command, "--help")
    example = next(line.strip() for line in done.out.splitlines() if line.strip().startswith("recollect memory"))
    assert done.code == 0
    assert example.startswith(f"recollect memory {command} tuning.db")
    found = recollect(*shlex.split(example)[1:])
    refused(found, "results.csv" if command == "import" else "tuning.db: there is no such memory")


@pytest.fixture
def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[[str], list[str]]:
    """Return what bash is given to choose from behind a line."""

    def ask(line: str) -> list[str]:
        monkeypatch.setenv("_RECOLLECT_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
        with pytest.raises(SystemExit):
            app(prog_name="recollect")
        return capsys.readouterr().out.split("\n")[:-1]

    return ask


def test_bash_completes_commands_and_names_in_the_memory(
    completed: Callable[[str], list[str]], stored: Path, tmp_path: Path
) -> None:
    assert completed("recollect mem") == ["memory"]
    commands = ["list", "problems", "show", "import", "export", "check", "copy", "tag", "rename", "remove"]
    assert completed("recollect memory ") == commands
    assert completed(f"recollect memory show {stored} --task ") == ["adult", "covertype"]
    assert completed(f"recollect memory show {stored} --problem forest --task ") == ["covertype"]
    assert completed(f"recollect memory list {stored} --problem s") == ["svm"]
    assert completed(f"recollect tune --memory {stored} --problem ") == ["forest", "svm"]
    assert completed("recollect tune --method rgpe-t") == ["rgpe-taf"]
    assert completed(f"recollect memory show {tmp_path}/no.db --task ") == [""]
    assert not (tmp_path / "no.db").exists()
