"""Progress bars of the commands: what is on standard error in the end."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from recollect.cli import progress
from recollect.cli.progress import Shown, bars


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")


def shown(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Lines on standard error; standard output must have none."""
    out, err = capsys.readouterr()
    assert out == ""
    return [line.rstrip() for line in err.splitlines() if line.strip()]


def test_nothing_is_shown_before_something_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with bars("count", "elapsed"):
        pass
    assert capsys.readouterr() == ("", "")


def test_everything_told_of_has_a_bar_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    with bars("count") as tell:
        tell("first", 1, 4)
        tell("second", 2, 3)
        tell("first", 4, 4)
    first, second = shown(capsys)
    assert first.startswith("first ")
    assert first.endswith(" 4/4")
    assert second.startswith("second ")
    assert second.endswith(" 2/3")


def test_a_single_bar_takes_the_name_of_what_was_told_last(capsys: pytest.CaptureFixture[str]) -> None:
    with bars("count", one=True) as tell:
        tell("measuring", 0, 7)
        tell("fit gp 5", 1, 7)
        tell("fit gp 10", 2, 7)
    (line,) = shown(capsys)
    assert line.startswith("fit gp 10 ")
    assert line.endswith(" 2/7")


def test_a_total_that_becomes_known_later_is_taken_over(capsys: pytest.CaptureFixture[str]) -> None:
    with bars("count") as tell:
        tell("own-svm", 0, None)
        tell("own-svm", 3, 12)
    (line,) = shown(capsys)
    assert line.endswith(" 3/12")


@pytest.mark.parametrize(
    ("column", "expected"),
    [("bytes", "1.5/3.0 MB"), ("count", "1500000/3000000"), ("rate", " a minute"), ("elapsed", "0:00:0")],
)
def test_the_columns_asked_for_are_shown_and_no_other(
    capsys: pytest.CaptureFixture[str], column: Shown, expected: str
) -> None:
    with bars(column) as tell:
        tell("data.csv", 1_500_000, 3_000_000)
    (line,) = shown(capsys)
    assert expected in line
    assert [other for other in ("MB", "/3000000", " a minute", "0:00:0") if other in line] == [
        {"bytes": "MB", "count": "/3000000", "rate": " a minute", "elapsed": "0:00:0"}[column]
    ]


def test_where_there_is_no_terminal_a_line_is_written_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = [0.0]
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: seconds[0]))
    with bars("count") as tell:
        for done in range(0, 151, 10):
            seconds[0] = float(done)
            tell("first", done, 200)
            tell("second", 0, 1)
    assert [line.split()[0] + " " + line.split()[-1] for line in shown(capsys)] == [
        "first 60/200",
        "first 120/200",
        "first 150/200",  # and when it ends, all of them
        "second 0/1",
    ]


def test_an_error_ends_the_bars_and_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    def stopped() -> None:
        with bars("count") as tell:
            tell("first", 1, 2)
            raise ValueError("on the way")

    with pytest.raises(ValueError, match="on the way"):
        stopped()
    (line,) = shown(capsys)
    assert line.endswith(" 1/2")
