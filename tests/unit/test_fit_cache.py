"""The cache of fits: shared by processes, never in the way, never silent when it cannot be used."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from recollect.errors import RecollectWarning
from recollect.surrogate.kernels import KernelShape
from recollect.transfer import cache as cache_module
from recollect.transfer.cache import FitCache, cache_folder
from recollect.transfer.fitting import fit_sources
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
    monkeypatch.setattr(cache_module, "MOST_ROWS", 3)
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


def test_a_file_of_another_format_is_left_alone(path: Path) -> None:
    FitCache(path).put({key(1): THETA})
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    before = path.read_bytes()
    cache = FitCache(path)
    with pytest.warns(RecollectWarning, match="expected format 1, got 99"):
        assert cache.get([key(1)]) == {}
    cache.put({key(2): THETA})  # off: no second warning
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE fits (other TEXT)")
    connection.close()
    cache = FitCache(path)
    assert cache.get([key(1)]) == {}
    with pytest.warns(RecollectWarning, match="cannot write"):
        cache.put({key(1): THETA})
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (0,)
    connection.close()


def test_a_folder_that_cannot_be_made_gives_one_warning(tmp_path: Path) -> None:
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


def test_a_locked_file_is_waited_for_and_then_given_up(path: Path) -> None:
    FitCache(path).put({key(1): THETA})
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN EXCLUSIVE")
    cache = FitCache(path, patience=0.05)
    with pytest.warns(RecollectWarning, match="cannot read.*locked"):
        assert cache.get([key(1)]) == {}
    other.execute("ROLLBACK")
    other.close()
    assert set(FitCache(path).get([key(1)])) == {key(1)}


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are those of POSIX")
def test_a_full_disk_gives_a_warning_and_leaves_the_file_usable(path: Path) -> None:
    FitCache(path).put({key(1): THETA})
    script = f"""
import resource, warnings
import numpy as np
from recollect.transfer.cache import FitCache
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    cache = FitCache({str(path)!r})
    cache.put({{bytes([i]) * 32: np.zeros(500) for i in range(50)}})
    cache.put({{b"x" * 32: np.zeros(2)}})
print([w.category.__name__ for w in caught])
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['RecollectWarning']"
    assert set(FitCache(path).get([key(1)])) == {key(1)}


TWO_AT_ONCE = """
import sys
import numpy as np
from recollect.surrogate.kernels import KernelShape
from recollect.transfer.cache import FitCache
from recollect.transfer import fitting
from recollect.transfer.sources import SourceData, SourceFit
fitting.BETWEEN_WRITES = -1.0
rng = np.random.default_rng(0)
runs = [SourceData(str(i), rng.random((6, 2)), rng.random(6)) for i in range(12)]
shape = KernelShape(np.zeros(2, dtype=bool), False)
print("ready", flush=True)
sys.stdin.readline()
sources = fitting.fit_sources(runs, shape=shape, settings=SourceFit(restarts=0), cache=FitCache(sys.argv[1]), jobs=1)
print(sources.theta.tobytes().hex())
"""


def test_two_processes_at_once_both_succeed_and_agree(path: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", TWO_AT_ONCE, str(path)]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    said = [worker.communicate(timeout=60) for worker in workers]
    assert [worker.returncode for worker in workers] == [0, 0], said
    assert said[0][0] == said[1][0] != ""
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT count(*) FROM fits").fetchone() == (12,)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


def test_fitting_goes_on_when_the_cache_is_damaged(path: Path) -> None:
    rng = np.random.default_rng(0)
    runs = [SourceData("a", rng.random((5, 2)), rng.random(5))]
    shape = KernelShape(np.zeros(2, dtype=bool), False)
    path.write_bytes(b"rubbish" * 1000)
    with pytest.warns(RecollectWarning, match="damaged"):
        sources = fit_sources(runs, shape=shape, settings=SourceFit(restarts=0), cache=FitCache(path))
    again = fit_sources(runs, shape=shape, settings=SourceFit(restarts=0), cache=FitCache(path))
    np.testing.assert_array_equal(sources.theta, again.theta)


@pytest.mark.parametrize("jobs", [None, 1, 2])
def test_when_all_fits_are_known_no_process_has_to_fit(path: Path, jobs: int | None) -> None:
    rng = np.random.default_rng(0)
    runs = [SourceData("a", rng.random((5, 2)), rng.random(5))]
    shape = KernelShape(np.zeros(2, dtype=bool), False)
    settings = SourceFit(restarts=0)
    sources = fit_sources(runs, shape=shape, settings=settings, cache=FitCache(path), jobs=1)
    again = fit_sources(runs, shape=shape, settings=settings, cache=FitCache(path), jobs=jobs)
    np.testing.assert_array_equal(sources.theta, again.theta)


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("RECOLLECT_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", lambda: Path("/home/me"))
    monkeypatch.setattr(sys, "platform", "linux")
    return monkeypatch


@pytest.mark.parametrize(
    ("platform", "variables", "folder"),
    [
        ("linux", {}, "/home/me/.cache/recollect"),
        ("linux", {"XDG_CACHE_HOME": "/caches"}, "/caches/recollect"),
        ("linux", {"XDG_CACHE_HOME": "relative"}, "/home/me/.cache/recollect"),
        ("darwin", {}, "/home/me/Library/Caches/recollect"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/recollect"),
        ("win32", {}, "/home/me/AppData/Local/recollect"),
        ("linux", {"RECOLLECT_CACHE": "/mine", "XDG_CACHE_HOME": "/caches"}, "/mine"),
        ("win32", {"RECOLLECT_CACHE": "/mine"}, "/mine"),
    ],
)
def test_the_folder_follows_the_customs_of_the_system(
    bare: pytest.MonkeyPatch, platform: str, variables: dict[str, str], folder: str
) -> None:
    bare.setattr(sys, "platform", platform)
    for name, value in variables.items():
        bare.setenv(name, value)
    assert cache_folder() == Path(folder)
    assert FitCache.default().path == Path(folder) / "fits.sqlite3"


def test_without_a_home_the_folder_for_temporary_files_is_used(bare: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("could not determine home directory")

    bare.setattr(Path, "home", homeless)
    assert cache_folder() == Path(tempfile.gettempdir()) / "recollect"
