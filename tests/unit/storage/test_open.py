"""Addresses as messages show them, journals without snapshots, and SQLite files whose writer was killed."""

from __future__ import annotations

import gc
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from recollect import Memory, Run, minimize
from recollect.errors import InputError, StorageError
from recollect.report.dashboard.read_only import open_read_only, read_study_states
from recollect.storage import open as storages
from recollect.storage import sqlite_file
from recollect.storage.importers.detection import read_runs
from recollect.storage.journals import REDIS_ENTRIES_PER_REQUEST

SPACE = {"x": (0.0, 1.0)}


def leave_hot_journal(path: Path) -> None:
    """Leave the files that a process leaves which is killed in the middle of a transaction."""
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("pragma cache_size = 1")
        writer.execute("begin immediate")
        writer.execute("create table unfinished (text)")
        writer.executemany("insert into unfinished values (?)", [("x" * 4000,)] * 50)
        copies = {name: (path.parent / name).read_bytes() for name in (path.name, f"{path.name}-journal")}
    for name, content in copies.items():
        (path.parent / name).write_bytes(content)
    reader = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    with closing(reader), pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader.execute("select * from studies")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "m.db"
    with Memory(path) as memory:
        memory.add(Run("t", [{"x": 0.5}, {"x": 0.25}], [1.0, 2.0], space=SPACE), "p")
    return path


def resume(path: Path) -> int:
    settings: dict[str, Any] = {"method": "random", "progress": False}
    return len(minimize(lambda c: c["x"], SPACE, trials=2, memory=path, problem="p", task="t", **settings).run)


@pytest.mark.parametrize(
    "read",
    [
        lambda path: len(Memory(path).run("t", "p")),
        lambda path: len(read_runs(path)[0]),
        lambda path: len(open_read_only(str(path)).run("t", "p")),
        resume,
    ],
)
def test_a_file_whose_writer_was_killed_is_healed_by_every_reader(file: Path, read: Callable[[Path], int]) -> None:
    leave_hot_journal(file)
    assert read(file) == 2


def test_a_memory_that_is_open_already_heals_its_file(file: Path) -> None:
    memory, shown = Memory(file), open_read_only(str(file))
    leave_hot_journal(file)
    assert len(memory.run("t", "p")) == 2
    leave_hot_journal(file)
    assert len(read_study_states(shown)) == 1


def test_a_reading_is_one_transaction_that_no_killed_writer_interrupts(file: Path) -> None:
    with Memory(file).store.reading() as fetch:
        assert list(fetch("select count(*) from studies")) == [(1,)]
        with closing(sqlite3.connect(file, timeout=0.0)) as writer:
            writer.execute("delete from studies")
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                writer.commit()
        assert list(fetch("select count(*) from studies")) == [(1,)]


def test_a_damaged_schema_that_sqlite_cannot_quote_is_refused(file: Path) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("pragma writable_schema = on")
        broken = "update sqlite_master set name = cast(x'cf41' as text), sql = 'create tables' where name = 'studies'"
        connection.execute(broken)
    with pytest.raises(StorageError, match="malformed database schema"):
        Memory(str(file)).runs()
    with pytest.raises(InputError, match="the SQLite file cannot be read: malformed"):
        read_runs(file)


def test_a_damaged_database_is_refused_at_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only while another process creates the tables is it worth to wait."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("delete from alembic_version")
        index = "select rootpage from sqlite_master where type = 'index' and tbl_name = 'alembic_version'"
        ((page,),) = connection.execute(index)
        ((size,),) = connection.execute("pragma page_size")
    content = bytearray(file.read_bytes())
    content[(page - 1) * size : page * size] = b"\xff" * size
    file.write_bytes(content)
    pauses: list[float] = []
    monkeypatch.setattr("recollect.storage.open.time", SimpleNamespace(sleep=pauses.append))
    with pytest.raises(StorageError, match="malformed"):
        Memory(str(file)).runs()
    assert pauses == []


def test_a_file_that_nobody_may_heal_is_refused_with_the_reason(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_hot_journal(file)
    connect = sqlite_file._connection
    monkeypatch.setattr(sqlite_file, "_connection", lambda path, _mode: connect(path, "ro"))
    with pytest.raises(StorageError, match="killed while it was writing"):
        Memory(file)


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://me:SECRET@host/name",
        "postgresql://me:SE@CRET@host/name",
        "postgresql://me:SE/C?RE@T@host/name?sslmode=require",
        "postgresql://host/name?user=me&password=SECRET&sslmode=require",
        "postgresql://host:5432/name?sslpassword=SECRET",
        "postgresql://host:5432/name?password=SE@CRET",
        "mysql://host/name?PASSWD=SECRET",
        "redis://:SECRET@host:6379",
        "redis://host:6379?password=SECRET",
    ],
)
def test_no_part_of_a_password_is_shown(address: str) -> None:
    shown = storages.without_password(address)
    assert "***" in shown
    assert not any(part in shown for part in ("SECRET", "SE@", "CRET", "RE@T"))
    assert shown.startswith(address[: address.index(":")])


def test_what_is_no_password_is_shown() -> None:
    for address in ("tuning.db", "postgresql://me@host:5432/name?passfile=/a/b", "sqlite:////a:b@c.db", "journal:a@b"):
        assert storages.without_password(address) == address


