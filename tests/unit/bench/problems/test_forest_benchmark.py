"""Benchmarks whose tasks are forests: evaluation, bounds, building in parallel, and what is stored."""

from __future__ import annotations

import math
import os
from pathlib import Path

import numpy as np
import pytest

from recollect.bench.benchmark import About
from recollect.bench.data.openml_bot import bot_space
from recollect.bench.problems.forest_benchmark import (
    ForestBuild,
    TuneSettings,
    build_forests,
    forest_benchmark,
    forest_features,
    to_error,
    tune_forest,
)
from recollect.bench.problems.forest_model import load_forest
from recollect.errors import ConfigError, InputError, RecollectWarning
from recollect.numerics.arrays import FloatArray
from recollect.space.sampling import uniform

TINY = TuneSettings(candidates=2, folds=2, trees=5, final_trees=12)
SPACE = bot_space("svm")
ABOUT = About("a title", "a citation", "a licence", "a source", "table", True, "an error")
Data = dict[str, tuple[FloatArray, FloatArray]]


def tables(count: int = 2, n: int = 60) -> Data:
    data = {}
    for task in range(count):
        X = uniform(SPACE, n, np.random.default_rng(task))
        gamma = np.where(np.isnan(X[:, 3]), 0.7, X[:, 3])
        data[f"task {task}"] = (X, 0.01 * (task + 1) + 0.2 * (X[:, 0] - 0.4) ** 2 + 0.1 * gamma)
    return data


def test_the_benchmark_describes_itself(tmp_path: Path) -> None:
    benchmark = forest_benchmark("toy", SPACE, tables(), ABOUT, build=ForestBuild(TINY, folder=tmp_path))
    assert (benchmark.name, benchmark.tasks, benchmark.candidates) == ("toy", ("task 0", "task 1"), None)
    assert (benchmark.about.kind, benchmark.about.exact, benchmark.about.title) == ("forest", False, "a title")
    with pytest.raises(InputError, match="no task 'task 9'"):
        benchmark.task("task 9")


def test_an_evaluation_is_the_rounded_exponential_of_the_tuned_forests_prediction(tmp_path: Path) -> None:
    data = tables()
    task = forest_benchmark("toy", SPACE, data, ABOUT, build=ForestBuild(TINY, folder=tmp_path)).task("task 1")
    forest = tune_forest(SPACE, *data["task 1"], settings=TINY).forest
    Q = uniform(SPACE, 50, np.random.default_rng(9))
    expected = np.round(np.exp(forest.predict(forest_features(SPACE, Q))) - 1e-10, 6)
    np.testing.assert_array_equal(task.evaluate_many(Q), expected)
    assert [task.evaluate(config) for config in SPACE.decode(Q)] == expected.tolist()
    low, high = forest.bounds()
    assert task.best == round(math.exp(low) - 1e-10, 6)
    assert task.worst == round(math.exp(high) - 1e-10, 6)
    assert task.best <= expected.min() < expected.max() <= task.worst


def test_codes_of_inactive_cells_do_not_matter(tmp_path: Path) -> None:
    task = forest_benchmark("toy", SPACE, tables(), ABOUT, build=ForestBuild(TINY, folder=tmp_path)).task("task 0")
    Q = uniform(SPACE, 30, np.random.default_rng(9))
    np.testing.assert_array_equal(task.evaluate_many(np.where(np.isnan(Q), 0.5, Q)), task.evaluate_many(Q))


def test_points_and_configurations_outside_of_the_space_are_refused(tmp_path: Path) -> None:
    task = forest_benchmark("toy", SPACE, tables(), ABOUT, build=ForestBuild(TINY, folder=tmp_path)).task("task 0")
    with pytest.raises(ConfigError, match="gamma"):
        task.evaluate({"kernel": "linear", "cost": 1.0, "gamma": 1.0})
    with pytest.raises(InputError, match="'cost' is active, but its cell is nan"):
        task.evaluate_many(np.array([[np.nan, 0.0, np.nan, np.nan]]))
    with pytest.raises(InputError, match="expected encoded points"):
        task.evaluate_many(np.zeros((1, 3)))


def test_a_perfect_error_is_zero_and_not_negative_zero() -> None:
    errors = to_error(np.array([np.log(1e-10), np.log(0.25 + 1e-10)]), np.empty(0), "log")
    assert errors.tolist() == [0.0, 0.25]
    assert not np.signbit(errors).any()


def test_a_forest_on_ranks_answers_errors_between_those_measured(tmp_path: Path) -> None:
    settings = TuneSettings(candidates=4, folds=2, trees=5, final_trees=12, scale="rank")
    X, y = tables(1)["task 0"]
    zeros = np.where(y < np.quantile(y, 0.1), 0.0, y)
    task = forest_benchmark(
        "toy", SPACE, {"task 0": (X, zeros)}, ABOUT, build=ForestBuild(settings, folder=tmp_path)
    ).task("task 0")
    tuned = tune_forest(SPACE, X, zeros, settings=settings)
    ranks = tuned.forest.predict(forest_features(SPACE, X))
    assert ranks.min() > 0
    assert ranks.max() < 1
    found = task.evaluate_many(X)
    np.testing.assert_array_equal(found, to_error(ranks, zeros, "rank"))
    assert task.evaluate(SPACE.decode(X[:1])[0]) == found[0]
    assert 0.0 <= task.best <= found.min()
    assert found.max() <= task.worst <= round(float(y.max()), 6)
    assert np.median(np.abs(found - zeros)) < 0.1 * np.ptp(y)


