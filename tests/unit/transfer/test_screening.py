"""Screening: which of many past runs take part, and that it depends on content, seed and results alone."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Mapping

import numpy as np
import pytest
from tests.helpers.source_runs import record_fits

from recollect import InputError
from recollect.numerics.arrays import KernelShape
from recollect.transfer import source_library
from recollect.transfer.screening import Choice, ScreenedSources, Screener, Screening, deciding_results
from recollect.transfer.source_fitting import FitTask
from recollect.transfer.source_library import SourceLibrary
from recollect.transfer.sources import SourceData, SourceFit

SHAPE = KernelShape(np.zeros(2, dtype=np.bool_), conditional=False)
LANDMARKS = np.random.default_rng(9).random((16, 2))
FIT = SourceFit(restarts=0)


def slope(number: int, sign: float = 1.0) -> SourceData:
    """Return a past run that decreases or increases along the first column, with a little of its own."""
    rng = np.random.default_rng(number)
    X = rng.random((8, 2))
    return SourceData(f"task {number}", X, sign * X[:, 0] + 0.1 * rng.random() * X[:, 1])


def made(data: list[SourceData], seed: int = 0, **settings: float) -> tuple[Screener, SourceLibrary]:
    library = SourceLibrary(data, shape=SHAPE, settings=FIT, cache=None)
    rng = np.random.default_rng(seed)
    return Screener(Screening(**settings), library, landmarks=LANDMARKS, rng=rng), library  # type: ignore[arg-type]


MIXED = [slope(i, sign=1.0 if i % 10 == 0 else -1.0) for i in range(60)]  # six of sixty increase
X = np.random.default_rng(5).random((16, 2))


def test_the_results_that_decide_come_in_powers_of_two_and_one_before_they_count() -> None:
    decided = {n: deciding_results(n) for n in (0, 1, 8, 9, 16, 17, 32, 33, 64, 65, 1000)}
    assert decided == {0: None, 1: 0, 8: 0, 9: 8, 16: 8, 17: 16, 32: 16, 33: 32, 64: 32, 65: 64, 1000: 512}


def test_half_agree_with_the_results_where_past_runs_do_together() -> None:
    agreeing = set(range(0, 60, 3)) | set(range(1, 60, 3))
    screener, _ = made([slope(i, sign=1.0 if i in agreeing else -1.0) for i in range(60)], limit=40)
    choice = screener.choose(X[:8], X[:8, 0])
    assert (choice.by_agreement, choice.results, choice.of, len(choice.rows)) == (20, 8, 60, 40)
    best = screener._agreeing(X[:8], X[:8, 0])[:20].tolist()
    assert set(best) <= agreeing & set(choice.rows.tolist())


def test_the_few_that_clearly_agree_are_found_where_all_others_contradict() -> None:
    screener, _ = made(MIXED, limit=12)
    choice = screener.choose(X[:8], X[:8, 0])
    few = set(range(0, 60, 10)) & set(choice.rows.tolist())
    assert 4 <= choice.by_agreement <= len(few)


def test_past_runs_that_agree_by_luck_alone_are_not_chosen_for_it() -> None:
    screener, _ = made([slope(i, sign=-1.0) for i in range(60)], limit=12)
    choice = screener.choose(X[:8], X[:8, 0])
    assert choice.by_agreement == 0
    assert len(choice.rows) == 12


def test_equal_results_say_nothing_about_agreement() -> None:
    screener, _ = made(MIXED, limit=12)
    assert screener.choose(X[:8], np.zeros(8)).by_agreement == 0


@pytest.mark.parametrize("odd", [0, 31, 59])
def test_a_function_that_is_unlike_all_others_is_chosen_for_diversity(odd: int) -> None:
    screener, _ = made([slope(i, sign=-1.0 if i == odd else 1.0) for i in range(60)], limit=12)
    choice = screener.choose(X[:0], np.empty(0))
    assert odd in choice.rows
    assert (choice.by_agreement, choice.by_diversity, len(choice.rows)) == (0, 3, 12)


def test_the_choice_depends_on_seed_and_content_and_not_on_what_was_chosen_before() -> None:
    one, two = made(MIXED, limit=12)[0], made(MIXED, limit=12)[0]
    one.choose(X[:0], np.empty(0))
    one.choose(X, X[:, 1])
    assert one.choose(X[:8], X[:8, 0]).rows.tolist() == two.choose(X[:8], X[:8, 0]).rows.tolist()
    other = made(MIXED, seed=1, limit=12)[0]
    assert other.first.rows.tolist() != one.first.rows.tolist()


def test_the_first_suggestion_takes_as_many_as_can_be_fitted_soon() -> None:
    assert len(made(MIXED, limit=40, first_seconds=1e-9)[0].first.rows) == 8
    assert len(made(MIXED, limit=40, first_seconds=1e9)[0].first.rows) == 40
    first, full = made(MIXED, limit=40, first_seconds=1e-9)[0], made(MIXED, limit=40)[0]
    assert set(first.first.rows) <= set(full.choose(X[:0], np.empty(0)).rows)


def test_the_choice_says_how_it_was_made() -> None:
    rows = np.arange(10)
    assert str(Choice(rows, 50, 5, 2, 8)) == (
        "10 of 50 past runs take part: 5 by agreement with the first 8 results, 2 by diversity, 3 at random"
    )
    assert str(Choice(rows, 50)) == "10 of 50 past runs take part: 10 at random"


@pytest.mark.parametrize("wrong", [{"limit": 3}, {"first_seconds": 0.0}, {"first_seconds": float("nan")}])
def test_impossible_settings_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError):
        Screening(**wrong)  # type: ignore[arg-type]


def screened(library: SourceLibrary, *, starts_small: bool = True) -> ScreenedSources:
    settings = Screening(limit=12, first_seconds=1e-9)
    screener = Screener(settings, library, landmarks=LANDMARKS, rng=np.random.default_rng(0))
    return ScreenedSources(screener, library, starts_small=starts_small)


def tasks(sources: ScreenedSources, n: int) -> tuple[str, ...]:
    chosen = sources.given(X[:n], X[:n, 0])[1].tasks
    sources.fit_behind(X[:n], X[:n, 0])
    return chosen


def test_what_takes_part_depends_on_the_results_and_not_on_those_given_before() -> None:
    library = SourceLibrary(MIXED, shape=SHAPE, settings=FIT, cache=None)
    shared, alone = screened(library), screened(library)
    for y in (X[:10, 0], -X[:10, 0], X[:10, 0]):
        assert shared.given(X[:10], y)[1].tasks == screened(library).given(X[:10], y)[1].tasks
    assert shared.given(X[:10], -X[:10, 0])[1].tasks != alone.given(X[:10], X[:10, 0])[1].tasks


def test_stages_are_the_same_with_fits_behind_and_without(monkeypatch: pytest.MonkeyPatch) -> None:
    behind = screened(SourceLibrary(MIXED, shape=SHAPE, settings=FIT, cache=None))
    seen = [tasks(behind, n) for n in range(12)]
    monkeypatch.setattr(source_library, "is_worker", lambda: True)  # which fits nothing behind
    alone = screened(SourceLibrary(MIXED, shape=SHAPE, settings=FIT, cache=None))
    assert [tasks(alone, n) for n in range(12)] == seen
    resumed = screened(SourceLibrary(MIXED, shape=SHAPE, settings=FIT, cache=None))
    assert tasks(resumed, 11) == seen[11]
    assert resumed.first[1].tasks == seen[0]
    assert [len(chosen) for chosen in seen] == [8] + 11 * [12]


def test_only_what_is_chosen_is_fitted_and_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fits = record_fits(monkeypatch)
    library = SourceLibrary(MIXED, shape=SHAPE, settings=FIT, cache=None)
    sources = screened(library)
    chosen = {task for n in range(12) for task in tasks(sources, n)}
    library.wait()
    assert len(fits) == len(chosen) < len(MIXED)


def test_a_failure_behind_is_raised_where_the_result_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    library = SourceLibrary(MIXED, shape=SHAPE, settings=FIT, cache=None)
    sources = screened(library)
    tasks(sources, 0)
    library.wait()
    failing = screened(library := SourceLibrary(MIXED, shape=SHAPE, settings=FIT, cache=None))
    failing.first  # noqa: B018 - fits the first stage

    def refuse(_: FitTask) -> bytes:
        raise ZeroDivisionError

    monkeypatch.setattr(FitTask, "key", refuse)
    library.do_behind(lambda: np.arange(3))
    library.wait()
    with pytest.raises(ZeroDivisionError):
        tasks(failing, 1)


def test_copies_work_while_fits_go_on_behind() -> None:
    begun, may_end = threading.Event(), threading.Event()

    class Slow:
        def get(self, _: object) -> dict[bytes, np.ndarray]:
            begun.set()
            may_end.wait(30)
            return {}

        def put(self, fits: Mapping[bytes, np.ndarray]) -> None: ...

    library = SourceLibrary(MIXED, shape=SHAPE, settings=FIT, cache=None)
    library._fits._cache = Slow()
    library.do_behind(lambda: np.arange(3))
    assert begun.wait(30)
    library._fits._cache = None
    copies = [pickle.loads(pickle.dumps(library)), copy.deepcopy(library)]
    assert [copied.sources(np.arange(2)).tasks for copied in copies] == [("task 0", "task 1")] * 2
    may_end.set()
    library.wait()
