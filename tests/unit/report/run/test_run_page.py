"""The page of one run: any run has one, and names from outside are only text."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.helpers.drawings import check_drawable, figures_of
from tests.helpers.example_runs import (
    EDGES,
    MOST_BYTES,
    hostile,
    many,
)
from tests.helpers.stored_runs import put, store_example

from recollect import Memory
from recollect.report.page import render
from recollect.report.run.run_page import page_of_run, run_page
from recollect.tuning.result import Result


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Result]:
    return store_example(tmp_path_factory.mktemp("memory") / "tuning.db")


@pytest.mark.parametrize("edge", EDGES)
def test_any_run_has_a_page_of_figures_that_plotly_can_draw(edge: str) -> None:
    page = page_of_run(EDGES[edge]())
    for figure in figures_of(page):
        check_drawable(figure)
        assert figure.question.endswith("?")
        assert figure.caption.endswith(".")
        assert "nan" not in figure.caption
        assert figure.table.blocks[0]
    assert len(render(page).encode()) < MOST_BYTES
    questions = [figure.question for figure in figures_of(page)]
    assert len(set(questions)) == len(questions)


@pytest.mark.parametrize(
    ("edge", "figures"),
    [("usual", 8), ("no past runs", 7), ("no trials", 0), ("one trial that failed", 1), ("all failed", 2)],
)
def test_a_figure_is_left_out_where_there_is_nothing_to_draw(edge: str, figures: int) -> None:
    assert len(list(figures_of(page_of_run(EDGES[edge]())))) == figures


def test_hostile_names_are_text() -> None:
    text = render(page_of_run(hostile()))
    body = text[: text.rindex("<script>")]
    assert "<script>alert" not in body
    assert "<img" not in body
    assert "<a href='https" not in body
    assert "&lt;script&gt;alert(1)" in body


def test_a_page_of_a_thousand_trials_and_a_hundred_past_runs_stays_small() -> None:
    assert len(render(page_of_run(many())).encode()) < MOST_BYTES


def test_a_task_without_a_finished_trial_has_a_page(tmp_path: Path) -> None:
    with Memory(tmp_path / "m.db") as memory:
        put(memory, "earlier", minutes=[1, 2, 3])
        put(memory, "begun", minutes=[], settings={"method": "rgpe-taf", "trials": 5, "seed": 1})
        assert "No trial has ended yet." in render(run_page(memory, "p", "begun"))


def test_a_result_writes_its_page(stored: tuple[Path, Result], tmp_path: Path) -> None:
    stored[1].report(tmp_path / "folder" / "report.html")
    text = (tmp_path / "folder" / "report.html").read_text(encoding="utf-8")
    assert "Tuning report: last" in text
    for name in ("given", "one", "two", "three"):
        assert f">{name}</th>" in text
