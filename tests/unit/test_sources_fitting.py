"""Fits of past runs: pure functions of their content, made once, by any number of processes."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.errors import InputError
from recollect.surrogate.fit import FitSettings, Search
from recollect.surrogate.kernels import KernelShape
from recollect.surrogate.prior import Prior
from recollect.transfer import fitting
from recollect.transfer.cache import FitCache
from recollect.transfer.fitting import fit_sources, representative_rows
from recollect.transfer.sources import SourceData, SourceFit

SHAPE = KernelShape(np.zeros(2, dtype=bool), False)
QUICK = SourceFit(restarts=1)


def make_run(seed: int, n: int = 8) -> SourceData:
    rng = np.random.default_rng(seed)
    X = rng.random((n, 2))
    return SourceData(f"task-{seed}", X, np.sin(6.0 * X[:, 0]) + 0.1 * rng.standard_normal(n))


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Targets of the fits that were made."""
    made: list[np.ndarray] = []
    real = fitting.most_probable

    def counted(searches: Sequence[Search], settings: FitSettings) -> list[np.ndarray]:
        made.extend(search.z for search in searches)
        return real(searches, settings)

    monkeypatch.setattr(fitting, "most_probable", counted)
    return made


def test_a_second_start_makes_no_fit(tmp_path: Path, fits: list[np.ndarray]) -> None:
    runs = [make_run(i) for i in range(4)]
    first = fit_sources(runs, shape=SHAPE, settings=QUICK, cache=FitCache(tmp_path / "fits.sqlite3"))
    assert len(fits) == 4
    second = fit_sources(runs, shape=SHAPE, settings=QUICK, cache=FitCache(tmp_path / "fits.sqlite3"))
    assert len(fits) == 4
    np.testing.assert_array_equal(first.theta, second.theta)


def test_without_a_cache_every_start_fits(fits: list[np.ndarray]) -> None:
    for count in (1, 2):
        fit_sources([make_run(0)], shape=SHAPE, settings=QUICK, cache=None)
        assert len(fits) == count


def test_a_fit_does_not_depend_on_its_company_or_place() -> None:
    runs = [make_run(i) for i in range(3)]
    together = fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None)
    backwards = fit_sources(runs[::-1], shape=SHAPE, settings=QUICK, cache=None)
    alone = fit_sources(runs[1:2], shape=SHAPE, settings=QUICK, cache=None)
    np.testing.assert_array_equal(together.theta, backwards.theta[::-1])
    np.testing.assert_array_equal(together.theta[1], alone.theta[0])
    assert backwards.tasks == ("task-2", "task-1", "task-0")


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


class Killed:
    """Processes of which the first batches come back, and whose death is then noticed: at once, or by and by."""

    def __init__(self, answers: int, *, at_once: bool) -> None:
        self.answers, self.at_once = answers, at_once
        self.asked = 0
        self.ended = False

    def shutdown(self, *, wait: bool, kill_workers: bool) -> None:
        self.ended = kill_workers and not wait

    def submit(self, function: Callable[..., Any], batch: Any) -> Future[Any]:
        self.asked += 1
        future: Future[Any] = Future()
        if self.asked <= self.answers:
            future.set_result(function(batch))
        elif self.at_once:
            raise BrokenProcessPool("killed")
        else:
            future.set_exception(BrokenProcessPool("killed"))
        return future


@pytest.mark.parametrize("at_once", [False, True])
@pytest.mark.parametrize("answers", [0, 1, 3])
def test_what_killed_processes_leave_is_fitted_here(
    answers: int, at_once: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_run(i) for i in range(12)]
    one = fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None, jobs=1)
    others = Killed(answers, at_once=at_once)
    monkeypatch.setattr(fitting, "_executor", lambda _count: others)
    several = fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None, jobs=3)
    np.testing.assert_array_equal(several.theta, one.theta)
    assert answers < others.asked <= answers + 4  # once it is known nothing more is asked
    assert others.ended


