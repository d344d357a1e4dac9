"""Errors of trained models: the two measures, shared trainings, failures; references from scikit-learn and scipy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

from recollect.bench.problems.suite import training
from recollect.bench.problems.suite.suite_benchmarks import SUITE, configurations
from recollect.bench.problems.suite.training import (
    Split,
    balanced_error,
    fit,
    guessing_error,
    measure,
    one_minus_auc,
    scores,
)
from recollect.errors import InputError, MissingExtraError

sklearn_metrics = pytest.importorskip("sklearn.metrics", reason="models are trained with scikit-learn")


def split_of(classes: int, *, n: int = 90, p: int = 4, seed: int = 0) -> Split:
    rng = np.random.default_rng(seed)
    centres = 1.5 * rng.standard_normal((classes, p))
    y = np.arange(n) % classes
    X = centres[y] + rng.standard_normal((n, p))
    return Split(X[: 2 * n // 3], y[: 2 * n // 3], X[2 * n // 3 :], y[2 * n // 3 :], classes, 11)


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> tuple[Split, ...]:
    """Two hold-outs of a toy dataset with three classes, in the place of every dataset."""
    found = (split_of(3), split_of(3, seed=1))
    monkeypatch.setattr(training, "splits", lambda _: found)
    return found


@pytest.mark.parametrize("classes", [2, 3, 7])
def test_balanced_error_is_one_minus_scikit_learns_balanced_accuracy(classes: int) -> None:
    rng = np.random.default_rng(classes)
    y, table = rng.integers(classes, size=80), rng.standard_normal((80, classes))
    expected = 1 - sklearn_metrics.balanced_accuracy_score(y, table.argmax(axis=1))
    assert balanced_error(table, y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("decimals", [0, 8])  # with many ties and with none
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_one_minus_auc_is_scikit_learns(classes: int, decimals: int) -> None:
    rng = np.random.default_rng(classes)
    y = rng.permutation(np.arange(80) % classes)
    table = np.round(rng.standard_normal((80, classes)) + 1.0 * (y[:, None] == np.arange(classes)), decimals)
    if classes == 2:
        table[:, 0] = -table[:, 1]
        expected = 1 - sklearn_metrics.roc_auc_score(y, table[:, 1])
    else:
        expected = 1 - np.mean([sklearn_metrics.roc_auc_score(y == c, table[:, c]) for c in range(classes)])
    assert one_minus_auc(table, y) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("score", [balanced_error, one_minus_auc])
def test_scores_that_are_not_finite_have_no_error(score: Any) -> None:
    table = np.array([[0.0, 1.0], [np.nan, 0.0]])
    assert np.isnan(score(table, np.array([0, 1])))


@pytest.mark.parametrize("name", [name for name in SUITE if name != "own-xgboost"])
def test_every_learner_beats_guessing_with_its_best_configurations(name: str, two: tuple[Split, ...]) -> None:
    configs = configurations(name)[:24] if name != "own-mlp" else configurations(name)[:8]
    if name == "own-adaboost":
        configs = configs[:6]
    found = measure(name, "toy", configs)
    assert min(result.error for result in found) < 0.7 * guessing_error(name, "toy")
    assert {result.status for result in found} == {"ok"}


def test_boosted_trees_of_xgboost_learn_and_the_same_seed_gives_the_same_model(two: tuple[Split, ...]) -> None:
    pytest.importorskip("xgboost", reason="not part of the extras")
    configs = configurations("own-xgboost")[:12]
    found = measure("own-xgboost", "toy", configs)
    assert min(result.error for result in found) < 0.3
    again = measure("own-xgboost", "toy", configs)
    assert [result.error for result in found] == [result.error for result in again]


@pytest.mark.parametrize("depth", [1, 3, 10])
def test_a_shared_training_gives_the_errors_of_separate_trainings(depth: int, two: tuple[Split, ...]) -> None:
    configs = [{"iterations": count, "depth": depth} for count in (1, 2, 7, 20)]
    together = [result.error for result in measure("own-adaboost", "toy", configs)]
    alone = [measure("own-adaboost", "toy", [config])[0].error for config in configs]
    assert together == alone


def test_configurations_that_cannot_share_a_training_are_refused(two: tuple[Split, ...]) -> None:
    with pytest.raises(InputError, match="may differ in 'iterations' only"):
        measure("own-adaboost", "toy", [{"iterations": 2, "depth": 1}, {"iterations": 2, "depth": 2}])


def test_the_error_is_the_mean_over_hold_outs_rounded_to_five_decimals(two: tuple[Split, ...]) -> None:
    config = configurations("own-svm")[0]
    each = [one_minus_auc(scores("own-svm", fit("own-svm", config, s), s.X_held), s.y_held) for s in two]
    assert measure("own-svm", "toy", [config])[0].error == round(float(np.mean(each)), 5)


def test_a_training_that_fails_has_the_error_of_guessing_and_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch, two: tuple[Split, ...]
) -> None:
    configs = configurations("own-svm")[:3]
    before = measure("own-svm", "toy", configs)

    def failing(name: str, config: Any, split: Split) -> Any:
        if config is configs[1] and split is two[1]:
            raise ValueError("weights are not finite")
        return fit(name, config, split)

    monkeypatch.setattr(training, "fit", failing)
    after = measure("own-svm", "toy", configs)
    assert [result.status for result in after] == ["ok", "failed", "ok"]
    assert after[1].error == 0.5
    assert [after[0].error, after[2].error] == [before[0].error, before[2].error]


def test_guessing_among_three_classes_errs_twice_out_of_three_times(two: tuple[Split, ...]) -> None:
    assert guessing_error("own-mlp", "toy") == 0.66667
    assert guessing_error("own-glmnet", "toy") == 0.5


def test_a_missing_library_is_an_error_not_a_failed_training(
    monkeypatch: pytest.MonkeyPatch, two: tuple[Split, ...]
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "xgboost", None)
    with pytest.raises(MissingExtraError, match=r"recollect\[train\]"):
        measure("own-xgboost", "toy", configurations("own-xgboost")[:1])


def test_every_point_of_the_support_vector_grid_is_trained_with_the_values_behind_its_logarithms() -> None:
    split, seen = split_of(2), set()
    for config in configurations("own-svm-grid")[::7]:
        model = fit("own-svm-grid", config, split)
        assert np.log2(model.C) == config["log2_cost"]
        kernel = {"rbf": "rbf", "poly": "polynomial", "linear": "linear"}[model.kernel]
        assert config[kernel] == 1
        seen.add(model.kernel)
        if model.kernel == "rbf":
            assert np.log10(model.gamma) == pytest.approx(config["log10_gamma"], abs=1e-5)
        if model.kernel == "poly":
            assert np.log10(model.degree) == pytest.approx(config["log10_degree"], abs=1e-5)
    assert seen == {"rbf", "poly", "linear"}


def test_lambda_weighs_the_penalty_against_the_mean_loss_as_in_glmnet() -> None:
    split = split_of(2, n=150)
    model = fit("own-glmnet", {"alpha": 0.0, "lambda": 0.1}, split)
    sign = 2.0 * split.y - 1.0

    def objective(w: np.ndarray) -> float:
        return float(np.logaddexp(0, -sign * (split.X @ w[1:] + w[0])).mean() + 0.05 * w[1:] @ w[1:])

    best = minimize(objective, np.zeros(5), method="BFGS", options={"gtol": 1e-9}).x
    assert model.coef_[0] == pytest.approx(best[1:], abs=2e-3)


def test_a_large_penalty_on_absolute_weights_leaves_none() -> None:
    model = fit("own-glmnet", {"alpha": 1.0, "lambda": 100.0}, split_of(3))
    assert (model.coef_ == 0).all()


def test_the_layers_of_the_network_narrow_towards_the_classes() -> None:
    config = dict(configurations("own-mlp")[0], num_layers=3, max_units=63, batch_size=16)
    model = fit("own-mlp", config, split_of(3))
    assert model.hidden_layer_sizes == (63, 43, 23)
    assert model.n_iter_ == training.MLP_EPOCHS


def test_an_unknown_learner_is_refused() -> None:
    with pytest.raises(InputError, match="expected one of own-adaboost"):
        fit("own-forest", {}, split_of(2))
