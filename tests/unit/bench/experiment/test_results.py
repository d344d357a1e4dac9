"""The file of results: what is written is read back, pandas reads it, and bad files are named with line and reason."""

from __future__ import annotations

import csv
import dataclasses
import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.bench.experiment.results import (
    FIELDS,
    append_result,
    load_results,
    open_results,
    pack_results,
    read_results,
    round_run,
)
from recollect.errors import InputError

RUN = CompletedRun(
    RunKey("b", "rgpe-taf", "one, two", 0), 7, 0.1, 0.9, np.array([0.5, np.nan, 0.3, 0.1]), None, 0.0123, "0.1.0"
)


def other(**changes: object) -> CompletedRun:
    return dataclasses.replace(RUN, **changes)


def same(a: CompletedRun, b: CompletedRun) -> bool:
    fields = [field.name for field in dataclasses.fields(a) if field.name not in ("values", "weights")]
    same_fields = all(getattr(a, name) == getattr(b, name) for name in fields)
    weights = [np.zeros(0) if run.weights is None else run.weights for run in (a, b)]
    return (
        same_fields and np.array_equal(*weights, equal_nan=True) and np.array_equal(a.values, b.values, equal_nan=True)
    )


def test_appended_runs_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    assert open_results(path) == []
    weights = np.array([[np.nan] * 5, [0.25, 0.5, 0.125, 0.125, 4], [1, 0, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 30]])
    runs = [RUN, other(key=RUN.key._replace(repetition=1), weights=weights, values=np.array([1 / 3, 1e-300, 2.0, 0.0]))]
    for run in runs:
        append_result(path, run)
    assert all(map(same, open_results(path), runs))
    assert all(map(same, read_results(path), runs))


def test_pandas_reads_it_in_one_line(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas", reason="part of the extra train")
    path = tmp_path / "runs.csv"
    open_results(path)
    append_result(path, RUN)
    frame = pandas.read_csv(path)
    assert tuple(frame.columns) == FIELDS
    assert frame.loc[0, "task"] == "one, two"
    assert [float(value) for value in frame.loc[0, "values"].split()][2] == 0.3
    for name in ("packed.csv.gz", "packed.csv.xz"):
        pack_results([RUN], tmp_path / name)
        assert pandas.read_csv(tmp_path / name).loc[0, "best"] == 0.1


def test_regret_is_normalised_with_the_ends_of_the_task() -> None:
    np.testing.assert_allclose(RUN.regret, [0.5, 0.5, 0.25, 0.0], atol=1e-15)
    assert other(worst=0.1).regret.tolist() == [0.0] * 4
    assert other(values=np.array([np.nan, 0.9])).regret.tolist() == [np.inf, 1.0]


def test_packed_runs_are_sorted_rounded_and_the_same_bytes_in_any_order(tmp_path: Path) -> None:
    runs = [
        other(key=RunKey("b", method, "t", r), seconds=r + 0.5, best=1 / 3, values=np.array([1 / 3]))
        for method in "ba"
        for r in (1, 0)
    ]
    paths = [tmp_path / "deep" / "one.csv.gz", tmp_path / "two.csv.gz"]
    pack_results(runs, paths[0])
    pack_results([dataclasses.replace(run, seconds=9.0) for run in runs[::-1]], paths[1])
    assert paths[0].read_bytes() == paths[1].read_bytes()
    found = read_results(paths[0])
    assert [run.key for run in found] == sorted(run.key for run in runs)
    assert found[0].values.tolist() == [found[0].best] == [0.3333333333]


@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (1e6, 1e-3), (-5.0, 300.0), (0.0, 1e-200), (0.0, 1e300)])
def test_rounding_is_by_the_span_of_the_task_and_rounding_twice_changes_nothing(offset: float, scale: float) -> None:
    parts = np.random.default_rng(0).random(50)
    run = other(best=offset, worst=offset + scale, values=np.array([*(offset + scale * parts), np.nan, offset]))
    once = round_run(run)
    np.testing.assert_allclose(once.regret, run.regret, atol=1e-9)
    np.testing.assert_array_equal(round_run(once).values, once.values)
    assert once.regret[-1] == 0.0
    assert round_run(other(worst=run.best, best=run.best)).best == run.best


