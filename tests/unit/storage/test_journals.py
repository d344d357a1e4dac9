"""Journal files whose last line was cut off: what is whole stays readable, and nothing is thrown away."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import optuna
import pytest

from recollect import Memory, RecollectWarning, Run, StorageError
from recollect.storage import journals
from recollect.storage.open import storage_errors

RUN = Run("t", [{"x": 0.5}, {"x": 0.25}], [1.0, 2.0], space={"x": (0.0, 1.0)})
NEW = Run("new", RUN.configs, RUN.values, space=RUN.space)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(journals, "WRITE_SECONDS", 0.0)
    path = tmp_path / "m.log"
    Memory(f"journal:{path}").add(RUN, "p")
    return path


def whole(path: Path, runs: list[Run]) -> bool:
    """Whether the memory has these runs, for us and for Optuna, and is sound."""
    memory = Memory(f"journal:{path}")
    backend = optuna.storages.journal.JournalFileBackend(str(path))
    studies = optuna.storages.JournalStorage(backend).get_all_studies()
    return (memory.runs(), memory.check(), len(studies)) == (runs, [], len(runs))


@pytest.mark.parametrize(
    "rest", [b'{"op_code":0,"wor', b"\0" * 5000, b'{"op_code":8,"wor{"op_code":0}\n', b"{}{" * 30_000], ids=range(4)
)
def test_what_was_cut_off_is_reported_and_kept_aside_before_the_next_write(file: Path, rest: bytes) -> None:
    before = file.read_bytes()
    file.write_bytes(before + rest)
    memory = Memory(f"journal:{file}")
    assert memory.runs() == [RUN]
    assert len(memory.check()) == 1
    with pytest.warns(RecollectWarning, match=r"m\.log\.incomplete"):
        memory.add(NEW, "p")
    assert file.read_bytes().startswith(before)
    assert (file.parent / "m.log.incomplete").read_bytes() == rest.removesuffix(b"\n") + b"\n"
    assert whole(file, [RUN, NEW])


def test_a_last_line_that_only_lacks_its_end_is_kept_where_it_is(file: Path) -> None:
    file.write_bytes(file.read_bytes().removesuffix(b"\n"))
    assert len(Memory(f"journal:{file}").check()) == 1
    Memory(f"journal:{file}").add(NEW, "p")
    assert sorted(path.name for path in file.parent.iterdir()) == ["m.log"]
    assert whole(file, [RUN, NEW])


def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("buy milk")
    with pytest.raises(StorageError):
        Memory(f"journal:{file}").add(RUN, "p")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["buy milk"]


def test_a_journal_that_is_damaged_further_up_is_an_error_of_recollect(file: Path) -> None:
    opened, lines = Memory(f"journal:{file}"), file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join((*lines, b'{"op_code":8,"wor{"op_code":0}\n', lines[-1])))
    for act in (opened.runs, lambda: opened.add(NEW, "p"), lambda: Memory(f"journal:{file}")):
        with pytest.raises(StorageError):
            act()


def test_what_is_raised_within_a_storage_library_is_an_error_of_the_storage_and_what_is_not_is_ours() -> None:
    class Faulty(optuna.storages.journal.BaseJournalBackend):
        def read_logs(self, log_number_from: int) -> Any:  # noqa: ARG002
            return iter(())

        def append_logs(self, logs: Any) -> None:
            """Lose what is written."""

    storage = optuna.storages.JournalStorage(Faulty())
    with pytest.raises(StorageError, match="somewhere: "), storage_errors("somewhere"):  # an AssertionError of Optuna
        storage.create_new_study([optuna.study.StudyDirection.MINIMIZE], "s")
    with pytest.raises(ZeroDivisionError), storage_errors("somewhere"):
        1 / 0  # noqa: B018
