"""LCBench, as small files in the published format."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from recollect.bench.data import lcbench
from recollect.bench.data.lcbench import lcbench_space, load_lcbench, read_lcbench
from recollect.errors import InputError, MissingExtraError

CONFIG = {
    "batch_size": 124,
    "imputation_strategy": "mean",
    "learning_rate_scheduler": "cosine_annealing",
    "loss": "cross_entropy_weighted",
    "network": "shapedmlpnet",
    "max_dropout": 0.009,
    "normalization_strategy": "standardize",
    "optimizer": "sgd",
    "cosine_annealing_T_max": 50,
    "cosine_annealing_eta_min": 1e-08,
    "activation": "relu",
    "max_units": 106,
    "mlp_shape": "funnel",
    "num_layers": 3,
    "learning_rate": 0.0711,
    "momentum": 0.4627,
    "weight_decay": 0.0018,
}
SEVEN = ("batch_size", "learning_rate", "max_dropout", "max_units", "momentum", "num_layers", "weight_decay")


def run(accuracy: Any = 0.75, **changed: Any) -> dict[str, Any]:
    return {
        "config": {**CONFIG, **changed},
        "results": {"final_val_accuracy": 81.2, "final_val_balanced_accuracy": accuracy, "OpenML_task_id": 126025},
        "log": {"epoch": [0, 1], "Train/loss": [0.7, float("inf")], "Train/val_balanced_accuracy": [0.5, accuracy]},
    }


def two_tasks() -> dict[str, Any]:
    return {
        "adult": {"0": run(0.75), "1": run(0.5, momentum=0.9)},
        "higgs": {"0": run(0.625), "1": run(0.25, momentum=0.9)},
    }


def write(path: Path, content: Any, *, indent: int | None = None) -> Path:
    path.write_text(json.dumps(content, indent=indent))
    return path


def test_errors_are_one_minus_the_final_balanced_accuracy(tmp_path: Path) -> None:
    benchmark = load_lcbench(write(tmp_path / "data_2k_lw.json", two_tasks()), whole=False)
    assert (benchmark.name, benchmark.tasks) == ("lcbench", ("adult", "higgs"))
    assert (benchmark.about.kind, benchmark.about.exact) == ("table", True)
    first, second = ({name: {**CONFIG, **changed}[name] for name in SEVEN} for changed in ({}, {"momentum": 0.9}))
    assert benchmark.candidates == (first, second)
    adult, higgs = benchmark.task("adult"), benchmark.task("higgs")
    assert [adult.evaluate(first), adult.evaluate(second)] == [0.25, 0.5]
    assert [higgs.evaluate(first), higgs.evaluate(second)] == [0.375, 0.75]
    assert (higgs.best, higgs.worst) == (0.375, 0.75)


def test_data_sets_with_different_configurations_have_their_own_tables(tmp_path: Path) -> None:
    content = two_tasks()
    content["higgs"]["2"] = run(0.9, max_units=1024)
    benchmark = load_lcbench(write(tmp_path / "data.json", content), whole=False)
    assert benchmark.candidates is None
    assert [len(benchmark.task(task).candidates or ()) for task in benchmark.tasks] == [2, 3]
    assert benchmark.task("higgs").best == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("name", "low", "high", "log"),
    [
        ("batch_size", 16, 512, True),
        ("learning_rate", 1e-4, 1e-1, True),
        ("max_dropout", 0, 1, False),
        ("max_units", 16, 1024, True),
        ("momentum", 0.1, 0.99, False),
        ("num_layers", 1, 5, False),
        ("weight_decay", 1e-5, 1e-1, False),
    ],
)
def test_the_space_is_the_corrected_one_and_the_papers_an_option(name: str, low: float, high: float, log: bool) -> None:
    corrected, papers = (lcbench_space(paper_bounds=paper).source[name] for paper in (False, True))
    assert (corrected.lower, corrected.upper, corrected.log) == (low, high, log)
    assert (papers.lower, papers.upper, papers.log) == (low, 1e5 if name == "weight_decay" else high, log)


@pytest.mark.parametrize(("paper_bounds", "name"), [(False, "lcbench"), (True, "lcbench+paper")])
def test_a_variant_has_a_name_of_its_own_for_results(paper_bounds: bool, name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "data.json", two_tasks())
    assert load_lcbench(path, whole=False, paper_bounds=paper_bounds).name == name


def test_runs_outside_of_the_space_are_left_out_and_counted(tmp_path: Path) -> None:
    content = two_tasks()
    content["adult"] |= {"7": run(0.9, weight_decay=0.5), "8": run(0.95, batch_size=8)}
    path = write(tmp_path / "data.json", content)
    table = read_lcbench(path, whole=False)
    assert table.left_out == 2
    assert [len(errors) for _, errors in table.tables.values()] == [2, 2]
    assert "2 runs left out" in load_lcbench(path, whole=False).about.measured
    papers = read_lcbench(path, whole=False, paper_bounds=True)
    assert papers.left_out == 1
    assert papers.tables["adult"][0][2]["weight_decay"] == 0.5
    assert load_lcbench(path, whole=False, paper_bounds=True).task("adult").best == pytest.approx(0.1)


def test_one_layer_written_as_true_is_one_layer(tmp_path: Path) -> None:
    table = read_lcbench(write(tmp_path / "data.json", {"adult": {"0": run(num_layers=True)}}), whole=False)
    layers = table.tables["adult"][0][0]["num_layers"]
    assert (layers, type(layers)) == (1, int)


@pytest.mark.parametrize("block", [1, 7, 64, 1 << 20])
@pytest.mark.parametrize("indent", [None, 2])
def test_pieces_of_any_size_give_the_same_table(
    block: int, indent: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path / "data.json", two_tasks(), indent=indent)
    expected = read_lcbench(path, whole=False)
    monkeypatch.setattr(lcbench, "CHARACTERS_PER_READ", block)
    got = read_lcbench(path, whole=False)
    assert got.tables == expected.tables
    assert {task: errors for task, (_, errors) in got.tables.items()} == {"adult": [0.25, 0.5], "higgs": [0.375, 0.75]}


def test_the_published_archive_is_read_as_it_is(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "data_2k_lw.zip", "w") as archive:
        archive.writestr("data_2k_lw.json", json.dumps(two_tasks()))
        archive.writestr("__MACOSX/._data_2k_lw.json", "")
    assert read_lcbench(tmp_path / "data_2k_lw.zip", whole=False).tables["higgs"][1] == [0.375, 0.75]


@pytest.mark.parametrize("names", [[], ["a.json", "b.json"]])
def test_another_archive_is_refused(names: list[str], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "")
        for name in names:
            archive.writestr(name, "{}")
    with pytest.raises(InputError, match=f"one JSON file in the archive, got {len(names)}"):
        read_lcbench(tmp_path / "other.zip")


def without(part: str, name: str) -> dict[str, Any]:
    changed = run()
    del changed[part][name]
    return changed


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ([1, 2], "expected an object with 'config' and 'results'"),
        ({"config": CONFIG, "log": {}}, "expected an object with 'config' and 'results'"),
        (without("config", "momentum"), "expected a number as momentum, got None"),
        (run(momentum="high"), "expected a number as momentum, got 'high'"),
        (run(learning_rate=float("nan")), "expected a number as learning_rate, got nan"),
        (run(momentum=True), "expected a number as momentum, got True"),
        (run(num_layers=False), "expected a number as num_layers, got False"),
        (run(batch_size=16.5), "expected a whole number as batch_size, got 16.5"),
        (
            without("results", "final_val_balanced_accuracy"),
            r"expected final_val_balanced_accuracy in \[0, 1\], got None",
        ),
        (run(75.0), r"expected .* in \[0, 1\], got 75.0"),
        (run(float("nan")), r"expected .* in \[0, 1\], got nan"),
        (run(True), r"expected .* in \[0, 1\], got True"),
    ],
)
def test_a_run_that_is_not_as_published_is_refused_with_its_place(bad: Any, reason: str, tmp_path: Path) -> None:
    content = two_tasks()
    content["higgs"]["17"] = bad
    with pytest.raises(InputError, match=f"data.json, dataset 'higgs', configuration '17': {reason}"):
        read_lcbench(write(tmp_path / "data.json", content), whole=False)


@pytest.mark.parametrize("keep", [0, 1, 5, 12, 200, 0.3, 0.6, 0.99])
def test_a_cut_file_is_refused_with_the_place_of_the_end(keep: float, tmp_path: Path) -> None:
    text = json.dumps(two_tasks())
    (tmp_path / "data.json").write_text(text[: keep if isinstance(keep, int) else int(keep * len(text))])
    with pytest.raises(InputError, match=r"data\.json, character \d+: expected .*, got "):
        read_lcbench(tmp_path / "data.json", whole=False)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"[]", r"character 0: expected an object with a dataset for every key, got '\[\]'"),
        (b'{"adult": 3}', "character 10: expected an object with a configuration of 'adult' for every key, got '3}'"),
        (b'{"adult" {}}', "expected a colon after 'adult'"),
        (b"{3: {}}", "expected the name of a dataset"),
        (b'{"adult": {"0": {"config"}}}', "expected the run '0' of 'adult', in JSON"),
        (b'{"adult": {}} {}', "expected the end of the file"),
        (b'{"adult": {} "higgs": {}}', "expected a comma or the end of the object"),
        (b"{}", "expected runs of every dataset, got none"),
        (b'{"adult": {}}', "expected runs of every dataset, got none"),
        (b'{"ad\xff": {}}', "cannot be read"),
    ],
)
def test_other_files_are_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_bytes(content)
    with pytest.raises(InputError, match=f"data.json[,:] .*{reason}"):
        read_lcbench(tmp_path / "data.json", whole=False)


def test_a_run_that_is_never_closed_is_refused_before_all_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lcbench, "CHARACTERS_PER_READ", 100)
    monkeypatch.setattr(lcbench, "MAX_RUN_CHARACTERS", 1000)
    # the last byte is no text, which is noticed by whoever reads as far
    (tmp_path / "data.json").write_bytes(b'{"adult": {"0": [' + b"1, " * 100_000 + b"\xff")
    with pytest.raises(InputError, match=r"character 16: expected the run '0' of 'adult'"):
        read_lcbench(tmp_path / "data.json", whole=False)


def test_a_data_set_of_which_nothing_is_left_is_refused(tmp_path: Path) -> None:
    content = two_tasks() | {"volkert": {"0": run(weight_decay=7.0)}}
    with pytest.raises(InputError, match="expected runs of every dataset, got none of 'volkert'"):
        read_lcbench(write(tmp_path / "data.json", content), whole=False)


def test_other_data_sets_than_the_published_ones_are_refused_by_default(tmp_path: Path) -> None:
    path = write(tmp_path / "data.json", two_tasks())
    with pytest.raises(InputError, match="expected 35 datasets, got 2; 'APSFailure' is in one of both only"):
        load_lcbench(path)


def test_other_errors_than_the_published_ones_are_refused_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = {
        "best": {"adult": "0.25", "higgs": "0.375"},
        "worst": {"adult": "0.5", "higgs": "0.75"},
        "mean": {"adult": "0.375", "higgs": "0.5625"},
    }
    monkeypatch.setattr(lcbench, "published_column", lambda _file, column: facts[column])
    path = write(tmp_path / "data.json", two_tasks())
    assert load_lcbench(path).tasks == ("adult", "higgs")
    facts["mean"]["higgs"] = "0.5626"
    with pytest.raises(InputError, match=r"expected 0.5626 as the mean error of dataset 'higgs', got 0.5625000"):
        load_lcbench(path)


def parquet_folder(folder: Path, content: dict[str, Any]) -> Path:
    """The same runs in the form of LCBenchLite."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for task, runs in content.items():
        (folder / task).mkdir(parents=True)
        for part in ("config", "results"):
            rows = [entry[part] for entry in runs.values()]
            columns = {name: [row.get(name) for row in rows] for name in rows[0]}
            parquet.write_table(pyarrow.table(columns), folder / task / f"{part}.parquet.gzip", compression="gzip")
    return folder


