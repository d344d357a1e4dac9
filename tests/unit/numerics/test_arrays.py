"""When two encoded points are the same."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.numerics.arrays import row_key, row_keys

ROWS = np.array([[0.0, np.nan], [1.0, 0.5], [0.25, 1.0]])


def test_nan_is_nan_and_minus_zero_is_zero() -> None:
    first, second, third = row_keys(np.array([[0.0, np.nan], [-0.0, -np.nan], [1.0, 0.5]]))
    assert first == second != third


def test_the_smallest_difference_makes_another_point() -> None:
    assert row_key(np.array([0.5, 0.1])) != row_key(np.array([0.5, np.nextafter(0.1, 1.0)]))


def test_inactive_is_no_active_code() -> None:
    codes = row_keys(np.array([[np.nan], [0.0], [0.5], [1.0]]))
    assert len(set(codes)) == 4


@pytest.mark.parametrize(
    "X",
    [ROWS, np.asfortranarray(ROWS), np.repeat(ROWS, 2, axis=0)[::2], np.repeat(ROWS, 3, axis=1)[:, ::3]],
    ids=["plain", "columns first", "every second row", "every third column"],
)
def test_many_keys_are_the_keys_of_each_however_the_points_lie_in_memory(X: np.ndarray) -> None:
    assert row_keys(X) == [row_key(x) for x in ROWS]


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.int8])
def test_numbers_of_another_kind_have_the_keys_of_floats(kind: type[np.generic]) -> None:
    X = np.array([[0, 1], [1, 1], [1, 0]])
    assert row_keys(X.astype(kind)) == row_keys(X.astype(np.float64))


def test_no_points_have_no_keys() -> None:
    assert row_keys(np.empty((0, 3))) == []
