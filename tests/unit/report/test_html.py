"""Elements, names and tables of a page: whatever text comes in, it comes out as text."""

from __future__ import annotations

import json
import unicodedata
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.errors import InputError
from recollect.report.formatting import END, ISOLATE, join_names, printable, shortened
from recollect.report.html import INVALID, REPLACEMENT, Html, data_block, joined, tag, verbatim
from recollect.report.table import Cell, Column, Table, number_cell, scrolling_table, table_html, text_cell

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'; alert(1); '",
    "</script><script>alert(1)</script>",
    "<!-- ]]> &lt; &amp;",
    "${alert(1)} %{x} {{7*7}}",
    "\u202egpj.exe",
    "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}",
    "line\nbreak\x00null\u2028end",
    "x" * 5000,
)
TEXTS = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_characters="\r"), max_size=30))
PLAIN = st.one_of(st.none(), st.booleans(), st.integers(), TEXTS)
JSON = st.one_of(PLAIN, st.lists(PLAIN, max_size=4), st.dictionaries(TEXTS, PLAIN, max_size=4))


class Reader(HTMLParser):
    """What a parser that knows nothing of recollect sees: elements, their attributes, and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@given(TEXTS)
def test_text_stays_text_in_elements_and_in_attributes(text: str) -> None:
    seen = Reader(tag("p", {"title": text}, text, tag("b", {}, text)).text)
    expected = INVALID.sub(REPLACEMENT, text)
    assert seen.elements == [("p", {"title": expected}), ("b", {})]
    assert "".join(seen.texts) == 2 * expected


@given(JSON)
def test_data_come_back_as_they_were_and_cannot_end_their_block(value: Any) -> None:
    block = data_block(value, {"class": "spec"}).text
    assert block.startswith('<script type="application/json" class="spec">')
    content = block.partition(">")[2].removesuffix("</script>")
    assert not set(content) & set("<>&\u2028\u2029")
    assert json.loads(content) == json.loads(INVALID.sub(REPLACEMENT, json.dumps(value, ensure_ascii=False)))


def test_a_number_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        data_block([float("nan")])


@pytest.mark.parametrize("name", ["onclick", "OnError", "style", "src", "srcdoc", "a b", "x=y", ""])
def test_attributes_that_load_or_run_something_are_refused(name: str) -> None:
    with pytest.raises(InputError, match="loads and runs nothing"):
        tag("p", {name: "x"})


@pytest.mark.parametrize(
    "link", ["javascript:alert(1)", "https://example.org", "//example.org", "data:text/html,x", ""]
)
def test_links_to_elsewhere_are_refused(link: str) -> None:
    with pytest.raises(InputError, match="expected a link into the page"):
        tag("a", {"href": link})


def test_links_into_the_page_and_to_the_same_server_are_kept() -> None:
    assert tag("a", {"href": "#main"}, "x").text == '<a href="#main">x</a>'
    assert tag("a", {"href": "/runs?n=1&m=2"}, "x").text == '<a href="/runs?n=1&amp;m=2">x</a>'


def test_attributes_may_have_no_value_or_be_left_out() -> None:
    assert tag("meta", {"hidden": True, "id": None, "lang": False, "tabindex": 0}).text == '<meta hidden tabindex="0">'


def test_only_html_is_taken_as_it_is() -> None:
    assert joined(["<b>", Html("<b>")]).text == "&lt;b&gt;<b>"


@pytest.mark.parametrize("content", ["x</script>", "x</SCRIPT >", "<!-- x"])
def test_a_script_that_would_end_its_element_is_refused(content: str) -> None:
    with pytest.raises(InputError, match="does not end its element"):
        verbatim("script", content)


@given(TEXTS, st.integers(2, 130))
def test_a_name_is_short_and_cannot_rearrange_the_line(text: str, most: int) -> None:
    shown = printable(text, most)
    inside = shown.removeprefix(ISOLATE).removesuffix(END)
    assert 0 < len(inside) <= max(most, len("(no name)"))
    controls = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not {unicodedata.bidirectional(sign) for sign in inside} & controls
    assert not {unicodedata.category(sign) for sign in inside} & {"Cc", "Cs", "Zl", "Zp"}
    assert shown.startswith(ISOLATE) == shown.endswith(END)


def test_names_are_isolated_only_if_they_are_written_from_right_to_left() -> None:
    assert printable("rgpe-taf") == "rgpe-taf"
    assert printable("\N{HEBREW LETTER ALEF}1") == f"{ISOLATE}\N{HEBREW LETTER ALEF}1{END}"
    assert printable("") == "(no name)"


@pytest.mark.parametrize(
    ("text", "most", "short"),
    [("abcdef", 6, "abcdef"), ("abcdefg", 6, "abc…fg"), ("abcdefg", 5, "ab…fg"), ("abc", 2, "a…")],
)
def test_a_long_name_keeps_its_beginning_and_its_end(text: str, most: int, short: str) -> None:
    assert shortened(text, most) == short


def test_lists_read_as_in_a_sentence() -> None:
    assert join_names(["a"]) == "a"
    assert join_names(["a", "b"]) == "a and b"
    assert join_names(["a", "b", "c"], most=2) == "a, b and c"
    assert join_names(["a", "b", "c", "d"], most=2) == "a, b and 2 more"


def small_table() -> Table:
    columns = (Column("method", numeric=False), Column("regret", hint="in %"))
    rows = ((text_cell("<b>"), number_cell(0.5)), (text_cell("gp"), number_cell(None)))
    return Table("Some <numbers>", columns, (rows,), ("A note & more.",))


def test_headings_hold_buttons_and_say_how_the_table_is_sorted() -> None:
    seen = Reader(table_html(small_table(), "t1").text)
    assert [a["aria-sort"] for e, a in seen.elements if e == "th" and a["scope"] == "col"] == ["none", "none"]
    buttons = [attributes for element, attributes in seen.elements if element == "button"]
    assert buttons == [{"type": "button"}, {"type": "button", "title": "in %"}]
    assert "Some <numbers>" in seen.texts
    assert "A note & more." in seen.texts


def test_the_frame_of_a_table_can_be_reached_and_scrolled_with_the_keyboard() -> None:
    element, attributes = Reader(scrolling_table(small_table()).text).elements[0]
    assert element == "div"
    assert attributes["tabindex"] == "0"
    assert attributes["role"] == "region"
    assert attributes["aria-label"] == "Table: Some <numbers>"


def test_cells_carry_what_they_are_sorted_by_and_empty_ones_nothing() -> None:
    elements = Reader(scrolling_table(small_table()).text).elements
    cells = [attributes.get("data-order") for element, attributes in elements if element in ("td", "th")]
    assert cells == [None, None, "<b>", "0.5", "gp", None]


def test_rows_of_another_length_are_refused() -> None:
    with pytest.raises(InputError, match="expected rows of 1 cells, got one of 2"):
        Table("t", (Column("a"),), (((number_cell(1), number_cell(2)),),))


@pytest.mark.parametrize(
    ("value", "form", "shown"),
    [(1.005, ".1f", "1.0"), (-0.001, ".2f", "0.00"), (-1.5, ".2f", "-1.50"), (12345.0, ",.0f", "12,345")],
)
def test_numbers_are_written_in_their_form_and_nothing_is_never_negative(value: float, form: str, shown: str) -> None:
    assert number_cell(value, form) == Cell(shown, value)


def test_no_number_is_an_empty_cell() -> None:
    assert number_cell(float("nan")) == number_cell(None) == Cell("–", None)