def test_forests_are_stored_and_not_built_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []
    build = ForestBuild(TINY, lambda done, total: seen.append((done, total)), tmp_path)
    first = build_forests(SPACE, tables(3), build=build)
    assert seen == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert len(list(tmp_path.glob("*.npz"))) == len(list(tmp_path.iterdir())) == 3

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("built again")

    monkeypatch.setattr("recollect.bench.problems.forest_benchmark.tune_forest", refuse)
    again = build_forests(SPACE, tables(3), build=build)
    assert len(seen) == 4
    for task in ("task 0", "task 2"):
        np.testing.assert_array_equal(first.tuned(task)[0].words, again.tuned(task)[0].words)
        assert first.tuned(task)[1] == again.tuned(task)[1]


def test_with_0_jobs_only_the_forests_in_use_are_built(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    build = ForestBuild(TINY, folder=tmp_path / "later")
    benchmark = forest_benchmark("toy", SPACE, tables(4), ABOUT, jobs=0, build=build)
    assert not build.storage_folder().exists()
    benchmark.prepare(["task 1", "task 3"], jobs=1, progress=lambda *now: seen.append(now))
    assert (seen, len(os.listdir(build.storage_folder()))) == ([(0, 2), (1, 2), (2, 2)], 2)
    benchmark.prepare(["task 1"], jobs=1, progress=lambda *now: seen.append(now))
    assert len(seen) == 3
    at_once = forest_benchmark("toy", SPACE, tables(4), ABOUT, build=ForestBuild(TINY, folder=tmp_path / "at once"))
    Q = uniform(SPACE, 20, np.random.default_rng(9))
    for task in ("task 1", "task 2"):  # prepared, and not
        np.testing.assert_array_equal(benchmark.task(task).evaluate_many(Q), at_once.task(task).evaluate_many(Q))
    assert len(os.listdir(build.storage_folder())) == 3


def test_the_users_cache_folder_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_CACHE", str(tmp_path / "own"))
    build_forests(SPACE, tables(1), build=ForestBuild(TINY))
    assert len(list((tmp_path / "own" / "forests").glob("*.npz"))) == 1


@pytest.mark.parametrize(("jobs", "processes"), [(None, 6), (1, 1), (4, 4)])
def test_without_a_number_of_processes_there_is_one_per_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, jobs: int | None, processes: int
) -> None:
    processes_used: list[int] = []

    def run(_function: object, _jobs: object, *, processes: int) -> list[object]:
        processes_used.append(processes)
        return []

    monkeypatch.setattr("recollect.bench.problems.forest_benchmark.available_cores", lambda: 6)
    monkeypatch.setattr("recollect.bench.problems.forest_benchmark.run_in_processes", run)
    forest_benchmark("toy", SPACE, tables(6), ABOUT, jobs=jobs, build=ForestBuild(TINY, folder=tmp_path))
    assert processes_used == [processes]


def test_copies_of_a_table_are_one_forest_and_any_change_is_another(tmp_path: Path) -> None:
    X, y = tables(1)["task 0"]
    data: Data = {"a": (X, y), "copy": (X.copy(), y.copy()), "errors": (X, y + 1e-9), "rows": (X[1:], y[1:])}
    build_forests(SPACE, data, build=ForestBuild(TINY, folder=tmp_path))
    assert len(list(tmp_path.iterdir())) == 3
    build_forests(SPACE, {"a": (X, y)}, build=ForestBuild(TuneSettings(1, 2, 5, 12), folder=tmp_path))
    assert len(list(tmp_path.iterdir())) == 4


def test_a_damaged_file_is_built_again_with_a_warning(tmp_path: Path) -> None:
    build = ForestBuild(TINY, folder=tmp_path)
    expected = build_forests(SPACE, tables(1), build=build).tuned("task 0")
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:100])
    forests = build_forests(SPACE, tables(1), build=build)
    with pytest.warns(RecollectWarning, match="cannot be read.*task 'task 0' is built again"):
        got = forests.tuned("task 0")
    np.testing.assert_array_equal(got[0].words, expected[0].words)
    assert got[1] == expected[1]
    assert load_forest(path)[1] == {"spearman": expected[1]}


def test_without_storage_forests_stay_in_memory_with_one_warning(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where the folder should be")
    with pytest.warns(RecollectWarning, match="in memory only") as seen:
        benchmark = forest_benchmark("toy", SPACE, tables(), ABOUT, build=ForestBuild(TINY, folder=tmp_path / "taken"))
    assert len(seen) == 1
    stored = forest_benchmark("toy", SPACE, tables(), ABOUT, build=ForestBuild(TINY, folder=tmp_path / "free"))
    Q = uniform(SPACE, 20, np.random.default_rng(9))
    for task in benchmark.tasks:
        np.testing.assert_array_equal(benchmark.task(task).evaluate_many(Q), stored.task(task).evaluate_many(Q))
    assert os.listdir(tmp_path / "free")


def test_bad_data_are_refused_with_the_name_of_the_task(tmp_path: Path) -> None:
    data = tables()
    data["task 1"] = (data["task 1"][0], -data["task 1"][1])
    with pytest.raises(InputError, match="task 'task 1': row 0: expected a finite error >= 0"):
        forest_benchmark("toy", SPACE, data, ABOUT, build=ForestBuild(TINY, folder=tmp_path))
    with pytest.raises(InputError, match="at least one task"):
        forest_benchmark("toy", SPACE, {}, ABOUT)
    with pytest.raises(InputError, match="jobs >= 0, got -1"):
        forest_benchmark("toy", SPACE, tables(), ABOUT, jobs=-1)