def loky_processes() -> set[int]:
    """Those that this process has started."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(OSError):  # it ends while one looks
            for pid in (task / "children").read_text().split():
                if "popen_loky" in Path(f"/proc/{pid}/cmdline").read_text():
                    found.add(int(pid))
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="processes are found in /proc")
def test_other_users_of_joblib_are_not_disturbed_and_no_process_is_left() -> None:
    runs = [make_run(i) for i in range(6)]
    joblib = import_module("joblib")
    for _ in range(2):
        fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None, jobs=2)
        assert joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(number) for number in (-1, -2)) == [1, 2]
    before = loky_processes()
    fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None, jobs=2)
    deadline = time.monotonic() + 10.0
    while loky_processes() - before:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_batches_hold_every_fit_once_and_the_longest_first(count: int, workers: int) -> None:
    tasks = {bytes([i]): fitting._task(make_run(i, 2 + i % 5), SHAPE, QUICK) for i in range(count)}
    batches = fitting._batches(tasks, workers)
    keys = [key for batch in batches for key in batch]
    assert sorted(keys) == sorted(tasks)
    lengths = [tasks[key].z.size for key in keys]
    assert lengths == sorted(lengths, reverse=True)
    sizes = [len(batch) for batch in batches]
    assert max(sizes, default=0) <= fitting.TOGETHER
    if workers > 1:
        assert sizes == sorted(sizes, reverse=True)
        assert count == 0 or sizes[-1] == 1


def test_raw_and_standardised_targets_share_a_fit(fits: list[np.ndarray]) -> None:
    raw = make_run(0)
    scaled = SourceData("scaled", raw.X, (raw.y - raw.y.mean()) / raw.y.std())
    shifted = SourceData("shifted", raw.X, 1e3 * raw.y - 17.0)
    sources = fit_sources([raw, scaled, shifted], shape=SHAPE, settings=QUICK, cache=None)
    assert len(fits) == 1
    X = np.random.default_rng(5).random((6, 2))
    means = sources.means(X)
    np.testing.assert_allclose(means[0], raw.y.mean() + raw.y.std() * means[1], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(means[2], 1e3 * means[0] - 17.0, rtol=1e-6, atol=1e-5)


def test_copies_of_a_run_are_one_fit(fits: list[np.ndarray]) -> None:
    counted: list[tuple[int, int]] = []
    run = make_run(0)
    sources = fit_sources(
        [run, run, run], shape=SHAPE, settings=QUICK, cache=None, progress=lambda *now: counted.append(now)
    )
    assert len(fits) == 1
    assert counted == [(1, 1)]
    assert sources.k == 3


def content(**changes: object) -> bytes:
    run = make_run(0)
    parts: dict[str, object] = {
        "X": run.X, "z": run.y, "shape": SHAPE, "prior": Prior(), "restarts": 1, **changes
    }  # fmt: skip
    return fitting.Task(**parts).key()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "change",
    [
        {"X": make_run(1).X},
        {"z": make_run(1).y},
        {"shape": KernelShape(np.array([True, False]), False)},
        {"shape": KernelShape(np.zeros(2, dtype=bool), True)},
        {"prior": Prior(horseshoe_scale=0.2)},
        {"restarts": 2},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_hash_knows_everything_a_fit_depends_on(change: dict[str, object]) -> None:
    assert content(**change) != content()


def test_the_hash_does_not_know_how_zero_and_inactive_are_written() -> None:
    X = np.array([[0.0, np.nan], [0.5, 0.25]])
    same = np.array([[-0.0, -1.0], [0.5, 0.25]])
    z = np.array([1.0, -1.0])
    assert content(X=X, z=z) == content(X=same, z=z)
    assert content(X=np.array([[0.0, 0.0], [0.5, 0.25]]), z=z) != content(X=X, z=z)


def test_a_fit_made_with_others_is_bit_for_bit_the_fit_made_alone() -> None:
    runs = [make_run(i, n) for i, n in enumerate((12, 30, 30, 7, 55, 2))]
    flat, part = make_run(6, 30), make_run(7, 30)
    runs.append(SourceData("a column never varies", flat.X * [1.0, 0.0], flat.y))
    runs.append(SourceData("inactive entries", np.where(part.X < 0.2, np.nan, part.X), part.y))
    shape = KernelShape(SHAPE.categorical, True)
    tasks = {bytes([i]): fitting._task(run, shape, SourceFit()) for i, run in enumerate(runs)}
    together = fitting._fits(tasks)
    for key, task in tasks.items():
        np.testing.assert_array_equal(together[key], fitting._fits({key: task})[key])


def test_an_interrupted_start_continues(
    tmp_path: Path, fits: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fitting, "TOGETHER", 1)
    runs = [make_run(i) for i in range(5)]
    cache = FitCache(tmp_path / "fits.sqlite3")

    def stop(done: int, _total: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_sources(runs, shape=SHAPE, settings=QUICK, cache=cache, progress=stop)
    assert len(fits) == 3
    counted: list[tuple[int, int]] = []
    fit_sources(runs, shape=SHAPE, settings=QUICK, cache=cache, progress=lambda *now: counted.append(now))
    assert len(fits) == 5
    assert counted == [(1, 2), (2, 2)]


def test_fits_are_written_while_others_are_still_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "TOGETHER", 1)
    monkeypatch.setattr(fitting, "BETWEEN_WRITES", -1.0)
    cache = FitCache(tmp_path / "fits.sqlite3")
    runs = [make_run(i) for i in range(3)]
    keys = [fitting._task(run, SHAPE, QUICK).key() for run in runs]
    written: list[int] = []
    fit_sources(
        runs, shape=SHAPE, settings=QUICK, cache=cache, progress=lambda *_: written.append(len(cache.get(keys)))
    )
    assert written == [1, 2, 3]


@pytest.mark.parametrize("row", [np.zeros(3), np.full(4, np.nan), np.full(4, 50.0), np.zeros(0)])
def test_a_nonsensical_row_is_fitted_again(row: np.ndarray, tmp_path: Path, fits: list[np.ndarray]) -> None:
    run, cache = make_run(0), FitCache(tmp_path / "fits.sqlite3")
    key = fitting._task(run, SHAPE, QUICK).key()
    cache.put({key: row})
    sources = fit_sources([run], shape=SHAPE, settings=QUICK, cache=cache)
    assert len(fits) == 1
    np.testing.assert_array_equal(cache.get([key])[key], sources.theta[0])


def test_few_fits_stay_in_this_process_and_many_use_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def tasks(count: int, n: int) -> dict[bytes, fitting.Task]:
        run = make_run(0, n)
        return {bytes([i]): fitting._task(run, SHAPE, QUICK) for i in range(count)}

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert fitting._workers(tasks(10, 50), None) == 1
    assert fitting._workers(tasks(100, 50), None) == 6
    assert fitting._workers(tasks(4, 300), None) == 4
    assert fitting._workers(tasks(200, 50), 1) == 1
    assert fitting._workers(tasks(3, 5), 2) == 2
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    assert fitting._workers(tasks(200, 50), 8) == 1


def test_constant_runs_are_fitted() -> None:
    flat = SourceData("flat", make_run(0).X, np.full(8, 3.5))
    sources = fit_sources([flat, make_run(1)], shape=SHAPE, settings=QUICK, cache=None)
    mean, variance = sources.posterior(np.random.default_rng(0).random((5, 2)))
    assert (mean[0] == 3.5).all()
    assert np.isfinite(variance).all()


def test_no_runs_make_no_fits(fits: list[np.ndarray], tmp_path: Path) -> None:
    cache = FitCache(tmp_path / "fits.sqlite3")
    assert fit_sources([], shape=SHAPE, cache=cache).k == 0
    assert fits == []
    assert not cache.path.exists()


def test_categorical_and_inactive_columns_reach_the_fit() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack((rng.integers(0, 3, 20), rng.random((20, 2)))).astype(float)
    X[::3, 2] = np.nan
    shape = KernelShape(np.array([True, False, False]), True)
    run = SourceData("mixed", X, X[:, 0] + X[:, 1])
    sources = fit_sources([run], shape=shape, settings=QUICK, cache=None)
    assert np.abs(sources.means(X)[0] - run.y).max() < 0.1


def test_a_long_run_is_represented_by_its_best_last_and_farthest_observations() -> None:
    X = np.full((30, 1), 0.5) + 1e-3 * np.arange(30)[:, None]
    X[[4, 11, 17], 0] = [0.0, 1.0, 0.25]
    y = np.full(30, 5.0)
    y[[8, 2, 20]] = [1.0, 2.0, 3.0]
    shape = KernelShape(np.zeros(1, dtype=bool), False)
    rows = representative_rows(SourceData("long", X, y), 9, shape)
    assert rows.tolist() == [2, 4, 8, 11, 17, 20, 27, 28, 29]


def test_where_best_and_last_coincide_the_next_best_fill_up() -> None:
    y = np.arange(20.0, 0.0, -1.0)  # the last are the best
    X = np.linspace(0.0, 0.3, 20)[:, None] ** 2
    rows = representative_rows(SourceData("falling", X, y), 9, KernelShape(np.zeros(1, dtype=bool), False))
    assert rows.size == 9
    assert rows[0] == 0  # the farthest from the last three
    assert set(range(15, 20)) <= set(rows.tolist())


def test_spread_counts_categories_and_inactive_columns() -> None:
    X = np.column_stack((np.zeros(12), np.linspace(0.0, 0.1, 12)))
    X[3, 0] = 1.0
    X[6, 1] = np.nan
    y = np.arange(12.0)
    rows = representative_rows(SourceData("mixed", X, y), 6, KernelShape(np.array([True, False]), True))
    assert rows.tolist() == [0, 1, 3, 6, 10, 11]


@pytest.mark.parametrize("count", [2, 3, 4, 7, 39, 40, 41])
def test_a_representation_has_the_size_asked_for_and_keeps_the_order(count: int) -> None:
    run = SourceData("dup", np.repeat(make_run(0, 10).X, 4, axis=0), np.tile([1.0, 0.0], 20))
    rows = representative_rows(run, count, SHAPE)
    assert rows.size == min(count, 40)
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, representative_rows(run, count, SHAPE))


def test_limits_decide_what_is_fitted_and_what_predicts(fits: list[np.ndarray]) -> None:
    run = make_run(0, 60)
    limited = SourceFit(restarts=1, most=30, most_for_fit=12)
    sources = fit_sources([run], shape=SHAPE, settings=limited, cache=None)
    assert [y.size for y in fits] == [12]
    assert sources.sizes.tolist() == [30]
    np.testing.assert_array_equal(sources.data(0).y, run.y[representative_rows(run, 30, SHAPE)])


def test_hyperparameters_of_a_part_are_brought_to_the_units_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(0, 40)
    limited = SourceFit(restarts=1, most_for_fit=10)
    theta = np.log([0.5, 0.3, 0.4, 1e-3])
    monkeypatch.setattr(fitting, "most_probable", lambda searches, _settings: [theta] * len(searches))
    sources = fit_sources([run], shape=SHAPE, settings=limited, cache=None)
    part = run.y[representative_rows(run, 10, SHAPE)]
    hyper = sources.hyper(0)
    assert hyper.amplitude * run.y.var() == pytest.approx(0.5 * part.var())
    assert hyper.noise * run.y.var() == pytest.approx(1e-3 * part.var())
    assert hyper.lengthscales == pytest.approx([0.3, 0.4])


def test_a_part_without_variance_leaves_the_hyperparameters_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.zeros(40)
    y[20] = 1e-6  # neither best nor last nor far from the others
    run = SourceData("almost flat", np.tile(make_run(0, 4).X, (10, 1)), y)
    theta = np.log([0.5, 0.3, 0.4, 1e-3])
    monkeypatch.setattr(fitting, "most_probable", lambda searches, _settings: [theta] * len(searches))
    sources = fit_sources([run], shape=SHAPE, settings=SourceFit(most_for_fit=9), cache=None)
    np.testing.assert_array_equal(sources.theta[0], theta)


@pytest.mark.parametrize("jobs", [0, -1])
def test_fewer_than_one_process_is_refused(jobs: int) -> None:
    with pytest.raises(InputError, match=f"jobs >= 1 or None, got {jobs}"):
        fit_sources([make_run(0)], shape=SHAPE, cache=None, jobs=jobs)


def test_a_run_of_another_space_is_refused() -> None:
    with pytest.raises(InputError, match=r"'task-0'.*3 columns"):
        fit_sources([make_run(0)], shape=KernelShape(np.zeros(3, dtype=bool), False), cache=None)
