"""CSV files as benchmarks: what is inferred, what is refused."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recollect
from recollect.bench.problems.tabular import from_table
from recollect.errors import InputError, SpaceError
from recollect.space.columns import Choices, Interval, Steps
from recollect.space.serialization import to_json


def written(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def column_of(folder: Path, cells: list[str]) -> Any:
    text = "task,x,error\n" + "".join(f"t,{cell},{number}\n" for number, cell in enumerate(cells))
    return from_table(written(folder, text)).space.columns[0]


CONDITIONAL = """task,kernel,degree,gamma,cost,error
a,poly,2,,1,0.3
a,rbf,,0.5,10,0.2
a,linear,,,100,0.1
a,poly,3,0.1,7,0.4
b,poly,2,,1,0.6
b,rbf,,0.5,10,0.5
b,linear,,,100,0.7
b,poly,3,0.1,7,0.9
"""
CHAINED = """task,solver,penalty,ratio,error
a,saga,l2,,1
a,saga,both,0.5,2
a,saga,both,0.7,3
a,sgd,,,4
"""


@pytest.mark.parametrize(
    ("cells", "kind", "expected"),
    [
        (["3", "-1", "+2"], Steps, "an integer in [-1, 3]"),
        (["3", "-1", "2.0"], Interval, "a number in [-1.0, 3.0]"),
        (["1e-3", "0.5"], Interval, "a number in [0.001, 0.5]"),
        (["3", "1", "two"], Choices, "one of ['1', '3', 'two']"),
        (["true", "false"], Choices, "one of ['false', 'true']"),
        (["0.1", "none"], Choices, "one of ['0.1', 'none']"),
        (["x,y".replace(",", ";"), "z"], Choices, "one of ['x;y', 'z']"),
    ],
)
def test_types_are_inferred_from_the_cells(cells: list[str], kind: type, expected: str, tmp_path: Path) -> None:
    column = column_of(tmp_path, cells)
    assert isinstance(column, kind)
    assert column.expected() == expected


@pytest.mark.parametrize(("cell", "value"), [("5", 5), ("0.5", 0.5), ("adam", "adam")])
def test_a_single_value_is_a_constant(cell: str, value: object, tmp_path: Path) -> None:
    benchmark = from_table(written(tmp_path, f"task,x,y,error\na,{cell},1,0\na,{cell},2,1\n"))
    assert benchmark.space.columns[0].size == 1
    assert benchmark.candidates is not None
    assert benchmark.candidates[0]["x"] == value
    assert benchmark.task("a").evaluate({"y": 2}) == 1.0


@pytest.mark.parametrize(
    ("values", "log"),
    [
        (np.geomspace(1e-4, 1e-1, 9), True),
        (np.geomspace(1, 10, 9), True),
        (np.geomspace(1, 9.9, 9), False),  # less than a factor of ten
        (np.linspace(1e-4, 1e-1, 9), False),
        (np.concatenate([[0.0], np.geomspace(1e-4, 1e-1, 9)]), False),
        (-np.geomspace(1e-4, 1e-1, 9), False),
    ],
)
def test_a_log_scale_is_inferred_from_where_the_median_lies(values: Any, log: bool, tmp_path: Path) -> None:
    assert column_of(tmp_path, [repr(float(v)) for v in values]).log is log


def test_integers_can_be_on_a_log_scale(tmp_path: Path) -> None:
    assert column_of(tmp_path, ["1", "4", "16", "64", "256"]).log
    assert not column_of(tmp_path, ["1", "64", "128", "192", "256"]).log


def test_empty_cells_become_conditions_on_one_categorical_column(tmp_path: Path) -> None:
    benchmark = from_table(
        written(tmp_path, CONDITIONAL.replace("a,poly,2,,", "a,poly,2,0.3,").replace("b,poly,2,,", "b,poly,2,0.3,"))
    )
    space = benchmark.space
    texts = dict(zip(space.names, space.condition_texts, strict=True))
    assert texts["degree"] == "degree | kernel == 'poly'"
    assert "poly" in texts["gamma"]
    assert "rbf" in texts["gamma"]
    assert "linear" not in texts["gamma"]
    assert texts["kernel"] == texts["cost"] == ""
    assert benchmark.task("b").evaluate({"kernel": "linear", "cost": 100}) == 0.7


def test_a_condition_may_hang_on_a_conditional_column(tmp_path: Path) -> None:
    space = from_table(written(tmp_path, CHAINED)).space
    texts = dict(zip(space.names, space.condition_texts, strict=True))
    assert texts == {"solver": "", "penalty": "penalty | solver == 'saga'", "ratio": "ratio | penalty == 'both'"}


@pytest.mark.parametrize(
    "text",
    [
        CONDITIONAL,  # gamma is active for one polynomial and not for another
        "task,x,y,error\na,1,,0\na,2,3,1\n",  # nothing categorical
        "task,x,y,z,error\na,,,1,0\na,p,q,2,1\n",  # two columns that are active together
    ],
)
def test_activity_that_is_no_function_of_one_categorical_column_asks_for_a_space(text: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has empty cells, but no categorical column says where it is active"):
        from_table(written(tmp_path, text))


def test_tasks_with_the_same_configurations_share_them_in_whatever_order(tmp_path: Path) -> None:
    text = "task,x,error\na,1,0.1\na,2,0.2\nb,2,0.3\nb,1,0.4\n"
    benchmark = from_table(written(tmp_path, text))
    assert benchmark.candidates == ({"x": 1}, {"x": 2})
    assert [benchmark.task("b").evaluate({"x": x}) for x in (1, 2)] == [0.4, 0.3]
    assert (benchmark.task("b").best, benchmark.task("b").worst) == (0.3, 0.4)


def test_tasks_with_other_configurations_have_their_own(tmp_path: Path) -> None:
    benchmark = from_table(written(tmp_path, "task,x,error\na,1,0.1\na,2,0.2\nb,2,0.3\nb,5,0.4\n"))
    assert benchmark.candidates is None
    assert benchmark.task("b").candidates == ({"x": 2}, {"x": 5})
    with pytest.raises(InputError, match=r"not among them; the nearest is \{'x': 2\}"):
        benchmark.task("b").evaluate({"x": 1})


def test_the_name_is_the_files_unless_given(tmp_path: Path) -> None:
    path = tmp_path / "my.table.csv.gz"
    path.write_bytes(gzip.compress(b"task,x,error\na,1,0.1\na,2,0.2\n"))
    assert from_table(path).name == "my.table"
    assert from_table(str(path), name="other").name == "other"


def test_columns_may_come_in_any_order_and_quoted_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_bytes('\ufefferror,x,task,k\r\n0.1,1,a,"p,q"\r\n\r\n0.2,2,a,r\r\n'.encode())
    assert from_table(path).task("a").evaluate({"x": 1, "k": "p,q"}) == 0.1


def test_repeated_rows_count_once_whatever_their_text(tmp_path: Path) -> None:
    benchmark = from_table(written(tmp_path, "task,x,error\na,1.0,0.1\na,1.00,0.1\na,2.5,0.2\na,1.0,0.1\n"))
    assert benchmark.candidates == ({"x": 1.0}, {"x": 2.5})


def test_two_errors_of_one_configuration_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "task,x,error\na,1.0,0.1\nb,1.0,0.3\na,2.5,0.2\na,1.00,0.4\n")
    with pytest.raises(InputError, match=r"table.csv, line 5: task 'a' has this configuration in line 2 already"):
        from_table(path)


def a_space() -> recollect.Space:
    from ConfigSpace import Categorical, ConfigurationSpace, Float, Integer, OrdinalHyperparameter

    space = ConfigurationSpace()
    space.add(
        Categorical("early", [True, False]), Categorical("size", [0, 16, 32]), Float("rate", (1e-5, 1.0), log=True)
    )
    space.add(Integer("depth", (1, 9)), OrdinalHyperparameter("grade", ["low", "high"]))
    return recollect.compile_space(space)


GIVEN = "task,early,size,rate,depth,grade,error\na,True,16,0.1,3,low,0.5\na,false,32.0,1e-5,9,high,0.25\n"


@pytest.mark.parametrize("how", ["space", "source", "path"])
def test_cells_are_parsed_by_the_types_of_a_given_space(how: str, tmp_path: Path) -> None:
    space = a_space()
    stored = written(tmp_path, to_json(space), "space.json")
    given: Any = {"space": space, "source": space.source, "path": stored}[how]
    benchmark = from_table(written(tmp_path, GIVEN), space=given)
    assert benchmark.candidates == (
        {"early": True, "size": 16, "rate": 0.1, "depth": 3, "grade": "low"},
        {"early": False, "size": 32, "rate": 1e-5, "depth": 9, "grade": "high"},
    )
    assert benchmark.space.names == space.names


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("1e-5,9", "1e-6,9", "line 3: 'rate': expected a number in"),
        ("1e-5,9", "1e-5,9.5", "line 3: 'depth': expected an integer in .* got '9.5'"),
        ("false", "no", "line 3: 'early': expected one of .* got 'no'"),
        ("16", "x", "line 2: 'size': expected one of .* got 'x'"),
        ("high", "", "line 3: 'grade': .* but it is missing"),
        ("early", "late", "column 'late' is not in the space, which has"),
    ],
)
def test_a_row_outside_the_given_space_is_refused_with_its_line(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=rf"table.csv(:|,) {message}"):
        from_table(written(tmp_path, GIVEN.replace(old, new)), space=a_space())


@pytest.mark.parametrize("text", ["{", "[]", '{"hyperparameters": {}}'])
def test_a_file_that_is_no_space_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(SpaceError, match=r"space.json"):
        from_table(written(tmp_path, GIVEN), space=written(tmp_path, text, "space.json"))
    with pytest.raises(InputError, match=r"nowhere.json"):
        from_table(written(tmp_path, GIVEN), space=tmp_path / "nowhere.json")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("task,x\na,1\n", "line 1: expected the columns"),
        ("x,error\na,1\n", "line 1: expected the columns"),
        ("task,error\na,1\n", "line 1: expected the columns"),
        ("task,x,x,error\na,1,1,1\n", "'x' comes twice"),
        ("task,,error\na,1,1\n", "line 1: expected the columns"),
        ("task,x,error\n", "expected rows below the header, got none"),
        ("task,x,error\na,1,0.5\na,2\n", "line 3: expected 3 cells .*got 2"),
        ("task,x,error\na,1,0.5\na,2,3,4\n", "line 3: expected 3 cells .*got 4"),
        ("task,x,error\na,1,0.5\n,2,3\n", "line 3: expected the name of a task"),
        ('task,x,error\na,1,0.5\n"b\rc",2,3\n', r"expected the name of a task .*, got 'b\\rc'"),
        ("task,x,error\na,1,0.5\na,2,\n", "line 3: expected a finite number as error, got ''"),
        ("task,x,error\na,1,0.5\na,2,nan\n", "line 3: expected a finite number as error, got 'nan'"),
        ("task,x,error\na,1,0.5\na,2,bad\n", "line 3: expected a finite number as error, got 'bad'"),
        ("task,x,y,error\na,1,,0.5\na,2,,1\n", "column 'y' is empty; leave it out"),
        ("task,x,error\na,1,0.5\na,nan,1\n", "column 'x': expected finite numbers"),
        ("task,x,error\na,1e-20,0.5\na,1e-10,0.7\na,1,1\n", "column 'x': .*13 decimals.* pass a space"),
        ('task,x,error\na,"1,0.5\n', "line 2: expected CSV"),
    ],
)
def test_other_files_are_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=rf"table\.csv(:|,) .*{message}"):
        from_table(written(tmp_path, text))


def test_a_truncated_or_missing_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "t.csv.gz"
    data = gzip.compress("".join(["task,x,error\n", *(f"a,{i},{i}\n" for i in range(999))]).encode())
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(InputError, match=r"t.csv.gz: the file cannot be read"):
        from_table(path)
    with pytest.raises(InputError, match="there is no such file"):
        from_table(tmp_path / "none.csv")
    with pytest.raises(InputError, match="mode must be 'table' or 'forest', got 'tree'"):
        from_table(path, mode="tree")  # type: ignore[arg-type]


def test_in_forest_mode_the_whole_space_can_be_evaluated(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="forests are fitted by scikit-learn")
    from recollect.bench.problems.forest_benchmark import ForestBuild, TuneSettings

    rows = [f"{task},{x / 40},{(x / 40 - 0.3) ** 2 + 0.1 * k}" for k, task in enumerate("ab") for x in range(41)]
    path = written(tmp_path, "task,x,error\n" + "\n".join([*rows, "a,0.0,0.1"]))  # measured twice: no harm to a forest
    build = ForestBuild(TuneSettings(candidates=1, folds=2, trees=5, final_trees=20), folder=tmp_path / "forests")
    benchmark = from_table(path, mode="forest", jobs=1, build=build)
    assert benchmark.tasks == ("a", "b")
    assert benchmark.candidates is None
    assert (benchmark.about.kind, benchmark.about.exact) == ("forest", False)
    task = benchmark.task("b")
    assert task.best <= task.evaluate({"x": 0.3123}) < task.evaluate({"x": 0.987}) <= task.worst


def test_a_column_with_tiny_bounds_has_a_range_that_holds_them(tmp_path: Path) -> None:
    cells = ["1.0269416e-08", "1e-6", "1e-5", "0.001"]
    column = column_of(tmp_path, cells)
    assert column.log
    assert column.lower <= float(cells[0])
    assert not np.isnan(column.codes([float(cell) for cell in cells])).any()
