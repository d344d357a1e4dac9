"""Oboe's error matrix, as small files in the published format."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path
from typing import Any

import pytest

from recollect.bench.data.oboe import MEMBER, OBOE, load_oboe, oboe_space
from recollect.errors import InputError

SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("KNN", {"n_neighbors": 1, "p": 2}),
    ("KNN", {"n_neighbors": 15, "p": 1}),
    ("RF", {"min_samples_split": 32, "criterion": "gini"}),
    ("RF", {"min_samples_split": 0.001, "criterion": "entropy"}),
    ("GBT", {"learning_rate": 0.1, "max_depth": 3, "max_features": None}),
    ("GBT", {"learning_rate": 0.5, "max_depth": 6, "max_features": "log2"}),
    ("MLP", {"learning_rate_init": 0.01, "learning_rate": "adaptive", "solver": "sgd", "alpha": 0.0001}),
    ("GNB", {}),
]
ERRORS = {"00003": [0.1, 0.2, 0.3, 0.4, 0.5, 0.25, 0.35, 0.45], "00008": [0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]}


def write(path: Path, errors: dict[str, list[Any]] = ERRORS, header: list[str] | None = None) -> Path:
    names = [str({"algorithm": learner, "hyperparameters": config}) for learner, config in SETTINGS]
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header or ["", *names])
        writer.writerows([task, *row] for task, row in errors.items())
    return path


def test_one_learner_has_its_own_hyperparameters_and_errors(tmp_path: Path) -> None:
    benchmark = load_oboe("oboe-knn", write(tmp_path / "matrix.csv"), whole=False)
    assert benchmark.tasks == ("00003", "00008")
    assert benchmark.candidates == ({"n_neighbors": 1, "p": 2}, {"n_neighbors": 15, "p": 1})
    assert benchmark.task("00008").evaluate({"n_neighbors": 15, "p": 1}) == 0.7
    assert benchmark.about.licence == "BSD-3-Clause"


def test_a_number_of_rows_and_a_fraction_of_them_are_two_hyperparameters(tmp_path: Path) -> None:
    benchmark = load_oboe("oboe-rf", write(tmp_path / "matrix.csv"), whole=False)
    assert benchmark.candidates == (
        {"split_unit": "rows", "min_samples_rows": 32, "criterion": "gini"},
        {"split_unit": "fraction", "min_samples_fraction": 0.001, "criterion": "entropy"},
    )


def test_no_limit_of_features_is_all_of_them_and_a_constant_setting_is_left_out(tmp_path: Path) -> None:
    path = write(tmp_path / "matrix.csv")
    boosting = load_oboe("oboe-gbt", path, whole=False).candidates or ()
    assert [config["max_features"] for config in boosting] == ["all", "log2"]
    network = load_oboe("oboe-mlp", path, whole=False).candidates or ()
    assert network == ({"alpha": 0.0001, "learning_rate_init": 0.01, "solver": "sgd"},)


def test_all_learners_share_one_conditional_space(tmp_path: Path) -> None:
    benchmark = load_oboe("oboe", write(tmp_path / "matrix.csv"), whole=False)
    assert benchmark.candidates is not None
    assert benchmark.candidates[2] == {
        "learner": "RF",
        "RF.split_unit": "rows",
        "RF.min_samples_rows": 32,
        "RF.criterion": "gini",
    }
    assert benchmark.candidates[-1] == {"learner": "GNB"}
    task = benchmark.task("00003")
    assert [task.evaluate(config) for config in benchmark.candidates] == ERRORS["00003"]


def test_the_wheel_is_read_as_it_is(tmp_path: Path) -> None:
    text = write(tmp_path / "matrix.csv").read_text()
    with zipfile.ZipFile(tmp_path / "oboe.whl", "w") as wheel:
        wheel.writestr(MEMBER, text)
    assert load_oboe("oboe-knn", tmp_path / "oboe.whl", whole=False).task("00003").best == 0.1


def test_another_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.whl", "w") as wheel:
        wheel.writestr("other.csv", "")
    with pytest.raises(InputError, match=r"other\.whl: expected a wheel of oboe with"):
        load_oboe("oboe", tmp_path / "other.whl")


def test_a_matrix_with_another_content_is_refused_by_default(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"matrix\.csv: expected .* SHA-256 checksum d8c67fa3"):
        load_oboe("oboe", write(tmp_path / "matrix.csv"))


@pytest.mark.parametrize(
    ("header", "errors", "reason"),
    [
        (["", "nonsense"], {"3": [0.1]}, "column 2: expected an algorithm and its hyperparameters, got 'nonsense'"),
        (["", "{'algorithm': 'SVM', 'hyperparameters': {}}"], {"3": [0.1]}, "column 2: expected an algorithm"),
        (None, {"3": [0.1] * 7 + ["x"]}, "line 2: expected errors of dataset '3'"),
        (None, {"3": [0.1] * 5}, "line 2: expected 9 cells"),
        (["", "f(1)"], {"3": [0.1]}, r"column 2: expected an algorithm and its hyperparameters, got 'f\(1\)'"),
    ],
)
def test_another_matrix_is_refused_with_its_place(
    header: list[str] | None, errors: dict[str, list[Any]], reason: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"matrix.csv, {reason}"):
        load_oboe("oboe", write(tmp_path / "matrix.csv", errors, header), whole=False)


def test_an_unknown_learner_is_refused_with_close_matches(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no benchmark 'oboe-svm'; did you mean 'oboe-.svm'"):
        load_oboe("oboe-svm", tmp_path)
    assert len(OBOE) == 11
    assert oboe_space("oboe").names[0] == "learner"
