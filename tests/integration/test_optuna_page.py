"""docs/optuna.md: its examples run as written, and it names every argument."""

from __future__ import annotations

import re
from pathlib import Path

from tests.helpers.documents import ROOT, execute, python_code

from recollect.optuna import TransferSampler


def test_the_examples_of_the_page_run_as_written(tmp_path: Path, warm_python: Path) -> None:
    shown = execute("python", python_code(ROOT / "docs" / "optuna.md"), tmp_path, python=warm_python)
    assert "gamma | kernel in {'rbf'}" in shown
    assert "degree | kernel in {'poly'}" in shown
    assert re.search(r"^task -0\.3 +12 +\d+% ", shown, flags=re.MULTILINE)


def test_the_page_names_every_argument_of_the_sampler() -> None:
    page = (ROOT / "docs" / "optuna.md").read_text()
    for name in TransferSampler.__init__.__annotations__:
        if name != "return":
            assert f"| `{name}` |" in page
