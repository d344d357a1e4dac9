"""Every code block of the site runs as written, or is marked as not to be run (``console``, ``text``)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.helpers.documents import ROOT, code_blocks, execute

# Their code is run by tests of their own.
ELSEWHERE = [
    *("command-line.md", "experiments.md", "importing.md", "memory.md", "methods.md", "optuna.md", "scikit-learn.md"),
    *("callbacks.md", "sequence.md", "worker-recipes.md"),
]
PAGES = [
    page for page in sorted(ROOT.glob("docs/**/*.md")) if page.relative_to(ROOT / "docs").as_posix() not in ELSEWHERE
]
WITH_CODE = [page for page in PAGES if code_blocks(page.read_text())]
FILE = r"# \S+\.py\n"  # the first line of a block that is a file
PAGE_WIDTH = 100  # columns of code that the site shows without a scroll bar
LANGUAGES = {"python", "sh", "text", "console", "json", "math", "toml", "yaml", "bash"}


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_the_code_of_a_page_runs_as_written_block_after_block(page: Path, tmp_path: Path) -> None:
    scripts: list[list[str]] = []  # neighbouring blocks in one language run in one process
    for language, code in code_blocks(page.read_text()):
        if scripts and scripts[-1][0] == language and not re.match(FILE, code) and not re.match(FILE, scripts[-1][1]):
            scripts[-1][1] += f"\n{code}"
        else:
            scripts.append([language, code])
    for language, code in scripts:
        execute(language, code, tmp_path)


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.stem)
def test_every_code_block_says_what_it_is(page: Path) -> None:
    assert set(re.findall(r"^```(\S*)", page.read_text(), flags=re.MULTILINE)[::2]) <= LANGUAGES


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))], ids=lambda page: page.stem)
def test_code_fits_the_width_of_a_page(page: Path) -> None:
    lines = [line for _, code in code_blocks(page.read_text()) for line in code.splitlines()]
    assert [line for line in lines if len(line) > PAGE_WIDTH] == []


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_page_that_is_left_to_another_test_is_read_there(name: str) -> None:
    others = [path for path in (ROOT / "tests").glob("**/test_*.py") if path != Path(__file__)]
    assert any(re.search(rf'"{re.escape(name)}"', path.read_text()) for path in others)
