"""Tables of trials as runs: what cells mean, what is refused, and where."""

from __future__ import annotations

import gzip
import json
import math
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from recollect.errors import InputError, RecollectWarning
from recollect.runs.run import FAILED, Run, State
from recollect.storage.formats.csv_columns import typed_column
from recollect.storage.importers.detection import read_runs

TWO_TASKS = """task,C,kernel,degree,shrinking,value,state,seconds
b,0.5,rbf,,true,0.25,ok,1.5
a,1,poly,3,false,0.5,ok,
b,2,linear,,true,,failed,0.1
"""


def written(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def only(runs: list[Run]) -> Run:
    assert len(runs) == 1
    return runs[0]


def test_each_task_is_a_run_in_order_of_appearance(tmp_path: Path) -> None:
    b, a = read_runs(written(tmp_path, TWO_TASKS))
    assert (b.task, a.task) == ("b", "a")
    assert b.configs == [
        {"C": 0.5, "kernel": "rbf", "shrinking": True},
        {"C": 2.0, "kernel": "linear", "shrinking": True},
    ]
    assert b.values == [0.25, None]
    assert [trial.state for trial in b.trials] == [State.OK, FAILED]
    assert [trial.seconds for trial in b.trials] == [1.5, 0.1]
    assert a.configs == [{"C": 1.0, "kernel": "poly", "degree": 3, "shrinking": False}]
    assert a.trials[0].seconds is None
    assert a.direction == "minimize"


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3", "-1", "+2"], [3, -1, 2]),
        (["3", "", "2"], [3, None, 2]),
        (["3", "1.0"], [3.0, 1.0]),
        (["1e-3", "nan", "inf"], [1e-3, None, math.inf]),
        (["true", "False", "TRUE"], [True, False, True]),
        (["true", "1"], ["true", "1"]),
        (["1_000", "2"], ["1_000", "2"]),
        (["12", "two"], ["12", "two"]),
        ([" rbf ", " 2"], ["rbf", "2"]),
        (["٣", "4"], [3.0, 4.0]),
        (["9" * 400], [math.inf]),
        (["", "NaN", None], [None, None, None]),
    ],
)
def test_a_column_of_text_has_the_first_type_that_fits_all_its_cells(
    cells: list[str | None], values: list[Any]
) -> None:
    found = typed_column(cells)
    assert found == values
    assert [type(value) for value in found] == [type(value) for value in values]


def test_the_type_of_a_column_is_decided_over_all_tasks(tmp_path: Path) -> None:
    a, b = read_runs(written(tmp_path, "task,x,value\na,1,0\nb,0.5,0\n"))
    assert type(a.configs[0]["x"]) is float
    assert b.configs == [{"x": 0.5}]


@pytest.mark.parametrize("cell", ["", "nan", "NaN", " "])
def test_a_row_without_a_value_is_a_failed_trial(cell: str, tmp_path: Path) -> None:
    run = only(read_runs(written(tmp_path, f"x,value\n1,{cell}\n2,0.5\n")))
    assert run.values == [None, 0.5]
    assert run.trials[0].state is FAILED


def test_infinite_values_and_values_of_failed_rows_are_failures_with_a_note(tmp_path: Path) -> None:
    run = only(read_runs(written(tmp_path, "x,value,state\n1,-inf,\n2,0.5,Failed\n3,0.5,OK\n")))
    assert [trial.notes for trial in run.trials] == [
        ("the objective returned -inf",),
        ("failed, with the value 0.5",),
        (),
    ]
    assert run.values == [None, None, 0.5]


def test_rows_that_are_still_running_are_left_out_and_counted(tmp_path: Path) -> None:
    path = written(tmp_path, "x,value,state\n1,,running\n2,0.5,ok\n3,,running\n")
    with pytest.warns(RecollectWarning, match=r"table\.csv: left out rows that are still running \(2\)"):
        run = only(read_runs(path))
    assert run.configs == [{"x": 2}]


def test_a_table_without_tasks_is_one_run_named_as_asked_or_as_the_file(tmp_path: Path) -> None:
    path = tmp_path / "svm.csv.gz"
    path.write_bytes(gzip.compress(b"x,value\n1,0.5\n"))
    assert only(read_runs(path)).task == "svm"
    assert only(read_runs(str(path), task="other", direction="maximize")) == Run(
        "other", [{"x": 1}], [0.5], direction="maximize"
    )


