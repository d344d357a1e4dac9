"""Two-stage transfer weights."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.errors import InputError, InputTypeError
from recollect.transfer.weighting.ranking_weights import tst_weights

Y = np.array([3.0, 1.0, 2.0, 2.0, 5.0, 0.0])


def literal(base, y, rho):
    """Section 3.1 of the paper in plain loops."""
    n, raw = len(y), []
    for f in base:
        wrong = sum((f[a] < f[b]) != (y[a] < y[b]) for a in range(n - 1) for b in range(a + 1, n))
        r = 2 * wrong / (n * (n - 1)) / rho
        raw.append(0.75 * (1 - r * r) if r <= 1 else 0.0)
    raw.append(0.75)
    return [value / sum(raw) for value in raw]


@pytest.mark.parametrize("rho", [0.01, 0.1, 0.3, 0.5, 0.9, 1.0, 7.0])
@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("k", [0, 1, 9])
def test_weights_equal_the_literal_ones(rho, tied, k):
    rng = np.random.default_rng(0)
    base = Y + rng.normal(size=(k, Y.size)) * np.linspace(0.1, 3, k)[:, None]
    base = np.round(base) if tied else base
    weights = tst_weights(base, Y, rho=rho)
    np.testing.assert_allclose(weights.values, literal(base, Y, rho), rtol=1e-12)


@pytest.mark.parametrize("n", [0, 1])
def test_fewer_than_two_observations_give_uniform_weights(n):
    rng = np.random.default_rng(0)
    weights = tst_weights(np.zeros((3, n)), np.zeros(n), rho=0.1, horizon=1, dilution="probabilistic", rng=rng)
    np.testing.assert_allclose(weights.values, 0.25)
    assert not weights.dropped.any()


def test_two_observations_are_one_pair_that_is_right_or_wrong():
    weights = tst_weights([[1.0, 2.0], [2.0, 1.0]], [5.0, 6.0], rho=0.5)
    np.testing.assert_array_equal(weights.losses[:-1], [0.0, 1.0])
    np.testing.assert_array_equal(weights.values, [0.5, 0.0, 0.5])
    np.testing.assert_array_equal(weights.dropped, [False, True])
    np.testing.assert_array_equal(weights.misranked[:-1], [0, 2])


@pytest.mark.parametrize("rho", [1e-320, 0.4, 1.0])
def test_when_all_base_models_are_far_the_target_has_exactly_all_the_weight(rho):
    y = np.arange(6.0)
    weights = tst_weights(np.vstack([-y, -(y**2)]), y, rho=rho)
    assert weights.target == 1.0
    assert weights.dropped.all()


def test_a_distance_of_exactly_rho_has_no_weight():
    weights = tst_weights([[0.0, 1.0, 3.0, 2.0]], np.arange(4.0), rho=1 / 6)
    assert weights.losses[0] == pytest.approx(1 / 6)
    assert weights.values.tolist() == [0.0, 1.0]


def test_nothing_is_measured_for_the_target():
    weights = tst_weights(Y[None], Y, rho=0.5)
    assert np.isnan(weights.losses[-1])
    assert np.isnan(weights.misranked[-1])


@pytest.mark.parametrize(
    ("dilution", "n_factor"), [("probabilistic", 1 - 6 / 24), ("constant", 1.0)], ids=["probabilistic", "constant"]
)
def test_dilution_keeps_by_agreement_with_the_observations(dilution, n_factor):
    rng = np.random.default_rng(0)
    base = np.stack([Y, -Y, np.zeros(6)])
    runs = [tst_weights(base, Y, rho=7.0, horizon=24, dilution=dilution, rng=rng) for _ in range(3000)]
    keep = n_factor * (1 - runs[0].losses[:-1])
    np.testing.assert_allclose(runs[0].keep_probability, keep)
    frequency = np.mean([run.dropped for run in runs], axis=0)
    np.testing.assert_allclose(frequency, 1 - keep, atol=4 * 0.5 / np.sqrt(3000))


def test_at_the_horizon_only_the_target_is_left():
    weights = tst_weights(Y[None], Y, rho=0.5, horizon=6, dilution="probabilistic", rng=np.random.default_rng(0))
    assert weights.target == 1.0


def test_without_dilution_a_generator_changes_nothing():
    base = np.stack([Y, Y**2, np.zeros(6)])
    given = tst_weights(base, Y, rho=0.8, horizon=1, rng=np.random.default_rng(0))
    np.testing.assert_array_equal(given.values, tst_weights(base, Y, rho=0.8).values)


def test_weights_do_not_change_under_affine_maps_of_each_task():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(5, 6))
    moved = tst_weights(base * rng.uniform(0.1, 10, size=(5, 1)) + 4, 3 * Y - 1, rho=0.8)
    np.testing.assert_array_equal(moved.values, tst_weights(base, Y, rho=0.8).values)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": 0.0}, "rho must be a finite number above 0, got 0"),
        ({"rho": 10**400}, "rho must be a finite number above 0"),
        ({"rho": -1.0}, "rho"),
        ({"rho": np.nan}, "rho"),
        ({"rho": np.inf}, "rho"),
        ({"base": np.zeros((2, 5))}, r"base must have shape \(any, 6\), got \(2, 5\)"),
        ({"base": np.full((2, 6), np.nan)}, "base must be finite"),
        ({"y": np.full(6, np.inf)}, "y must be finite"),
        ({"dilution": "some"}, "dilution must be one of"),
        ({"dilution": np.array([])}, "dilution must be one of"),
        ({"dilution": "probabilistic", "rng": np.random.default_rng(0)}, "horizon must be given"),
        ({"dilution": "probabilistic", "horizon": 5}, "rng must be given"),
        ({"dilution": "constant"}, "rng must be given"),
        ({"horizon": 0}, "horizon must be at least 1, got 0"),
    ],
)
def test_senseless_arguments_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        tst_weights(**{"base": np.zeros((2, 6)), "y": Y, "rho": 0.5} | change)


@pytest.mark.parametrize("change", [{"rho": "wide"}, {"rho": []}, {"y": ["x"] * 6}, {"y": [10**400] * 6}])
def test_what_is_no_number_is_refused(change):
    with pytest.raises(InputTypeError, match="must be a"):
        tst_weights(**{"base": np.zeros((2, 6)), "y": Y, "rho": 0.5} | change)


def test_a_seed_in_place_of_a_generator_is_refused():
    with pytest.raises(InputTypeError, match=r"rng must be a numpy\.random\.Generator, got int"):
        tst_weights(Y[None], Y, rho=0.5, dilution="constant", rng=3)
