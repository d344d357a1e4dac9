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

from recollect.bench.suite.spaces import SUITE, compiled, configurations
from recollect.bench.suite.store import Stored, load_suite, provenance, read_table, save_table, table_path
from recollect.bench.suite.work import Result, append, read_work, wall_seconds
from recollect.errors import InputError

HEAD = {"format": 1, "versions": {"numpy": "2.0"}}


def result(dataset: str, config: int, error: float = 0.25, **changes: Any) -> Result:
    fields: dict[str, Any] = {"session": 1, "elapsed": 1.5, "status": "ok", "seconds": 0.125} | changes
    return Result(dataset=dataset, config=config, error=error, **fields)


def stored(name: str, count: int = 8) -> Stored:
    rng = np.random.default_rng(3)
    errors = {task: np.round(rng.random(count), 5) for task in ("tic-tac-toe", "monk-2")}
    return Stored(tuple(range(count)), configurations(name)[:count], errors)


def rewrite(path: Path, change: Any) -> None:
    rows = list(csv.reader(io.StringIO(gzip.decompress(path.read_bytes()).decode())))
    change(rows)
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(rows)
    path.write_bytes(gzip.compress(buffer.getvalue().encode()))


def test_a_work_file_gives_back_what_was_added(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "own-svm.work.csv"
    assert read_work(path, HEAD) == []
    some = [result("iris", 0, 0.12345), result("tic-tac-toe", 7, 0.5, status="failed", session=2)]
    append(path, some[:1])
    append(path, some[1:])
    assert read_work(path, HEAD) == some


def test_a_line_that_was_cut_off_is_dropped_and_work_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "work.csv"
    read_work(path, HEAD)
    append(path, [result("iris", 0), result("iris", 1)])
    path.write_bytes(path.read_bytes()[:-4])
    assert read_work(path, HEAD) == [result("iris", 0)]
    append(path, [result("iris", 2)])
    assert read_work(path, HEAD) == [result("iris", 0), result("iris", 2)]


def test_of_results_that_come_twice_the_first_counts(tmp_path: Path) -> None:
    path = tmp_path / "work.csv"
    read_work(path, HEAD)
    append(path, [result("iris", 0, 0.1), result("iris", 0, 0.2)])
    assert read_work(path, HEAD) == [result("iris", 0, 0.1)]


def test_results_of_other_versions_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "work.csv"
    read_work(path, HEAD)
    with pytest.raises(InputError, match=r"another versions: versions is .*2\.0.* there and .*3\.0.* here"):
        read_work(path, {**HEAD, "versions": {"numpy": "3.0"}})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1,1.0,iris,0,0.5,ok", "line 2: expected session"),
        ("1,1.0,iris,0,1.5,ok,0.1", "between 0 and 1"),
        ("1,1.0,iris,0,nan,ok,0.1", "between 0 and 1"),
        ("1,1.0,iris,0,0.5,fine,0.1", "the status is one of"),
        ("1,1.0,iris,x,0.5,ok,0.1", "line 2"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "work.csv"
    read_work(path, HEAD)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match=reason):
        read_work(path, HEAD)


@pytest.mark.parametrize("content", ["", "nonsense\n", "[1]\n"])
def test_a_file_that_is_not_a_work_file_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "work.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="line 1: expected the head"):
        read_work(path, HEAD)


def test_the_time_of_all_sessions_is_the_sum_of_their_last_results() -> None:
    some = [result("a", 0, elapsed=2.0), result("a", 1, elapsed=5.0), result("a", 2, session=2, elapsed=3.0)]
    assert wall_seconds(some) == 8.0


@pytest.mark.parametrize("name", SUITE)
def test_a_table_gives_back_configurations_and_errors_exactly(name: str, tmp_path: Path) -> None:
    written = stored(name)
    save_table(name, written, record={}, folder=tmp_path)
    found = read_table(name, compiled(name), tmp_path)
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
    paths = [save_table("own-svm", stored("own-svm"), record={}, folder=tmp_path / part) for part in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert paths[0].read_bytes()[4:8] == bytes(4)  # gzip's field for the time of writing


def test_a_loaded_table_evaluates_its_configurations_and_knows_best_and_worst(tmp_path: Path) -> None:
    written = stored("own-svm")
    save_table("own-svm", written, record={}, folder=tmp_path)
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
        save_table(name, stored(name), record={"command": name}, folder=tmp_path)
    save_table("own-svm", stored("own-svm"), record={"command": "again"}, folder=tmp_path)
    assert provenance(tmp_path)["spaces"] == {"own-glmnet": {"command": "own-glmnet"}, "own-svm": {"command": "again"}}
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".tmp"] == []


def test_a_provenance_of_another_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / "provenance.json").write_text(json.dumps({"format": 99}))
    with pytest.raises(InputError, match="expected format 1, got 99"):
        provenance(tmp_path)
    (tmp_path / "provenance.json").write_text("{")
    with pytest.raises(InputError, match="expected JSON"):
        provenance(tmp_path)


def test_a_space_that_has_not_been_built_says_how_to(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="recollect bench build own-mlp"):
        load_suite("own-mlp", tmp_path)


def _last(rows: list[list[str]], cell: str) -> None:
    rows[-1][-1] = cell


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda rows: rows[-1].pop(), r"line 7: expected 10 cells, got 9"),
        (lambda rows: _last(rows, "1.5"), r"line 7: task 'monk-2': an error lies between 0 and 1, got '1.5'"),
        (lambda rows: _last(rows, "nan"), r"line 7: task 'monk-2': an error lies between 0 and 1, got 'nan'"),
        (lambda rows: _last(rows, "x"), r"line 7: could not convert"),
        (lambda rows: rows.append(rows[-1]), r"line 8: 'monk-2' comes twice"),
        (lambda rows: rows[1].__setitem__(1, "colour"), r"line 2: expected a task or a hyperparameter among"),
        (lambda rows: rows.pop(1), r"no line for the hyperparameter 'cost'"),
        (lambda rows: rows.pop(0), r"line 1: expected kind,name"),
        (lambda rows: rows[0].__setitem__(-1, "x"), r"line 1: expected kind,name"),
        (lambda rows: rows.clear(), r"line 1: expected kind,name"),
    ],
)
def test_a_damaged_table_is_refused_with_line_and_reason(tmp_path: Path, change: Any, reason: str) -> None:
    path = save_table("own-svm", stored("own-svm"), record={}, folder=tmp_path)
    rewrite(path, change)
    with pytest.raises(InputError, match=reason):
        read_table("own-svm", compiled("own-svm"), tmp_path)


@pytest.mark.parametrize("damage", [lambda raw: raw[: len(raw) // 2], lambda raw: b"task,error\n" + raw])
def test_a_file_that_is_cut_off_or_not_compressed_is_refused(tmp_path: Path, damage: Any) -> None:
    path = save_table("own-svm", stored("own-svm"), record={}, folder=tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(InputError, match="compressed with gzip"):
        load_suite("own-svm", tmp_path)
    assert path == table_path("own-svm", tmp_path)
