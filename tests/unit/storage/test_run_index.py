"""The index of runs: what it returns is what the memory holds, and it notices every change."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import TrialState

from recollect import FAILED, Memory, Run, State, Trial
from recollect.errors import RecollectWarning
from recollect.runs.trial_columns import TrialColumns
from recollect.storage import run_reading
from recollect.storage.run_index import _columns, _content

SPACE = {"a": (0.0, 1.0), "k": (1, 9), "c": ["x", None, True, 2.5]}


@pytest.fixture(autouse=True)
def index_everything(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("RECOLLECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(run_reading, "MIN_INDEXED", 1)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that gets the number of studies of every read from a memory."""
    counted: list[int] = []
    real = run_reading.read_finished

    def read(store: Any, studies: Sequence[int], **options: Any) -> Any:
        counted.append(len(studies))
        return real(store, studies, **options)

    monkeypatch.setattr(run_reading, "read_finished", read)
    return counted


def run(name: str, value: float = 0.5) -> Run:
    configs: list[dict[str, Any]]
    configs = [{"a": 0.1, "k": 3, "c": None}, {"a": 1 / 3, "k": 9, "c": True}, {"a": 1.0, "k": 1, "c": 2.5}]
    return Run(name, configs, [value, FAILED, -1e-300], space=SPACE)


def filled(path: Path, count: int = 3) -> Memory:
    memory = Memory(path)
    for number in range(count):
        memory.add(run(f"t{number}"), "p")
    return memory


def past(path: Path) -> list[Run]:
    with Memory(path) as memory:
        return memory.past(SPACE, "p")


def test_trials_of_every_kind_are_kept() -> None:
    trials = [
        Trial({"a": 0.1, "k": 3}, 1.5, seconds=2.0, number=0),
        Trial({"k": 3, "a": 0.1}, -0.0, notes=("odd", "order"), number=3),
        Trial({"a": 1 / 3}, None, State.FAILED, notes=("why",), number=4),
        Trial({}, None, State.PRUNED, estimate=0.25, number=None),
        Trial({"a": "é", "k": 10**20, "c": None}, 1e-320),
    ]
    kept = Run.from_columns("t", _columns(_content(TrialColumns.of(trials))), direction="minimize")
    assert kept == Run("t", trials=trials)
    assert [trial.number for trial in kept.trials] == [0, 3, 4, None, None]
    assert [str(trial.value) for trial in kept.trials[:2]] == ["1.5", "-0.0"]
    assert len(_columns(_content(TrialColumns.of([])))) == 0


def test_the_second_time_no_trial_is_read(tmp_path: Path, reads: list[int]) -> None:
    with filled(tmp_path / "m.db"):
        pass
    first = past(tmp_path / "m.db")
    assert reads == [3]
    again = past(tmp_path / "m.db")
    assert reads == [3]
    assert again == first
    assert [[type(trial.config[name]) for name in SPACE] for trial in again[0].trials] == [
        [float, int, type(None)], [float, int, bool], [float, int, float],
    ]  # fmt: skip
    assert [trial.number for trial in again[0].trials] == [0, 1, 2]


def test_only_studies_that_changed_are_read_again(tmp_path: Path, reads: list[int]) -> None:
    with filled(tmp_path / "m.db") as memory:
        past(tmp_path / "m.db")
        memory.add(run("t3"), "p")
        assert [entry.task for entry in past(tmp_path / "m.db")] == ["t0", "t1", "t2", "t3"]
        assert reads == [3, 1]
        storage = memory._store.optuna
        study = storage.get_study_id_from_name("p/t1")
        storage.set_trial_state_values(storage.create_new_trial(study), TrialState.COMPLETE, [0.75])
    assert [len(entry) for entry in past(tmp_path / "m.db")] == [3, 4, 3, 3]
    assert reads == [3, 1, 1]


def test_a_trial_that_no_longer_counts_is_noticed(tmp_path: Path) -> None:
    with filled(tmp_path / "m.db"):
        past(tmp_path / "m.db")
        row = "(trial_id, key, value_json) values (2, 'recollect:void', '\"x\"')"
        with closing(sqlite3.connect(tmp_path / "m.db")) as connection, connection:
            connection.execute(f"insert into trial_user_attributes {row}")
    assert [len(entry) for entry in past(tmp_path / "m.db")] == [2, 3, 3]


def test_another_memory_at_the_same_place_is_not_mistaken_for_the_old_one(tmp_path: Path) -> None:
    with filled(tmp_path / "m.db"):
        past(tmp_path / "m.db")
    (tmp_path / "m.db").unlink()
    with Memory(tmp_path / "m.db") as memory:
        memory.add(run("t0", value=0.625), "p")
    assert [entry.values[0] for entry in past(tmp_path / "m.db")] == [0.625]


def test_damage_is_reported_every_time(tmp_path: Path) -> None:
    with filled(tmp_path / "m.db"):
        pass
    with closing(sqlite3.connect(tmp_path / "m.db")) as connection:
        connection.execute("update trial_params set distribution_json = 'rubbish' where trial_id = 2")
        connection.commit()
    for _ in range(2):
        with pytest.warns(RecollectWarning, match="damaged"):
            assert [len(entry) for entry in past(tmp_path / "m.db")] == [2, 3, 3]


def test_a_damaged_index_is_replaced(tmp_path: Path, reads: list[int]) -> None:
    with filled(tmp_path / "m.db"):
        pass
    first = past(tmp_path / "m.db")
    (tmp_path / "cache" / "runs.sqlite3").write_bytes(b"no database at all" * 100)
    with pytest.warns(RecollectWarning, match="past runs"):
        assert past(tmp_path / "m.db") == first
    assert past(tmp_path / "m.db") == first
    assert reads == [3, 3]


def test_small_memories_have_no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_reading, "MIN_INDEXED", 4)
    with filled(tmp_path / "m.db"):
        assert len(past(tmp_path / "m.db")) == 3
    assert not (tmp_path / "cache").exists()


def test_a_journal_is_read_as_before(tmp_path: Path) -> None:
    with Memory(f"journal:{tmp_path / 'm.log'}") as memory:
        memory.add(run("t0"), "p")
        assert [len(entry) for entry in memory.past(SPACE, "p")] == [3]
    assert not (tmp_path / "cache").exists()
