"""Work files and stored tables: what is written is read, what is damaged is refused with file, line and reason."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.bench.problems.suite.suite_benchmarks import (
    SUITE,
    StoredResults,
    configurations,
    load_suite,
    read_provenance,
    read_results,
    results_path,
    save_results,
    search_space,
)
from recollect.errors import InputError


def stored(name: str, count: int = 8) -> StoredResults:
    rng = np.random.default_rng(3)
    errors = {task: np.round(rng.random(count), 5) for task in ("tic-tac-toe", "monk-2")}
    return StoredResults(tuple(range(count)), configurations(name)[:count], errors)


def rewrite(path: Path, change: Any) -> None:
    rows = list(csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))
    change(rows)
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    path.write_bytes(gzip.compress(buffer.getvalue().encode()))


@pytest.mark.parametrize("name", SUITE)
def test_a_table_gives_back_configurations_and_errors_exactly(name: str, tmp_path: Path) -> None:
    written = stored(name)
    save_results(name, written, provenance={}, folder=tmp_path)
    found = read_results(name, search_space(name), tmp_path)
    assert found.numbers == written.numbers
    assert [dict(sorted(config.items())) for config in found.configs] == [
        dict(sorted(config.items())) for config in written.configs
    ]
    for config, original in zip(found.configs, written.configs, strict=True):
        assert all(type(config[key]) is type(original[key]) for key in original)
    assert list(found.errors) == list(written.errors)
    for task, errors in written.errors.items():
        assert found.errors[task].tolist() == errors.tolist()


def test_the_same_results_give_the_same_bytes(tmp_path: Path) -> None:
    paths = [save_results("own-svm", stored("own-svm"), provenance={}, folder=tmp_path / part) for part in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].read_bytes()[4:8] == bytes(4)  # gzip's field for the time of writing


def test_a_loaded_table_evaluates_its_configurations_and_knows_best_and_worst(tmp_path: Path) -> None:
    written = stored("own-svm")
    save_results("own-svm", written, provenance={}, folder=tmp_path)
    benchmark = load_suite("own-svm", tmp_path)
    assert benchmark.tasks == ("tic-tac-toe", "monk-2")
    assert benchmark.candidates is not None
    task = benchmark.task("monk-2")
    assert [task.evaluate(config) for config in benchmark.candidates] == written.errors["monk-2"].tolist()
    assert (task.best, task.worst) == (written.errors["monk-2"].min(), written.errors["monk-2"].max())
    assert benchmark.about.kind == "table"
    assert "1 - AUC" in benchmark.about.measured


def test_the_record_of_one_space_leaves_those_of_others(tmp_path: Path) -> None:
    for name in ("own-svm", "own-glmnet"):
        save_results(name, stored(name), provenance={"command": name}, folder=tmp_path)
    save_results("own-svm", stored("own-svm"), provenance={"command": "again"}, folder=tmp_path)
    assert read_provenance(tmp_path)["spaces"] == {
        "own-glmnet": {"command": "own-glmnet"},
        "own-svm": {"command": "again"},
    }
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_a_provenance_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "provenance.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(InputError, match="expected format 1, got 99"):
        read_provenance(tmp_path)
    (tmp_path / "provenance.json").write_text("{")
    with pytest.raises(InputError, match="expected JSON"):
        read_provenance(tmp_path)


def test_a_space_that_has_not_been_built_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="recollect bench build own-mlp"):
        load_suite("own-mlp", tmp_path)


def _last(rows: list[list[str]], cell: str) -> None:
    rows[-1][-1] = cell


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows[-1].pop(), r"line 7: expected 10 cells"),
        (lambda rows: _last(rows, "1.5"), r"line 7: task 'monk-2': .*, got '1.5'"),
        (lambda rows: _last(rows, "nan"), r"line 7: task 'monk-2': .*, got 'nan'"),
        (lambda rows: _last(rows, "x"), r"line 7: could not convert"),
        (lambda rows: rows.append(rows[-1]), r"line 8: 'monk-2' comes twice"),
        (lambda rows: rows[1].__setitem__(1, "colour"), r"line 2: expected a task or a hyperparameter among"),
        (lambda rows: rows.pop(1), r"no line for the hyperparameter 'cost'"),
        (lambda rows: rows.pop(0), r"line 1: expected kind,name"),
        (lambda rows: rows[0].__setitem__(-1, "x"), r"line 1: expected kind,name"),
        (lambda rows: rows.clear(), r"the file is empty"),
    ],
)
def test_a_damaged_table_is_refused_with_line_and_reason(tmp_path: Path, change: Any, reason: str) -> None:
    path = save_results("own-svm", stored("own-svm"), provenance={}, folder=tmp_path)
    rewrite(path, change)
    with pytest.raises(InputError, match=reason):
        read_results("own-svm", search_space("own-svm"), tmp_path)


@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: b"task,error\n" + raw])
def test_a_file_that_is_cut_off_or_not_compressed_is_refused(tmp_path: Path, damage: Any) -> None:
    path = save_results("own-svm", stored("own-svm"), provenance={}, folder=tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="cannot be read"):
        load_suite("own-svm", tmp_path)
    assert path == results_path("own-svm", tmp_path)