def csv_file(path: Path, content: dict[str, Any]) -> Path:
    """The same runs as a CSV file."""
    lines = [",".join(["task", *SEVEN, "error"])]
    for task, runs in content.items():
        for entry in runs.values():
            error = 1.0 - entry["results"]["final_val_balanced_accuracy"]
            lines.append(",".join(map(str, [task, *(entry["config"][name] for name in SEVEN), error])))
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize("paper_bounds", [False, True])
def test_all_three_forms_of_the_data_give_the_same_table(paper_bounds: bool, tmp_path: Path) -> None:
    content = two_tasks()
    content["adult"] |= {"7": run(0.875, weight_decay=0.5), "8": run(0.5, num_layers=1)}
    paths = [
        write(tmp_path / "data.json", content),
        parquet_folder(tmp_path / "lite", content),
        csv_file(tmp_path / "lcbench.csv", content),
    ]
    expected, *others = (read_lcbench(path, whole=False, paper_bounds=paper_bounds) for path in paths)
    assert expected.left_out == (0 if paper_bounds else 1)
    for other in others:
        assert other.tables == expected.tables
        assert other.left_out == expected.left_out
        assert type(other.tables["adult"][0][0]["batch_size"]) is int


def test_a_folder_of_lcbenchlite_that_is_not_as_published_is_refused(tmp_path: Path) -> None:
    folder = parquet_folder(tmp_path, two_tasks())
    results = folder / "higgs" / "results.parquet.gzip"
    results.rename(folder / "kept")
    with pytest.raises(InputError, match=r"higgs/results.parquet.gzip: expected a Parquet file"):
        read_lcbench(folder, whole=False)
    results.write_bytes((folder / "kept").read_bytes()[:-20])
    with pytest.raises(InputError, match=r"higgs/results.parquet.gzip: expected a Parquet file"):
        read_lcbench(folder, whole=False)
    results.write_bytes((folder / "higgs" / "config.parquet.gzip").read_bytes())
    with pytest.raises(InputError, match=r"higgs: .* expected a column 'final_val_balanced_accuracy'"):
        read_lcbench(folder, whole=False)
    shorter = parquet_folder(folder / "shorter", {"higgs": {"0": run(0.5)}}) / "higgs" / results.name
    results.write_bytes(shorter.read_bytes())
    with pytest.raises(InputError, match="expected a row for every configuration in both, got 2 and 1 rows"):
        read_lcbench(folder, whole=False)


def test_parquet_files_without_pyarrow_are_refused_with_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = parquet_folder(tmp_path, two_tasks())
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtraError, match=r"recollect\[parquet\]"):
        read_lcbench(folder, whole=False)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("momentum", "momentums", "line 1: expected the columns task, batch_size"),
        (",0.25\n", ",1.25\n", r"line 2: expected an error in \[0, 1\], got '1.25'"),
        (",0.25\n", ",\n", r"line 2: expected an error in \[0, 1\], got ''"),
        ("124", "many", "line 2: expected a number as batch_size, got None"),
    ],
)
def test_another_csv_file_is_refused_with_the_line(old: str, new: str, reason: str, tmp_path: Path) -> None:
    path = csv_file(tmp_path / "lcbench.csv", two_tasks())
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=f"lcbench.csv, {reason}"):
        read_lcbench(path, whole=False)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing\.json: .* cannot be read: .*No such file"):
        read_lcbench(tmp_path / "nothing.json")
