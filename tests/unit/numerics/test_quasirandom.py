"""Latin hypercubes and Sobol points, against SciPy and their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from recollect.errors import InputError
from recollect.numerics import quasirandom
from recollect.numerics.quasirandom import latin_hypercube, sobol, sobol_normals


def rng() -> np.random.Generator:
    return np.random.default_rng(7)


@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 5), (10, 3), (1000, 4)])
def test_latin_hypercube_has_one_point_in_every_stratum(n: int, d: int) -> None:
    X = latin_hypercube(n, d, rng())
    assert X.shape == (n, d)
    np.testing.assert_array_equal(np.sort(np.floor(X * n), axis=0), np.tile(np.arange(n)[:, None], (1, d)))


def test_latin_hypercube_permutes_columns_independently() -> None:
    strata = np.floor(latin_hypercube(200, 3, rng()) * 200)
    assert np.abs(np.corrcoef(strata.T) - np.eye(3)).max() < 0.25


def test_latin_hypercube_fills_its_strata_uniformly() -> None:
    within = (latin_hypercube(500, 4, rng()) * 500) % 1.0
    assert stats.kstest(within.ravel(), "uniform").pvalue > 0.01


def test_latin_hypercube_never_reaches_the_next_stratum() -> None:
    class Topmost(np.random.Generator):
        def random(self, size: object = None) -> np.ndarray:  # type: ignore[override]
            return np.full(size, np.nextafter(1.0, 0.0))  # type: ignore[call-overload]

    X = latin_hypercube(3001, 2, Topmost(np.random.PCG64(0)))
    edges = (np.argsort(np.argsort(X, axis=0), axis=0) + 1) / 3001
    assert (edges > X).all()


@pytest.mark.parametrize("n", [1, 2, 3, 7, 64, 100])
def test_sobol_is_the_start_of_the_scrambled_sequence(n: int) -> None:
    size = 1 << (n - 1).bit_length()
    expected = qmc.Sobol(3, scramble=True, bits=30, rng=rng()).random(size)[:n]
    np.testing.assert_array_equal(sobol(n, 3, rng()), expected)


def test_sobol_is_more_even_than_random_points() -> None:
    assert qmc.discrepancy(sobol(256, 4, rng())) < qmc.discrepancy(rng().random((256, 4))) / 5


@pytest.mark.parametrize("draw", [latin_hypercube, sobol])
def test_points_lie_in_the_half_open_cube_in_many_dimensions(draw: object) -> None:
    X = draw(33, 60, rng())  # type: ignore[operator]
    assert X.shape == (33, 60)
    assert (X >= 0).all()
    assert (X < 1).all()


def test_sobol_normals_are_normal() -> None:
    Z = sobol_normals(1000, 3, rng())
    np.testing.assert_allclose(Z.mean(axis=0), 0.0, atol=0.01)
    np.testing.assert_allclose(Z.std(axis=0), 1.0, atol=0.01)
    assert stats.kstest(Z[:, 0], "norm").pvalue > 0.5
    np.testing.assert_allclose(stats.norm.cdf(Z), sobol(1000, 3, rng()), rtol=0, atol=2.0**-30)


def test_sobol_normals_are_finite_at_the_corners(monkeypatch: pytest.MonkeyPatch) -> None:
    corners = np.array([[0.0, 1.0 - 2.0**-30]])
    monkeypatch.setattr(quasirandom, "sobol", lambda *_: corners)
    Z = sobol_normals(1, 2, rng())
    assert np.isfinite(Z).all()
    np.testing.assert_allclose(Z[0, 0], -Z[0, 1], rtol=1e-6)


@pytest.mark.parametrize("draw", [latin_hypercube, sobol, sobol_normals])
@pytest.mark.parametrize(("n", "d"), [(0, 3), (3, 0), (0, 0)])
def test_no_points_and_no_dimensions_give_empty_arrays(draw: object, n: int, d: int) -> None:
    assert draw(n, d, rng()).shape == (n, d)  # type: ignore[operator]


@pytest.mark.parametrize("draw", [latin_hypercube, sobol, sobol_normals])
def test_the_generator_alone_decides(draw: object) -> None:
    np.testing.assert_array_equal(draw(9, 2, rng()), draw(9, 2, rng()))  # type: ignore[operator]
    shared = rng()
    assert not np.array_equal(draw(9, 2, shared), draw(9, 2, shared))  # type: ignore[operator]


@pytest.mark.parametrize("draw", [latin_hypercube, sobol, sobol_normals])
@pytest.mark.parametrize(("n", "d"), [(-1, 2), (2, -1)])
def test_negative_counts_are_refused(draw: object, n: int, d: int) -> None:
    with pytest.raises(InputError, match=f"n={n}, d={d}"):
        draw(n, d, rng())  # type: ignore[operator]


def test_more_dimensions_than_the_sequence_has_are_refused() -> None:
    with pytest.raises(InputError, match="21201 dimensions, got d=21202"):
        sobol(2, 21202, rng())
