"""The cache of fits: it never gets in the way, and warns when it cannot be used."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest

from recollect.disk_cache import cache_folder
from recollect.errors import RecollectWarning
from recollect.numerics.arrays import KernelShape
from recollect.transfer import fit_cache as cache_module
from recollect.transfer.fit_cache import FitCache
from recollect.transfer.source_fitting import fit_sources
from recollect.transfer.sources import SourceData, SourceFit

THETA = np.array([0.5, -1.0, 1e-300, -25.0])
NOBODY = 65534


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fits.sqlite3"


def key(i: int) -> bytes:
    return i.to_bytes(32, "big")


def test_what_was_put_is_found_bit_for_bit(path: Path) -> None:
    FitCache(path).put({key(1): THETA, key(2): THETA[:2]})
    found = FitCache(path).get([key(1), key(2), key(3)])
    assert set(found) == {key(1), key(2)}
    np.testing.assert_array_equal(found[key(1)], THETA)
    np.testing.assert_array_equal(found[key(2)], THETA[:2])


def test_making_asking_and_putting_nothing_create_no_file(tmp_path: Path) -> None:
    cache = FitCache(tmp_path / "deep" / "fits.sqlite3")
    assert cache.get([key(1)]) == {}
    cache.put({})
    assert list(tmp_path.iterdir()) == []
    cache.put({key(1): THETA})
    assert cache.get([key(1)]).keys() == {key(1)}


def test_more_keys_than_one_question_holds_are_found(path: Path) -> None:
    keys = [key(i) for i in range(1201)]
    FitCache(path).put({k: np.array([float(i)]) for i, k in enumerate(keys)})
    found = FitCache(path).get(keys)
    assert [found[k][0] for k in keys] == list(range(1201))


def test_a_fit_put_again_is_replaced(path: Path) -> None:
    FitCache(path).put({key(1): THETA})
    FitCache(path).put({key(1): THETA + 1.0})
    np.testing.assert_array_equal(FitCache(path).get([key(1)])[key(1)], THETA + 1.0)


def test_the_oldest_fits_go_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_module, "MAX_CACHED_FITS", 3)
    for i in range(5):
        FitCache(path).put({key(i): THETA})
    FitCache(path).put({key(2): THETA})  # now the youngest
    FitCache(path).put({key(5): THETA})
    assert set(FitCache(path).get([key(i) for i in range(6)])) == {key(4), key(2), key(5)}


@pytest.mark.parametrize("content", [b"no database at all, only text " * 100, b"SQLite format 3\0" + b"\xff" * 4096])
def test_a_damaged_file_is_moved_aside_and_a_new_one_begun(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    cache = FitCache(path)
    with pytest.warns(RecollectWarning, match=r"damaged.*moved to fits\.sqlite3\.damaged-1") as caught:
        assert cache.get([key(1)]) == {}
    assert len(caught) == 1
    assert path.with_name("fits.sqlite3.damaged-1").read_bytes() == content
    cache.put({key(1): THETA})
    assert set(cache.get([key(1)])) == {key(1)}
    path.write_bytes(content)
    with pytest.warns(RecollectWarning, match="damaged-2"):
        cache.put({key(1): THETA})


def test_damage_inside_the_file_is_noticed(path: Path) -> None:
    FitCache(path).put({key(i): np.full(40, float(i)) for i in range(400)})
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(bytes(content))
    with pytest.warns(RecollectWarning, match="damaged"):
        FitCache(path).get([key(i) for i in range(400)])
    assert not path.exists()


def test_a_file_of_another_format_is_not_touched(path: Path) -> None:
    FitCache(path).put({key(1): THETA})
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    cache = FitCache(path)
    with pytest.warns(RecollectWarning, match="expected format 1, got 99"):
        assert cache.get([key(1)]) == {}
    cache.put({key(2): THETA})  # off: no second warning
    assert path.read_bytes() == before


def test_a_database_of_another_program_is_not_touched(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE fits (other TEXT)")
    connection.close()
    cache = FitCache(path)
    assert cache.get([key(1)]) == {}
    with pytest.warns(RecollectWarning, match="cannot write"):
        cache.put({key(1): THETA})
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)
    connection.close()


def test_a_folder_that_cannot_be_created_gives_one_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = FitCache(tmp_path / "file" / "fits.sqlite3")
    with pytest.warns(RecollectWarning, match=r"cannot write .*fits\.sqlite3.*fitted without the cache") as caught:
        cache.put({key(1): THETA})
    assert len(caught) == 1
    cache.put({key(1): THETA})  # a second warning would be an error
    assert cache.get([key(1)]) == {}


@contextmanager
def ordinary_user() -> Iterator[None]:
    """Permissions mean nothing to root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of folders are those of POSIX")
