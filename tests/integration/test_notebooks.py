"""Every notebook of the site runs to its end, with few trials, and draws a figure."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from tests.helpers.documents import ROOT

NOTEBOOKS = sorted(ROOT.glob("docs/notebooks/*.ipynb"))


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory, warm_python: Path) -> dict[str, list[Any]]:
    """Return the outputs of each notebook. All run in one kernel, which takes long to start, in an empty namespace."""
    cells = {path.stem: nbformat.read(path, as_version=4).cells for path in NOTEBOOKS}
    together = nbformat.v4.new_notebook()
    for own in cells.values():
        together.cells += [nbformat.v4.new_code_cell("%reset -f"), *own]
    folder = {"metadata": {"path": tmp_path_factory.mktemp("notebooks")}}
    programs = [str(warm_python.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRIALS", "3")
        patch.setenv("PATH", os.pathsep.join(programs))
        NotebookClient(together, timeout=300, kernel_name="python3", resources=folder, allow_errors=True).execute()
    return {name: [output for cell in own for output in cell.get("outputs", ())] for name, own in cells.items()}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
def test_a_notebook_runs_and_draws_a_figure(path: Path, executed: dict[str, list[Any]]) -> None:
    outputs = executed[path.stem]
    assert [output for output in outputs if output.output_type == "error"] == []
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_stored_notebook_has_its_outputs(path: Path) -> None:
    cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    assert any("image/png" in output.get("data", {}) for cell in cells for output in cell.outputs)
    assert not any(output.get("name") == "stderr" for cell in cells for output in cell.outputs), "warnings name folders"
