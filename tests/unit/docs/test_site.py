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
    *("errors-and-more", "trackers"),
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


def test_a_page_is_known_by_its_file_name_alone_and_a_method_by_its_folder_too() -> None:
    names = Counter(Path(page).stem for page in pages(SETTINGS["nav"]) if not page.startswith(("api/", "methods/")))
    assert [name for name, count in names.items() if count > 1] == []


def test_every_example_has_its_output_in_the_gallery() -> None:
    examples = {path.stem for path in ROOT.glob("examples/*.py")} | {"shell_command"}
    assert {path.stem for path in ROOT.glob("docs/example-outputs/*.txt")} == examples


def test_the_navigation_begins_with_home_and_ends_with_the_glossary() -> None:
    assert [label for entry in SETTINGS["nav"] for label in entry] == [
        *("Home", "Does it help me?", "Tutorials", "How-to", "Concepts", "Methods", "Results", "Performance"),
        *("Reliability", "API", "Command line", "FAQ", "Changelog", "Contributing", "Glossary"),
    ]
