"""Real data of the folder named by RECOLLECT_DATA, where there is one."""

from __future__ import annotations

import csv
import gzip
import os
from pathlib import Path

import numpy as np
import pytest

import recollect
from recollect.bench.data.table_files import TABLE_FILES
from recollect.bench.registry import find_entry, size_of

FOLDER = Path(os.environ.get("RECOLLECT_DATA") or "no folder named")
GRIDS = {"adaboost-grid": ("adaboost", 108), "svm-grid": ("svm", 288)}


def needed(file: str) -> Path:
    path = FOLDER / file
    if not path.exists():
        pytest.skip(f"RECOLLECT_DATA names no folder with {file}")
    return path


@pytest.fixture(autouse=True)
def _no_fetched_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATA_HOME", str(tmp_path))


@pytest.mark.parametrize("name", GRIDS)
def test_the_authors_files_equal_the_csv_benchmark(name: str) -> None:
    learner, points = GRIDS[name]
    original, csv_file = needed(f"schilling_{learner}_original.tar.gz"), needed(f"{learner}_grid.csv.gz")
    benchmark = recollect.bench.load(name, original)
    assert len(benchmark.tasks) == 50
    assert benchmark.candidates is not None
    assert len(benchmark.candidates) == points
    assert size_of(benchmark) == find_entry(name).size
    names = list(benchmark.candidates[0])
    with gzip.open(csv_file, "rt", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 50 * points
    for row in rows:
        config = {hyperparameter: float(row[f"x{j}"]) for j, hyperparameter in enumerate(names, 1)}
        assert benchmark.task(row["task"]).evaluate(config) == float(row["error"])


def test_the_svm_grid_splits_into_168_radial_108_polynomial_and_12_linear_points() -> None:
    benchmark = recollect.bench.load("svm-grid", needed("schilling_svm_original.tar.gz"))
    kernels = [(c["rbf"], c["polynomial"], c["linear"]) for c in benchmark.candidates or ()]
    assert [kernels.count(k) for k in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))] == [168, 108, 12]


@pytest.mark.parametrize("name", GRIDS)
def test_a_grid_is_found_in_the_named_folder(name: str) -> None:
    needed(f"schilling_{GRIDS[name][0]}_original.tar.gz")
    assert recollect.bench.load(name).name == name


@pytest.mark.parametrize(
    ("file", "tasks", "points", "logs", "conditional"),
    [
        ("lcbench_yahpo", 34, 2000, {"batch_size", "learning_rate", "max_units"}, set()),
        (
            "xgboost10d_yahpo",
            38,
            1000,
            {"alpha", "lambda", "nrounds", "eta", "min_child_weight"},
            {"colsample_bylevel", "colsample_bytree", "eta", "max_depth", "min_child_weight"},
        ),
        ("svm_openml100", 100, 250, {"C", "gamma", "tol"}, set()),
    ],
)
def test_a_csv_benchmark_is_read_as_its_authors_drew_it(
    file: str, tasks: int, points: int, logs: set[str], conditional: set[str]
) -> None:
    benchmark = recollect.bench.from_table(needed(f"{file}.csv.gz"))
    space = benchmark.space
    assert len(benchmark.tasks) == tasks
    assert {column.name for column in space.columns if getattr(column, "log", False)} == logs
    assert {n for n, c in zip(space.names, space.conditions, strict=True) if c is not None} == conditional
    task = benchmark.task(benchmark.tasks[-1])
    assert task.candidates is not None
    assert len(task.candidates) == points
    y = task.evaluate_many(space.encode(task.candidates))
    assert (y.min(), y.max()) == (task.best, task.worst)
    assert np.isclose(task.evaluate(task.candidates[5]), y[5], rtol=0, atol=0)


@pytest.mark.parametrize("name", TABLE_FILES)
def test_a_drawn_table_is_found_in_the_named_folder_and_is_as_large_as_listed(name: str) -> None:
    table = TABLE_FILES[name]
    needed(table.file)
    benchmark = recollect.bench.load(name)
    assert size_of(benchmark) == find_entry(name).size
    assert {len(benchmark.task(task).candidates or ()) for task in benchmark.tasks} == {table.configurations}


@pytest.mark.parametrize(("name", "highest"), [("lcbench", 0.1), ("lcbench+paper", 1e5)])
def test_lcbench_is_found_in_the_named_folder_and_has_the_published_errors(name: str, highest: float) -> None:
    needed("lcbench.csv.gz")
    benchmark = recollect.bench.load(name)
    assert (len(benchmark.tasks), len(benchmark.candidates or ())) == (35, 2000)
    assert benchmark.space.source["weight_decay"].upper == highest
    assert size_of(benchmark) == find_entry(name).size
    assert benchmark.task("APSFailure").best == pytest.approx(0.0426452, abs=1e-7)
