"""docs/optuna.md and the package for OptunaHub: their examples run as written, their layout is the registry's."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import optuna
import pytest

import recollect
from recollect.optuna import TransferSampler

ROOT = Path(__file__).parents[2]
REGISTRY = ROOT / "optunahub" / "package"
PACKAGE = REGISTRY / "samplers" / "transfer"


def python_in(page: Path) -> str:
    return "\n\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))


def load_local_module(package: str, *, registry_root: str = os.sep) -> types.ModuleType:
    """Do what `optunahub.load_local_module` does, which need not be installed."""
    name = f"optunahub_registry.package.{package.replace('/', '.')}"
    spec = importlib.util.spec_from_file_location(name, Path(registry_root, package, "__init__.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``import optunahub`` find a module that loads packages from this repository."""
    stand_in = types.ModuleType("optunahub")
    stand_in.load_local_module = load_local_module  # type: ignore[attr-defined]
    stand_in.load_module = lambda package: load_local_module(package, registry_root=str(REGISTRY))  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "optunahub", stand_in)
    monkeypatch.chdir(REGISTRY.parent)
    optuna.logging.set_verbosity(optuna.logging.ERROR)


def front_matter() -> dict[str, str]:
    head = PACKAGE.joinpath("README.md").read_text().split("---\n")[1]
    return dict(line.split(": ", 1) for line in head.splitlines())


def test_the_examples_of_the_page_run_as_written(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(python_in(ROOT / "docs" / "optuna.md"))
    done = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "gamma | kernel in {'rbf'}" in done.stdout
    assert "degree | kernel in {'poly'}" in done.stdout
    assert re.search(r"^task -0\.3 .*(kept|dropped)", done.stdout, flags=re.MULTILINE)


def test_the_page_names_every_argument_of_the_sampler() -> None:
    page = (ROOT / "docs" / "optuna.md").read_text()
    for name in TransferSampler.__init__.__annotations__:
        if name != "return":
            assert f"| `{name}` |" in page


@pytest.mark.usefixtures("hub")
def test_the_package_gives_the_sampler_and_its_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    assert load_local_module("samplers/transfer", registry_root=str(REGISTRY)).TransferSampler is TransferSampler
    code = PACKAGE.joinpath("example.py").read_text()
    exec(compile(code, "example.py", "exec"), {"__name__": "__main__"})
    assert "past run" in capsys.readouterr().out


@pytest.mark.usefixtures("hub")
def test_the_example_in_the_package_description_runs() -> None:
    scope: dict[str, object] = {}
    exec(compile(python_in(PACKAGE / "README.md"), "README.md", "exec"), scope)
    study = scope["study"]
    assert isinstance(study, optuna.Study)
    assert len(study.trials) == 20


def test_the_description_has_the_head_that_the_registry_asks_for() -> None:
    head = front_matter()
    assert set(head) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert all(head.values())
    assert "sampler" in head["tags"].strip("[]").split(", ")
    assert head["license"] == "MIT License"
    assert re.fullmatch(r"\[\d+\.\d+\.\d+(, \d+\.\d+\.\d+)*\]", head["optuna_versions"])
    text = PACKAGE.joinpath("README.md").read_text()
    for heading in ("## Abstract", "## Class or Function Names", "## Installation", "## Example"):
        assert heading in text
    assert f"pip install {recollect.__name__}" in text


def test_the_package_has_the_licence_of_the_project() -> None:
    assert PACKAGE.joinpath("LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    assert {path.name for path in PACKAGE.iterdir() if path.name != "__pycache__"} == {
        *("__init__.py", "README.md", "LICENSE", "example.py")
    }
