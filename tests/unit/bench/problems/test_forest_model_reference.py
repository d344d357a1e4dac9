"""A flattened forest against scikit-learn, which grew it, and features against scikit-learn's transformers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures

from recollect.bench.data.openml_bot import bot_space
from recollect.bench.problems import forest_model as forest_module
from recollect.bench.problems.forest_benchmark import forest_features, spearman
from recollect.bench.problems.forest_model import flatten
from recollect.space.sampling import uniform


def data(n: int, p: int, *, decimals: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = np.round(rng.random((n, p)), decimals)
    return X, np.sin(6 * X[:, 0]) + X[:, 1] * X[:, -1] + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"bootstrap": False, "max_features": 0.5},
        {"min_samples_leaf": 9, "min_samples_split": 20},
        {"max_depth": 1},
        {"min_samples_leaf": 200},  # every tree is a leaf
    ],
    ids=["full", "whole data", "large leaves", "stumps", "constants"],
)
@pytest.mark.parametrize("points", [1, 7, 1500])
def test_predictions_equal_those_of_scikit_learn(settings: dict[str, float], points: int) -> None:
    X, y = data(250, 5)
    model = RandomForestRegressor(60, random_state=1, **settings).fit(X, y)
    Q = np.random.default_rng(1).random((points, 5))
    np.testing.assert_allclose(flatten(model).predict(Q), model.predict(Q), rtol=0, atol=1e-12)


def test_points_that_lie_on_thresholds_go_the_way_of_scikit_learn() -> None:
    # With few distinct values, the midpoints between them are thresholds; some are not representable as float32.
    X, y = data(300, 3, decimals=1)
    model = RandomForestRegressor(40, random_state=1).fit(X, y)
    cuts = np.concatenate([tree.tree_.threshold[tree.tree_.feature >= 0] for tree in model.estimators_])
    assert np.any(cuts != cuts.astype(np.float32))
    around = np.concatenate([cuts, np.nextafter(cuts.astype(np.float32), 2), np.nextafter(cuts.astype(np.float32), -2)])
    Q = np.random.default_rng(2).choice(around, (4000, 3))
    np.testing.assert_allclose(flatten(model).predict(Q), model.predict(Q), rtol=0, atol=1e-12)


@pytest.mark.parametrize(("points", "pairs", "worth"), [(5, 7, 0), (64, 300, 10), (1, 1, 0)])
def test_neither_blocks_nor_pruning_change_a_prediction(
    points: int, pairs: int, worth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = data(200, 4)
    model = RandomForestRegressor(30, random_state=1).fit(X, y)
    Q = np.random.default_rng(3).random((130, 4))
    whole = flatten(model).predict(Q)
    for name, value in (
        ("POINTS_PER_BLOCK", points),
        ("PAIRS_PER_BLOCK", pairs),
        ("MIN_PAIRS_TO_PRUNE", worth),
        ("PRUNE_INTERVAL", 1),
    ):
        monkeypatch.setattr(forest_module, name, value)
    np.testing.assert_array_equal(flatten(model).predict(Q), whole)
    np.testing.assert_allclose(whole, model.predict(Q), rtol=0, atol=1e-12)


def test_bounds_are_the_mean_smallest_and_largest_leaf() -> None:
    X, y = data(200, 4)
    model = RandomForestRegressor(30, random_state=1, min_samples_leaf=3).fit(X, y)
    values = [tree.tree_.value for tree in model.estimators_]  # inner nodes hold means, which are never beyond leaves
    low, high = flatten(model).bounds()
    assert low == pytest.approx(np.mean([v.min() for v in values]), abs=1e-12)
    assert high == pytest.approx(np.mean([v.max() for v in values]), abs=1e-12)


@pytest.mark.parametrize("name", ["glmnet", "svm", "xgboost"])
def test_features_equal_those_of_scikit_learns_transformers(name: str) -> None:
    space = bot_space(name)
    X = uniform(space, 200, np.random.default_rng(0))
    pipeline = make_pipeline(
        ColumnTransformer(
            [
                ("numerical", "passthrough", ~space.categorical),
                ("categorical", OneHotEncoder(sparse_output=False), space.categorical),
            ]
        ),
        PolynomialFeatures(degree=2, interaction_only=True, include_bias=False),
    )
    expected = pipeline.fit_transform(np.where(np.isnan(X), -1.0, X))
    np.testing.assert_array_equal(forest_features(space, X), expected)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=20))
def test_spearman_equals_scipys(pairs: list[tuple[int, int]]) -> None:
    a, b = np.array(pairs, dtype=float).T
    got = spearman(a, b)
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        assert np.isnan(got)
    else:
        assert got == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
