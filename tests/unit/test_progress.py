"""Progress bars: what is on standard error in the end."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from recollect import progress
from recollect.progress import Column, progress_bars


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Lines on standard error; standard output must have none."""
    out, err = capsys.readouterr()
    assert out == ""
    return [line.rstrip() for line in err.splitlines() if line.strip()]


def test_nothing_is_shown_before_the_first_update(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars("count", "elapsed"):
        pass
    assert capsys.readouterr() == ("", "")


def test_every_name_has_its_own_bar(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars("count") as update:
        update("first", 1, 4)
        update("second", 2, 3)
        update("first", 4, 4)
    first, second = shown(capsys)
    assert first.startswith("first ")
    assert first.endswith(" 4/4")
    assert second.startswith("second ")
    assert second.endswith(" 2/3")


def test_a_single_bar_takes_the_name_of_the_latest_update(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars("count", single=True) as update:
        update("measuring", 0, 7)
        update("fit gp 5", 1, 7)
        update("fit gp 10", 2, 7)
    (line,) = shown(capsys)
    assert line.startswith("fit gp 10 ")
    assert line.endswith(" 2/7")


def test_a_total_that_becomes_known_later_is_taken_over(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars("count") as update:
        update("own-svm", 0, None)
        update("own-svm", 3, 12)
    (line,) = shown(capsys)
    assert line.endswith(" 3/12")


@pytest.mark.parametrize(
    ("column", "expected"),
    [("bytes", "1.5/3.0 MB"), ("count", "1500000/3000000"), ("rate", " per minute"), ("elapsed", "0:00:0")],
)
def test_the_columns_asked_for_are_shown_and_no_other(
    capsys: pytest.CaptureFixture[str], column: Column, expected: str
) -> None:
    with progress_bars(column) as update:
        update("data.csv", 1_500_000, 3_000_000)
    (line,) = shown(capsys)
    assert expected in line
    assert [other for other in ("MB", "/3000000", " per minute", "0:00:0") if other in line] == [
        {"bytes": "MB", "count": "/3000000", "rate": " per minute", "elapsed": "0:00:0"}[column]
    ]


def test_where_there_is_no_terminal_a_line_is_written_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    with progress_bars("count") as update:
        for done in range(0, 151, 10):
            seconds[0] = float(done)
            update("first", done, 200)
            update("second", 0, 1)
    assert [line.split()[0] + " " + line.split()[-1] for line in shown(capsys)] == [
        "first 60/200",
        "first 120/200",
        "first 150/200",  # and when it ends, all of them
        "second 0/1",
    ]


def test_an_error_ends_the_bars_and_is_raised(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> None:
        with progress_bars("count") as update:
            update("first", 1, 2)
            raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        stopped()
    (line,) = shown(capsys)
    assert line.endswith(" 1/2")


@pytest.mark.parametrize("terminal", [False, True])
def test_an_interactive_bar_is_shown_only_at_a_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    monkeypatch.setattr(progress, "is_interactive", lambda: terminal)
    with progress_bars("note", interactive=True) as update:
        update("task", 1, 2, note="best [0.5]")
    lines = shown(capsys)
    assert [line.endswith("best [0.5]") for line in lines] == [True] * terminal


def test_a_notebook_without_ipywidgets_gets_lines_and_no_warning(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    with progress_bars("note") as update:
        update("task", 1, 2, note="best 0.5")
    assert [line.endswith("best 0.5") for line in shown(capsys)] == [True]


def test_where_nobody_watches_rich_is_not_even_imported() -> None:
    display = progress._Display((), single=True, interactive=True, transient=True)
    display.update("task", 1, 2)
    assert display.progress is None


def test_bars_inside_others_are_not_shown_and_those_after_them_are(capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bars("count") as update:
        update("trials", 1, 4)
        with progress_bars("count") as inner:
            inner("fits", 2, 3)
        update("trials", 2, 4)
    with progress_bars("count") as later:
        later("fits", 3, 3)
    trials, fits = shown(capsys)
    assert trials.endswith(" 2/4")
    assert fits.endswith(" 3/3")
