"""Processes that are ended when a unit takes too long."""

from __future__ import annotations

import math
import multiprocessing
import os
import time

import pytest

from recollect.bench.suite.pool import run_limited
from recollect.errors import InputError, RecollectError


def left_over(before: list[multiprocessing.process.BaseProcess]) -> list[multiprocessing.process.BaseProcess]:
    """Processes that were not there before: others in this interpreter may keep workers of their own."""
    return [process for process in multiprocessing.active_children() if process not in before]


def test_every_unit_is_answered_once_whatever_the_number_of_processes() -> None:
    answers = {jobs: dict(run_limited(math.factorial, range(7), jobs=jobs, limit=60)) for jobs in (1, 3)}
    assert answers[1] == answers[3] == {n: math.factorial(n) for n in range(7)}


def test_a_unit_that_takes_too_long_is_ended_and_the_others_are_answered() -> None:
    begun, before = time.monotonic(), multiprocessing.active_children()
    long = "__import__('time').sleep(300)"
    # the limit includes the start of a process, which takes a while on a busy machine
    found = list(run_limited(eval, ["1 + 1", long, "2 + 2"], jobs=1, limit=10.0))
    assert found == [("1 + 1", 2), (long, None), ("2 + 2", 4)]
    assert time.monotonic() - begun < 60
    assert not left_over(before)


def test_a_unit_without_an_answer_in_time_yields_none() -> None:
    assert list(run_limited(math.factorial, [5], jobs=1, limit=1e-6)) == [(5, None)]


def test_what_the_function_raises_is_raised_and_no_process_is_left() -> None:
    before = multiprocessing.active_children()
    with pytest.raises(ValueError, match=r"math domain error|nonnegative"):
        list(run_limited(math.sqrt, [4.0, -1.0], jobs=2, limit=60))
    assert not left_over(before)


def test_a_process_that_dies_is_named_with_its_unit() -> None:
    with pytest.raises(RecollectError, match="worked on 3 ended with code 3"):
        list(run_limited(os._exit, [3], jobs=1, limit=60))


def test_leaving_the_loop_ends_the_processes() -> None:
    before = multiprocessing.active_children()
    for _ in run_limited(math.factorial, range(100), jobs=2, limit=60):
        break
    assert not left_over(before)


def test_no_unit_is_no_work() -> None:
    assert list(run_limited(math.factorial, [], jobs=2, limit=60)) == []


@pytest.mark.parametrize(("jobs", "limit"), [(0, 1.0), (1, 0.0), (1, math.nan)])
def test_senseless_settings_are_refused(jobs: int, limit: float) -> None:
    with pytest.raises(InputError, match="expected"):
        list(run_limited(math.factorial, [1], jobs=jobs, limit=limit))
