"""A page of a report: one file, nothing from elsewhere, colours for everybody, and writing that never harms."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

import recollect
from recollect.errors import InputError, MissingExtraError, StorageError
from recollect.report.figure import Figure, LegendKey, figure_html, rounded
from recollect.report.html import Html, tag
from recollect.report.page import GENERATOR, Page, Section, content_policy, render, write_page
from recollect.report.table import Column, Table, number_cell, text_cell

pytest.importorskip("plotly", reason="pages embed plotly's script")

ASSETS = Path(recollect.__file__).parent / "report" / "assets"
NUMBERS = Table("Numbers", (Column("name", numeric=False), Column("x")), (((text_cell("a"), number_cell(1.0)),),))
FIGURE = Figure("Is it so?", "It is.", ({"x": [1], "y": [2]},), {}, NUMBERS)
PAGE = Page(
    "A <page>", "About it.", (Section("One", (FIGURE, FIGURE, NUMBERS)), Section("Two", (Html("<hr>"),))), "a & b"
)


@pytest.fixture(scope="module")
def text() -> str:
    return render(PAGE)


def contents(text: str, element: str) -> list[str]:
    return re.findall(rf"<{element}>(.*?)</{element}>", text, re.DOTALL)


def test_a_page_is_one_small_file_with_plotly_in_it_once(text: str) -> None:
    assert len(text.encode()) < 5_500_000
    assert text.count("plotly.js v") == 1
    assert len(contents(text, "script")) == 4


def test_the_policy_names_all_scripts_and_styles_by_their_hashes_and_lets_nothing_else_in(text: str) -> None:
    found = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert found is not None
    rules = dict(rule.split(" ", 1) for rule in found[1].replace("&#x27;", "'").split("; "))
    hashes = [f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'" for part in contents(text, "script")]
    assert rules["script-src"].split() == hashes
    styles = [
        f"'sha256-{b64encode(sha256(part.encode()).digest()).decode()}'" for part in [*contents(text, "style"), ""]
    ]
    assert rules["style-src-elem"].split() == styles
    assert rules["default-src"] == "'none'"
    assert rules["img-src"] == "data:"
    assert "unsafe-eval" not in found[1]
    assert found.start() < text.index("<script") < len(text)


def test_the_policy_changes_with_what_is_on_the_page() -> None:
    assert content_policy(["a"], []) != content_policy(["b"], [])


def test_nothing_is_loaded_from_elsewhere() -> None:
    own = "".join(path.read_text() for path in sorted(ASSETS.iterdir()))
    assert not re.search(r"https?:|//[a-z]|@import|url\(|\beval\b|innerHTML", own)
    markup = figure_html(FIGURE, "f").text
    assert not re.search(r"\bsrc=|https?:", markup)


def test_a_page_has_titles_links_to_its_sections_and_a_way_past_them(text: str) -> None:
    assert "<title>A &lt;page&gt;</title>" in text
    assert re.findall(r'<a (?:class="skip" )?href="(#[^"]*)"', text) == ["#main", "#section-1", "#section-2"]
    for target in ("main", "section-1", "section-2"):
        assert text.count(f'id="{target}"') == 1
    assert f"Created by recollect {recollect.__version__} from a &amp; b." in text


def test_figures_that_follow_each_other_share_an_element(text: str) -> None:
    body = text[: text.index("<footer>")]
    assert len(re.findall('<div class="figures">', body)) == 1
    assert len(re.findall("<figure ", body)) == 2
    assert len(re.findall('<div class="tables small">', body)) == 1


def test_figures_side_by_side_are_equally_high() -> None:
    low, high, square = (Figure("Q?", "A.", ({},), {}, NUMBERS, height=height) for height in (200, 300, 400))
    parts = (low, high, replace(low, wide=True), low, replace(square, square=True), low)
    text = render(Page("", "", (Section("", parts),)))
    heights = re.findall(r'<svg class="hold" width="1" height="(\d+)"', text)
    assert heights == ["300", "300", "200", "200", "200"]


def test_no_identity_comes_twice(text: str) -> None:
    found = re.findall(r' id="([^"]*)"', text[: text.index("<script>")])
    assert len(found) > 6
    assert len(found) == len(set(found))


def test_a_figure_has_a_text_alternative_and_its_numbers() -> None:
    markup = figure_html(FIGURE, "f").text
    assert 'role="img" aria-label="Is it so? It is."' in markup
    assert "<figcaption>It is.</figcaption>" in markup
    assert "<details><summary>Numbers of this figure</summary>" in markup


def test_keys_are_buttons_that_say_whether_they_are_on() -> None:
    keys = (LegendKey("<gp>", (0, 1), "blue", "9px,3px"), LegendKey("bands", (1,), on=False))
    figure = Figure("Q?", "A.", ({}, {}), {}, NUMBERS, keys=keys)
    markup = figure_html(figure, "f").text
    buttons = re.findall(r'aria-pressed="(\w+)" data-traces="([^"]*)"', markup)
    assert buttons == [("true", "0 1"), ("false", "1")]
    assert 'stroke-dasharray="9,3"' in markup
    assert "<span>&lt;gp&gt;</span>" in markup


def test_texts_for_plotly_are_escaped_and_templates_are_not() -> None:
    spec = {"text": ["<a href='https://x'>&"], "hovertemplate": "<b>%{x}</b><br><extra></extra>"}
    markup = figure_html(Figure("Q?", "A.", (spec,), {"title": {"text": "<i>"}}, NUMBERS), "f").text
    assert r"\u0026lt;a href='https://x'\u0026gt;\u0026amp;" in markup
    assert r"\u0026lt;i\u0026gt;" in markup
    assert r"\u003cb\u003e%{x}\u003c/b\u003e\u003cbr\u003e" in markup


def test_a_template_with_other_markup_is_refused() -> None:
    with pytest.raises(InputError, match="expected no markup but <br> and <b>"):
        figure_html(Figure("Q?", "A.", ({"hovertemplate": "<a href='x'>y</a>"},), {}, NUMBERS), "f")


def test_numbers_are_rounded_to_digits_and_unknown_ones_are_empty() -> None:
    assert rounded([[0.123456, np.nan], [np.inf, 12345.6]]) == [[0.1235, None], [None, 12350.0]]
    assert rounded(2.0) == 2.0


def test_the_same_page_gives_the_same_text(text: str) -> None:
    assert render(PAGE) == text


def test_a_page_needs_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.report.page.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"recollect\[report\]"):
        render(PAGE)


def test_a_page_replaces_a_page_and_no_other_file(tmp_path: Path) -> None:
    page = tag("meta", {"name": "generator", "content": GENERATOR}).text
    path = tmp_path / "new" / "page.html"
    write_page(page, path)
    write_page(page + "2", path)
    assert path.read_text() == page + "2"
    other = tmp_path / "results.csv"
    other.write_text("precious")
    with pytest.raises(InputError, match="not a page of recollect"):
        write_page(page, other)
    assert other.read_text() == "precious"
    assert sorted(file.name for file in tmp_path.rglob("*")) == ["new", "page.html", "results.csv"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="this is a folder"):
        write_page("x", tmp_path)
    with pytest.raises(StorageError, match=r"file: the folder cannot be created: File exists"):
        write_page("x", tmp_path / "file" / "page.html")
    with pytest.raises(StorageError, match="cannot be written there"):
        write_page("x", tmp_path / ("n" * 300 + ".html"))
    assert [file.name for file in tmp_path.iterdir()] == ["file"]


def test_a_failed_writing_leaves_the_page_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tag("meta", {"name": "generator", "content": GENERATOR}).text
    path = tmp_path / "page.html"
    write_page(page, path)

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StorageError, match="No space left"):
        write_page(page + "2", path)
    assert path.read_text() == page
    assert [file.name for file in tmp_path.iterdir()] == ["page.html"]


# Colours. Simulation: Machado, Oliveira and Fernandes (2009), severity 1; distance: CIE 1976, D65; contrast: WCAG 2.
VISION = {
    "usual": np.eye(3),
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
LINES = ("blue", "vermillion", "green", "pink", "orange", "sky", "grey", "ink")


def schemes() -> dict[str, dict[str, str]]:
    light, dark = (ASSETS / "page.css").read_text().split("@media (prefers-color-scheme: dark)")
    return {
        name: dict(re.findall(r"--(\w+): (#[0-9a-f]{6});", part))
        for name, part in (("light", light), ("dark", dark.partition(".ink-blue")[0]))
    }


def linear(colour: str) -> np.ndarray:
    parts = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(light: np.ndarray) -> np.ndarray:
    ratios = XYZ @ np.clip(light, 0, 1) / XYZ.sum(axis=1)
    x, y, z = np.where(ratios > 0.008856, np.cbrt(ratios), 7.787 * ratios + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def contrast(one: str, other: str) -> float:
    low, high = sorted(float(XYZ[1] @ linear(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_light_and_dark_have_the_same_colours_by_name() -> None:
    found = schemes()
    assert found["light"].keys() == found["dark"].keys() >= set(LINES)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_from_the_page(scheme: str) -> None:
    colours = schemes()[scheme]
    for name in ("ink", "soft", "accent", "good", "bad", "warn"):
        for ground in ("page", "card", "tint"):
            assert contrast(colours[name], colours[ground]) >= 4.5, (name, ground)
    for name in LINES:
        assert contrast(colours[name], colours["card"]) >= 3, name


@pytest.mark.parametrize("vision", VISION)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_two_lines_look_alike_whatever_the_colour_vision(scheme: str, vision: str) -> None:
    colours = schemes()[scheme]
    seen = {name: lab(np.array(VISION[vision]) @ linear(colours[name])) for name in LINES}
    for one, other in combinations(LINES, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 15, f"{one} and {other}"
