"""Past runs that are fitted in a thread behind."""

from __future__ import annotations

import copy

import numpy as np

from recollect.numerics.arrays import KernelShape
from recollect.transfer.source_library import SourceLibrary
from recollect.transfer.sources import SourceData, SourceFit

SHAPE = KernelShape(np.array([False, False]), conditional=False)


def library(count: int) -> SourceLibrary:
    rng = np.random.default_rng(0)
    data = [SourceData(f"task {i}", X := rng.random((5, 2)), X.sum(axis=1) + i) for i in range(count)]
    return SourceLibrary(data, shape=SHAPE, settings=SourceFit(restarts=0), cache=None)


def test_what_was_fitted_behind_is_what_would_be_fitted_now() -> None:
    behind, now = library(6), library(6)
    behind.do_behind(lambda: np.arange(6))
    behind.wait()
    np.testing.assert_array_equal(behind.sources(np.arange(6)).theta, now.sources(np.arange(6)).theta)


def test_stopping_ends_the_thread_before_all_is_fitted_and_the_rest_is_fitted_when_needed() -> None:
    runs = library(40)

    def choose() -> np.ndarray:
        runs._stopped = True  # as if the program ended now
        return np.arange(40)

    runs.do_behind(choose)
    thread = runs._thread
    runs.stop()
    assert thread is not None
    assert not thread.is_alive()
    assert len(runs._fits._known) < 40
    assert len(runs.sources(np.arange(40))) == 40


def test_a_copy_of_a_stopped_library_works_behind_again() -> None:
    runs = library(3)
    runs.stop()
    again = copy.copy(runs)
    again.do_behind(lambda: np.arange(3))
    again.wait()
    assert len(again._fits._known) == 3
