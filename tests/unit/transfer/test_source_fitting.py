"""Fits of past runs: pure functions of their content, computed once."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.helpers.source_runs import make_run, record_fits

from recollect.errors import InputError
from recollect.numerics.arrays import KernelShape
from recollect.processes import ProcessDiedError, ProcessStartError
from recollect.surrogate.prior import Prior
from recollect.transfer import source_fitting
from recollect.transfer.fit_cache import FitCache
from recollect.transfer.source_fitting import fit_sources, representative_rows
from recollect.transfer.sources import SourceData, SourceFit

SHAPE = KernelShape(np.zeros(2, dtype=bool), False)
QUICK = SourceFit(restarts=1)


@pytest.fixture
def fits(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    return record_fits(monkeypatch)


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


class KilledPool:
    """Processes that answer the first batches and are then killed, or do not start."""

    def __init__(self, answers: int, end: Exception) -> None:
        self.answers, self.end, self.submitted = answers, end, 0
        self.closed = False

    def __call__(self, function: Callable[..., Any], _processes: int) -> KilledPool:
        self.function = function
        return self

    def __enter__(self) -> KilledPool:
        return self

    def __exit__(self, *error: object) -> None:
        self.closed = True

    def submit(self, batch: Any) -> Future[Any]:
        self.submitted += 1
        future: Future[Any] = Future()
        if self.submitted <= self.answers:
            future.set_result(self.function(batch))
        else:
            future.set_exception(self.end)
        return future


@pytest.mark.parametrize("end", [ProcessDiedError(-9), ProcessStartError("no process")], ids=["killed", "not started"])
@pytest.mark.parametrize("answers", [0, 1, 3])
def test_what_other_processes_leave_is_fitted_here(
    answers: int, end: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [make_run(i) for i in range(12)]
    one = fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None, jobs=1)
    others = KilledPool(answers, end)
    monkeypatch.setattr(source_fitting, "ProcessPool", others)
    several = fit_sources(runs, shape=SHAPE, settings=QUICK, cache=None, jobs=3)
    np.testing.assert_array_equal(several.theta, one.theta)
    assert answers < others.submitted <= answers + 4  # nothing is submitted any more once it is known
    assert others.closed


@pytest.mark.parametrize("workers", [1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 7, 100])
def test_batches_hold_every_fit_once_and_the_longest_first(count: int, workers: int) -> None:
    tasks = {bytes([i]): source_fitting._task(make_run(i, 2 + i % 5), SHAPE, QUICK) for i in range(count)}
    batches = source_fitting._batches(tasks, workers)
    keys = [key for batch in batches for key in batch]
    assert sorted(keys) == sorted(tasks)
    lengths = [tasks[key].z.size for key in keys]
    assert lengths == sorted(lengths, reverse=True)
    sizes = [len(batch) for batch in batches]
    assert max(sizes, default=0) <= source_fitting.MAX_BATCH
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
    assert len(sources) == 3


def content(**changes: object) -> bytes:
    run = make_run(0)
    parts: dict[str, object] = {
        "X": run.X, "z": run.y, "shape": SHAPE, "prior": Prior(), "restarts": 1, **changes
    }  # fmt: skip
    return source_fitting.FitTask(**parts).key()  # type: ignore[arg-type]


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


def test_a_fit_in_a_batch_is_bit_for_bit_the_separate_fit() -> None:
    runs = [make_run(i, n) for i, n in enumerate((12, 30, 30, 7, 55, 2))]
    flat, part = make_run(6, 30), make_run(7, 30)
    runs.append(SourceData("a column never varies", flat.X * [1.0, 0.0], flat.y))
    runs.append(SourceData("inactive entries", np.where(part.X < 0.2, np.nan, part.X), part.y))
    shape = KernelShape(SHAPE.categorical, True)
    tasks = {bytes([i]): source_fitting._task(run, shape, SourceFit()) for i, run in enumerate(runs)}
    together = source_fitting._fits(tasks)
    for key, task in tasks.items():
        np.testing.assert_array_equal(together[key], source_fitting._fits({key: task})[key])


def test_an_interrupted_start_continues(
    tmp_path: Path, fits: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_fitting, "MAX_BATCH", 1)
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


def test_fits_are_written_while_others_are_still_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_fitting, "MAX_BATCH", 1)
    monkeypatch.setattr(source_fitting, "WRITE_INTERVAL", -1.0)
    cache = FitCache(tmp_path / "fits.sqlite3")
    runs = [make_run(i) for i in range(3)]
    keys = [source_fitting._task(run, SHAPE, QUICK).key() for run in runs]
    written: list[int] = []
    fit_sources(
        runs, shape=SHAPE, settings=QUICK, cache=cache, progress=lambda *_: written.append(len(cache.get(keys)))
    )
    assert written == [1, 2, 3]


@pytest.mark.parametrize("row", [np.zeros(3), np.full(4, np.nan), np.full(4, 50.0), np.zeros(0)])
def test_a_nonsensical_row_is_fitted_again(row: np.ndarray, tmp_path: Path, fits: list[np.ndarray]) -> None:
    run, cache = make_run(0), FitCache(tmp_path / "fits.sqlite3")
    key = source_fitting._task(run, SHAPE, QUICK).key()
    cache.put({key: row})
    sources = fit_sources([run], shape=SHAPE, settings=QUICK, cache=cache)
    assert len(fits) == 1
    np.testing.assert_array_equal(cache.get([key])[key], sources.theta[0])


def test_few_fits_stay_in_this_process_and_many_use_all_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    def tasks(count: int, n: int) -> dict[bytes, source_fitting.FitTask]:
        run = make_run(0, n)
        return {bytes([i]): source_fitting._task(run, SHAPE, QUICK) for i in range(count)}

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(6)), raising=False)
    assert source_fitting._workers(tasks(10, 50), None) == 1
    assert source_fitting._workers(tasks(100, 50), None) == 6
    assert source_fitting._workers(tasks(4, 300), None) == 4
    assert source_fitting._workers(tasks(200, 50), 1) == 1
    assert source_fitting._workers(tasks(3, 5), 2) == 2
    monkeypatch.setattr(multiprocessing, "parent_process", object)
    assert source_fitting._workers(tasks(200, 50), 8) == 1


def test_constant_runs_are_fitted() -> None:
    flat = SourceData("flat", make_run(0).X, np.full(8, 3.5))
    sources = fit_sources([flat, make_run(1)], shape=SHAPE, settings=QUICK, cache=None)
    mean, variance = sources.posterior(np.random.default_rng(0).random((5, 2)))
    assert (mean[0] == 3.5).all()
    assert np.isfinite(variance).all()


def test_no_runs_make_no_fits(fits: list[np.ndarray], tmp_path: Path) -> None:
    cache = FitCache(tmp_path / "fits.sqlite3")
    assert len(fit_sources([], shape=SHAPE, cache=cache)) == 0
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
def test_a_representation_has_the_requested_size_and_keeps_the_order(count: int) -> None:
    run = SourceData("dup", np.repeat(make_run(0, 10).X, 4, axis=0), np.tile([1.0, 0.0], 20))
    rows = representative_rows(run, count, SHAPE)
    assert rows.size == min(count, 40)
    assert (np.diff(rows) > 0).all()
    np.testing.assert_array_equal(rows, representative_rows(run, count, SHAPE))


def test_limits_decide_what_is_fitted_and_what_predicts(fits: list[np.ndarray]) -> None:
    run = make_run(0, 60)
    limited = SourceFit(restarts=1, max_observations=30, max_fit_observations=12)
    sources = fit_sources([run], shape=SHAPE, settings=limited, cache=None)
    assert [y.size for y in fits] == [12]
    assert len(sources.data(0).y) == 30
    np.testing.assert_array_equal(sources.data(0).y, run.y[representative_rows(run, 30, SHAPE)])


def test_hyperparameters_of_a_part_are_brought_to_the_units_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(0, 40)
    limited = SourceFit(restarts=1, max_fit_observations=10)
    theta = np.log([0.5, 0.3, 0.4, 1e-3])
    monkeypatch.setattr(source_fitting, "map_estimates", lambda searches, _settings: [theta] * len(searches))
    sources = fit_sources([run], shape=SHAPE, settings=limited, cache=None)
    part = run.y[representative_rows(run, 10, SHAPE)]
    hyper = sources.hyper(0)
    assert hyper.amplitude * run.y.var() == pytest.approx(0.5 * part.var())
    assert hyper.noise * run.y.var() == pytest.approx(1e-3 * part.var())
    assert hyper.lengthscales == pytest.approx([0.3, 0.4])


def test_a_part_without_variance_does_not_change_the_hyperparameters(monkeypatch: pytest.MonkeyPatch) -> None:
    y = np.zeros(40)
    y[20] = 1e-6  # neither best nor last nor far from the others
    run = SourceData("almost flat", np.tile(make_run(0, 4).X, (10, 1)), y)
    theta = np.log([0.5, 0.3, 0.4, 1e-3])
    monkeypatch.setattr(source_fitting, "map_estimates", lambda searches, _settings: [theta] * len(searches))
    sources = fit_sources([run], shape=SHAPE, settings=SourceFit(max_fit_observations=9), cache=None)
    np.testing.assert_array_equal(sources.theta[0], theta)


@pytest.mark.parametrize("jobs", [0, -1])
def test_fewer_than_one_process_is_refused(jobs: int) -> None:
    with pytest.raises(InputError, match=f"jobs >= 1 or None, got {jobs}"):
        fit_sources([make_run(0)], shape=SHAPE, cache=None, jobs=jobs)


def test_a_run_of_another_space_is_refused() -> None:
    with pytest.raises(InputError, match=r"'task-0'.*3 columns"):
        fit_sources([make_run(0)], shape=KernelShape(np.zeros(3, dtype=bool), False), cache=None)
