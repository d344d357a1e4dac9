"""Every relative link and every source file named in README, docs and the other pages leads somewhere."""

from __future__ import annotations

import pkgutil
import re
from pathlib import Path

import pytest
from tests.helpers.documents import FENCE, PAGES, ROOT, anchors, links

PATH = re.compile(
    r"\b(?:benchmarks|docs|examples|src|tests|optunahub)/[\w./-]+\.(?:py|md|toml|csv\.gz|csv\.xz|csv|sh|json|png)\b"
)


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_points_to_an_existing_file_and_anchor(page: Path) -> None:
    for target in links(page.read_text()):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(file.read_text()), f"{target}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_path_of_the_repository_exists(page: Path) -> None:
    prose = re.sub(r"\]\([^)]*\)", "]", page.read_text())
    for path in PATH.findall(FENCE.sub("", prose)):
        assert (ROOT / path).exists(), f"{path} does not exist"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_prose_is_wrapped_at_100_columns(page: Path) -> None:
    prose = FENCE.sub(lambda fence: "\n" * fence[0].count("\n"), page.read_text())
    for number, line in enumerate(prose.splitlines(), start=1):
        shortest = re.sub(r"`[^`]*`|\[[^]]*\]\([^)]*\)", "x", line.strip("*- "))  # code and links stay whole
        exempt = line.startswith(("|", "    ", "<img", "![")) or " " not in shortest
        assert exempt or len(line) <= 100, f"line {number} is too long"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_name_of_the_package_can_be_imported(page: Path) -> None:
    for dotted in set(re.findall(r"`(recollect(?:\.\w+)+)", page.read_text())):
        pkgutil.resolve_name(dotted)
