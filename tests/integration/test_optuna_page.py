"""docs/optuna.md: its examples run as written, and it names every argument."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from recollect.optuna import TransferSampler

ROOT = Path(__file__).parents[2]


def python_in(page: Path) -> str:
    return "\n\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), flags=re.DOTALL))


def test_the_examples_of_the_page_run_as_written(tmp_path: Path) -> None:
    script = tmp_path / "page.py"
    script.write_text(python_in(ROOT / "docs" / "optuna.md"))
    done = subprocess.run(
        [sys.executable, "-W", "error", script], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "gamma | kernel in {'rbf'}" in done.stdout
    assert "degree | kernel in {'poly'}" in done.stdout
    assert re.search(r"^task -0\.3 +12 +\d+% ", done.stdout, flags=re.MULTILINE)


def test_the_page_names_every_argument_of_the_sampler() -> None:
    page = (ROOT / "docs" / "optuna.md").read_text()
    for name in TransferSampler.__init__.__annotations__:
        if name != "return":
            assert f"| `{name}` |" in page
