"""docs/spaces.md: its examples run as written, without a warning."""

from __future__ import annotations

from pathlib import Path

from tests.helpers.documents import ROOT, execute, python_code


def test_the_examples_of_the_page_run_as_written(tmp_path: Path, warm_python: Path) -> None:
    shown = execute("python", python_code(ROOT / "docs" / "spaces.md"), tmp_path, python=warm_python)
    assert "Space(C, alpha, batch, decay, depth" in shown
    assert "gamma | kernel in" in shown
    assert shown.count("Space(lr, optimizer, units)") == 2
