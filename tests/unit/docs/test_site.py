"""The site: its navigation lists every page once, and every page has a name of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from tests.helpers.documents import ROOT

API = (
    *("tuning", "ask-and-tell", "runs", "spaces-and-methods", "optuna-and-scikit-learn", "benchmarks-and-weights"),
    "errors-and-more",
)
BORROWED = {"architecture.md", "benchmark-scripts.md", "changelog.md", "contributing.md", "examples.md", "security.md"}
GENERATED = {"command-reference.md", *(f"api/{name}.md" for name in API)}
SETTINGS: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def pages(nav: Any) -> Iterator[str]:
    if isinstance(nav, str):
        yield nav
    for entry in nav if isinstance(nav, list) else nav.values() if isinstance(nav, dict) else ():
        yield from pages(entry)


def test_the_navigation_lists_every_page_once() -> None:
    files = [
        path.relative_to(ROOT / "docs").as_posix()
        for path in ROOT.glob("docs/**/*")
        if path.suffix in (".md", ".ipynb")
    ]
    assert Counter(pages(SETTINGS["nav"])) == Counter([*files, *BORROWED, *GENERATED])


def test_a_page_is_known_by_its_file_name_alone() -> None:
    names = Counter(Path(page).stem for page in pages(SETTINGS["nav"]) if not page.startswith("api/"))
    assert [name for name, count in names.items() if count > 1] == []
