"""A memory is opened for reading only."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.dashboard import example

from recollect import Memory
from recollect.errors import StorageError
from recollect.report.dashboard.read_only import open_read_only, read_study_states

pytest.importorskip("plotly", reason="pages need plotly")
pytest.importorskip("starlette", reason="the dashboard needs it")


def test_a_memory_is_opened_for_reading_only(file: Path) -> None:
    before = file.read_bytes()
    with open_read_only(str(file)) as memory:
        assert memory.store.name == str(file)
        assert [run.task for run in memory.runs()] == ["first", "second"]
        with pytest.raises(StorageError, match="readonly"):
            memory.remove("first", "svm")
        with pytest.raises(StorageError, match="readonly"):
            memory.add(example("third"), "svm")
    assert file.read_bytes() == before


@pytest.mark.parametrize("name", ["a b.db", "100%.db", "a#b.db", "file:x.db"])
def test_any_name_of_a_file_can_be_opened(model: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(model.read_bytes())
    with open_read_only(str(tmp_path / name)) as memory:
        assert len(read_study_states(memory)) == 2


def test_an_address_of_a_file_and_a_journal_can_be_opened(file: Path) -> None:
    with open_read_only(f"sqlite:///{file}") as memory:
        assert len(read_study_states(memory)) == 2
    with Memory(f"journal:{file.parent}/log") as written:
        written.add(example("first"), "svm")
    with open_read_only(f"journal:{file.parent}/log") as memory:
        assert [state.entry.task for state in read_study_states(memory)] == ["first"]


@pytest.mark.parametrize("where", ["no.db", "no/no.db", "sqlite:///no.db", "journal:no.log"])
def test_what_is_not_there_is_refused_and_not_made(where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(StorageError, match="there is no such memory"):
        open_read_only(where)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("route", "opened"),
    [
        ("postgresql://me@h/n", "postgresql://me@h/n?options=-c%20default_transaction_read_only%3Don"),
        (
            "postgresql+psycopg://h/n?a=b",
            "postgresql+psycopg://h/n?a=b&options=-c%20default_transaction_read_only%3Don",
        ),
        ("postgresql://h/n?options=-c%20x%3Dy", "postgresql://h/n?options=-c%20x%3Dy"),
        ("mysql://h/n", "mysql://h/n?init_command=SET%20SESSION%20TRANSACTION%20READ%20ONLY"),
        ("redis://h:6379", "redis://h:6379"),
    ],
)
def test_databases_are_asked_for_sessions_that_only_read(
    route: str, opened: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = []

    def unreachable(where: str) -> Memory:
        given.append(where)
        raise StorageError("not there")

    monkeypatch.setattr("recollect.report.dashboard.read_only.Memory", unreachable)
    with pytest.raises(StorageError, match="not there"):
        open_read_only(route)
    assert given == [opened]
