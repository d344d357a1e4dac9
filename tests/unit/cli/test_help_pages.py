"""``recollect help`` shows every page of the documentation as text, and messages refer to pages by these names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import recollect
from recollect.cli.help_pages import PAGES, list_pages, page_names, plain_links, render_page
from recollect.cli.main import app

ROOT = Path(__file__).parents[3]


def test_every_text_page_of_the_documentation_is_listed_with_its_title() -> None:
    files = {path.stem for path in ROOT.glob("docs/**/*.md") if path.parent.name != "methods"} - {"index"}
    listed = dict(line.split(maxsplit=1) for line in list_pages().splitlines()[2:])
    assert listed.keys() == files | {f"methods/{name}" for name in recollect.methods()}
    assert listed["optuna"] == "Optuna: TransferSampler"


def test_a_page_is_shown_without_a_terminal_as_plain_text() -> None:
    shown = CliRunner().invoke(app, ["help", "memory"])
    assert shown.exit_code == 0
    assert "how runs are stored" in shown.output
    assert "\x1b" not in shown.output
    assert "](" not in shown.output


def test_linked_pages_are_named_at_the_end() -> None:
    links = "[a](memory.md#where), [b](../x.py), [c](https://e.example)"
    text, others = plain_links(links, PAGES / "optuna.md")
    assert text == "a, b, c (https://e.example)"
    assert others == ["memory"]
    assert plain_links("[a](memory.md)", PAGES / "memory.md") == ("a", [])
    assert plain_links("[memory.md](memory.md)", PAGES / "optuna.md")[0].startswith("Memory: how runs are stored")
    assert render_page("memory").splitlines()[-1].startswith("See also: recollect help ")


def test_links_inside_code_stay() -> None:
    code = "```python\nx[0](memory.md)\n```"
    assert plain_links(code, PAGES / "optuna.md") == (code, [])


def test_pictures_become_their_description() -> None:
    assert plain_links("![a curve](f.png)", PAGES / "optuna.md")[0] == "*(figure: a curve)*"


def test_a_method_and_a_concept_of_the_same_name_are_two_pages() -> None:
    assert page_names()["methods/task-prior"] != page_names()["task-prior"]
    _, others = plain_links("[a](task-prior.md), [b](../concepts/task-prior.md)", PAGES / "methods" / "gp.md")
    assert others == ["methods/task-prior", "task-prior"]


def test_a_method_can_be_named_without_its_folder() -> None:
    assert render_page("gp-box") == render_page("methods/gp-box")


def test_an_unknown_page_is_refused_with_similar_names() -> None:
    with pytest.raises(recollect.InputError, match="similar: memory"):
        render_page("memry")


@pytest.mark.parametrize("command", ["tune", "report", "dashboard", "methods", "demo", "bench", "memory"])
def test_the_help_of_a_command_names_its_page(command: str) -> None:
    shown = " ".join(CliRunner().invoke(app, [command, "--help"]).output.split())
    pages = re.findall(r"recollect help ([a-z][\w/-]*)", shown.partition("Documentation:")[2])
    assert pages
    assert set(pages) <= page_names().keys()


def test_the_package_refers_to_no_file_that_a_wheel_lacks_and_to_no_unknown_page() -> None:
    for path in (ROOT / "src").glob("**/*.py"):
        text = path.read_text()
        assert re.findall(r"\bdocs/[\w-]+\.md|\bREADME\.md", text) == [], path
        topics = re.findall(r"recollect help ([a-z][\w/-]*)", text)
        assert [topic for topic in topics if topic not in page_names()] == [], path