def test_a_folder_that_may_not_be_written_to_is_still_read() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fits.sqlite3"
        FitCache(path).put({key(1): THETA})
        path.chmod(0o444)
        os.chmod(folder, 0o555)
        try:
            with ordinary_user():
                cache = FitCache(path)
                assert set(cache.get([key(1)])) == {key(1)}
                with pytest.warns(RecollectWarning, match="cannot write.*readonly") as caught:
                    cache.put({key(2): THETA})
                assert len(caught) == 1
                with pytest.warns(RecollectWarning, match="cannot write.*unable to open"):
                    FitCache(Path(folder) / "new.sqlite3").put({key(2): THETA})
        finally:
            os.chmod(folder, 0o755)


def test_after_waiting_for_a_locked_file_the_cache_is_disabled(path: Path) -> None:
    FitCache(path).put({key(1): THETA})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache = FitCache(path, lock_timeout=0.05)
    with pytest.warns(RecollectWarning, match="cannot read.*locked"):
        assert cache.get([key(1)]) == {}
    other.execute("ROLLBACK")
    other.close()
    assert set(FitCache(path).get([key(1)])) == {key(1)}


def test_fitting_continues_when_the_cache_is_damaged(path: Path) -> None:
    rng = np.random.default_rng(0)
    runs = [SourceData("a", rng.random((5, 2)), rng.random(5))]
    shape = KernelShape(np.zeros(2, dtype=bool), False)
    path.write_bytes(b"rubbish" * 1000)
    with pytest.warns(RecollectWarning, match="damaged"):
        sources = fit_sources(runs, shape=shape, settings=SourceFit(restarts=0), cache=FitCache(path))
    again = fit_sources(runs, shape=shape, settings=SourceFit(restarts=0), cache=FitCache(path))
    np.testing.assert_array_equal(sources.theta, again.theta)


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_when_all_fits_are_cached_no_process_fits(path: Path, jobs: int | None) -> None:
    rng = np.random.default_rng(0)
    runs = [SourceData("a", rng.random((5, 2)), rng.random(5))]
    shape = KernelShape(np.zeros(2, dtype=bool), False)
    settings = SourceFit(restarts=0)
    sources = fit_sources(runs, shape=shape, settings=settings, cache=FitCache(path), jobs=1)
    again = fit_sources(runs, shape=shape, settings=settings, cache=FitCache(path), jobs=jobs)
    np.testing.assert_array_equal(sources.theta, again.theta)


def test_the_cache_is_in_the_folder_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_CACHE", "/mine")
    assert cache_folder() == Path("/mine")
    assert FitCache.default().path == Path("/mine/fits.sqlite3")


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_otherwise_the_cache_is_in_the_users_folder_for_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECOLLECT_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/recollect")


@pytest.mark.parametrize("cell", ["text", b"", b"\0" * 40, 5, "CAST(x'ff' AS TEXT)"])
def test_an_entry_that_fails_its_checksum_is_left_out_until_it_is_put_again(path: Path, cell: object) -> None:
    FitCache(path).put({key(1): THETA, key(2): THETA})
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        raw = str(cell) if str(cell).startswith("CAST") else "?"
        connection.execute(f"UPDATE fits SET theta = {raw} WHERE key = ?", ([cell] if raw == "?" else []) + [key(1)])
    cache = FitCache(path)
    assert set(cache.get([key(1), key(2)])) == {key(2)}
    cache.put({key(1): THETA})
    np.testing.assert_array_equal(cache.get([key(1)])[key(1)], THETA)


def test_one_changed_bit_of_a_cached_hyperparameter_is_noticed(path: Path) -> None:
    FitCache(path).put({key(1): THETA})
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        (row,) = connection.execute("SELECT theta FROM fits").fetchone()
        connection.execute("UPDATE fits SET theta = ?", (bytes([row[0] ^ 1]) + row[1:],))
    assert FitCache(path).get([key(1)]) == {}


def test_a_fit_under_another_key_is_noticed(path: Path) -> None:
    FitCache(path).put({key(1): THETA})
    with contextlib.closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE fits SET key = ?", (key(2),))
    assert FitCache(path).get([key(2)]) == {}