def test_a_password_may_contain_an_at_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    import optuna

    opened: list[str] = []
    monkeypatch.setattr(storages, "_create_tables", lambda _name, address, _options: opened.append(address))
    monkeypatch.setattr(optuna.storages.RDBStorage, "__init__", lambda *_, **__: None)
    monkeypatch.setattr(optuna.storages.RDBStorage, "engine", SimpleNamespace(dispose=lambda: None), raising=False)
    monkeypatch.setattr(optuna.storages, "get_storage", lambda storage: storage)
    storages._database("name", "postgresql+psycopg://me:p@ss@host/name", known=False)
    assert opened == ["postgresql+psycopg://me:p%40ss@host/name"]


class Bomb:
    """A pickle that leaves a trace when it is loaded."""

    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self) -> Any:
        return Path.touch, (self.trace,)


def test_a_snapshot_in_redis_is_not_unpickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import pickle

    redis = pytest.importorskip("redis")

    class FakeRedis:
        """A server with a journal of one study, and a hostile snapshot."""

        def __init__(self) -> None:
            study = {"op_code": 0, "worker_id": "w", "study_name": "a", "directions": [1]}
            more = [study | {"study_name": f"s{number}"} for number in range(REDIS_ENTRIES_PER_REQUEST)]
            self.content = {f":log:{i}": json.dumps(log).encode() for i, log in enumerate([study, *more])}
            self.content |= {":log_number": b"%d" % len(more), ":snapshot": pickle.dumps(Bomb(tmp_path / "trace"))}

        def get(self, key: str) -> bytes | None:
            return self.content.get(key)

        def mget(self, keys: list[str]) -> list[bytes | None]:
            return [self.content.get(key) for key in keys]

    monkeypatch.setattr(redis.Redis, "from_url", lambda _url: FakeRedis())
    memory = Memory("redis://host")
    assert len(memory.store.optuna.get_all_studies()) == 1 + REDIS_ENTRIES_PER_REQUEST
    assert not (tmp_path / "trace").exists()


def test_a_server_that_is_down_at_the_start_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server answers at the third attempt."""
    attempts, pauses = [], []

    def opened() -> str:
        attempts.append(1)
        if len(attempts) < 3:
            raise StorageError("down") from ConnectionRefusedError()
        return "open"

    monkeypatch.setattr(storages.time, "sleep", pauses.append)
    assert storages.patiently(opened) == "open"
    assert pauses == list(storages.UNREACHABLE_PAUSES[:2])


def test_minimize_waits_for_a_server_and_a_missing_folder_is_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(storages.time, "sleep", pauses.append)
    for address in ("postgresql://me@127.0.0.1:1/x", "redis://127.0.0.1:1"):
        with pytest.raises(StorageError):
            minimize(lambda c: c["x"], SPACE, trials=1, memory=address, progress=False)
        assert tuple(pauses) == storages.UNREACHABLE_PAUSES
        pauses.clear()
    with pytest.raises(StorageError):
        minimize(lambda c: c["x"], SPACE, trials=1, memory="/no/such/folder/m.db", progress=False)
    assert pauses == []


@pytest.mark.parametrize("name", ["x" * 513, "a\0b"])
def test_names_that_a_server_cannot_store_are_refused_before_the_first_trial(
    file: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Memory(file) as memory:
        memory.add(Run("any name", [{name: 0.5}], [1.0]), "p")  # in a SQLite file
        monkeypatch.setattr(storages.Store, "sqlite", False)
        with pytest.raises(InputError, match="512"):
            memory.add(Run("new", [{name: 0.5}], [1.0]), "p")
        with pytest.raises(InputError, match="512"):
            minimize(len, {name: (0.0, 1.0)}, trials=1, memory=memory, problem="p", task="new")
        assert [run.task for run in memory.runs()] == ["t", "any name"]


def test_a_memory_that_nobody_closes_leaves_no_open_connection_behind(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    memory.add(Run("t", [{"x": 0.5}], [1.0]), "p")
    engine = memory._store.engine
    assert engine is not None
    with engine.connect():
        pool = engine.pool
    assert "Connections in pool: 1" in pool.status()
    del memory
    gc.collect()
    assert "Connections in pool: 0" in pool.status()


@pytest.mark.parametrize("name", ["what?.db", "100%.db", "a%20b.db", "a#b&c=d.db"])
def test_any_character_may_be_in_the_name_of_a_file(tmp_path: Path, name: str) -> None:
    Memory(tmp_path / name).add(Run("t", [{"x": 1.0}], [0.5]))
    assert [path.name for path in tmp_path.iterdir()] == [name]
    for again in (tmp_path / name, Memory(tmp_path / name).store.address):
        assert again is not None
        assert Memory(again).tasks() == ["t"]
        assert [run.task for run in read_runs(again)] == ["t"]


def test_a_database_of_an_old_optuna_is_refused_with_the_command_that_upgrades_it(file: Path) -> None:
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("update alembic_version set version_num = 'v2.6.0.a'")
    with pytest.raises(StorageError) as caught:
        resume(file)
    assert f"optuna storage upgrade --storage sqlite:///{file}" in str(caught.value)
