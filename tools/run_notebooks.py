"""Run the notebooks of the site and store their outputs in them.

python tools/run_notebooks.py docs/notebooks/*.ipynb
"""

from __future__ import annotations

import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient


def run_notebook(path: Path) -> nbformat.NotebookNode:
    """Return the notebook with the outputs of all cells, without warnings; an exception in a cell is raised."""
    notebook = nbformat.read(path, as_version=4)
    NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False).execute()
    for cell in notebook.cells:
        if "outputs" in cell:
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    for name in sys.argv[1:]:
        nbformat.write(run_notebook(Path(name)), name)
