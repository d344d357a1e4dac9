"""Runs written to files: JSON lines bring everything back, CSV says what it does not."""

from __future__ import annotations

import gzip
import json
import math
import time
import warnings
from pathlib import Path
from typing import Any

import ConfigSpace as CS
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.errors import InputError, InputTypeError, RecollectWarning, StorageError
from recollect.runs.run import Run, State, Trial
from recollect.space.sampling import uniform
from recollect.space.serialization import to_json
from recollect.space.space import compile_space
from recollect.storage.formats import json_lines
from recollect.storage.formats.export import write_runs
from recollect.storage.formats.json_lines import json_objects
from recollect.storage.importers.detection import read_runs
from recollect.storage.run_reading import StoredRun

TEXTS = st.text(st.characters(), max_size=8)  # lone surrogates, line separators and NUL included
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS
CONFIGS = st.dictionaries(TEXTS, SCALARS, max_size=4)
SECONDS = st.none() | st.floats(0, 1e9)
NOTES = st.lists(TEXTS, max_size=2).map(tuple)
FINITE = st.floats(allow_nan=False, allow_infinity=False)
TRIALS = st.builds(Trial, CONFIGS, FINITE, st.just(State.OK), SECONDS, NOTES) | st.builds(
    Trial, CONFIGS, st.none(), st.just(State.FAILED), SECONDS, NOTES
)
RUNS = st.builds(
    lambda task, trials, direction: Run(task, trials=trials, direction=direction),
    TEXTS,
    st.lists(TRIALS, max_size=4),
    st.sampled_from(["minimize", "maximize"]),
)
HARD_NAMES = ["a/b", 'quo"te', "it's; drop table studies", "<script>", "übung 🎉", "two\nlines", " space ", "a,b"]


def to_lines(runs: list[Run]) -> str:
    return json_lines.to_lines([StoredRun(None, run) for run in runs])


def from_lines(where: str, lines: json_lines.Lines) -> list[Run]:
    return [stored.run for stored in json_lines.from_lines(where, lines)]


def kinds(run: Run) -> list[list[tuple[str, type]]]:
    return [[(name, type(value)) for name, value in config.items()] for config in run.configs]


def conditional() -> CS.ConfigurationSpace:
    source = CS.ConfigurationSpace(
        {
            "kernel": ["rbf", "poly", None],
            "C": CS.Float("C", (1e-3, 1e3), log=True),
            "degree": (2, 5),
            "on": [True, False],
        }
    )
    source.add(CS.EqualsCondition(source["degree"], source["kernel"], "poly"))
    return source


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(RUNS, max_size=3))
def test_json_lines_bring_back_equal_runs_of_equal_types(runs: list[Run]) -> None:
    text = to_lines(runs)
    again = from_lines("file", json_objects("file", text))
    assert again == runs
    assert [kinds(run) for run in again] == [kinds(run) for run in runs]
    assert text.isascii()


@pytest.mark.parametrize("ending", ["jsonl", "jsonl.gz"])
def test_a_run_with_a_space_is_the_same_after_a_file(ending: str, tmp_path: Path) -> None:
    space = compile_space(conditional())
    configs = space.decode(uniform(space, 30, np.random.default_rng(0)))
    run = Run("übung 🎉", configs, np.linspace(0, 1, 30), space=space, direction="maximize")
    write_runs([run, Run()], tmp_path / f"runs.{ending}")
    again, empty = read_runs(tmp_path / f"runs.{ending}")
    assert (again.task, again.trials, again.direction) == (run.task, run.trials, run.direction)
    assert again.space is not None
    assert to_json(again.space) == to_json(space)
    np.testing.assert_array_equal(again.X, run.X)
    assert empty == Run()


def test_tasks_of_a_file_can_be_chosen_and_directions_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    write_runs([Run(name, [{"x": 1}], [2.0]) for name in HARD_NAMES], path)
    assert [run.task for run in read_runs(path)] == HARD_NAMES
    assert [run.task for run in read_runs(path, task=HARD_NAMES[2])] == [HARD_NAMES[2]]
    with pytest.raises(InputError, match=r"there is no task 'none', only 'a/b'"):
        read_runs(path, task="none")
    with pytest.raises(InputError, match=r"direction is 'minimize', but .*'maximize'"):
        read_runs(path, direction="maximize")
    with pytest.raises(InputError, match="value has no meaning here: the file says what it holds"):
        read_runs(path, value="x")


def test_no_runs_are_a_file_too(tmp_path: Path) -> None:
    write_runs([], tmp_path / "none.jsonl")
    assert read_runs(tmp_path / "none.jsonl") == []


