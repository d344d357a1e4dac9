"""What README says is true: its examples run as written, its commands exist."""

from __future__ import annotations

import re
from pathlib import Path

from tests.helpers.documents import ROOT, code_blocks, execute

README = (ROOT / "README.md").read_text()


def test_the_tutorials_run_as_written_one_after_the_other(tmp_path: Path, warm_python: Path) -> None:
    function, search, program, command, study = (
        execute(*block, tmp_path, python=warm_python) for block in code_blocks(README)
    )
    assert "cancer: 12 trials, 0 failed" in function
    assert re.search(r"^wine +12 ", function, flags=re.MULTILINE)
    assert "{'C': " in search
    assert program == ""
    assert "tuesday" in command
    assert "boosting" in command
    assert "best: {'lr'" in study


def test_the_page_on_memory_runs_as_written(tmp_path: Path, warm_python: Path) -> None:
    use, administration = code_blocks((ROOT / "docs" / "memory.md").read_text())
    assert "['an old study', 'new']" in execute(*use, tmp_path, python=warm_python)
    assert execute(*administration, tmp_path, python=warm_python) == "['svm'] ['wine', 'iris'] 2\n"


def test_the_page_on_callbacks_runs_as_written(tmp_path: Path, warm_python: Path) -> None:
    (block,) = code_blocks((ROOT / "docs" / "callbacks.md").read_text())
    shown = execute(*block, tmp_path, python=warm_python)
    assert shown == "[{'x': 0.5}, {'x': -0.25}] good enough after 5 trials\n"


def test_the_two_commands_are_named_and_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target}" in README
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE)


def test_the_front_page_is_short() -> None:
    assert len(README.splitlines()) <= 150
