"""The scaling study: what is measured, in which order, how it ends in time, and its figure."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from matplotlib.text import Text
from typer.testing import CliRunner, Result

from recollect import __version__
from recollect.bench import from_table, load
from recollect.bench.benchmark import Benchmark
from recollect.bench.paper import scaling_study
from recollect.bench.paper.scaling_study import (
    Measurement,
    MeasurementFile,
    MeasurementKey,
    MeasurementKind,
    ScalingPlan,
    mean_seconds,
    measure_scaling,
    scaling_figure,
)
from recollect.cli.bench import scaling as scaling_command
from recollect.errors import InputError, StorageError
from recollect.optimizer.model import FittedModel, fit_model
from recollect.transfer.sources import SourceData

SMALL = ScalingPlan(few=(2, 4), many=(3, 7), resamples=(10, 20), repetitions=2, observations=6)


def row_of(kind: MeasurementKind, method: str, x: int, repetition: int, seconds: float) -> Measurement:
    return Measurement(MeasurementKey(kind, method, x, repetition), seconds)


@pytest.fixture(scope="module")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    path = tmp_path_factory.mktemp("table") / "grid.csv"
    lines = [f"t{task},{x},{abs(x - 3 - task) + 0.1 * task}" for task in range(4) for x in range(9)]
    path.write_text("\n".join(["task,x,error", *lines]))
    return from_table(path)


@pytest.fixture(scope="module")
def rows(grid: Benchmark) -> list[Measurement]:
    return list(measure_scaling(grid, SMALL))


def test_everything_is_measured_in_every_repetition(rows: list[Measurement]) -> None:
    expected = [
        *(("once", "rgpe-mean", x) for x in (2, 4)),
        *(("online", method, x) for method in ("tstr-ei", "rgpe-mean") for x in (2, 4)),
        *(("resamples", "rgpe-mean", x) for x in (10, 20)),
        *(("many", method, x) for method in ("tstr-ei", "rgpe-mean") for x in (3, 7)),
        *((kind, "mtgp", x) for kind in ("once", "online") for x in (2, 4)),
    ]
    counts = Counter(row.key[:3] for row in rows)
    assert counts == dict.fromkeys(expected, 2)
    assert {row.key for row in rows} == set(SMALL.keys())
    assert len(rows) == len(SMALL.keys())
    assert all(row.seconds > 0 for row in rows)
    assert {row.key.repetition for row in rows} == {0, 1}


def test_the_slowest_method_comes_last_with_few_past_runs_first(rows: list[Measurement]) -> None:
    first = next(number for number, row in enumerate(rows) if row.key.method == "mtgp")
    sizes = [row.key.x for row in rows[first:]]
    assert {row.key.method for row in rows[first:]} == {"mtgp"}
    assert sizes == sorted(sizes)


def test_fitting_one_by_one_takes_longer_with_more_past_runs(rows: list[Measurement]) -> None:
    for repetition in (0, 1):
        first, second = (MeasurementKey("once", "rgpe-mean", x, repetition) for x in (2, 4))
        seconds = {row.key: row.seconds for row in rows}
        assert seconds[first] < seconds[second]


def test_each_fit_sees_the_planned_number_of_past_runs_on_other_tasks(
    grid: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def watching(method: object, context: object, X: np.ndarray, y: np.ndarray, **more: object) -> FittedModel:
        seen.append((context, X, y))
        return fit_model(method, context, X, y, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(scaling_study, "fit_model", watching)
    plan = ScalingPlan(few=(2,), many=(5,), resamples=(), repetitions=1, observations=6)
    list(measure_scaling(grid, plan))
    counts = [
        len(context.sources) if context.sources is not None else len(context.joint.data) for context, _, _ in seen
    ]
    assert counts == [1, 1, 2, 2, 2, 5, 5, 2]  # first once for nothing; weights need a fit of their own
    X, y = seen[0][1:]
    assert X.shape == (6, 1)
    assert len(np.unique(X)) == 6
    assert {own.horizon for own, _, _ in seen} == {12}
    (target,) = (name for name in grid.tasks if np.array_equal(grid.task(name).evaluate_many(X), y))
    past = [seen[-2][0].sources.data(number) for number in range(5)]
    assert {run.task for run in past} == set(grid.tasks) - {target}
    assert not same_points(past[0], past[3])
    assert past[0].task == past[3].task


def same_points(first: SourceData, second: SourceData) -> bool:
    return np.array_equal(np.sort(first.X, axis=0), np.sort(second.X, axis=0))


def test_where_every_point_can_be_evaluated_points_are_drawn_from_the_whole_space() -> None:
    plan = ScalingPlan(few=(2,), many=(), resamples=(10,), repetitions=1, observations=5)
    assert len(list(measure_scaling(load("forrester"), plan))) == len(plan.keys()) == 6


def test_a_table_with_too_few_configurations_is_refused(grid: Benchmark) -> None:
    with pytest.raises(InputError, match=r"task 't\d': expected at least 10 configurations, got 9"):
        next(measure_scaling(grid, ScalingPlan(few=(2,), observations=10)))


@pytest.mark.parametrize(("limit", "expected"), [(5.0, 1), (6.5, 2), (30.0, 4)])
def test_no_measurement_starts_that_would_exceed_the_time_limit(
    grid: Benchmark, monkeypatch: pytest.MonkeyPatch, limit: float, expected: int
) -> None:
    clock = [0.0]

    def slow(*_: object) -> Iterator[Measurement]:
        for seconds in (3.0, 1.0, 2.0, 4.0):
            clock[0] += seconds
            yield row_of("online", "mtgp", 5, 0, seconds)

    monkeypatch.setattr(scaling_study, "_all_measurements", slow)
    monkeypatch.setattr(scaling_study.time, "monotonic", lambda: clock[0])
    # After 3 s another 3 s may be needed: 6 s. After 4 s: 7 s. After 6 s: 9 s.
    assert len(list(measure_scaling(grid, ScalingPlan(seconds_limit=limit)))) == expected


def test_measurements_are_written_as_they_finish(tmp_path: Path) -> None:
    file = MeasurementFile(tmp_path / "new" / "scaling.csv", "a benchmark, ours", 50)
    assert file.open() == []

    def interrupted() -> Iterator[Measurement]:
        yield row_of("online", "tstr-ei", 5, 0, 0.123456)
        assert file.path.read_text().count("\n") == 2
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        file.append(interrupted())
    with file.path.open(newline="") as lines:
        (row,) = csv.DictReader(lines)
    assert row == {
        **{"format": "1", "benchmark": "a benchmark, ours", "observations": "50", "version": __version__},
        **{"kind": "online", "method": "tstr-ei", "x": "5", "repetition": "0", "seconds": "0.1235"},
    }
    assert file.open() == [row_of("online", "tstr-ei", 5, 0, 0.1235)]


def test_a_line_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    file = MeasurementFile(tmp_path / "scaling.csv", "toy", 50)
    file.open()
    file.append([row_of("online", "tstr-ei", x, 0, 1.0) for x in (5, 10)])
    file.path.write_bytes(file.path.read_bytes()[:-4])
    assert file.open() == [row_of("online", "tstr-ei", 5, 0, 1.0)]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("toy", "other"), r"scaling\.csv, line 2: expected toy with 50 observations, got other with 50"),
        ((",50,", ",40,"), "expected toy with 50 observations, got toy with 40"),
        (("online", "offline"), "line 2: expected a measurement of format 1"),
        (("1,toy", "2,toy"), "line 2: expected a measurement of format 1"),
        (("0.5", "half"), "line 2: could not convert"),
        (("kind", "sort"), "line 1: expected format,benchmark,observations"),
    ],
)
def test_measurements_of_something_else_are_refused(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    file = MeasurementFile(tmp_path / "scaling.csv", "toy", 50)
    file.open()
    file.append([row_of("online", "tstr-ei", 5, 0, 0.5)])
    file.path.write_text(file.path.read_text().replace(*change, 1))
    with pytest.raises(InputError, match=message):
        file.open()


def test_an_unwritable_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="the folder cannot be created"):
        MeasurementFile(tmp_path / "file" / "scaling.csv", "toy", 50).open()


@pytest.mark.parametrize("done", [1, 9, 16, 18, 23, 24])
def test_finished_measurements_are_not_repeated(grid: Benchmark, rows: list[Measurement], done: int) -> None:
    found = list(measure_scaling(grid, SMALL, [row.key for row in rows[:done]]))
    assert [row.key for row in found] == [row.key for row in rows[done:]]


@pytest.mark.parametrize(
    "bad",
    [
        {"few": ()},
        {"few": (5, 5)},
        {"few": (10, 5)},
        {"many": (0, 5)},
        {"resamples": (-1,)},
        {"repetitions": 0},
        {"observations": 1},
        {"seconds_limit": 0.0},
        {"seconds_limit": float("nan")},
    ],
)
def test_impossible_plans_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(InputError, match="ScalingPlan: expected"):
        ScalingPlan(**bad)  # type: ignore[arg-type]


def test_lines_are_means_over_repetitions_and_end_at_the_last_measurement() -> None:
    rows = [
        *(row_of("online", "rgpe-mean", x, repetition, x + repetition) for x in (5, 10) for repetition in (0, 2)),
        row_of("online", "mtgp", 5, 0, 40.0),
    ]
    x, means = mean_seconds(rows[:4])
    assert x.tolist() == [5, 10]
    assert means.tolist() == [6, 11]
    figure = scaling_figure("toy", rows)
    (axes,) = figure.axes
    assert [6.0, 11.0] in [list(line.get_ydata()) for line in axes.lines]
    texts = {text.get_text() for text in figure.findobj(Text)}
    assert {"toy", "RGPE", "multi-task GP (to 5)", "seconds", "number of past runs"} <= texts
    assert not any("Thin lines" in text for text in texts)


def test_the_figure_has_a_panel_for_each_question(rows: list[Measurement]) -> None:
    figure = scaling_figure("toy", rows)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles == ["fitting with few past runs", "fitting with many past runs", "weights of RGPE alone"]
    with pytest.raises(InputError, match="at least one measurement"):
        scaling_figure("toy", [])


def command(tmp_path: Path, *more: str) -> Result:
    app = typer.Typer()
    app.command()(scaling_command)
    table = tmp_path / "own.csv"
    table.write_text("task,x,error\na,1,2\na,2,3\n")
    out = str(tmp_path / "out")
    return CliRunner().invoke(app, ["--table", str(table), "--out", out, "--repetitions", "1", "--most", "10", *more])


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_command_writes_measurements_and_figure_and_counts_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupted: bool
) -> None:
    def some(*_: object) -> Iterator[Measurement]:
        yield from (Measurement(key, 0.1) for key in ScalingPlan(few=(5, 10), repetitions=1).keys()[:5])
        if interrupted:
            raise KeyboardInterrupt

    monkeypatch.setattr(scaling_study, "_all_measurements", some)
    done = command(tmp_path)
    assert done.exit_code == 0, done.output
    assert "5 of 22 measurements finished" in done.output
    assert len((tmp_path / "out" / "scaling.csv").read_text().splitlines()) == 6
    monkeypatch.setattr(scaling_study, "_all_measurements", lambda *_: iter(()))
    assert command(tmp_path).exit_code == 0  # draws what is there
    assert len((tmp_path / "out" / "scaling.csv").read_text().splitlines()) == 6
    assert (tmp_path / "out" / "scaling.svg").exists()
    assert (tmp_path / "out" / "scaling.png").exists()


def test_an_interrupt_before_the_first_measurement_ends_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> Iterator[Measurement]:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(scaling_study, "_all_measurements", none)
    assert command(tmp_path).exit_code == 130
    assert not (tmp_path / "out" / "scaling.svg").exists()


def test_a_benchmark_and_a_table_are_refused_together(tmp_path: Path) -> None:
    assert isinstance(command(tmp_path, "--benchmark", "branin").exception, InputError)
