"""``recollect help`` shows every page of the documentation as text, and messages refer to pages by these names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

import recollect
from recollect.cli.help_pages import list_pages, page_names, plain_links, render_page
from recollect.cli.main import app

ROOT = Path(__file__).parents[3]


def test_every_text_page_of_the_documentation_is_listed_with_its_title() -> None:
    files = {path.stem for path in ROOT.glob("docs/**/*.md") if path.parent.name != "api"} - {"index"}
    listed = dict(line.split(maxsplit=1) for line in list_pages().splitlines()[2:])
    assert listed.keys() == files
    assert listed["optuna"] == "Optuna: TransferSampler"


def test_a_page_is_shown_without_a_terminal_as_plain_text() -> None:
    shown = CliRunner().invoke(app, ["help", "memory"])
    assert shown.exit_code == 0
    assert "how runs are stored" in shown.output
    assert "\x1b" not in shown.output
    assert "](" not in shown.output


def test_linked_pages_are_named_at_the_end() -> None:
    text, others = plain_links("[a](memory.md#where), [b](../x.py), [c](https://e.example)", page_names())
    assert text == "a, b, c (https://e.example)"
    assert others == ["memory"]
    assert render_page("memory").splitlines()[-1].startswith("See also: recollect help ")


def test_links_inside_code_stay() -> None:
    code = "```python\nx[0](memory.md)\n```"
    assert plain_links(code, page_names()) == (code, [])


def test_pictures_become_their_description() -> None:
    assert plain_links("![a curve](f.png)", {})[0] == "*(figure: a curve)*"


def test_an_unknown_page_is_refused_with_similar_names() -> None:
    with pytest.raises(recollect.InputError, match="similar: memory"):
        render_page("memry")


def test_the_package_refers_to_no_file_that_a_wheel_lacks_and_to_no_unknown_page() -> None:
    for path in (ROOT / "src").glob("**/*.py"):
        text = path.read_text()
        assert re.findall(r"\bdocs/[\w-]+\.md|\bREADME\.md", text) == [], path
        topics = re.findall(r"recollect help ([a-z][\w-]*)", text)
        assert [topic for topic in topics if topic not in page_names()] == [], path
