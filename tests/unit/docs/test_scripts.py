"""Benchmark scripts and examples import only what the package has: nothing else runs them after a renaming."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
from tests.helpers.documents import ROOT

SCRIPTS = sorted([*ROOT.glob("benchmarks/**/*.py"), *ROOT.glob("examples/**/*.py")])


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_name_that_a_script_imports_exists(path: Path) -> None:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "recollect":
            module = importlib.import_module(str(node.module))
            for alias in node.names:
                if not hasattr(module, alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_benchmark_is_listed(path: Path) -> None:
    if path.parent.name in ("speed", "quality", "robustness"):
        assert str(path.relative_to(ROOT)) in (ROOT / "benchmarks" / "README.md").read_text()
