"""Tuning a forest on one task: features, candidates, early abandoning, determinism, refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from ConfigSpace import CategoricalHyperparameter, ConfigurationSpace, EqualsCondition, Float

from recollect.bench.problems import forest_benchmark as module
from recollect.bench.problems.forest_benchmark import (
    TreeSettings,
    TuneSettings,
    forest_features,
    to_error,
    to_target,
    tune_forest,
)
from recollect.errors import InputError, MissingExtraError
from recollect.space.sampling import uniform
from recollect.space.space import Space, compile_space

TINY = TuneSettings(candidates=3, folds=3, trees=10, final_trees=20)


def conditional() -> Space:
    source = ConfigurationSpace()
    kernel = CategoricalHyperparameter("kernel", ["linear", "rbf"])
    shape = CategoricalHyperparameter("shape", ["a", "b", "c"])
    source.add(kernel, shape, Float("cost", (0.0, 1.0)))
    source.add(EqualsCondition(shape, kernel, "rbf"))
    return compile_space(source)


def measured(n: int = 120, seed: int = 0) -> tuple[Space, np.ndarray, np.ndarray]:
    space = compile_space({"a": (0.0, 1.0), "b": (0.0, 1.0), "kind": ["x", "y"]})
    X = uniform(space, n, np.random.default_rng(seed))
    return space, X, 0.05 + (X[:, 0] - 0.3) ** 2 + 0.3 * X[:, 1] * X[:, 2]


def test_features_are_numbers_choices_and_their_products() -> None:
    space = conditional()  # columns: cost, kernel, shape
    X = np.array([[0.25, 1.0, 2.0], [0.5, 0.0, np.nan]])
    first = [0.25, 0, 1, 0, 0, 1]
    second = [0.5, 1, 0, 0, 0, 0]
    expected = [[*row, *(row[i] * row[j] for i in range(6) for j in range(i + 1, 6))] for row in (first, second)]
    assert forest_features(space, X).tolist() == expected


def test_an_inactive_number_is_minus_one_and_a_constant_is_no_feature() -> None:
    source = ConfigurationSpace({"on": [True, False], "fixed": 3.0})
    source.add(Float("depth", (0.0, 1.0)))
    source.add(EqualsCondition(source["depth"], source["on"], True))
    space = compile_space(source)
    X = space.encode([{"on": False}, {"on": True, "depth": 0.5}])
    assert forest_features(space, X)[:, :3].tolist() == [[-1.0, 0.0, 1.0], [0.5, 1.0, 0.0]]
    assert forest_features(space, X).shape[1] == 6


def test_a_tuned_forest_ranks_unseen_points_and_predicts_logarithms() -> None:
    space, X, y = measured()
    tuned = tune_forest(space, X, y, settings=TINY)
    _, Q, truth = measured(300, seed=1)
    prediction = tuned.forest.predict(forest_features(space, Q))
    assert tuned.spearman > 0.85
    assert module.spearman(prediction, truth) > 0.85
    assert np.median(np.abs(np.exp(prediction) / truth - 1)) < 0.2
    assert tuned.forest.roots.size == TINY.final_trees


def test_an_error_of_zero_is_the_logarithm_of_the_shift() -> None:
    space, X, _ = measured(40)
    tuned = tune_forest(space, X, np.zeros(40), settings=TINY)
    np.testing.assert_allclose(tuned.forest.bounds(), np.log(1e-10), rtol=1e-14)


def test_the_same_data_give_the_same_forest_bitwise() -> None:
    space, X, y = measured()
    one, other = (tune_forest(space, X, y, settings=TINY) for _ in range(2))
    assert (one.spearman, one.settings) == (other.spearman, other.settings)
    np.testing.assert_array_equal(one.forest.words, other.forest.words)
    np.testing.assert_array_equal(one.forest.value, other.forest.value)


def test_another_seed_gives_another_forest() -> None:
    space, X, y = measured()
    other = TuneSettings(candidates=3, folds=3, trees=10, final_trees=20, seed=2)
    forests = [tune_forest(space, X, y, settings=settings).forest for settings in (TINY, other)]
    assert forests[0].words.tobytes() != forests[1].words.tobytes()


def test_the_paper_draws_thirty_candidates_from_all_of_the_ranges() -> None:
    drawn = list(module._candidates(TuneSettings()))
    assert len(drawn) == 30
    many = list(module._candidates(TuneSettings(candidates=3000)))
    assert many[:30] == drawn
    assert {trees.min_samples_split for trees in many} == set(range(2, 21))
    assert {trees.min_samples_leaf for trees in many} == set(range(1, 21))
    assert 0.5 <= min(trees.max_features for trees in many) < 0.52
    assert 0.98 < max(trees.max_features for trees in many) <= 1.0
    assert 0.45 < np.mean([trees.bootstrap for trees in many]) < 0.55
    # on a log scale, half of the leaves are smaller than the geometric mean of the ends
    assert 0.45 < np.mean([trees.min_samples_leaf <= np.sqrt(0.5 * 20.5) for trees in many]) < 0.55


def test_on_ranks_half_of_the_candidates_cut_at_random() -> None:
    many = list(module._candidates(TuneSettings(candidates=1000, scale="rank")))
    assert 0.45 < np.mean([trees.random_splits for trees in many]) < 0.55
    assert not any(trees.random_splits for trees in module._candidates(TuneSettings()))


def test_ranks_turn_into_errors_and_back() -> None:
    y = np.array([0.3, 0.0, 0.1, 0.0, 0.7])
    ranks = to_target(y, "rank")
    np.testing.assert_allclose(ranks, [0.7, 0.2, 0.5, 0.2, 0.9], rtol=1e-15)
    np.testing.assert_array_equal(to_error(ranks, y, "rank"), y)
    np.testing.assert_allclose(to_error(np.array([0.0, 0.35, 0.8, 1.0]), y, "rank"), [0.0, 0.05, 0.5, 0.7])
    assert to_error(to_target(np.array([0.2, 0.2]), "rank"), np.array([0.2, 0.2]), "rank").tolist() == [0.2, 0.2]


def test_where_the_best_errors_are_zero_ranks_tell_the_others_apart() -> None:
    space, X, y = measured(150)
    y = np.where(np.random.default_rng(5).random(150) < 0.1, 0.0, y)
    settings = TuneSettings(candidates=3, folds=5, trees=30, final_trees=30)
    by_rank = tune_forest(space, X, y, settings=replace(settings, scale="rank"))
    assert by_rank.spearman > tune_forest(space, X, y, settings=settings).spearman


class Scripted:
    """Stands for the forests: the correlation of every fit is read from a table (candidates, folds)."""

    def __init__(self, table: list[list[float]]) -> None:
        self.table, self.fits = table, [0] * len(table)
        self.seen: list[TreeSettings] = []

    def model(self, trees: TreeSettings, *_: int) -> Any:
        if trees not in self.seen:
            self.seen.append(trees)
        self.now = self.seen.index(trees)
        return self

    def fit(self, *_: np.ndarray) -> Scripted:
        return self

    def predict(self, features: np.ndarray) -> np.ndarray:
        return features[:, 0]

    def score(self, *_: Any) -> float:
        self.fits[self.now] += 1
        return self.table[self.now][self.fits[self.now] - 1]


def searched(table: list[list[float]], monkeypatch: pytest.MonkeyPatch) -> tuple[Scripted, int, float]:
    script = Scripted(table)
    monkeypatch.setattr(module, "_model", script.model)
    monkeypatch.setattr(module, "spearman", script.score)
    settings = TuneSettings(candidates=len(table), folds=len(table[0]))
    trees, score = module._search(np.zeros((40, 1)), np.zeros(40), settings)
    return script, script.seen.index(trees) if trees in script.seen else -1, score


def test_the_best_mean_correlation_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    script, winner, score = searched([[0.8, 0.8], [0.795, 0.95], [0.86, 0.86]], monkeypatch)
    assert (winner, score) == (1, pytest.approx(0.8725))
    assert script.fits[0] == 2


def test_of_equals_the_first_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    assert searched([[0.8, 0.8], [0.8, 0.8]], monkeypatch)[1] == 0


def test_a_candidate_behind_the_best_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    script, winner, _ = searched([[0.9, 0.9, 0.9], [0.5, 0.9, 0.9]], monkeypatch)
    assert (winner, script.fits) == (0, [3, 1])


def test_a_hard_fold_alone_does_not_end_a_candidate(monkeypatch: pytest.MonkeyPatch) -> None:
    # behind the mean of the best, but not behind the best on that fold
    script, winner, _ = searched([[0.5, 0.9, 0.9], [0.6, 0.9, 0.9]], monkeypatch)
    assert (winner, script.fits) == (1, [3, 3])


def test_the_slack_shrinks_with_every_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    # 0.75 % behind everywhere: within 1 %, but not within 0.7 % after four folds; the mean must be 1 % behind as well
    best = [0.80, 0.80, 0.80, 0.80, 1.0]
    script, _, _ = searched([best, [0.9925 * score for score in best]], monkeypatch)
    assert script.fits == [5, 4]


def test_nan_in_a_fold_disqualifies(monkeypatch: pytest.MonkeyPatch) -> None:
    script, winner, score = searched([[0.9, math.nan, 0.9], [0.3, 0.3, 0.3]], monkeypatch)
    assert (winner, score, script.fits) == (1, pytest.approx(0.3), [2, 3])


def test_where_errors_are_constant_the_default_settings_are_used() -> None:
    space, X, _ = measured(30)
    tuned = tune_forest(space, X, np.full(30, 0.25), settings=TINY)
    assert tuned.settings == TreeSettings()
    assert math.isnan(tuned.spearman)
    np.testing.assert_allclose(tuned.forest.predict(forest_features(space, X)), np.log(0.25 + 1e-10))


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5])
def test_few_points_make_a_forest(n: int) -> None:
    space, X, y = measured(n)
    tuned = tune_forest(space, X, y, settings=TINY)
    assert tuned.forest.predict(forest_features(space, X)).shape == (n,)
    if n < 4:
        assert math.isnan(tuned.spearman)


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.zeros((2, 2)), np.ones(2), r"expected points \(n, 3\)"),
        (np.zeros((2, 3)), np.ones(3), r"got shapes \(2, 3\) and \(3,\)"),
        (np.zeros((0, 3)), np.ones(0), "n >= 1"),
        (
            np.zeros((2, 3)),
            np.array([0.1, -0.1]),
            "row 1: expected a finite error >= 0, since the forest predicts logarithms; got -0.1",
        ),
        (np.zeros((2, 3)), np.array([np.nan, 0.1]), "row 0: expected a finite error >= 0, since .* got nan"),
        (np.array([[0.0, np.nan, 1.0]]), np.ones(1), "row 0: 'b' is active, but its cell is nan"),
    ],
)
def test_data_that_make_no_sense_are_refused(X: np.ndarray, y: np.ndarray, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tune_forest(measured(1)[0], X, y, settings=TINY)


def test_a_space_without_choice_is_refused() -> None:
    with pytest.raises(InputError, match="no hyperparameter with more than one value"):
        tune_forest(compile_space({"a": 1}), np.zeros((3, 1)), np.ones(3), settings=TINY)


@pytest.mark.parametrize("name", ["candidates", "folds", "trees", "final_trees", "seed"])
def test_settings_that_make_no_forest_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} >= "):
        TuneSettings(**{name: -1})


def test_an_unknown_scale_is_refused() -> None:
    with pytest.raises(InputError, match="expected the scale 'log' or 'rank', got 'ln'"):
        TuneSettings(scale="ln")  # type: ignore[arg-type]


def test_negative_errors_have_ranks() -> None:
    space, X, y = measured(60)
    settings = replace(TINY, scale="rank")
    lower = tune_forest(space, X, y - 5.0, settings=settings)
    assert lower.spearman == tune_forest(space, X, y, settings=settings).spearman


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'recollect\[bench\]'"):
        tune_forest(*measured(10), settings=TINY)
