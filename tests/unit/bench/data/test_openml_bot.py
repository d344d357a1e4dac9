"""The OpenML bot's tables, as small files in the published format."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from recollect.bench.data import openml_bot
from recollect.bench.data.download import published_column
from recollect.bench.data.openml_bot import bot_space, load_bot, read_bot
from recollect.bench.problems.forest_benchmark import ForestBuild, TuneSettings
from recollect.errors import InputError
from recollect.space.columns import Interval, Steps

TINY = TuneSettings(candidates=2, folds=2, trees=5, final_trees=10)
Row = dict[str, str]

RUNS: dict[str, Row] = {
    "glmnet": {"alpha": "0.25", "lambda": "2"},
    "svm": {"kernel": "radial", "cost": "0.5", "gamma": "4", "degree": "NA"},
    "xgboost": {
        "nrounds": "4168",
        "eta": "0.03125",
        "subsample": "0.753",
        "booster": "gbtree",
        "max_depth": "13",
        "min_child_weight": "2",
        "colsample_bytree": "0.203",
        "colsample_bylevel": "0.638",
        "lambda": "0.25",
        "alpha": "4",
    },
}


def run(learner: str, **changed: str) -> Row:
    """One line of a published table: the hyperparameters, measures, and columns that nobody asks for."""
    measures = {"auc": "0.9", "accuracy": "0.87", "brier": "0.1", "runtime": "1.5", "data_id": "3"}
    return {"": "1", **RUNS[learner], **measures, "NumberOfFeatures": "37", **changed}


def write(path: Path, rows: list[Row]) -> Path:
    with path.open("w", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]), quoting=csv.QUOTE_MINIMAL)
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("learner", RUNS)
def test_a_run_is_read_as_configuration_and_error(learner: str, tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", [run(learner, data_id="31", auc="0.75"), run(learner, auc="1")])
    table = read_bot(learner, path, whole=False)
    assert list(table.data) == ["3", "31"]
    X, y = table.data["31"]
    assert y.tolist() == [0.25]
    assert table.data["3"][1].tolist() == [0.0]
    (config,) = table.space.decode(X)
    expected = {name: text for name, text in RUNS[learner].items() if text != "NA"}
    assert {name: value if isinstance(value, str) else float(value) for name, value in config.items()} == {
        name: text if text.isalpha() else pytest.approx(float(text)) for name, text in expected.items()
    }


@pytest.mark.parametrize(
    ("learner", "name", "low", "high", "log"),
    [
        ("glmnet", "alpha", 0, 1, False),
        ("glmnet", "lambda", 2**-10, 2**10, True),
        ("svm", "cost", 2**-10, 2**10, True),
        ("svm", "gamma", 2**-10, 2**10, True),
        ("svm", "degree", 2, 5, False),
        ("xgboost", "nrounds", 1, 5000, False),
        ("xgboost", "eta", 2**-10, 1, True),
        ("xgboost", "subsample", 0, 1, False),
        ("xgboost", "max_depth", 1, 15, False),
        ("xgboost", "min_child_weight", 1, 2**7, True),
        ("xgboost", "colsample_bytree", 0, 1, False),
        ("xgboost", "colsample_bylevel", 0, 1, False),
        ("xgboost", "lambda", 2**-10, 2**10, True),
        ("xgboost", "alpha", 2**-10, 2**10, True),
    ],
)
def test_the_spaces_are_the_corrected_ones(learner: str, name: str, low: float, high: float, log: bool) -> None:
    space = bot_space(learner)
    hyperparameter = space.source[name]
    assert (hyperparameter.lower, hyperparameter.upper, hyperparameter.log) == (low, high, log)
    whole = name in ("degree", "nrounds", "max_depth")
    assert isinstance(space.columns[space.names.index(name)], Steps if whole else Interval)


def test_conditions_and_choices_are_the_corrected_ones() -> None:
    svm, xgboost = bot_space("svm"), bot_space("xgboost")
    assert svm.names == ("cost", "kernel", "degree", "gamma")
    assert [len(svm.decode(svm.encode([c]))[0]) for c in (
        {"kernel": "linear", "cost": 1.0},
        {"kernel": "radial", "cost": 1.0, "gamma": 1.0},
        {"kernel": "polynomial", "cost": 1.0, "degree": 3},
    )] == [2, 3, 3]  # fmt: skip
    conditional = [name for name, text in zip(xgboost.names, xgboost.condition_texts, strict=True) if text]
    assert conditional == ["colsample_bylevel", "colsample_bytree", "max_depth", "min_child_weight"]
    assert all("booster == 'gbtree'" in text for text in xgboost.condition_texts if text)
    assert xgboost.source["booster"].choices == ("gblinear", "gbtree")
    assert svm.source["kernel"].choices == ("linear", "polynomial", "radial")
    assert not bot_space("glmnet").conditional


def test_values_of_inactive_hyperparameters_are_ignored(tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", [run("svm", kernel="linear", gamma="1e6", degree="17")])
    table = read_bot("svm", path, whole=False)
    assert table.space.decode(table.data["3"][0]) == [{"cost": 0.5, "kernel": "linear"}]
    assert table.left_out == 0


@pytest.mark.parametrize(
    ("learner", "changed"),
    [
        ("glmnet", {"runtime": "-0.01"}),
        ("svm", {"runtime": "-3", "gamma": "NA"}),
        ("xgboost", {"runtime": "-1e-9"}),
        ("xgboost", {"eta": "NA"}),
        ("xgboost", {"eta": "NA", "booster": "gblinear"}),
        ("xgboost", {"colsample_bytree": "NA"}),
        ("xgboost", {"colsample_bylevel": ""}),
    ],
)
def test_runs_that_the_paper_leaves_out_are_left_out_and_counted(learner: str, changed: Row, tmp_path: Path) -> None:
    rows = [run(learner), run(learner, **changed), run(learner, data_id="999999", auc="7")]
    table = read_bot(learner, write(tmp_path / "table.csv", rows), whole=False)
    assert {task: len(y) for task, (_, y) in table.data.items()} == {"3": 1}
    assert table.left_out == 1


def test_linear_boosting_needs_no_column_samples_and_a_runtime_of_zero_is_valid(tmp_path: Path) -> None:
    unset = dict.fromkeys(("colsample_bytree", "colsample_bylevel", "max_depth", "min_child_weight"), "NA")
    row = run("xgboost", booster="gblinear", runtime="0", nrounds="1e+03", **unset)
    table = read_bot("xgboost", write(tmp_path / "table.csv", [row]), whole=False)
    (config,) = table.space.decode(table.data["3"][0])
    assert config["nrounds"] == 1000
    assert len(config) == 6


@pytest.mark.parametrize(
    ("learner", "changed", "reason"),
    [
        ("glmnet", {"auc": "1.01"}, r"expected an auc in \[0, 1\], got 1.01"),
        ("glmnet", {"auc": "NA"}, "expected a number as auc, got 'NA'"),
        ("glmnet", {"auc": "nan"}, "expected a number as auc, got 'nan'"),
        ("glmnet", {"runtime": "soon"}, "expected a number as runtime, got 'soon'"),
        ("glmnet", {"alpha": "NA"}, "expected a number as alpha, got 'NA'"),
        ("glmnet", {"lambda": "2000"}, "'lambda': expected .* got 2000.0"),
        ("glmnet", {"data_id": "three"}, "expected a data_id, the number of a dataset, got 'three'"),
        ("svm", {"kernel": "sigmoid", "gamma": "NA"}, "'kernel': expected .* got 'sigmoid'"),
        ("svm", {"gamma": "NA"}, "expected a number as gamma, got 'NA'"),
        ("svm", {"kernel": "polynomial", "degree": "2.5"}, "'degree': expected .* got 2.5"),
        ("svm", {"kernel": "polynomial", "degree": "6"}, "'degree': expected .* got 6"),
        ("xgboost", {"max_depth": "NA"}, "expected a number as max_depth, got 'NA'"),
        ("xgboost", {"subsample": "1.2"}, "'subsample': expected .* got 1.2"),
    ],
)
def test_a_run_that_does_not_belong_to_the_space_is_refused_with_its_line(
    learner: str, changed: Row, reason: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "table.csv", [run(learner), run(learner, data_id="4534"), run(learner, **changed)])
    with pytest.raises(InputError, match=f"table.csv, line 4: {reason}"):
        read_bot(learner, path, whole=False)


def test_another_learners_table_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", [run("glmnet")])
    with pytest.raises(InputError, match=r"table\.csv, line 1: expected one column 'kernel', got the header"):
        read_bot("svm", path, whole=False)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "line 1: expected one column 'data_id'"),
        (b"data_id,auc,runtime,alpha,alpha,lambda\n", "line 1: expected one column 'alpha'"),
        (b"data_id,auc,runtime,alpha,lambda\n3,0.9,1,0.5,1\n3,0.9,1\n", "line 3: expected 5 cells"),
        (b"data_id,auc,runtime,alpha,lambda\n", "expected runs on the 38 datasets of 'glmnet', got none"),
        (b"data_id,auc,runtime,alpha,lambda\n2,0.9,1,0.5,1\n", "expected runs on the 38 datasets"),
        (b"data_id,auc,runtime,alpha,lambda\n3,0.9,1,0.5,\xff\n", "cannot be read"),
        (b'data_id,auc,runtime,alpha,lambda\n3,0.9,1,0.5,"1\n', "expected CSV"),
        (b"PK\x03\x04\x00\x00\xff\xfe", "cannot be read"),
    ],
)
def test_other_files_are_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"table.csv[,:] .*{reason}"):
        read_bot("glmnet", path, whole=False)


def test_a_missing_file_and_an_unknown_learner_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nothing.csv: .* cannot be read: .*No such file"):
        read_bot("glmnet", tmp_path / "nothing.csv")
    with pytest.raises(InputError, match="no learner 'xgbost'; did you mean 'xgboost'"):
        load_bot("xgbost", tmp_path / "nothing.csv")


def test_a_part_of_the_published_file_is_refused_by_default(tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", [run("glmnet")])
    with pytest.raises(InputError, match="expected 15546 usable runs of dataset 3, got 1, and 38 of 38 datasets"):
        read_bot("glmnet", path)


def test_a_file_with_the_published_numbers_of_rows_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openml_bot, "published_column", lambda *_: {"3": "2", "31": "1"})
    rows = [run("glmnet"), run("glmnet"), run("glmnet", data_id="31"), run("glmnet", runtime="-1")]
    path = write(tmp_path / "table.csv", rows)
    assert list(read_bot("glmnet", path).data) == ["3", "31"]
    write(path, rows[:2])
    with pytest.raises(InputError, match="expected 1 usable runs of dataset 31, got 0"):
        read_bot("glmnet", path)


def test_the_datasets_are_the_38_of_the_paper() -> None:
    tables = [published_column("openml_bot_rows.csv", learner) for learner in RUNS]
    assert [len(table) for table in tables] == [38, 38, 38]
    assert len({tuple(table) for table in tables}) == 1
    assert "1176" in tables[0]
    assert [table["4134"] for table in tables] == ["1493", "560", "2222"]
    assert [table["4534"] for table in tables] == ["2801", "2476", "947"]


def test_a_compressed_file_is_read(tmp_path: Path) -> None:
    path = write(tmp_path / "table.csv", [run("glmnet")])
    with gzip.open(tmp_path / "table.csv.gz", "wb") as stream:
        stream.write(path.read_bytes())
    assert list(read_bot("glmnet", tmp_path / "table.csv.gz", whole=False).data) == ["3"]


def test_the_benchmark_is_a_forest_a_dataset(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows = []
    for data_id in ("3", "4534"):
        for kernel in rng.choice(["linear", "polynomial", "radial"], 50):
            cost, gamma = 2.0 ** rng.uniform(-10, 10, 2)
            auc = 0.9 - 0.02 * abs(np.log2(cost)) - 0.1 * (kernel == "linear")
            own = {"kernel": kernel, "cost": f"{cost:.6f}", "gamma": f"{gamma:.6f}", "degree": str(rng.integers(2, 6))}
            rows.append(run("svm", data_id=data_id, auc=f"{auc:.6f}", **own))
    path = write(tmp_path / "svm.csv", rows)
    benchmark = load_bot("svm", path, whole=False, jobs=1, build=ForestBuild(TINY, folder=tmp_path / "forests"))
    assert (benchmark.name, benchmark.tasks) == ("svm", ("3", "4534"))
    assert (benchmark.about.kind, benchmark.about.exact) == ("forest", False)
    assert "0 runs" in benchmark.about.measured
    task = benchmark.task("3")
    good, bad = {"kernel": "radial", "cost": 1.0, "gamma": 1.0}, {"kernel": "linear", "cost": 1000.0}
    assert task.best <= task.evaluate(good) < task.evaluate(bad) <= task.worst
