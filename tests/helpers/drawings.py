"""What is asked of the figures of every page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from recollect.report.figure import Figure
from recollect.report.page import Page

CSS = (Path(__file__).parents[2] / "src/recollect/report/assets/page.css").read_text()


def figures_of(page: Page) -> Iterator[Figure]:
    yield from (part for section in page.sections for part in section.parts if isinstance(part, Figure))


def check_caption(figure: Figure) -> None:
    """The caption is one sentence: what else there is to say stands behind "More"."""
    assert figure.caption.endswith(".")
    assert re.search(r"[.!?] +[A-Z]", figure.caption) is None, figure.caption


def check_drawable(figure: Figure) -> None:
    """Plotly accepts the figure, its colours are there by day and night, and its keys switch what there is."""
    check_caption(figure)
    graph_objects = pytest.importorskip("plotly.graph_objects", reason="pages embed plotly's script")
    graph_objects.Figure(data=_with_colours(figure.traces), layout=_with_colours(figure.layout))
    for name in re.findall(r"@(\w+)", str((figure.traces, figure.layout))):
        assert len(re.findall(rf"--{name}: #", CSS)) == 2, name
    for key in figure.keys:
        assert not key.colour or f".ink-{key.colour} " in CSS
        assert all(place < len(figure.traces) for place in key.traces)


def _with_colours(value: Any, key: str = "") -> Any:
    """The data of a figure with a colour for each name of one, as plotly's own check wants it."""
    if isinstance(value, dict):
        return {name: _with_colours(inner, name) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_with_colours(inner, key) for inner in value]
    return "#123456" if "color" in key and isinstance(value, str) and value.startswith("@") else value
