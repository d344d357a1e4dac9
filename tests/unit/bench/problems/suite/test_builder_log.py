"""The log of a build: records are read back, and other content is refused with line and reason."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from recollect.bench.problems.suite.builder import (
    BUILD_LOG,
    BuildRecord,
    open_build_log,
    wall_seconds,
)
from recollect.errors import InputError

SETTINGS = {"format": 1, "versions": {"numpy": "2.0"}}


def record(dataset: str, config: int, error: float = 0.25, **changes: Any) -> BuildRecord:
    fields: dict[str, Any] = {"session": 1, "elapsed": 1.5, "status": "ok", "seconds": 0.125} | changes
    return BuildRecord(dataset=dataset, config=config, error=error, **fields)


def test_a_build_log_returns_appended_records(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "own-svm.log.csv"
    assert open_build_log(path, SETTINGS) == []
    some = [record("iris", 0, 0.12345), record("tic-tac-toe", 7, 0.5, status="failed", session=2)]
    BUILD_LOG.append(path, *some[:1])
    BUILD_LOG.append(path, *some[1:])
    assert open_build_log(path, SETTINGS) == some


def test_a_line_that_was_cut_off_is_dropped_and_the_build_resumes(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    open_build_log(path, SETTINGS)
    BUILD_LOG.append(path, record("iris", 0), record("iris", 1))
    path.write_bytes(path.read_bytes()[:-4])
    assert open_build_log(path, SETTINGS) == [record("iris", 0)]
    BUILD_LOG.append(path, record("iris", 2))
    assert open_build_log(path, SETTINGS) == [record("iris", 0), record("iris", 2)]


def test_of_repeated_records_the_first_counts(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    open_build_log(path, SETTINGS)
    BUILD_LOG.append(path, record("iris", 0, 0.1), record("iris", 0, 0.2))
    assert open_build_log(path, SETTINGS) == [record("iris", 0, 0.1)]


def test_results_of_other_versions_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    open_build_log(path, SETTINGS)
    with pytest.raises(InputError, match=r"another versions: versions is .*2\.0.* there and .*3\.0.* here"):
        open_build_log(path, {**SETTINGS, "versions": {"numpy": "3.0"}})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("1,1.0,iris,0,0.5,ok", "line 2: expected 7 cells"),
        ("1,1.0,iris,0,1.5,ok,0.1", "between 0 and 1"),
        ("1,1.0,iris,0,nan,ok,0.1", "between 0 and 1"),
        ("1,1.0,iris,0,0.5,fine,0.1", "expected a status"),
        ("1,1.0,iris,x,0.5,ok,0.1", "line 2"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = tmp_path / "log.csv"
    open_build_log(path, SETTINGS)
    path.write_text(path.read_text() + line + "\n")
    with pytest.raises(InputError, match=reason):
        open_build_log(path, SETTINGS)


@pytest.mark.parametrize("content", ["", "nonsense\n", "[1]\n"])
def test_a_file_that_is_not_a_build_log_is_refused(tmp_path: Path, content: str) -> None:
    path = tmp_path / "log.csv"
    path.write_text(content)
    with pytest.raises(InputError, match="line 1: expected the settings"):
        open_build_log(path, SETTINGS)


def test_the_time_of_all_sessions_is_the_sum_of_their_last_results() -> None:
    some = [record("a", 0, elapsed=2.0), record("a", 1, elapsed=5.0), record("a", 2, session=2, elapsed=3.0)]
    assert wall_seconds(some) == 8.0