def test_ends_may_be_numpys_numbers(tmp_path: Path) -> None:
    open_results(tmp_path / "runs.csv")
    append_result(tmp_path / "runs.csv", other(best=np.float64(0.1), worst=np.float64(0.5)))
    (found,) = read_results(tmp_path / "runs.csv")
    assert (found.best, found.worst) == (0.1, 0.5)


def test_the_name_says_how_results_are_compressed(tmp_path: Path) -> None:
    paths = [tmp_path / f"packed.csv{ending}" for ending in ("", ".gz", ".xz")]
    for path in paths:
        pack_results([RUN], path)
    plain, gz, xz = (path.read_bytes() for path in paths)
    assert plain == gzip.decompress(gz) == lzma.decompress(xz)
    for path in paths:
        assert [run.key for run in read_results(path)] == [RUN.key]


def test_runs_of_any_length_are_read_back(tmp_path: Path) -> None:
    long = other(values=np.random.default_rng(0).random(20_000))
    open_results(tmp_path / "runs.csv")
    append_result(tmp_path / "runs.csv", long)
    (run,) = open_results(tmp_path / "runs.csv")
    np.testing.assert_array_equal(run.values, long.values)
    assert csv.field_size_limit() == 131072


def test_runs_of_several_places_come_together(tmp_path: Path) -> None:
    (tmp_path / "study").mkdir()
    open_results(tmp_path / "study" / "runs.csv")
    append_result(tmp_path / "study" / "runs.csv", RUN)
    pack_results([other(key=RUN.key._replace(repetition=1))], tmp_path / "more.csv.gz")
    assert [run.key.repetition for run in load_results([tmp_path / "study", tmp_path / "more.csv.gz"])] == [0, 1]
    with pytest.raises(InputError, match=r"the run b rgpe-taf one, two 0 is both in .*runs.csv and in .*runs.csv"):
        load_results([tmp_path / "study", tmp_path / "study"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected format,benchmark"),
        ("a,b\n1,2\n", "line 1: expected format,benchmark"),
        (",".join(FIELDS) + "\n1,2\n", "line 2: expected 12 cells, got 2"),
        (",".join(FIELDS) + "\n9,b,m,t,0,0,0,1,0.5,,1,v\n", "line 2: expected results of format 1, got '9'"),
        (",".join(FIELDS) + "\n1,b,m,t,0,0,0,1,0.5 x,,1,v\n", "line 2: could not convert"),
        (",".join(FIELDS) + "\n1,b,m,t,0,0,0,1,0.5,1/2,1,v\n", "line 2: expected 5 numbers"),
        (",".join(FIELDS) + 2 * "\n1,b,m,t,0,0,0,1,0.5,,1,v" + "\n", "line 3: the run .* comes twice"),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "runs.csv"
    path.write_text(text)
    with pytest.raises(InputError, match=f"runs.csv, {message}"):
        read_results(path)
    for packed, compress in ((tmp_path / "runs.csv.gz", gzip.compress), (tmp_path / "runs.csv.xz", lzma.compress)):
        for damaged in (compress(text.encode())[:-4], b"no archive"):
            packed.write_bytes(damaged)
            with pytest.raises(InputError, match="cannot be read"):
                read_results(packed)


def test_ends_the_wrong_way_round_are_refused(tmp_path: Path) -> None:
    for best in (0.9, float("nan")):
        pack_results([other(best=best, worst=0.5)], tmp_path / "odd.csv")
        with pytest.raises(InputError, match=r"odd\.csv, line 2: expected a best error that is not above the worst"):
            read_results(tmp_path / "odd.csv")


def test_a_line_that_is_just_being_written_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    open_results(path)
    append_result(path, RUN)
    with path.open("a") as file:
        file.write("1,b,m")
    assert [run.key for run in load_results([path])] == [RUN.key]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: expected a file of results, but there is none"):
        load_results([tmp_path / "none.csv"])