def test_one_task_of_several_can_be_read(tmp_path: Path) -> None:
    path = written(tmp_path, TWO_TASKS)
    assert only(read_runs(path, task="a")).task == "a"
    with pytest.raises(InputError, match=r"there is no task 'c', only 'b' and 'a'"):
        read_runs(path, task="c")


def test_columns_get_other_roles_by_name(tmp_path: Path) -> None:
    path = written(tmp_path, "id,dataset,took,seconds,accuracy\n7,31,2.5,60,0.9\n8,31,2,120,0.8\n")
    run = only(
        read_runs(
            path,
            value="accuracy",
            direction="maximize",
            columns={"dataset": "task", "took": "seconds", "seconds": "hyperparameter", "id": "ignore"},
        )
    )
    assert run == Run("31", trials=run.trials, direction="maximize")
    assert run.configs == [{"seconds": 60}, {"seconds": 120}]
    assert run.values == [0.9, 0.8]
    assert [trial.seconds for trial in run.trials] == [2.5, 2.0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"value": "loss"}, r"there is no column 'loss', only x, y, value"),
        ({"columns": {"z": "ignore"}}, r"there is no column 'z', only x, y, value"),
        ({"columns": {"x": "hue"}}, r"the role of 'x' must be one of task, value, .* got 'hue'"),
        ({"columns": {"x": "value"}, "value": "y"}, r"the role 'value' is given to more than one column"),
        ({"columns": {"value": "ignore"}}, r"there is no column 'value'.*value="),
        ({"columns": {"x": "ignore", "y": "ignore"}}, r"expected columns of hyperparameters, got only x, y, value"),
        ({"direction": "up"}, r"direction must be 'minimize' or 'maximize'"),
    ],
)
def test_roles_that_make_no_sense_are_refused(options: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = written(tmp_path, "x,y,value\n1,2,3\n")
    with pytest.raises(InputError, match=message):
        read_runs(path, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"t\.csv: the file is empty"),
        (" \n\n", r"t\.csv: the file is empty"),
        ("x,value\n", r"t\.csv: expected at least one row, got none"),
        ("x,y\n1,2\n", r"t\.csv: there is no column 'value', only x, y"),
        ("x;value\n1;2\n", r"t\.csv, line 1: .* commas, not by ';'"),
        ("x;value\n0,1;1,5\n", r"t\.csv, line 1: .* commas, not by ';'"),
        ("x\tvalue\n1\t2\n", r"t\.csv, line 1: .* commas, not by '.t'"),
        ("x,x,value\n1,2,3\n", r"t\.csv, line 1: the column 'x' occurs twice"),
        (",x,value\n0,1,2\n", r"t\.csv, line 1: column 1 has no name .*index=False"),
        ("x,value\n1,2\n1\n", r"t\.csv, line 3: expected 2 cells as in the header, got 1"),
        ("x,value\n1,2,3\n", r"t\.csv, line 2: expected 2 cells as in the header, got 3"),
        ("x,value\n1,0.5\n2,abc\n", r"t\.csv, line 3, column 'value': expected a number, got 'abc'"),
        ("x,value\n1,0.5\n2,true\n", r"t\.csv, line 3, column 'value': expected a number, got 'true'"),
        ("x,value,seconds\n1,2,long\n", r"t\.csv, line 2, column 'seconds': expected a number, got 'long'"),
        (
            "x,value,state\n1,2,lost\n",
            r"t\.csv, line 2, column 'state': expected ok, failed, pruned or running, got 'lost'",
        ),
        ("task,x,value\na,1,2\n,1,2\n", r"t\.csv, line 3, column 'task': the task is missing"),
        ('x,value\n"1,2\n', r"t\.csv, line 2: expected CSV: unexpected end of data"),
    ],
)
def test_a_csv_file_that_is_no_table_is_refused_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_runs(written(tmp_path, text, "t.csv"))


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        ("x,value\nö,1\n".encode("latin-1"), "t.csv", r"line 2: expected text in UTF-8"),
        (
            "x,value\n1,1\n".encode("utf-16"),
            "t.csv",
            r"expected text in UTF-8, got a binary file \(or text in UTF-16\)",
        ),
        (b"\x7fELF\x02\0\0", "t.jsonl", r"got a binary file"),
        (gzip.compress(b"x,value\n1,2\n" * 99, mtime=0)[:-12], "t.csv.gz", r"the file cannot be read"),
        (b"x,value\n1,2\n", "t.csv.gz", r"the file cannot be read: Not a gzipped file"),
    ],
)
def test_bytes_that_are_no_text_are_refused(content: bytes, name: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_runs(path)


def test_spreadsheets_byte_order_mark_and_line_ends_do_not_matter(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xef\xbb\xbfvalue, x\r\n0.5, 1\r\n\r\n")
    assert only(read_runs(path)) == Run("t", [{"x": 1}], [0.5])


def test_json_lines_keep_their_types(tmp_path: Path) -> None:
    rows = [
        {"task": 31, "lr": 1, "kernel": "1", "deep": True, "value": 0.5, "seconds": 3},
        {"task": 31, "lr": 0.5, "kernel": None, "value": None},
        {"task": 31, "lr": math.nan, "value": "0.25", "state": "ok"},
        {"task": 31, "value": 10**400},
    ]
    path = written(tmp_path, "\n".join(map(json.dumps, rows)) + "\n\n", "t.jsonl")
    run = only(read_runs(path))
    assert run.task == "31"
    assert run.configs == [{"lr": 1, "kernel": "1", "deep": True}, {"lr": 0.5}, {}, {}]
    assert type(run.configs[0]["lr"]) is int
    assert run.values == [0.5, None, 0.25, None]
    assert run.trials[0].seconds == 3.0


def test_a_list_of_objects_is_a_table_too(tmp_path: Path) -> None:
    path = written(tmp_path, json.dumps([{"x": 1, "value": 2}, {"x": 2, "value": 1}]), "t.json")
    assert only(read_runs(path)) == Run("t", [{"x": 1}, {"x": 2}], [2.0, 1.0])


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ('{"x": 1, "value": 2}\n{"x": 1, "val', "t.jsonl", r"t\.jsonl, line 2: expected JSON, which may have been cut"),
        ("[1]\n", "t.jsonl", r"t\.jsonl, line 1: expected a JSON object, got \[1\]"),
        ('{"x": 1, "x": 2, "value": 2}\n', "t.jsonl", r"line 1: .*the name 'x' occurs twice"),
        (
            '{"x": [1], "value": 2}\n',
            "t.jsonl",
            r"line 1, column 'x': expected text, a number .* got '\[1\]' \(list\)",
        ),
        ('{"x": 1, "value": 2}\n\n{"x": 1, "value": "abc"}\n', "t.jsonl", r"line 3, column 'value': .* got 'abc'"),
        ('{"x": 1, "value": true}\n', "t.jsonl", r"line 1, column 'value': expected a number, got True"),
        ('{"x": 1, "value": [1]}\n', "t.jsonl", r"line 1, column 'value': expected a number, got \[1\]"),
        ('{"x": 1}\n', "t.jsonl", r"there is no column 'value', only x"),
        ('[{"x": 1, "value": 2}, 3]', "t.json", r"t\.json, entry 1: expected a JSON object, got 3"),
        ('[{"x": 1, "value": "abc"}]', "t.json", r"t\.json, entry 0, column 'value': expected a number, got 'abc'"),
        ("[]", "t.json", r"expected at least one row"),
        ('{"x": 1}', "t.json", r"expected a list of objects, one per trial, or a runhistory of SMAC3"),
        ('[{"x": 1', "t.json", r"t\.json: expected JSON, which may have been cut off"),
        ("[" * 100_000, "t.json", r"t\.json: expected JSON"),
    ],
)
def test_json_that_is_no_table_is_refused_with_its_place(text: str, name: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_runs(written(tmp_path, text, name))


def test_a_dataframe_gives_pythons_own_values() -> None:
    frame = pd.DataFrame(
        {
            "task": ["a", "a", "b"],
            "C": np.array([1.5, np.nan, 2.5], dtype=np.float32),
            "depth": pd.array([3, None, 4], dtype="Int64"),
            "kernel": pd.Categorical(["rbf", "poly", None]),
            "flag": [True, False, True],
            "mixed": pd.Series([np.int64(1), "x", None], dtype=object),
            "value": [0.5, np.nan, 0.25],
        }
    )
    a, b = read_runs(frame)
    assert a.configs == [
        {"C": 1.5, "depth": 3, "kernel": "rbf", "flag": True, "mixed": 1},
        {"kernel": "poly", "flag": False, "mixed": "x"},
    ]
    assert {type(value) for value in a.configs[0].values()} == {float, int, str, bool}
    assert a.values == [0.5, None]
    assert b.configs == [{"C": 2.5, "depth": 4, "flag": True}]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (pd.DataFrame({"x": [1], "value": ["abc"]}), r"DataFrame, row 0, column 'value': expected a number, got 'abc'"),
        (pd.DataFrame({"x": [1.0]}), r"DataFrame: there is no column 'value', only x"),
        (pd.DataFrame([[1, 2, 3]], columns=["x", "x", "value"]), r"DataFrame: the column 'x' occurs twice"),
        (pd.DataFrame([[1, 2]], columns=[0, "value"]), r"DataFrame: expected columns named by text, got 0"),
        (pd.DataFrame({"x": [], "value": []}), r"DataFrame: expected at least one row"),
        (pd.DataFrame(), r"DataFrame: expected at least one row"),
        (pd.DataFrame({"x": [pd.Timestamp(0)], "value": [1.0]}), r"row 0, column 'x': expected text.*\(Timestamp\)"),
    ],
)
def test_a_dataframe_that_is_no_table_is_refused(frame: pd.DataFrame, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_runs(frame)


def test_an_unnamed_dataframe_run_takes_the_name_asked_for() -> None:
    assert only(read_runs(pd.DataFrame({"x": [1], "value": [0.5]}), task="t")) == Run("t", [{"x": 1}], [0.5])


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_ten_thousand_rows_are_read_in_under_a_second(ending: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((10_000, 8)), columns=[f"h{i}" for i in range(8)])
    frame["kernel"] = np.where(rng.random(10_000) < 0.5, "rbf", "poly")
    frame["task"] = [f"t{i % 20}" for i in range(10_000)]
    frame["value"] = rng.random(10_000)
    path = tmp_path / f"t.{ending}"
    if ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=True, double_precision=15)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        took = []
        for _ in range(3):  # the fastest counts: the machine may be busy with other things
            start = time.process_time()
            runs = read_runs(path)
            took.append(time.process_time() - start)
    assert sum(map(len, runs)) == 10_000
    assert [run.task for run in runs] == [f"t{i}" for i in range(20)]
    np.testing.assert_allclose(runs[3].y, frame["value"][3::20], rtol=0, atol=1e-15)
    assert min(took) < 1.0


