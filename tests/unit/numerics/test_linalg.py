"""Cholesky factors, appended rows, and the jitter ladder."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.errors import InputError, NumericalError
from recollect.numerics.linalg import (
    append_cholesky,
    cholesky,
    inv_posdef,
    solve_lower,
    solve_posdef,
)


def spd(n: int, seed: int = 0) -> np.ndarray:
    M = np.random.default_rng(seed).standard_normal((n, n + 3))
    return M @ M.T / n


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [1, 2, 7, 60])
def test_cholesky_agrees_with_numpy_and_leaves_its_argument_alone(n: int, order: str) -> None:
    A = np.array(spd(n), order=order)
    before = A.copy()
    L, jitter = cholesky(A, 1.0)
    assert jitter == 0.0
    np.testing.assert_allclose(L, np.linalg.cholesky(before), rtol=1e-12, atol=1e-13)
    np.testing.assert_array_equal(A, before)
    np.testing.assert_array_equal(L, np.tril(L))


@pytest.mark.parametrize(("lowest", "expected"), [(-5e-13, 1e-12), (-5e-10, 1e-9), (-5e-7, 1e-6)])
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_cholesky_adds_the_first_jitter_of_the_ladder_that_is_enough(
    lowest: float, expected: float, scale: float
) -> None:
    L, jitter = cholesky(scale * np.diag([1.0, 1.0, lowest]), scale)
    assert jitter == pytest.approx(expected * scale, rel=1e-12)
    np.testing.assert_allclose(L @ L.T, scale * np.diag([1.0, 1.0, lowest]) + jitter * np.eye(3), rtol=1e-9)


def test_cholesky_gives_up_with_shape_diagonal_and_eigenvalues_in_the_message() -> None:
    with pytest.raises(NumericalError, match=r"shape \(2, 2\), smallest diagonal entry 1, eigenvalues from -1 to 3"):
        cholesky(np.array([[1.0, 2.0], [2.0, 1.0]]), 1.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize("place", [(0, 0), (2, 1)])
def test_cholesky_refuses_entries_that_are_not_finite(bad: float, place: tuple[int, int]) -> None:
    A = spd(3)
    A[place] = A[place[::-1]] = bad
    with pytest.raises(NumericalError, match="not finite"):
        cholesky(A, 1.0)


@settings(deadline=None, max_examples=40)
@given(n=st.integers(1, 20), k=st.integers(1, 6), seed=st.integers(0, 10_000))
def test_appending_rows_equals_factorising_everything(n: int, k: int, seed: int) -> None:
    A = spd(n + k, seed) + 0.1 * np.eye(n + k)
    L, _ = cholesky(A[:n, :n].copy(), 1.0)
    joined, _ = append_cholesky(L, A[n:, :n], A[n:, n:])
    np.testing.assert_allclose(joined, np.linalg.cholesky(A), rtol=0, atol=1e-10)


def test_appending_a_repeated_row_climbs_the_ladder() -> None:
    A = np.ones((1, 1))
    joined, jitter = append_cholesky(A, np.ones((1, 1)), np.full((1, 1), 1.0 - 1e-13))
    assert jitter == pytest.approx(1e-12, rel=1e-6)
    assert joined[1, 1] > 0.0


def test_appending_refuses_a_block_of_the_wrong_shape() -> None:
    with pytest.raises(InputError, match=r"expected B \(2, 3\)"):
        append_cholesky(np.eye(3), np.zeros((3, 2)), np.eye(2))


@pytest.mark.parametrize("columns", [None, 0, 1, 5])
def test_solves_agree_with_dense_inverses(columns: int | None) -> None:
    A = spd(8) + np.eye(8)
    L, _ = cholesky(A, 1.0)
    B = np.random.default_rng(1).standard_normal(8 if columns is None else (8, columns))
    before = B.copy()
    np.testing.assert_allclose(solve_lower(L, B), np.linalg.inv(L) @ B, atol=1e-12)
    np.testing.assert_allclose(solve_posdef(L, B), np.linalg.inv(A) @ B, atol=1e-12)
    np.testing.assert_array_equal(B, before)


def test_the_inverse_is_right_and_exactly_symmetric() -> None:
    A = spd(30) + 0.1 * np.eye(30)
    inverse = inv_posdef(cholesky(A, 1.0)[0])
    np.testing.assert_allclose(inverse, np.linalg.inv(A), rtol=1e-9, atol=1e-11)
    np.testing.assert_array_equal(inverse, inverse.T)


def test_a_singular_factor_is_refused() -> None:
    L = np.diag([1.0, 0.0])
    with pytest.raises(NumericalError, match="singular"):
        solve_lower(L, np.ones(2))
    with pytest.raises(NumericalError, match="singular"):
        inv_posdef(L)
