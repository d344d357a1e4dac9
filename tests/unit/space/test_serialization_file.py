"""Search spaces in JSON files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

from recollect import InputError, RecollectWarning, SpaceError, compile_space
from recollect.space.serialization import read_space_file, to_json
from recollect.storage.studies import space_difference

PAGE = Path(__file__).parents[3] / "docs" / "command-line.md"


def write(path: Path, content: Any) -> Path:
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_a_space_file_says_what_a_dict_says(tmp_path: Path) -> None:
    content = {
        "lr": {"low": 1e-4, "high": 0.1, "log": True},
        "depth": {"low": 1, "high": 8},
        "width": {"high": 512, "low": 16, "log": True},
        "momentum": {"low": 0, "high": 0.99, "log": False},
        "kernel": ["rbf", "poly", 3, None],
        "batch": {"choices": [16, 32]},
        "fixed": 3,
        "name": "adam",
        "flag": True,
        "none": None,
    }
    expected = {
        "lr": (1e-4, 0.1, "log"),
        "depth": (1, 8),
        "width": (16, 512, "log"),
        "momentum": (0, 0.99),
        "kernel": ["rbf", "poly", 3, None],
        "batch": [16, 32],
        "fixed": 3,
        "name": "adam",
        "flag": True,
        "none": None,
    }
    found = read_space_file(write(tmp_path / "space.json", content))
    assert space_difference(found, compile_space(expected)) is None


def test_a_space_file_of_configspace_keeps_conditions(tmp_path: Path) -> None:
    space = ConfigurationSpace()
    kernel, gamma = Categorical("kernel", ["rbf", "poly"]), Float("gamma", (0.1, 1.0), log=True)
    space.add(kernel, gamma, EqualsCondition(gamma, kernel, "rbf"))
    found = read_space_file(write(tmp_path / "space.json", to_json(compile_space(space))))
    assert found.conditional
    assert space_difference(found, compile_space(space)) is None


def test_a_hyperparameter_may_be_called_hyperparameters(tmp_path: Path) -> None:
    found = read_space_file(write(tmp_path / "space.json", {"hyperparameters": ["a", "b", "c"], "low": 3}))
    assert set(found.names) == {"hyperparameters", "low"}


def test_two_numbers_are_choices_with_a_word_of_warning(tmp_path: Path) -> None:
    with pytest.warns(RecollectWarning, match='\'lr\' has two choices; write {"low": 0.1, "high": 1} for a range'):
        found = read_space_file(
            write(tmp_path / "space.json", {"lr": [0.1, 1], "flags": [True, False], "n": [1, 2, 3]})
        )
    assert found.size() == 12


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "expected a search space as JSON"),
        ("{", "expected a search space as JSON: .*line 1 column 2"),
        ('{"a": 1,}', "expected a search space as JSON"),
        ("[1, 2]", r"expected a JSON object with one entry per hyperparameter, got '\[1, 2\]'"),
        ("3", "expected a JSON object"),
        ("{}", "the search space is empty"),
        ('{"a": [1, 2, 3], "a": 3}', "the key 'a' occurs twice"),
        ('{"a": {"low": 1, "low": 2, "high": 3}}', "the key 'low' occurs twice"),
        ({"a": {"low": 1}}, "'a': expected .* got {\"low\": 1}"),
        ({"a": {"low": 1, "high": 2, "step": 1}}, "'a': expected .*\"step\": 1"),
        ({"a": {"low": 1, "high": 2, "log": "yes"}}, "'a': expected .*\"yes\""),
        ({"a": {"choices": 3}}, "'a': expected .*\"choices\": 3"),
        ({"a": {}}, "'a': expected"),
        ({"a": {"low": "x", "high": 2}}, "'a': expected finite numbers as bounds"),
        ({"a": {"low": 5, "high": 2}}, "'a': expected the lower bound before the upper, got 5 and 2$"),
        ({"a": {"low": 0, "high": 2, "log": True}}, "'a': a log scale needs a lower bound above 0, got 0$"),
        ('{"a": {"low": 0, "high": Infinity}}', "'a': expected finite numbers"),
        ({"a": []}, "'a': expected at least one choice"),
        ({"a": [[1], [2], [3]]}, "'a': choices must be hashable"),
        ({"a": [1, 1.0, 2]}, "'a': choices must differ"),
        ({"": [1, 2, 3]}, "name must be a non-empty str"),
        ({"hyperparameters": [{"name": "a"}]}, "ConfigSpace's JSON format"),
        ("[" * 100_000, "expected a search space as JSON"),
    ],
)
def test_what_is_wrong_in_a_space_file_is_said_with_file_and_key(tmp_path: Path, content: Any, expected: str) -> None:
    path = write(tmp_path / "my space.json", content)
    with pytest.raises(SpaceError, match=expected) as caught:
        read_space_file(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 600


def test_what_is_no_file_of_text_is_no_space(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        read_space_file(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe{}")
    with pytest.raises(SpaceError, match="this is not text"):
        read_space_file(tmp_path / "binary")
    with pytest.raises(InputError, match="File name too long"):
        read_space_file(tmp_path / ("x" * 5000))


# Help and documentation


def test_the_space_in_the_documentation_is_understood(tmp_path: Path) -> None:
    written = PAGE.read_text().partition("```json\n")[2].partition("```")[0]
    found = read_space_file(write(tmp_path / "space.json", written))
    expected = {"lr": (1e-4, 0.1, "log"), "depth": (1, 8), "dropout": (0.0, 0.5), "optimizer": ["adam", "sgd"]}
    assert space_difference(found, compile_space({**expected, "batch": [16, 32], "epochs": 10})) is None
