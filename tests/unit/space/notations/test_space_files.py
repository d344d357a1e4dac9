"""Search spaces in JSON, YAML and TOML files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float

from recollect import InputError, RecollectWarning, SpaceError, compile_space
from recollect.space.serialization import to_json
from recollect.storage.studies import space_difference

PAGE = Path(__file__).parents[4] / "docs" / "command-line.md"


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
    found = compile_space(write(tmp_path / "space.json", content))
    assert space_difference(found, compile_space(expected)) is None


@pytest.mark.parametrize(
    ("ending", "text"), [("json", '{"x": [1, 2, 4]}'), ("yaml", "x: [1, 2, 4]"), ("toml", "x = [1, 2, 4]")]
)
def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path: Path, ending: str, text: str) -> None:
    path = tmp_path / f"space.{ending}"
    path.write_text(text, encoding="utf-8-sig")
    assert compile_space(path).names == ("x",)


def test_a_space_file_of_configspace_keeps_conditions(tmp_path: Path) -> None:
    space = ConfigurationSpace()
    kernel, gamma = Categorical("kernel", ["rbf", "poly"]), Float("gamma", (0.1, 1.0), log=True)
    space.add(kernel, gamma, EqualsCondition(gamma, kernel, "rbf"))
    found = compile_space(write(tmp_path / "space.json", to_json(compile_space(space))))
    assert found.conditional
    assert space_difference(found, compile_space(space)) is None


def test_a_hyperparameter_may_be_called_hyperparameters(tmp_path: Path) -> None:
    found = compile_space(write(tmp_path / "space.json", {"hyperparameters": ["a", "b", "c"], "low": 3}))
    assert set(found.names) == {"hyperparameters", "low"}


def test_two_numbers_are_choices_with_a_word_of_warning(tmp_path: Path) -> None:
    with pytest.warns(RecollectWarning, match='\'lr\' has two choices; write {"low": 0.1, "high": 1} for a range'):
        found = compile_space(write(tmp_path / "space.json", {"lr": [0.1, 1], "flags": [True, False], "n": [1, 2, 3]}))
    assert found.size() == 12


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", "expected a search space as JSON"),
        ("{", "expected a search space as JSON: .*line 1 column 2"),
        ('{"a": 1,}', "expected a search space as JSON"),
        ("[1, 2]", r"expected an object with one entry per hyperparameter, .* as JSON, got '\[1, 2\]'"),
        ("3", "expected an object"),
        ("{}", "the search space is empty"),
        ('{"a": [1, 2, 3], "a": 3}', "the key 'a' occurs twice"),
        ('{"a": {"low": 1, "low": 2, "high": 3}}', "the key 'low' occurs twice"),
        ({"a": {"low": 1}}, "'a': expected .* got {'low': 1}"),
        ({"a": {"low": 1, "high": 2, "steps": 1}}, "'a': expected .*'steps': 1"),
        ({"a": {"low": 1, "high": 2, "step": 0}}, "'a': a step .*above 0.*step 0"),
        ({"a": {"low": 1, "high": 2, "step": 1, "log": True}}, "'a': a step .*excludes a log scale"),
        ({"a": {"choices": [1, 2], "ordered": 1}}, "'a': expected .*'ordered': 1"),
        ({"a": {"low": 1, "high": 2, "log": "yes"}}, "'a': expected .*'yes'"),
        ({"a": {"choices": 3}}, "'a': expected .*'choices': 3"),
        ({"a": {}}, "'a': expected"),
        ({"a": {"low": "x", "high": 2}}, "'a': expected finite numbers as bounds"),
        ({"a": {"low": 5, "high": 2}}, "'a': expected the lower bound before the upper, got 5 and 2$"),
        ({"a": {"low": 0, "high": 2, "log": True}}, "'a': a log scale needs a lower bound above 0, got 0$"),
        ('{"a": {"low": 0, "high": Infinity}}', "'a': expected finite numbers"),
        ({"a": []}, "'a': expected at least one choice"),
        ({"a": [[1], [2], [3]]}, "'a': choices must be hashable"),
        ({"a": [1, 1.0, 2]}, "'a': choices must differ"),
        ({"": [1, 2, 3]}, "name of a hyperparameter"),
        ({"hyperparameters": [{"name": "a"}]}, "ConfigSpace's format"),
        ("[" * 100_000, "expected a search space as JSON"),
    ],
)
def test_what_is_wrong_in_a_space_file_is_said_with_file_and_key(tmp_path: Path, content: Any, expected: str) -> None:
    path = write(tmp_path / "my space.json", content)
    with pytest.raises(SpaceError, match=expected) as caught:
        compile_space(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert len(str(caught.value)) < 600


def test_what_is_no_file_of_text_is_no_space(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: Is a directory"):
        compile_space(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe{}")
    with pytest.raises(SpaceError, match="this is not text"):
        compile_space(tmp_path / "binary")
    with pytest.raises(InputError, match="File name too long"):
        compile_space(tmp_path / ("x" * 5000))


YAML = """
lr: {low: 1e-5, high: 1.0, log: true}   # a number, though YAML 1.1 takes 1e-5 for text
units: {low: 16, high: 128, step: 16}
optimizer: [adam, sgd]
augment: [on, off]
warm: [true, false]
"""
TOML = """
lr = {low = 1e-5, high = 1.0, log = true}
units = {low = 16, high = 128, step = 16}
optimizer = ["adam", "sgd"]
augment = ["on", "off"]
warm = [true, false]
"""


@pytest.mark.parametrize(("ending", "text"), [(".yaml", YAML), (".yml", YAML), (".toml", TOML)])
def test_yaml_and_toml_say_what_a_dict_says(tmp_path: Path, ending: str, text: str) -> None:
    expected = {
        "lr": (1e-5, 1.0, "log"),
        "units": range(16, 129, 16),
        "optimizer": ["adam", "sgd"],
        "augment": ["on", "off"],
        "warm": [True, False],
    }
    path = write(tmp_path / f"space{ending}", text)
    for name in (path, str(path)):
        assert space_difference(compile_space(name), compile_space(expected)) is None


@pytest.mark.parametrize(
    ("ending", "text", "expected"),
    [
        (".yaml", "a: [1, 2", "as YAML: .*line 1"),
        (".yaml", "a: [x, y, z]\na: 3", "the key 'a' occurs twice"),
        (".yaml", "a: {low: 1, low: 2, high: 3}", "the key 'low' occurs twice"),
        (".yaml", "- 1\n- 2", "expected an object .*as YAML"),
        (".yaml", "a: !!python/object/apply:os.system [ls]", "as YAML: could not determine a constructor"),
        (".yaml", "? [1, 2]\n: 3", "as YAML"),
        (".toml", "a = [1, 2", "as TOML"),
        (".toml", "a = 2026-01-01", "'a': expected"),
    ],
)
def test_what_is_wrong_in_yaml_and_toml_is_said(tmp_path: Path, ending: str, text: str, expected: str) -> None:
    path = write(tmp_path / f"space{ending}", text)
    with pytest.raises(SpaceError, match=expected) as caught:
        compile_space(path)
    assert str(caught.value).startswith(f"{path}: ")


def test_a_file_may_list_alternatives(tmp_path: Path) -> None:
    text = "- {kernel: [rbf], C: {low: 0.1, high: 10.0}, gamma: {low: 0.1, high: 1.0}}\n"
    space = compile_space(write(tmp_path / "space.yaml", f"{text}- {{kernel: [linear], C: {{low: 0.1, high: 10.0}}}}"))
    assert space.conditional
    assert len(space.encode([{"kernel": "linear", "C": 1.0}, {"kernel": "rbf", "C": 1.0, "gamma": 0.5}])) == 2


# Help and documentation


def test_the_space_in_the_documentation_is_understood(tmp_path: Path) -> None:
    written = PAGE.read_text().partition("```json\n")[2].partition("```")[0]
    found = compile_space(write(tmp_path / "space.json", written))
    expected = {"lr": (1e-4, 0.1, "log"), "depth": (1, 8), "dropout": (0.0, 0.5), "optimizer": ["adam", "sgd"]}
    assert space_difference(found, compile_space({**expected, "batch": [16, 32], "epochs": 10})) is None
