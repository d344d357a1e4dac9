"""BLAS on one thread inside the context, as before outside."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest
import scipy.linalg  # noqa: F401
from threadpoolctl import ThreadpoolController

from recollect.numerics.linalg import single_threaded

BLAS = ThreadpoolController().select(user_api="blas")


def counts() -> list[int]:
    return [library.num_threads for library in BLAS.lib_controllers]


@pytest.fixture
def two_threads() -> Iterator[list[int]]:
    with BLAS.limit(limits=2):
        if set(counts()) != {2}:
            pytest.skip("this BLAS cannot use two threads")
        yield counts()


def test_one_thread_inside_and_restored_outside(two_threads: list[int]) -> None:
    with single_threaded():
        assert set(counts()) == {1}
    assert counts() == two_threads


def test_nested_use_keeps_the_limit_until_the_outermost_exit(two_threads: list[int]) -> None:
    with single_threaded():
        with single_threaded():
            pass
        assert set(counts()) == {1}
    assert counts() == two_threads


def test_the_limit_is_lifted_when_the_body_raises(two_threads: list[int]) -> None:
    with pytest.raises(ValueError, match="on purpose"), single_threaded():
        raise ValueError("on purpose")
    assert counts() == two_threads


class Visitor(threading.Thread):
    """Another thread that stays inside until told to leave."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.inside, self.leave = threading.Event(), threading.Event()

    def run(self) -> None:
        with single_threaded():
            self.inside.set()
            self.leave.wait(10)


def test_a_visitor_who_comes_and_goes_does_not_lift_the_limit(two_threads: list[int]) -> None:
    visitor = Visitor()
    with single_threaded():
        visitor.start()
        assert visitor.inside.wait(10)
        visitor.leave.set()
        visitor.join()
        assert set(counts()) == {1}
    assert counts() == two_threads


def test_a_visitor_who_stays_longer_does_not_leave_the_limit_behind(two_threads: list[int]) -> None:
    visitor = Visitor()
    with single_threaded():
        visitor.start()
        assert visitor.inside.wait(10)
    visitor.leave.set()
    visitor.join()
    assert counts() == two_threads
    with single_threaded():
        assert set(counts()) == {1}
    assert counts() == two_threads


def test_entering_costs_well_under_a_tenth_of_a_millisecond() -> None:
    seconds = []
    for _ in range(200):
        begin = time.perf_counter()
        with single_threaded():
            pass
        seconds.append(time.perf_counter() - begin)
    assert np.min(seconds) < 1e-4


def test_any_thread_is_limited_after_another_one_was() -> None:
    if min(counts()) < 2:
        pytest.skip("this BLAS does not use two threads here")
    before = counts()
    with single_threaded():
        pass
    visitor = Visitor()
    visitor.start()
    visitor.inside.wait(10)
    seen = counts()
    visitor.leave.set()
    visitor.join(10)
    assert set(seen) == {1}
    assert counts() == before
