"""The batched against Gaussian processes one by one, and against dense formulas written out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recollect.numerics.arrays import KernelShape
from recollect.surrogate import batched_gp, batched_kernel
from recollect.surrogate.batched_gp import NOISE_FREE, BatchedGP
from recollect.surrogate.gp import GP, make_gp
from recollect.surrogate.kernels import Hyperparameters
from recollect.surrogate.scaling import standardize

SIZES = (2, 3, 16, 17, 40, 33, 9, 64, 65, 40)
KINDS = ("numerical", "mixed", "conditional", "conditional-mixed", "inactive-only", "categorical", "many-columns")


@dataclass(frozen=True)
class Case:
    shape: KernelShape
    X: list[np.ndarray]
    z: list[np.ndarray]
    theta: np.ndarray
    query: np.ndarray

    def batched(self) -> BatchedGP:
        return BatchedGP(self.X, self.z, shape=self.shape, theta=self.theta)

    def gps(self) -> list[GP]:
        hypers = [Hyperparameters.from_log(row) for row in self.theta]
        return [make_gp(X, z, shape=self.shape, hyper=h) for X, z, h in zip(self.X, self.z, hypers, strict=True)]


def make_case(kind: str, sizes: tuple[int, ...] = SIZES, *, points: int = 25, seed: int = 0) -> Case:
    rng = np.random.default_rng(seed)
    d = 70 if kind == "many-columns" else 5
    categorical = np.zeros(d, dtype=bool)
    categorical[: {"mixed": 2, "conditional-mixed": 2, "categorical": d}.get(kind, 0)] = True
    conditional = kind in ("conditional", "conditional-mixed", "many-columns")

    def draw(n: int) -> np.ndarray:
        X = rng.uniform(-0.1, 1.1, (n, d))
        X[:, categorical] = rng.integers(0, 3, (n, int(categorical.sum())))
        if kind in ("conditional", "conditional-mixed", "inactive-only", "many-columns"):
            X[rng.random(n) < 0.4, d - 1] = np.nan
            X[rng.random(n) < 0.3, 0] = np.nan
        return X

    X = [draw(n) for n in sizes]
    z = [standardize(rng.standard_normal(n))[0] for n in sizes]
    k = len(sizes)
    lengths = rng.uniform(0.15, 1.0, (k, d)) * (5.0 if kind == "many-columns" else 1.0)
    theta = np.log(np.column_stack((rng.uniform(0.3, 3.0, k), lengths, 10.0 ** rng.uniform(-5.0, -1.0, k))))
    query = np.vstack((draw(points), X[-1][:3]))
    return Case(KernelShape(categorical, conditional), X, z, theta, query)


def close(value: np.ndarray, wanted: np.ndarray, tolerance: float = 1e-9) -> None:
    np.testing.assert_allclose(value, wanted, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_means_are_those_of_each_process(kind: str) -> None:
    case = make_case(kind)
    close(case.batched().means(case.query), np.array([gp.mean(case.query) for gp in case.gps()]))


@pytest.mark.parametrize("kind", KINDS)
def test_posteriors_are_those_of_each_process(kind: str) -> None:
    case = make_case(kind)
    mean, variance = case.batched().posterior(case.query)
    each = [gp.predict(case.query) for gp in case.gps()]
    # make_gp standardises once more, which changes nothing but the scale of a pair of observations by a rounding error
    close(mean, np.array([m for m, _ in each]))
    close(variance, np.array([v for _, v in each]))


@pytest.mark.parametrize("kind", KINDS)
def test_covariances_are_those_of_each_process(kind: str) -> None:
    case = make_case(kind)
    indices = np.array([3, 0, 9, 7])
    a = 11
    gps = case.gps()
    joint = [gps[i].joint(case.query)[1] for i in indices]
    close(case.batched().covariances(case.query[:a], case.query[a:], indices), np.array([C[:a, a:] for C in joint]))
    close(case.batched().covariances(case.query, case.query, indices), np.array(joint))


def written_out_kernel(A: np.ndarray, B: np.ndarray, shape: KernelShape, hyper: Hyperparameters) -> np.ndarray:
    """Spec 1.3, pair by pair."""
    out = np.zeros((len(A), len(B)))
    for i, a in enumerate(np.nan_to_num(A, nan=-1.0)):
        for j, b in enumerate(np.nan_to_num(B, nan=-1.0)):
            if shape.conditional and ((a == -1.0) != (b == -1.0)).any():
                continue
            scaled = (a - b) / hyper.lengthscales
            r = math.sqrt(float((scaled[~shape.categorical] ** 2).sum()))
            hamming = float((0.5 * (a != b) / hyper.lengthscales**2)[shape.categorical].sum())
            matern = (1.0 + math.sqrt(5.0) * r + 5.0 * r * r / 3.0) * math.exp(-math.sqrt(5.0) * r)
            out[i, j] = hyper.amplitude * matern * math.exp(-hamming)
    return out


@pytest.mark.parametrize("kind", ["numerical", "mixed", "conditional", "conditional-mixed"])
def test_reinterpolation_is_the_dense_formula_and_leaves_the_mean_alone(kind: str) -> None:
    case = make_case(kind, (5, 12, 20), points=10)
    batched = case.batched()
    indices = np.array([2, 0, 1])
    X_t = np.vstack((case.query[:4], case.query[:1], case.X[2][:2]))  # repeated rows, and rows of a past run
    variances = batched.noise_free(X_t, indices)(case.query)
    for row, i in enumerate(indices):
        hyper = Hyperparameters.from_log(case.theta[i])
        Z = np.unique(np.nan_to_num(np.vstack((case.X[i], X_t)), nan=-1.0), axis=0)
        K = written_out_kernel(Z, Z, case.shape, hyper) + NOISE_FREE * np.eye(len(Z))
        k = written_out_kernel(case.query, Z, case.shape, hyper)
        dense = hyper.amplitude - np.einsum("ij,ji->i", k, np.linalg.solve(K, k.T))
        close(variances[row], np.maximum(dense, 1e-10))
        at_Z = batched.means(Z, np.array([i]))[0]
        close(k @ np.linalg.solve(K, at_Z), batched.means(case.query, np.array([i]))[0], 1e-7)


@pytest.mark.parametrize("kind", KINDS)
def test_reinterpolated_variance_is_at_most_the_posterior_one_and_nothing_where_the_mean_is_known(kind: str) -> None:
    case = make_case(kind)
    batched, indices = case.batched(), np.arange(len(SIZES))
    X_t = case.query[:6]
    evaluate = batched.noise_free(X_t, indices)
    assert np.all(evaluate(case.query) <= batched.posterior(case.query)[1] + 1e-9)
    assert np.all(evaluate(X_t) < 1e-9)
    for i in indices:
        assert np.all(evaluate(case.X[i])[i] < 1e-9)


def test_reinterpolation_without_new_points_knows_the_past_run_alone() -> None:
    case = make_case("mixed", (4, 6))
    nothing, indices = np.zeros((0, 5)), np.array([1, 0])
    again = case.batched().noise_free(np.vstack((case.X[0], case.X[1])), indices)
    alone = case.batched().noise_free(nothing, indices)
    assert np.all(alone(case.X[0])[1] < 1e-9)
    assert np.all(alone(case.X[0])[0] > 1e-3)
    assert np.all(again(case.X[0])[0] < 1e-9)


def everything(batched: BatchedGP, query: np.ndarray, indices: np.ndarray) -> list[np.ndarray]:
    mean, variance = batched.posterior(query, indices)
    covariances = batched.covariances(query[:9], query, indices)
    return [batched.means(query, indices), mean, variance, covariances, batched.noise_free(query[:5], indices)(query)]


@pytest.mark.parametrize("kind", ["numerical", "conditional-mixed"])
def test_padding_never_leaks(kind: str) -> None:
    case = make_case(kind, (18, 20, 32))
    alone = BatchedGP(case.X[:1], case.z[:1], shape=case.shape, theta=case.theta[:1])
    for value, wanted in zip(
        everything(case.batched(), case.query, np.array([0])), everything(alone, case.query, np.array([0])), strict=True
    ):
        close(value, wanted, 1e-12)


@pytest.mark.parametrize("piece", [1, 70, 1000])
@pytest.mark.parametrize("kind", ["numerical", "conditional-mixed"])
def test_how_the_work_is_cut_never_matters(kind: str, piece: int, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(kind)
    indices = np.array([5, 1, 9, 4, 4, 8])
    whole = everything(case.batched(), case.query, indices)
    monkeypatch.setattr(batched_kernel, "LARGEST_PIECE", piece)
    monkeypatch.setattr(batched_kernel, "LARGEST_BLOCK", piece)
    cut = case.batched()
    assert len(cut._blocks) > len({max(4, (n - 1).bit_length()) for n in SIZES})
    for value, wanted in zip(everything(cut, case.query, indices), whole, strict=True):
        close(value, wanted, 1e-11)


def test_forgetting_factors_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case("mixed")
    indices = np.arange(len(SIZES))
    whole = everything(case.batched(), case.query, indices)
    monkeypatch.setattr(batched_gp, "FACTOR_CACHE_BYTES", 1)
    forgetful = case.batched()
    for value, wanted in zip(everything(forgetful, case.query, indices), whole, strict=True):
        np.testing.assert_array_equal(value, wanted)
    assert len(forgetful._factors._factors) == 1


def test_factors_in_use_are_kept_up_to_the_limit() -> None:
    cache = batched_gp._FactorCache(3 * 800)
    computed: list[int] = []

    def get(i: int) -> None:
        cache.get((i, False), lambda: (computed.append(i), np.eye(10))[1])

    for i in (0, 1, 2, 0, 3, 0, 1):  # 3 pushes out 1, the one not used for longest; 1 pushes out 2
        get(i)
    assert computed == [0, 1, 2, 3, 1]
    assert cache._bytes == 3 * 800


def test_similar_sizes_share_a_block_and_a_long_run_does_not_pad_the_others() -> None:
    case = make_case("numerical", (3, 16, 17, 32, 300))
    heights = {tuple(block.indices): block.height for block in case.batched()._blocks}
    assert heights == {(0, 1): 16, (2, 3): 32, (4,): 300}


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    points=st.integers(0, 5),
    seed=st.integers(0, 1000),
    kind=st.sampled_from(KINDS[:-1]),
    data=st.data(),
)
@settings(deadline=None, max_examples=40)
def test_selected_processes_are_rows_of_the_whole_in_any_order(
    sizes: list[int], points: int, seed: int, kind: str, data: st.DataObject
) -> None:
    case = make_case(kind, tuple(sizes), points=points, seed=seed)
    indices = np.array(data.draw(st.lists(st.integers(0, len(sizes) - 1), max_size=8)), dtype=np.intp)
    batched = case.batched()
    mean, variance = batched.posterior(case.query)
    close(batched.means(case.query, indices), mean[indices])
    close(batched.posterior(case.query, indices)[1], variance[indices])
    diagonal = np.einsum("imm->im", batched.covariances(case.query, case.query, indices))
    close(np.maximum(diagonal, 1e-10), variance[indices])


def test_rows_are_repeated_only_if_equal_in_every_active_and_inactive_column() -> None:
    X = np.array([[0.0, 0.5], [-0.0, 0.5], [np.nan, 0.5], [0.25, 0.5]])
    X_t = np.array([[-1.0, 0.5], [0.25, 0.5], [0.75, np.nan], [0.75, 0.0], [0.75, np.nan]])
    own, new = batched_gp._distinct(X, X_t)
    assert own.tolist() == [0, 2, 3]  # -0 is 0, but inactive is not
    assert new.tolist() == [2, 3]  # -1 is another way to write inactive


def test_points_that_a_process_knows_already_are_not_added_to_it() -> None:
    case = make_case("conditional-mixed", (6, 9))
    batched = case.batched()
    X_t = np.vstack((case.X[0], case.X[0][:2], case.query[:2], case.query[:1]))
    for i, size in ((0, 6 + 2), (1, 9 + 6 + 2)):
        Z, L = batched._conditioned(i, X_t)
        assert Z.shape == (size, 5)
        assert L.shape == (size, size)