def test_numpys_numbers_become_pythons() -> None:
    trial = Trial(
        {"a": np.int64(3), "b": np.float32(0.5), "c": np.bool_(True)}, np.float64(0.25), seconds=np.float64(1)
    )
    (run,) = from_lines("file", json_objects("file", to_lines([Run("t", trials=[trial])])))
    assert run.trials == (trial,)
    assert kinds(run) == [[("a", int), ("b", float), ("c", bool)]]


@pytest.mark.parametrize("value", [(1, 2), [1], {"a": 1}, b"x", object, 1j])
def test_values_that_json_does_not_bring_back_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"run 't', trial 1, 'x': only str, int, float, bool and None can be stored"):
        to_lines([Run("t", [{"x": 1}, {"x": value}], [1.0, 2.0])])


def test_a_space_that_cannot_be_stored_is_refused() -> None:
    run = Run("t", [{"x": (1, 2)}], [1.0], space={"x": [(1, 2), (3, 4)]})
    with pytest.raises(InputError, match=r"run 't': hyperparameter 'x': only str"):
        to_lines([run])


GOOD = to_lines([Run("t", [{"x": 1}, {"x": 2}], [1.0, None])]).splitlines()


def changed(line: int, **changes: Any) -> str:
    lines = [json.loads(text) for text in GOOD]
    for name, value in changes.items():
        if value is ...:
            del lines[line][name]
        else:
            lines[line][name] = value
    return "\n".join(map(json.dumps, lines))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("\n".join(GOOD[:3]), r"f\.jsonl: expected 2 trials of 't', but the file ends before: it was cut off"),
        (GOOD[0], r"f\.jsonl: expected a run, but the file ends before"),
        ("\n".join(GOOD)[:-9], r"f\.jsonl, line 4: expected JSON, which may have been cut off"),
        ("\n".join([*GOOD, GOOD[2]]), r"line 5: expected the end of the file"),
        (changed(0, recollect_runs=2), r"line 1: expected runs in format 1, got 2; a newer recollect"),
        (changed(0, runs="many"), r"line 1: expected the number of runs, got 'many'"),
        (changed(0, runs=-1), r"line 1: expected the number of runs, got -1"),
        (changed(1, task=...), r"line 2: expected the head of a run, 'task' is missing"),
        (changed(1, task=3), r"line 2: Run: task must be a string"),
        (changed(1, direction="up"), r"line 2: direction must be"),
        (changed(1, space=[1]), r"line 2: expected a search space in ConfigSpace's JSON format"),
        (changed(1, trials=True), r"line 2: expected the number of trials, got True"),
        (changed(2, config=[1]), r"line 3: config must be an object"),
        (changed(2, notes="x"), r"line 3: .*notes a list of strings"),
        (changed(2, notes=[1]), r"line 3: .*notes a list of strings"),
        (changed(2, value="1.0"), r"line 3: value must be a number or null, got '1\.0'"),
        (changed(2, value=math.inf), r"line 3: a trial that did not fail needs a finite value, got inf"),
        (changed(2, state="great"), r"line 3: 'great' is not a valid State"),
        (changed(2, state="failed"), r"line 3: a failed trial has no value"),
        (changed(2, seconds=...), r"line 3: expected a trial, 'seconds' is missing"),
    ],
)
def test_files_that_were_changed_or_cut_off_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_runs(path)


def test_configurations_outside_the_stored_space_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    write_runs([Run("t", [{"x": 1}], [1.0], space={"x": (0, 5)})], path)
    path.write_text(path.read_text().replace('"config": {"x": 1}', '"config": {"x": 9}'))
    with pytest.raises(InputError, match=r"line 2: .*9"):
        read_runs(path)


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
def test_csv_brings_back_what_a_table_can_hold(ending: str, tmp_path: Path) -> None:
    trials = [
        Trial({"C": 0.1, "n": 3, "on": True, "kernel": "a,b\n"}, 1 / 3, seconds=2.5),
        Trial({"C": 1e-300, "n": -4}, None, State.FAILED),
    ]
    runs = [Run("x;y", trials=trials), Run('z "q"', trials=trials[:1])]
    path = tmp_path / f"runs.{ending}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the line break at the end of a text is lost
        write_runs(runs, path)
    again = read_runs(path)
    assert [run.task for run in again] == ["x;y", 'z "q"']
    assert again[0].values == [1 / 3, None]
    assert again[0].configs == [{"C": 0.1, "n": 3, "on": True, "kernel": "a,b"}, {"C": 1e-300, "n": -4}]
    assert kinds(again[0]) == [[("C", float), ("n", int), ("on", bool), ("kernel", str)], [("C", float), ("n", int)]]
    assert [trial.seconds for trial in again[0].trials] == [2.5, None]


