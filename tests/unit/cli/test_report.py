"""The command ``recollect report``."""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from tests.helpers.stored_runs import store_example, tuned

from recollect import Memory
from recollect.cli.main import main
from recollect.report.page import Page
from recollect.storage.studies import FORMAT_KEY
from recollect.tuning.result import Result


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    return store_example(tmp_path_factory.mktemp("memory") / "tuning.db")


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


def test_the_help_shows_the_optional_memory_in_no_more_than_one_pair_of_brackets(recollect: Recollect) -> None:
    usage = recollect("--help")[1].partition("--")[0]
    assert "MEMORY" in usage
    assert usage.count("[") <= 2


def test_the_command_writes_the_page_and_says_where(
    stored: tuple[Path, Result], tmp_path: Path, recollect: Recollect
) -> None:
    out = tmp_path / "page.html"
    code, said, err = recollect("--memory", stored[0], "--problem", "p", "--task", "last", "--out", out)
    assert (code, said, err) == (0, f"{out}\n", "")
    specs = re.findall(r'<script type="application/json" class="spec">(.*?)</script>', out.read_text(encoding="utf-8"))
    assert len(specs) == 7
    assert all(json.loads(spec)["traces"] for spec in specs)
    again = recollect(stored[0], "--problem", "p", "--task", "last", "--out", out)
    assert again[0] == 0, "a page is replaced, and the memory may be an argument"


def test_the_memory_is_named_once(stored: tuple[Path, Result], recollect: Recollect) -> None:
    for arguments, said in (((), "got neither"), ((stored[0], "--memory", stored[0]), "got both")):
        code, _, err = recollect(*arguments)
        assert code == 2
        assert said in err


def test_without_a_task_it_is_a_page_of_the_whole_memory(
    stored: tuple[Path, Result], tmp_path: Path, recollect: Recollect, monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect.report.page import Page

    asked = []

    def page_of(memory: Memory, problem: str | None) -> Page:
        asked.append((memory.store.name, problem))
        return Page("All of it", "", ())

    monkeypatch.setattr("recollect.report.memory.memory_page.memory_page", page_of)
    assert recollect("--memory", stored[0], "--problem", "p", "--out", tmp_path / "all.html")[0] == 0
    assert asked == [(str(stored[0]), "p")]
    assert "All of it" in (tmp_path / "all.html").read_text(encoding="utf-8")


def test_a_study_of_a_newer_format_is_refused(tmp_path: Path, recollect: Recollect) -> None:
    tuned(tmp_path / "m.db", "one")
    with closing(sqlite3.connect(tmp_path / "m.db")) as database, database:
        database.execute("update study_user_attributes set value_json = '99' where key = ?", (FORMAT_KEY,))
    code, _, err = recollect("--memory", tmp_path / "m.db", "--task", "one")
    assert code == 2
    assert "install a newer version" in err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--memory", "{}/none.db", "--task", "last"), "there is no such memory"),
        (("--memory", "{db}", "--task", "nowhere"), "there is no task 'nowhere'"),
        (("--memory", "{db}", "--task", "last"), "several problems have a task 'last'"),
        (("--memory", "{db}", "--task", "one", "--out", "{}"), "this is a folder"),
        (("--memory", "{db}", "--task", "one", "--out", "{}/own.txt"), "not a page of recollect"),
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
