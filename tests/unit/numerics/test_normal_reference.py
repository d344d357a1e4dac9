"""Expected improvement against arithmetic with many digits."""

from __future__ import annotations

import mpmath
import numpy as np
import pytest

from recollect.numerics.normal import log_expected_improvement, log_improvement_slopes

Z = [*-np.logspace(100, 1.6, 30), *np.linspace(-45, 9, 109), -30.0, -1.0, 0.0, *np.logspace(1, 10, 10)]


def exact(z: float, std: float, eta: float) -> float:
    """Logarithm of EI, for a mean that is a float."""
    mean = eta - z * std
    digits = 60 + 2 * int(max(0.0, np.log10(abs(z) + 1.0)))
    with mpmath.workdps(digits):
        gap = mpmath.mpf(eta) - mpmath.mpf(mean)
        s = mpmath.mpf(std)
        u = gap / s
        if u < -1000:  # Mills' ratio by its continued fraction: erfc has left the range of its series
            t = -u
            # 1 - t R(t) by the asymptotic series, exact to t^-30
            q = -mpmath.fsum((-1) ** k * mpmath.fac2(2 * k - 1) / t ** (2 * k) for k in range(1, 12))
        else:
            q = 1 + u * mpmath.ncdf(u) / mpmath.npdf(u)
        return float(mpmath.log(s) - u**2 / 2 - mpmath.log(2 * mpmath.pi) / 2 + mpmath.log(q))


@pytest.mark.parametrize(("std", "eta"), [(1.0, 0.0), (0.037, 0.0), (250.0, 0.0)])
def test_the_logarithm_of_the_improvement_agrees_with_mpmath(std: float, eta: float) -> None:
    for z in Z:
        mean = eta - z * std
        assert log_expected_improvement(mean, std, eta) == pytest.approx(exact(z, std, eta), rel=1e-10, abs=1e-14), z


def test_improvement_agrees_with_its_definition_as_an_integral() -> None:
    for mean, std, eta in [(0.3, 0.5, 0.1), (-1.0, 2.0, 0.5), (2.0, 0.7, 0.0)]:
        value = mpmath.quad(
            lambda f, mean=mean, std=std, eta=eta: (eta - f) * mpmath.npdf(f, mean, std), [eta - 12 * std, mean, eta]
        )
        assert np.exp(log_expected_improvement(mean, std, eta)) == pytest.approx(float(value), rel=1e-10)


@pytest.mark.parametrize("std", [1.0, 0.037, 250.0])
def test_slopes_of_the_logarithm_agree_with_mpmath(std: float) -> None:
    for z in (-1e4, -300.0, -40.0, -29.9, -5.0, -1.0001, -0.9999, -0.3, 0.0, 0.5, 3.0, 30.0, 1e4):
        with mpmath.workdps(60):
            u = mpmath.mpf(z)
            if u < -1000:
                improvement = -mpmath.fsum((-1) ** k * mpmath.fac2(2 * k - 1) / u ** (2 * k) for k in range(1, 12))
                density, probability = mpmath.mpf(1), (1 - improvement) / -u
            else:
                density, probability = mpmath.npdf(u), mpmath.ncdf(u)
                improvement = density + u * probability
            expected = (float(-probability / improvement / std), float(density / improvement / std))
        by_mean, by_std = log_improvement_slopes(np.array([-z * std]), np.array([std]), 0.0)
        assert by_mean[0] == pytest.approx(expected[0], rel=1e-9), z
        assert by_std[0] == pytest.approx(expected[1], rel=1e-9, abs=1e-300), z