@pytest.mark.parametrize("seconds", ["Infinity", "1e300", "-5", "9" * 400])
def test_seconds_that_no_evaluation_takes_are_refused_with_their_place(tmp_path: Path, seconds: str) -> None:
    text = f'[{{"x": 1, "value": 2}}, {{"x": 1, "value": 2, "seconds": {seconds}}}]'
    with pytest.raises(InputError, match="entry 1, column 'seconds'"):
        read_runs(written(tmp_path, text, "rows.json"))


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_ten_thousands_of_columns_are_checked_in_seconds(tmp_path: Path, kind: str) -> None:
    names = [f"x{number}" for number in range(30_000)]
    row = {**dict.fromkeys(names, 1), "value": 2}
    lines = {"csv": f"{','.join(row)}\n{','.join(map(str, row.values()))}\n", "json": json.dumps([row])}
    begin = time.process_time()
    assert len(only(read_runs(written(tmp_path, lines[kind], f"wide.{kind}"))).configs[0]) == 30_000
    repeated = {"csv": lines["csv"].replace("x29998,", "x29999,"), "json": lines["json"].replace("x29998", "x29999")}
    with pytest.raises(InputError, match="'x29999' occurs twice"):
        read_runs(written(tmp_path, repeated[kind], f"wide.{kind}"))
    assert time.process_time() - begin < 5.0
