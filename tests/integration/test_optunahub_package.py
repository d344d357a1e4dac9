"""The package for OptunaHub: optunahub loads it, its examples run, its layout and format are the registry's."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys

import mdformat
import optuna
import optunahub
import pytest
import yaml
from tests.helpers.documents import ROOT, python_code

from recollect.optuna import TransferSampler

REGISTRY = ROOT / "optunahub" / "package"
PACKAGE = REGISTRY / "samplers" / "transfer"
README = PACKAGE.joinpath("README.md").read_text()


@pytest.fixture(autouse=True)
def in_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REGISTRY.parent)
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def test_optunahub_loads_the_sampler_and_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    module = optunahub.load_local_module("samplers/transfer", registry_root=str(REGISTRY))
    assert module.TransferSampler is TransferSampler
    exec(compile(PACKAGE.joinpath("example.py").read_text(), "example.py", "exec"), {"__name__": "__main__"})
    assert "past run" in capsys.readouterr().out


def test_the_example_in_the_description_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def load_from_here(package: str) -> object:
        return optunahub.load_local_module(package, registry_root=str(REGISTRY))

    monkeypatch.setattr(optunahub, "load_module", load_from_here)  # which would ask the network
    scope: dict[str, object] = {}
    exec(compile(python_code(PACKAGE / "README.md"), "README.md", "exec"), scope)
    study = scope["study"]
    assert isinstance(study, optuna.Study)
    assert len(study.trials) == 20


def test_the_front_matter_is_what_the_registry_asks_for() -> None:
    head = yaml.safe_load(README.split("---\n")[1])
    assert head.keys() == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert all(head.values())
    assert "sampler" in head["tags"]
    assert head["license"] == "MIT License"
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", str(version)) for version in head["optuna_versions"])


def test_the_description_has_the_sections_of_the_template() -> None:
    headings = re.findall(r"^## (.+)$", README, flags=re.MULTILINE)
    assert headings == ["Abstract", "APIs", "Installation", "Example", "Others"]
    assert "pip install recollect" in README


def test_the_section_on_apis_names_every_argument() -> None:
    section = README.partition("## APIs")[2].partition("\n## ")[0]
    arguments = [name for name in inspect.signature(TransferSampler).parameters if name != "self"]
    assert re.findall(r"^  - `(\w+)`:", section, flags=re.MULTILINE) == arguments


def test_the_description_is_formatted_by_mdformat() -> None:
    assert mdformat.text(README, extensions={"frontmatter"}) == README


@pytest.mark.parametrize("command", [("check",), ("format", "--check")])
def test_the_code_is_formatted_as_the_registry_wants_it(command: tuple[str, ...]) -> None:
    settings = ROOT / "optunahub" / "ruff.toml"
    done = subprocess.run(
        [sys.executable, "-m", "ruff", *command, "--config", settings, PACKAGE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_has_the_licence_of_the_project() -> None:
    assert PACKAGE.joinpath("LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    files = {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"}
    assert files == {"__init__.py", "README.md", "LICENSE", "example.py"}
