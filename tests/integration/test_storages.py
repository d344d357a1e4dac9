"""The same memory on every kind of storage: a file, a journal, PostgreSQL, Redis."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import recollect

SPACE = {"a": (0.0, 1.0), "k": ["x", "y"]}


def objective(config: dict[str, Any]) -> float:
    return float((config["a"] - 0.3) ** 2 + (config["k"] == "x"))


@pytest.fixture(params=["file", "journal", "postgres", "redis"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param in ("postgres", "redis"):
        return str(request.getfixturevalue(request.param))
    return str(tmp_path / "m.db") if request.param == "file" else f"journal:{tmp_path / 'm.log'}"


def test_runs_are_kept_learned_from_gone_on_with_and_removed(where: str, tmp_path: Path) -> None:
    name = "one \U0001f600/\u00e9 'quoted'"
    first = recollect.minimize(
        objective, SPACE, trials=8, memory=where, problem="p", task=name, method="random", progress=False
    )
    second = recollect.minimize(objective, SPACE, trials=3, memory=where, problem="p", task="two", progress=False)
    assert [run.task for run in second.past] == [name]
    more = recollect.minimize(objective, SPACE, trials=5, memory=where, problem="p", task="two", progress=False)
    assert more.run.configs[:3] == second.run.configs
    assert len(more.run) == 5
    with recollect.Memory(where) as memory:
        assert {run.task: len(run) for run in memory.runs("p")} == {name: 8, "two": 5}
        assert memory.run(name, "p").values == first.run.values
        assert memory.run(name, "p").configs == first.run.configs
        assert memory.export(tmp_path / "p.jsonl", "p") == 2
        memory.remove("two", "p")
        memory.remove(name, "p")
        assert "p" not in memory.problems()  # a server has those of other tests
        assert [run.task for run in memory.import_(tmp_path / "p.jsonl", "p")] == [name, "two"]
        assert memory.run("two", "p").values == more.run.values
        memory.remove("two", "p")
        memory.remove(name, "p")


def test_a_run_whose_task_is_removed_ends_and_writes_nothing_more(where: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    settings: dict[str, Any] = {"memory": where, "problem": "p", "method": "random", "progress": False}
    finished = []

    def removed_meanwhile(_config: dict[str, Any]) -> float:
        finished.append(100.0)
        if len(finished) == 3:
            recollect.Memory(where).remove("wrong", "p")
            recollect.minimize(objective, SPACE, trials=4, task="right", **settings)
        return 100.0

    with pytest.raises(recollect.StorageError):
        recollect.minimize(removed_meanwhile, SPACE, trials=9, task="wrong", **settings)
    (rescued,) = recollect.read_runs(*tmp_path.glob("*.jsonl"))
    with recollect.Memory(where) as memory:
        assert rescued.values == finished == [100.0] * 3
        assert memory.tasks("p") == ["right"]
        assert len(memory.run("right", "p")) == 4
        assert 100.0 not in memory.run("right", "p").values
        memory.remove("right", "p")


KILLED_WRITER = """
import os, sqlite3, sys
connection = sqlite3.connect(sys.argv[1])
connection.execute("pragma cache_size = 2")  # so that pages reach the file before the transaction ends
connection.execute("begin immediate")
connection.execute("update trials set number = number + 1000")
connection.execute("create table unfinished (content text)")
connection.executemany("insert into unfinished values (?)", [("x" * 1000,)] * 1000)
os._exit(9)
"""


def test_a_file_whose_writer_was_killed_in_a_transaction_is_read_as_it_was_before(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    run = recollect.Run("one", [{"a": 0.1}, {"a": 0.2}], [1.0, 2.0])
    with recollect.Memory(file) as memory:
        memory.add(run, "p")
    subprocess.run([sys.executable, "-c", KILLED_WRITER, str(file)], check=False)
    assert file.with_name("m.db-journal").exists()
    assert recollect.Memory(file).run("one", "p").values == run.values
