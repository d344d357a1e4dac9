"""The package as it will be published: README's links, the recipe for conda-forge, the workflows."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from types import ModuleType
from typing import Any

import pytest
import yaml
from tests.helpers.documents import ROOT, links

import recollect

PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RECIPE: dict[str, Any] = yaml.safe_load((ROOT / "conda" / "recipe.yaml").read_text())


@pytest.fixture(scope="module")
def site_map() -> ModuleType:
    spec = importlib.util.spec_from_file_location("site_map", ROOT / "tools" / "site_map.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_description_on_pypi_has_absolute_links_only(site_map: ModuleType) -> None:
    readme = (ROOT / "README.md").read_text()
    assert links(readme)
    description = site_map.absolute_links(readme)
    assert links(description) == []
    assert f"]({PROJECT['urls']['Documentation']}memory.html)" in description
    assert f"]({PROJECT['urls']['Documentation']}changelog.html)" in description


@pytest.mark.parametrize(
    ("url", "expected"), [("https://recollect.example/docs/", True), ("https://example.readthedocs.io/x", False)]
)
def test_a_placeholder_is_an_address_that_nobody_can_own(site_map: ModuleType, url: str, expected: bool) -> None:
    assert site_map.is_placeholder(url) is expected


def test_the_recipe_has_the_version_the_dependencies_and_the_addresses_of_the_project() -> None:
    assert RECIPE["context"]["version"] == recollect.__version__
    assert PROJECT["requires-python"] == f">={RECIPE['context']['python_min']}"
    python, *run = RECIPE["requirements"]["run"]
    assert python == "python >=${{ python_min }}"
    assert [line.replace(" ", "") for line in run] == [line.lower() for line in PROJECT["dependencies"]]
    assert RECIPE["about"]["documentation"] == RECIPE["about"]["homepage"] == PROJECT["urls"]["Documentation"]
    assert RECIPE["about"]["repository"] == PROJECT["urls"]["Source"]
    assert RECIPE["about"]["license"] == PROJECT["license"]


def test_workflows_run_targets_of_the_makefile_on_every_supported_python() -> None:
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    workflows = {path.stem: path.read_text() for path in (ROOT / ".github" / "workflows").glob("*.yml")}
    assert workflows.keys() == {"tests", "docs", "release"}
    for text in workflows.values():
        assert set(re.findall(r"run: make ([\w-]+)", text)) <= targets
        assert re.findall(r"run: (?!make|rm)", text) == []
    matrix = yaml.safe_load(workflows["tests"])["jobs"]["test"]["strategy"]["matrix"]["python"]
    prefix = "Programming Language :: Python :: 3."
    assert matrix == [f"3.{line.removeprefix(prefix)}" for line in PROJECT["classifiers"] if line.startswith(prefix)]
