"""What README says is true: its example runs, its commands and files exist."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(text: str) -> list[tuple[str, str]]:
    """Return the blocks of code of a page, in order: their language and their text."""
    return re.findall(r"```(python|sh)\n(.*?)```", text, flags=re.DOTALL)


def execute(language: str, code: str, folder: Path) -> str:
    """Run a block as a user would, in a folder; one that begins with the name of a file is put there instead."""
    if named := re.match(r"# (\S+\.py)\n", code):
        (folder / named[1]).write_text(code)
        return ""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = [sys.executable, "-W", "error", "-c", code] if language == "python" else ["sh", "-euc", code]
    environment = os.environ | {"PATH": path, "COLUMNS": "120"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{code}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_the_tutorials_run_as_written_one_after_the_other(tmp_path: Path) -> None:
    function, program, command, study, loop = (execute(*block, tmp_path) for block in blocks(README))
    assert "digits: 12 trials, 0 failed" in function
    assert re.search(r"^cancer +12 ", function, flags=re.MULTILINE)
    assert program == ""
    assert "tuesday" in command
    assert "boosting" in command
    assert "best: {'lr'" in study
    assert "'x': 0." in loop


def test_the_page_on_memory_runs_as_written(tmp_path: Path) -> None:
    (block,) = blocks((ROOT / "docs" / "memory.md").read_text())
    assert "['an old study', 'new']" in execute(*block, tmp_path)


def test_the_two_commands_are_named_and_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")], ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"