def test_one_unnamed_run_needs_no_task_column(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    write_runs([Run("", [{"x": 1}], [0.5])], path)
    assert path.read_text() == "x,value,state,seconds\n1,0.5,ok,\n"
    assert read_runs(path) == [Run("mine", [{"x": 1}], [0.5])]


@pytest.mark.parametrize(
    ("runs", "lost"),
    [
        ([Run("t", [{"x": 1}], [1.0], direction="maximize")], "the direction maximize"),
        ([Run("t", [{"x": 1}], [1.0], space={"x": (0, 5)})], "the search spaces"),
        ([Run("t", trials=[Trial({"x": 1}, 1.0, notes=("slow",))])], "the notes"),
        ([Run("t", [{"x": 1}], [1.0]), Run("u")], "runs without trials"),
        ([Run("t", [{"x": "1"}], [1.0])], "the exact values of x"),
        ([Run("t", [{"x": None, "y": 1}], [1.0])], "the exact values of x"),
        ([Run("t", [{"x": True, "y": "nan"}, {"x": "b", "y": "a"}], [1.0, 2.0])], "the exact values of x, y"),
    ],
)
def test_a_warning_names_what_csv_does_not_keep(runs: list[Run], lost: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    with pytest.warns(RecollectWarning, match=rf"t\.csv: CSV does not keep {lost}; \.jsonl keeps everything"):
        write_runs(runs, path)
    assert read_runs(path)[0].values == runs[0].values


def test_what_csv_brings_back_is_not_warned_of(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write_runs(
            [Run("t", [{"x": 1, "y": 0.5, "k": "a", "on": False}, {"x": 2, "y": 1}], [1, 2])], tmp_path / "t.csv"
        )


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([], "needs at least one trial"),
        ([Run("t")], "needs at least one trial"),
        ([Run("t", [{}], [1.0])], "needs at least one hyperparameter"),
        ([Run("t", [{"value": 1}], [1.0])], "cannot have a hyperparameter named 'value'"),
        ([Run("t", [{" x": 1}], [1.0])], "cannot have a hyperparameter named ' x'"),
        ([Run("t", [{"x": 1}], [1.0])] * 2, "tells runs apart by their tasks, but 't'"),
        ([Run("t", [{"x": 1}], [1.0]), Run("", [{"x": 1}], [1.0])], "tells runs apart by their tasks, but ''"),
        ([Run("t", [{"x": "a\0b"}], [1.0])], "cannot hold the character NUL"),
        ([Run("t", [{"x": "\ud800"}], [1.0])], r"not valid Unicode"),
    ],
)
def test_what_csv_cannot_hold_is_refused_and_nothing_is_written(runs: list[Run], message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        write_runs(runs, tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []


def test_other_names_and_things_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a name that ends in one of \.jsonl, \.csv"):
        write_runs([], tmp_path / "runs.xlsx")
    with pytest.raises(InputTypeError, match="expected an iterable of"):
        write_runs([3], tmp_path / "runs.csv")  # type: ignore[list-item]
    write_runs(Run("t"), tmp_path / "runs.jsonl")  # type: ignore[arg-type]
    assert read_runs(tmp_path / "runs.jsonl") == [Run("t")]


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "runs.jsonl"
    write_runs([Run("old")], path)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
        with pytest.raises(StorageError, match=r"runs\.jsonl: the file cannot be written: Permission denied"):
            write_runs([Run("new")], path)
        patch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            write_runs([Run("new")], path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["runs.jsonl"]
    assert read_runs(path) == [Run("old")]
    write_runs([Run("new")], path)
    assert read_runs(path) == [Run("new")]


def test_a_folder_that_is_not_there_or_is_none_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "sub.jsonl").mkdir()
    for path in (tmp_path / "no" / "t.jsonl", tmp_path / "file" / "t.jsonl", tmp_path / "sub.jsonl"):
        with pytest.raises(StorageError, match="the file cannot be written"):
            write_runs([], path)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "sub.jsonl"]


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a.jsonl.gz", "b.jsonl.gz"):
        write_runs([Run("t", [{"x": 1}], [1.0])], tmp_path / name)
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.jsonl.gz").read_bytes()).count(b"\n") == 3


@pytest.mark.parametrize("ending", ["csv", "jsonl"])
def test_ten_thousand_trials_take_seconds_and_not_minutes(ending: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    configs = [{f"h{i}": float(v) for i, v in enumerate(row)} for row in rng.random((10_000, 8))]
    runs = [Run(f"t{i}", configs[i::20], rng.random(500)) for i in range(20)]
    path = tmp_path / f"t.{ending}"
    start = time.process_time()
    write_runs(runs, path)
    again = read_runs(path)
    read = time.process_time()
    assert again == runs
    assert read - start < 20.0
