"""Fits of past runs by several processes, and a cache that several processes share."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from tests.helpers.source_runs import make_run, record_fits

from recollect.numerics.arrays import KernelShape
from recollect.transfer.fit_cache import FitCache
from recollect.transfer.source_fitting import fit_sources
from recollect.transfer.sources import SourceFit

SHAPE = KernelShape(np.zeros(2, dtype=bool), False)
QUICK = SourceFit(restarts=1)
THETA = np.array([0.5, -1.0, 1e-300, -25.0])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fits.sqlite3"


def key(i: int) -> bytes:
    return i.to_bytes(32, "big")


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    return record_fits(monkeypatch)


def test_fits_do_not_depend_on_the_number_of_processes(fits: list[np.ndarray], tmp_path: Path) -> None:
    runs = [make_run(i, n) for i, n in enumerate((8, 5, 12, 3))]
    counted: list[tuple[int, int]] = []
    cache = FitCache(tmp_path / "fits.sqlite3")
    several = fit_sources(
        runs, shape=SHAPE, settings=QUICK, cache=cache, jobs=2, progress=lambda *now: counted.append(now)
    )
    assert [z.size for z in fits] == [5, 3]  # the two longest were given to the other process
    assert counted == [(1, 4), (2, 4), (3, 4), (4, 4)]
    one = fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None, jobs=1)
    assert len(fits) == 6
    np.testing.assert_array_equal(several.theta, one.theta)
    again = fit_sources(runs, shape=SHAPE, settings=QUICK, cache=cache)
    np.testing.assert_array_equal(again.theta, one.theta)
    assert len(fits) == 6


def started_processes() -> set[int]:
    """Those that this process has started."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it ends while one looks
            for pid in (task / "children").read_text().split():
                found.add(int(pid))
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")
def test_other_users_of_joblib_are_not_disturbed_and_no_process_is_left() -> None:
    runs = [make_run(i) for i in range(6)]
    joblib = import_module("joblib")
    for _ in range(2):
        fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None, jobs=2)
        assert joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(number) for number in (-1, -2)) == [1, 2]
    before = started_processes()
    fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None, jobs=2)
    assert not started_processes() - before


@pytest.mark.skipif(sys.platform == "win32", reason="file size limits are those of POSIX")
def test_a_full_disk_gives_a_warning_and_leaves_the_file_usable(path: Path) -> None:
    FitCache(path).put({key(1): THETA})
    script = f"""
import resource, warnings
import numpy as np
from recollect.transfer.fit_cache import FitCache
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
from recollect.numerics.arrays import KernelShape
from recollect.transfer.fit_cache import FitCache
from recollect.transfer import source_fitting
from recollect.transfer.sources import SourceData, SourceFit
source_fitting.WRITE_INTERVAL = -1.0
rng = np.random.default_rng(0)
runs = [SourceData(str(i), rng.random((6, 2)), rng.random(6)) for i in range(12)]
shape = KernelShape(np.zeros(2, dtype=bool), False)
print("ready", flush=True)
sys.stdin.readline()
cache = FitCache(sys.argv[1])
sources = source_fitting.fit_sources(runs, shape=shape, settings=SourceFit(restarts=0), cache=cache, jobs=1)
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
