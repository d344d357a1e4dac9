"""`TransferSearchCV` beyond what scikit-learn checks: what it finds, what it remembers, what it does when fits fail."""

from __future__ import annotations

import pickle
import re
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float
from optuna.storages import InMemoryStorage
from optuna.trial import TrialState
from scipy.sparse import coo_array, csr_array
from scipy.stats import loguniform
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.cluster import KMeans
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.dummy import DummyClassifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression, Ridge, SGDClassifier
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import GridSearchCV, GroupKFold, RandomizedSearchCV, ShuffleSplit, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.tree import DecisionTreeClassifier

from recollect import InputError, RecollectWarning, SpaceError
from recollect.integrations.sklearn import search as search_module
from recollect.integrations.sklearn.names import data_name, default_problem, pickled
from recollect.integrations.sklearn.search import DEFAULT_TRIALS, TransferSearchCV, without_irrelevant_params
from recollect.storage.memory import Memory

ROOT = Path(__file__).parents[2]
IRIS = load_iris(return_X_y=True)
TREE = {"max_depth": [1, 2, 3], "criterion": ["gini", "entropy"]}
SMOOTH = {"var_smoothing": (1e-12, 1.0, "log")}


def data(seed: int, rows: int = 60) -> tuple[Any, Any]:
    return make_classification(rows, 5, flip_y=0.2, random_state=seed)


def search(estimator: Any, space: Any, **settings: Any) -> TransferSearchCV:
    return TransferSearchCV(estimator, space, **{"cv": 3, "random_state": 0, **settings})


def smooth(**settings: Any) -> TransferSearchCV:
    return search(GaussianNB(), SMOOTH, **{"trials": 3, "method": "gp", **settings})


class Brittle(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Fails for bad values, always or where the first row is of class 1; counts fits, and stops as Ctrl-C would."""

    fits = 0
    most: int | None = None

    def __init__(self, value: str = "good", other: int = 0) -> None:
        self.value, self.other = value, other

    def fit(self, X: Any, y: Any) -> Brittle:  # noqa: ARG002 - the interface of estimators
        if Brittle.most is not None and Brittle.fits >= Brittle.most:
            raise KeyboardInterrupt
        Brittle.fits += 1
        if self.value == "bad" or (self.value == "half" and y[0] == 1):
            raise ArithmeticError(f"cannot fit {self.value}")
        self.classes_ = np.unique(y)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.classes_[self.other])


@pytest.fixture
def brittle(monkeypatch: pytest.MonkeyPatch) -> type[Brittle]:
    monkeypatch.setattr(Brittle, "fits", 0)
    monkeypatch.setattr(Brittle, "most", None)
    return Brittle


@pytest.fixture
def storage() -> InMemoryStorage:
    return InMemoryStorage()


HALVES = [(np.arange(1, 30), np.arange(30, 60)), (np.arange(30, 60), np.arange(1, 30))]
Y = np.r_[np.ones(30, dtype=int), np.zeros(30, dtype=int)]  # the first row of the first half is of class 1
X = np.arange(120.0).reshape(60, 2)


class TestResults:
    def test_a_search_of_all_candidates_finds_what_grid_search_finds(self) -> None:
        settings = {"cv": 3, "return_train_score": True, "scoring": ["accuracy", "f1_macro"], "refit": "f1_macro"}
        tree = DecisionTreeClassifier(random_state=0)
        ours = search(tree, TREE, trials=6, **settings).fit(*IRIS)
        grid = GridSearchCV(tree, TREE, **settings).fit(*IRIS)
        assert ours.cv_results_.keys() == grid.cv_results_.keys()
        order = [ours.cv_results_["params"].index(params) for params in grid.cv_results_["params"]]
        for name in ours.cv_results_:
            if "score" in name and "time" not in name:
                np.testing.assert_allclose(ours.cv_results_[name][order], grid.cv_results_[name], rtol=1e-14)
        for name in ("param_max_depth", "param_criterion"):
            assert list(ours.cv_results_[name][order]) == list(grid.cv_results_[name])
        assert ours.best_score_ == pytest.approx(grid.best_score_)
        assert ours.best_params_ == ours.cv_results_["params"][ours.best_index_]
        assert (ours.cv_results_["mean_fit_time"] > 0).all()

    def test_a_space_smaller_than_the_trials_is_tried_once(self) -> None:
        found = search(DecisionTreeClassifier(), {"max_depth": [1, 2]}, trials=9).fit(*IRIS)
        assert sorted(found.cv_results_["param_max_depth"]) == [1, 2]

    def test_the_best_candidate_is_fitted_to_all_data_and_stands_for_the_search(self) -> None:
        found = search(LogisticRegression(), {"C": (0.01, 1.0, "log")}, trials=2).fit(*IRIS)
        alone = LogisticRegression(**found.best_params_).fit(*IRIS)
        for method in ("predict", "predict_proba", "predict_log_proba", "decision_function"):
            np.testing.assert_array_equal(getattr(found, method)(IRIS[0]), getattr(alone, method)(IRIS[0]))
        assert found.score(*IRIS) == alone.score(*IRIS)
        assert found.classes_.tolist() == [0, 1, 2]
        assert found.n_features_in_ == 4

    def test_transformers_can_be_searched(self) -> None:
        found = search(LinearDiscriminantAnalysis(), {"n_components": [1, 2]}, trials=2).fit(*IRIS)
        assert found.transform(IRIS[0]).shape == (150, found.best_params_["n_components"])

    def test_without_refit_there_is_no_prediction(self) -> None:
        found = smooth(refit=False).fit(*IRIS)
        assert found.best_params_ == found.cv_results_["params"][found.best_index_]
        with pytest.raises(AttributeError, match="predict"):
            found.predict(IRIS[0])

    def test_a_callable_chooses_the_candidate(self) -> None:
        found = smooth(refit=lambda results: int(np.argmin(results["mean_test_score"]))).fit(*IRIS)
        assert found.best_index_ == np.argmin(found.cv_results_["mean_test_score"])

    def test_the_same_seed_gives_the_same_search(self) -> None:
        first, again, other = (smooth(random_state=seed).fit(*IRIS) for seed in (1, 1, 2))
        assert first.cv_results_["params"] == again.cv_results_["params"] != other.cv_results_["params"]

    def test_all_candidates_see_the_same_folds_though_these_are_drawn_at_random(self) -> None:
        space = {"constant": [0, 1], "strategy": ["most_frequent"]}
        found = search(DummyClassifier(), space, trials=2, cv=ShuffleSplit(4)).fit(*data(0))
        scores = np.array([found.cv_results_[f"split{split}_test_score"] for split in range(4)])
        assert len(np.unique(scores[:, 0])) > 1
        np.testing.assert_array_equal(scores[:, 0], scores[:, 1])

    def test_folds_may_come_from_a_generator(self, storage: InMemoryStorage) -> None:
        found = smooth(cv=(fold for fold in HALVES), memory=storage).fit(*data(0))
        assert found.cv_results_["split1_test_score"].shape == (3,)
        again = smooth(cv=(fold for fold in HALVES), memory=storage).fit(*data(0))
        assert again.task_ != found.task_  # nobody can tell that these are the same folds

    def test_conditions_of_the_space_are_kept(self) -> None:
        space = ConfigurationSpace(seed=0)
        penalty, ratio = Categorical("penalty", ["l2", "elasticnet"]), Float("l1_ratio", (0.0, 1.0))
        space.add(penalty, ratio, EqualsCondition(ratio, penalty, "elasticnet"))
        found = search(SGDClassifier(random_state=0), space, trials=6).fit(*IRIS)
        masked = np.ma.getmaskarray(found.cv_results_["param_l1_ratio"])
        assert masked.tolist() == [params["penalty"] == "l2" for params in found.cv_results_["params"]]
        assert 0 < masked.sum() < 6

    @pytest.mark.parametrize(
        ("choices", "text"),
        [([(5,), (5, 5)], "(5,)"), ([StandardScaler(), MinMaxScaler()], "StandardScaler()"), ([np.log1p, len], "len")],
    )
    def test_choices_that_cannot_be_stored_go_by_their_text(
        self, choices: list[Any], text: str, storage: InMemoryStorage
    ) -> None:
        class Free(DummyClassifier):  # type: ignore[misc]
            def __init__(self, choice: Any = None) -> None:
                super().__init__()
                self.choice = choice

        found = search(Free(), {"choice": choices}, trials=2, memory=storage, problem="free", task="iris").fit(*IRIS)
        assert {str(choice) for choice in found.cv_results_["param_choice"]} == set(map(str, choices))
        assert text in {config["choice"] for config in Memory(storage).run("iris", "free").configs}

    def test_choices_that_read_alike_are_refused(self) -> None:
        with pytest.raises(SpaceError, match="'C': choices must differ as text"):
            search(LogisticRegression(), {"C": [lambda: 1, lambda: 2]}).fit(*IRIS)


class TestMetrics:
    METRICS = ("accuracy", "f1_macro")

    @pytest.mark.parametrize("refit", ["accuracy", "f1_macro", False])
    def test_of_several_metrics_the_one_that_refit_names_is_maximized_otherwise_the_first(
        self, refit: Any, storage: InMemoryStorage
    ) -> None:
        found = smooth(scoring=self.METRICS, refit=refit, memory=storage).fit(*data(0))
        run = Memory(storage).run(found.task_, found.problem_)
        mean = found.cv_results_[f"mean_test_{refit or 'accuracy'}"]
        np.testing.assert_allclose(run.values, mean, rtol=1e-14)
        assert run.direction == "maximize"

    def test_a_function_may_give_several_metrics(self) -> None:
        def scoring(estimator: Any, X: Any, y: Any) -> dict[str, float]:
            return {"good": estimator.score(X, y), "bad": -estimator.score(X, y)}

        found = smooth(scoring=scoring, refit="bad").fit(*data(0))
        assert found.best_score_ == found.cv_results_["mean_test_bad"].max()

    def test_several_metrics_need_one_to_refit_by(self) -> None:
        with pytest.raises(ValueError, match="refit must be set to a scorer key"):
            smooth(scoring=self.METRICS).fit(*IRIS)


class TestInput:
    def test_tables_keep_the_names_of_their_columns(self, storage: InMemoryStorage) -> None:
        table = pd.DataFrame(IRIS[0], columns=list("abcd"))
        found = smooth(memory=storage).fit(table, pd.Series(IRIS[1]))
        assert found.feature_names_in_.tolist() == list("abcd")

    def test_sparse_matrices_are_taken(self, storage: InMemoryStorage) -> None:
        found = search(LogisticRegression(), {"C": (0.1, 1.0)}, trials=2, memory=storage)
        assert found.fit(csr_array(IRIS[0]), IRIS[1]).score(*IRIS) > 0.8

    def test_groups_reach_the_folds(self) -> None:
        found = smooth(cv=GroupKFold(2)).fit(*data(0), groups=np.arange(60) % 2)
        assert found.n_splits_ == 2
        with pytest.raises(ValueError, match="'groups' parameter should not be None"):
            smooth(cv=GroupKFold(2)).fit(*data(0))

    def test_weights_reach_the_fits_and_the_scores_as_in_grid_search(self) -> None:
        weights = np.linspace(0.1, 9.0, 60)
        given = smooth(cv=HALVES).fit(*data(0), sample_weight=weights)
        grid = {name: [value] for name, value in given.best_params_.items()}
        same = GridSearchCV(GaussianNB(), grid, cv=HALVES).fit(*data(0), sample_weight=weights)
        without = GridSearchCV(GaussianNB(), grid, cv=HALVES).fit(*data(0))
        scores = [given.cv_results_[f"split{split}_test_score"][given.best_index_] for split in (0, 1)]
        assert scores == [same.cv_results_[f"split{split}_test_score"][0] for split in (0, 1)]
        assert scores != [without.cv_results_[f"split{split}_test_score"][0] for split in (0, 1)]
        np.testing.assert_array_equal(given.best_estimator_.theta_, same.best_estimator_.theta_)

    def test_metadata_are_routed(self) -> None:
        with sklearn.config_context(enable_metadata_routing=True):
            estimator = GaussianNB().set_fit_request(sample_weight=True)
            scoring = make_scorer(f1_score).set_score_request(sample_weight=False)
            found = search(estimator, SMOOTH, trials=2, scoring=scoring, cv=GroupKFold(2))
            found.fit(*data(0), sample_weight=np.arange(60.0), groups=np.arange(60) % 2)
            weighed = GaussianNB(**found.best_params_).fit(*data(0), sample_weight=np.arange(60.0))
        np.testing.assert_array_equal(found.best_estimator_.theta_, weighed.theta_)

    @pytest.mark.parametrize(
        ("settings", "error"),
        [({"trials": 0}, "trials"), ({"method": "nonsense"}, "nonsense"), ({"seconds": -1}, "seconds")],
    )
    def test_settings_that_make_no_sense_are_refused(self, settings: dict[str, Any], error: str) -> None:
        with pytest.raises(InputError, match=error):
            smooth(**settings).fit(*IRIS)

    @pytest.mark.parametrize(
        ("settings", "error"),
        [
            ({"estimator": object()}, "'estimator' parameter of TransferSearchCV must be an object implementing 'fit'"),
            ({"cv": "three"}, "'cv' parameter of TransferSearchCV must be"),
            ({"error_score": "ignore"}, "'error_score' parameter of TransferSearchCV must be"),
        ],
    )
    def test_what_scikit_learn_refuses_is_refused_in_its_words(self, settings: dict[str, Any], error: str) -> None:
        with pytest.raises(ValueError, match=error):
            smooth().set_params(**settings).fit(*IRIS)

    def test_a_parameter_that_the_estimator_does_not_have_is_an_error_at_once(self, storage: InMemoryStorage) -> None:
        unknown = search(GaussianNB(), {"nonsense": (0.0, 1.0)}, memory=storage, problem="p", task="t")
        with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
            unknown.fit(*IRIS)
        assert not Memory(storage).run("t", "p").trials


class TestCopies:
    def test_parameters_can_be_read_set_and_cloned(self) -> None:
        original = smooth(memory="some.db", seconds=3.0)
        copied = clone(original).set_params(trials=7, estimator__priors=[0.5, 0.5])
        assert copied.get_params()["trials"] == 7
        assert copied.memory == "some.db"
        assert copied.estimator.priors == [0.5, 0.5]
        assert original.estimator.priors is None
        assert clone(original).get_params(deep=False).keys() == original.get_params(deep=False).keys()

    def test_a_fitted_search_can_be_pickled(self, tmp_path: Path) -> None:
        found = smooth(memory=tmp_path / "memory.db").fit(*IRIS)
        back = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(back.predict(IRIS[0]), found.predict(IRIS[0]))
        assert str(back.explanation_) == str(found.explanation_)

    def test_it_works_inside_cross_validation(self) -> None:
        assert cross_val_score(smooth(), *IRIS, cv=3).min() > 0.8


class TestMemory:
    def test_every_fit_learns_from_the_fits_before_on_other_data(self, storage: InMemoryStorage) -> None:
        fits = [smooth(memory=storage, method="rgpe-taf").fit(*data(seed)) for seed in range(3)]
        tasks = [found.task_ for found in fits]
        assert len(set(tasks)) == 3
        assert [[entry.task for entry in found.explanation_.past] for found in fits] == [[], tasks[:1], tasks[:2]]
        assert all(entry.used for entry in fits[2].explanation_.past)
        assert {found.problem_ for found in fits} == {"GaussianNB: accuracy"}

    def test_a_fit_on_the_same_data_tries_nothing_again_and_is_not_its_own_past(
        self, brittle: type[Brittle], storage: InMemoryStorage
    ) -> None:
        searching = search(Brittle(), {"other": [0, 1]}, trials=2, memory=storage)
        first = searching.fit(*IRIS).cv_results_
        brittle.fits = 0
        again = clone(searching).set_params(memory=storage).fit(IRIS[0].copy(order="F"), IRIS[1].copy())
        assert brittle.fits == 3 + 1  # the folds of the best candidate, and refitting it
        assert again.cv_results_["params"] == first["params"]
        np.testing.assert_array_equal(again.cv_results_["split2_test_score"], first["split2_test_score"])
        assert not again.explanation_.past
        assert len(Memory(storage).run(again.task_, "Brittle: accuracy")) == 2

    def test_a_fit_with_more_trials_continues(self, storage: InMemoryStorage) -> None:
        few = smooth(memory=storage).fit(*IRIS)
        more = smooth(memory=storage, trials=5).fit(*IRIS)
        assert more.task_ == few.task_
        assert more.cv_results_["params"][:3] == few.cv_results_["params"]
        assert len(more.cv_results_["params"]) == len(Memory(storage).run(more.task_, "GaussianNB: accuracy")) == 5
        np.testing.assert_array_equal(more.cv_results_["mean_fit_time"][:3], few.cv_results_["mean_fit_time"])

    def test_training_scores_that_were_not_asked_for_before_are_nan(self, storage: InMemoryStorage) -> None:
        smooth(memory=storage).fit(*IRIS)
        with pytest.warns(UserWarning, match="train scores are non-finite"):
            more = smooth(memory=storage, trials=4, return_train_score=True).fit(*IRIS)
        assert np.isnan(more.cv_results_["mean_train_score"]).tolist() == [True] * 3 + [False]

    def test_an_interrupted_fit_is_resumed(self, brittle: type[Brittle], storage: InMemoryStorage) -> None:
        searching = search(Brittle(), {"other": [0, 1], "value": ["x", "y"]}, trials=4, memory=storage)
        brittle.most = 2 * 3 + 1
        with pytest.raises(KeyboardInterrupt):
            searching.fit(*IRIS)
        brittle.most = None
        assert len(searching.fit(*IRIS).cv_results_["params"]) == 4
        assert brittle.fits == 7 + 2 * 3 + 1

    @pytest.mark.parametrize(
        "change",
        [
            {"cv": 2},
            {"scoring": "f1_macro"},
            {"scoring": lambda estimator, X, y: estimator.score(X, y) / 2},
            {"estimator": GaussianNB(priors=[0.2, 0.3, 0.5])},
            {"space": {"var_smoothing": (1e-6, 1.0, "log")}},
            {"error_score": 0.0},
        ],
        ids=["folds", "scoring", "scorer", "estimator", "space", "error score"],
    )
    def test_data_that_are_scored_in_another_way_are_another_task(
        self, change: dict[str, Any], storage: InMemoryStorage
    ) -> None:
        before = smooth(memory=storage, problem="bayes", trials=2).fit(*IRIS)
        after = smooth(memory=storage, problem="bayes", trials=2).set_params(**change).fit(*IRIS)
        assert after.task_ != before.task_
        assert after.task_.partition("-")[0] == before.task_.partition("-")[0]
        assert [entry.task for entry in after.explanation_.past] == [before.task_]

    @pytest.mark.parametrize(
        "change", [{"n_jobs": 1}, {"verbose": 0}, {"refit": False}, {"estimator__var_smoothing": 3}]
    )
    def test_what_does_not_change_a_score_is_the_same_task(
        self, change: dict[str, Any], storage: InMemoryStorage
    ) -> None:
        before = smooth(memory=storage, trials=2).fit(*IRIS)
        assert smooth(memory=storage, trials=2).set_params(**change).fit(*IRIS).task_ == before.task_

    def test_parameters_without_effect_on_scores_do_not_matter(self, storage: InMemoryStorage) -> None:
        tasks = {
            search(SGDClassifier(random_state=0, n_jobs=n), {"alpha": (1e-5, 1e-1)}, trials=2, memory=storage)
            .fit(*IRIS)
            .task_
            for n in (None, 1)
        }
        assert len(tasks) == 1

    def test_names_can_be_given(self, storage: InMemoryStorage) -> None:
        found = smooth(memory=storage, problem="bayes", task="flowers").fit(*IRIS)
        assert (found.problem_, found.task_) == ("bayes", "flowers")
        assert Memory(storage).run("flowers", "bayes").best.value == pytest.approx(found.best_score_)

    @pytest.mark.parametrize("change", [{"cv": 2}, {"scoring": "f1_macro"}])
    def test_a_named_task_that_was_scored_in_another_way_is_refused(
        self, change: dict[str, Any], storage: InMemoryStorage
    ) -> None:
        smooth(memory=storage, problem="bayes", task="flowers").fit(*IRIS)
        with pytest.raises(InputError, match="'flowers' of problem 'bayes' has trials that were scored differently"):
            smooth(memory=storage, problem="bayes", task="flowers").set_params(**change).fit(*IRIS)
        assert len(Memory(storage).run("flowers", "bayes")) == 3

    def test_parameters_of_earlier_fits_can_be_renamed(self, storage: InMemoryStorage) -> None:
        smooth(memory=storage, problem="p", task="old").fit(*IRIS)
        bagged = search(OneVsRestClassifier(GaussianNB()), {"estimator__var_smoothing": (1e-12, 1.0, "log")}, trials=2)
        bagged.set_params(memory=storage, problem="p", task="new", rename={"var_smoothing": "estimator__var_smoothing"})
        assert [(entry.task, entry.used) for entry in clone(bagged).fit(*IRIS).explanation_.past] == [("old", True)]

    def test_tags_and_a_note_are_stored_with_the_run(self, storage: InMemoryStorage) -> None:
        smooth(memory=storage, problem="p", task="t", tags=["gpu", "new"], note="second data").fit(*IRIS)
        (stored,) = Memory(storage).stored_runs("p", tags="gpu")
        assert (stored.tags, stored.note) == (("gpu", "new"), "second data")

    def test_a_range_of_integers_where_earlier_fits_had_floats_is_warned_about(self, storage: InMemoryStorage) -> None:
        settings: dict[str, Any] = {"memory": storage, "problem": "p", "trials": 3, "method": "random"}
        search(Ridge(), {"alpha": (0.5, 9.5)}, **settings).fit(*data(0))
        with (
            pytest.warns(RecollectWarning, match="'alpha' is a range of integers"),
            pytest.warns(RecollectWarning, match="left out"),
        ):
            search(Ridge(), {"alpha": (1, 9)}, **settings).fit(*data(1))

    def test_runs_of_other_spaces_are_left_out_and_named(self, storage: InMemoryStorage) -> None:
        search(DecisionTreeClassifier(), TREE, trials=2, memory=storage, problem="p", task="tree").fit(*IRIS)
        with pytest.warns(RecollectWarning, match="not used as past runs.*'tree'"):
            smooth(memory=storage, problem="p").fit(*IRIS)

    @pytest.mark.parametrize(
        ("estimator", "scoring", "metric", "name"),
        [
            (GaussianNB(), None, None, "GaussianNB: accuracy"),
            (GaussianNB(), "accuracy", None, "GaussianNB: accuracy"),
            (Ridge(), None, None, "Ridge: r2"),
            (KMeans(), None, None, "KMeans: score"),
            (GaussianNB(), ["f1_macro", "accuracy"], None, "GaussianNB: f1_macro"),
            (GaussianNB(), {"a": "accuracy", "f": "f1_macro"}, "f", "GaussianNB: f"),
            (GaussianNB(), make_scorer(f1_score, average="macro"), None, None),
            (
                make_pipeline(StandardScaler(), GaussianNB()),
                None,
                None,
                "Pipeline(StandardScaler, GaussianNB): accuracy",
            ),
            (make_pipeline(StandardScaler(), Ridge()), None, None, "Pipeline(StandardScaler, Ridge): r2"),
            (OneVsRestClassifier(GaussianNB()), None, None, "OneVsRestClassifier(GaussianNB): accuracy"),
            (
                make_pipeline(ColumnTransformer([("x", StandardScaler(), [0]), ("y", "drop", [1])]), GaussianNB()),
                *(None, None, "Pipeline(ColumnTransformer(StandardScaler), GaussianNB): accuracy"),
            ),
        ],
    )
    def test_problems_are_named_by_classes_and_metric(
        self, estimator: Any, scoring: Any, metric: str | None, name: str | None
    ) -> None:
        found = default_problem(estimator, scoring, metric, ())
        assert found == name if name else "f1_score" in found

    def test_a_step_that_is_searched_is_named_and_long_names_are_cut(self) -> None:
        pipeline = make_pipeline(StandardScaler(), GaussianNB())
        assert (
            default_problem(pipeline, None, None, {"standardscaler"})
            == "Pipeline(standardscaler, GaussianNB): accuracy"
        )
        names = {default_problem(make_pipeline(*[StandardScaler()] * n, Ridge()), None, None, ()) for n in (40, 41)}
        assert len(names) == 2
        assert max(map(len, names)) <= 201

    def test_the_accuracy_of_one_model_is_no_past_run_of_the_loss_of_another(self, storage: InMemoryStorage) -> None:
        for model, scoring in ((GaussianNB(), None), (DecisionTreeClassifier(), None), (GaussianNB(), "neg_log_loss")):
            space = SMOOTH if isinstance(model, GaussianNB) else TREE
            space = {f"clf__{name}": entry for name, entry in space.items()}
            pipeline = Pipeline([("scale", StandardScaler()), ("clf", model)])
            found = search(pipeline, space, trials=2, memory=storage, scoring=scoring).fit(*IRIS)
            assert found.explanation_.past == ()


class TestRandomizedSearch:
    def test_code_for_randomized_search_needs_another_class_only(self) -> None:
        distributions = {"var_smoothing": loguniform(1e-12, 1.0)}
        for class_ in (RandomizedSearchCV, TransferSearchCV):
            found = class_(GaussianNB(), distributions, n_iter=3, random_state=0, cv=2).fit(*IRIS)
            assert len(found.cv_results_["params"]) == 3
            named = class_(GaussianNB(), param_distributions=distributions, n_iter=3, random_state=0, cv=2)
            assert clone(named).fit(*IRIS).best_params_ == found.best_params_

    @pytest.mark.parametrize("entry", [[(3,), (4, 2)], {"choices": [(3,), (4, 2)]}])
    def test_choices_of_any_kind_are_taken_in_both_notations(self, entry: Any, storage: InMemoryStorage) -> None:
        layers = {"hidden_layer_sizes": entry}
        found = search(MLPClassifier(max_iter=2), layers, trials=2, method="random", memory=storage, problem="mlp")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found.fit(*data(0))
        assert {tuple(params["hidden_layer_sizes"]) for params in found.cv_results_["params"]} == {(3,), (4, 2)}

    def test_a_list_of_dicts_tries_only_what_one_of_them_has(self) -> None:
        grids = [
            {
                "scale": [StandardScaler()],
                "scale__with_mean": [True, False],
                "clf__var_smoothing": np.logspace(-9, 0, 4),
            },
            {"scale": [MinMaxScaler()], "clf__var_smoothing": np.logspace(-9, 0, 4)},
        ]
        pipeline = Pipeline([("scale", StandardScaler()), ("clf", GaussianNB())])
        found = TransferSearchCV(pipeline, grids, n_iter=12, cv=2, random_state=0).fit(*IRIS)
        assert len(found.cv_results_["params"]) == 12
        for params in found.cv_results_["params"]:
            assert ("scale__with_mean" in params) == isinstance(params["scale"], StandardScaler)

    @pytest.mark.parametrize(
        "arguments",
        [
            {},
            {"space": SMOOTH, "param_distributions": SMOOTH},
            {"space": SMOOTH, "trials": 3, "n_iter": 4},
            {"space": SMOOTH, "trials": DEFAULT_TRIALS, "n_iter": 4},
        ],
    )
    def test_one_name_of_an_argument_is_enough(self, arguments: dict[str, Any]) -> None:
        with pytest.raises(InputError, match=r"as in RandomizedSearchCV; got (neither|both)"):
            TransferSearchCV(GaussianNB(), **arguments).fit(*IRIS)

    def test_without_a_budget_the_default_one_is_spent(self) -> None:
        found = search(GaussianNB(), SMOOTH, method="random", cv=2).fit(*IRIS)
        assert len(found.cv_results_["params"]) == DEFAULT_TRIALS


FAILS = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::sklearn.exceptions.FitFailedWarning")


class TestFailures:
    def searching(self, *values: str, **settings: Any) -> TransferSearchCV:
        space = {"value": list(values or ("good", "half", "bad"))}
        return search(Brittle(), space, **{"trials": 3, "cv": HALVES, "problem": "p", "task": "t", **settings})

    @FAILS
    def test_candidates_that_fail_have_no_score_and_are_failed_trials(self, storage: InMemoryStorage) -> None:
        found = self.searching(memory=storage).fit(X, Y)
        values = found.cv_results_["param_value"]
        scores = np.transpose([found.cv_results_[f"split{split}_test_score"] for split in (0, 1)])
        rows = dict(zip(values, scores, strict=True))
        assert np.isnan(rows["bad"]).tolist() == [True, True]
        assert np.isnan(rows["half"]).tolist() == [True, False]
        assert np.isnan(rows["good"]).tolist() == [False, False]
        assert found.best_params_ == {"value": "good"}
        trials = {trial.config["value"]: trial for trial in Memory(storage).run("t", "p").trials}
        assert [trials[value].ok for value in ("good", "half", "bad")] == [True, False, False]
        for value in ("half", "bad"):
            assert trials[value].notes[0] == f"ArithmeticError: cannot fit {value}"

    def test_failures_are_warned_of(self) -> None:
        with pytest.warns() as given:
            self.searching().fit(X, Y)
        kinds = [warning.category for warning in given]
        assert sorted(kind.__name__ for kind in kinds) == [
            *["FailedTrialWarning"] * 2,
            "FitFailedWarning",
            "UserWarning",
        ]
        assert any("trial" in str(warning.message) and "cannot fit bad" in str(warning.message) for warning in given)

    @FAILS
    def test_failed_candidates_are_remembered(self, brittle: type[Brittle], storage: InMemoryStorage) -> None:
        first = self.searching(memory=storage).fit(X, Y)
        brittle.fits = 0
        again = self.searching(memory=storage).fit(X, Y)
        assert brittle.fits == 2 + 1
        np.testing.assert_array_equal(again.cv_results_["mean_test_score"], first.cv_results_["mean_test_score"])

    @FAILS
    def test_a_score_can_be_given_to_folds_that_fail(self, storage: InMemoryStorage) -> None:
        found = self.searching(memory=storage, error_score=-1.0, return_train_score=True).fit(X, Y)
        assert found.cv_results_["mean_test_score"].min() == found.cv_results_["mean_train_score"].min() == -1.0
        assert all(trial.ok for trial in Memory(storage).run("t", "p").trials)

    def test_an_error_is_raised_on_demand_and_its_trial_counts_for_nothing(self, storage: InMemoryStorage) -> None:
        with pytest.raises(ArithmeticError, match="cannot fit"):
            self.searching(memory=storage, error_score="raise").fit(X, Y)
        assert all(trial.ok for trial in Memory(storage).run("t", "p").trials)
        study = storage.get_study_id_from_name("p/t")
        assert not storage.get_all_trials(study, states=[TrialState.RUNNING])  # or the next fit would wait for it
        with pytest.raises(ArithmeticError, match="cannot fit"):
            self.searching(memory=storage, error_score="raise").fit(X, Y)

    @FAILS
    def test_a_search_in_which_all_fits_fail_says_why(self) -> None:
        with pytest.raises(InputError, match=r"no trial of 't' succeeded.*ArithmeticError: cannot fit"):
            self.searching("bad", "half").fit(X, Y)


class TestParallel:
    @pytest.mark.parametrize(("jobs", "together"), [(1, 1), (3, 1), (4, 2), (7, 3)])
    def test_as_many_candidates_run_together_as_keep_all_jobs_busy(
        self, jobs: int, together: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls: list[int] = []

        class Watched(TransferSearchCV):
            def _format_results(self, params: Any, *others: Any) -> Any:
                calls.append(len(params))
                return super()._format_results(params, *others)

        monkeypatch.setattr(search_module, "effective_n_jobs", lambda _: jobs)
        Watched(GaussianNB(), SMOOTH, trials=7, cv=3, method="random").fit(*data(0))
        assert calls[:2] == [1, 1 + together]  # the first alone: then the number of folds is known
        assert calls[-1] == 7

    @pytest.mark.filterwarnings("ignore")  # scikit-learn changes the filters of all threads
    def test_two_that_fit_the_same_data_share_the_trials(self, storage: InMemoryStorage) -> None:
        searches = [smooth(memory=storage, trials=8, random_state=seed) for seed in (0, 1)]
        with ThreadPoolExecutor(2) as pool:
            one, other = pool.map(lambda searching: searching.fit(*data(0)), searches)
        assert one.cv_results_["params"] == other.cv_results_["params"]
        assert one.best_params_ == other.best_params_
        tried = Memory(storage).run(one.task_, "GaussianNB: accuracy").configs
        assert len(tried) == len({config["var_smoothing"] for config in tried}) == 8

    def test_a_time_limit_ends_the_search(self) -> None:
        assert len(smooth(trials=10_000, seconds=0.2).fit(*data(0)).cv_results_["params"]) < 10_000


class TestNames:
    NUMBERS = np.arange(12.0).reshape(4, 3) % 5

    def name(self, X: Any, y: Any = (0, 1, 0, 1), **others: Any) -> str:
        return data_name(X, np.array(y), others)

    def test_a_name_begins_with_size_and_type(self) -> None:
        assert re.fullmatch("4 x 3 float64 [0-9a-f]{12}", self.name(self.NUMBERS))
        assert re.fullmatch("4 x 2 DataFrame [0-9a-f]{12}", self.name(pd.DataFrame(self.NUMBERS[:, :2])))
        assert re.fullmatch("2 list [0-9a-f]{12}", self.name(["a text", "another"]))

    def test_how_an_array_lies_in_memory_does_not_matter(self) -> None:
        others = [np.asfortranarray(self.NUMBERS), np.repeat(self.NUMBERS, 2, axis=1)[:, ::2], self.NUMBERS.copy()]
        assert {self.name(other) for other in others} == {self.name(self.NUMBERS)}

    def test_the_format_of_a_sparse_matrix_does_not_matter(self) -> None:
        rows = csr_array(self.NUMBERS)
        parts = rows.tocoo()
        zero = coo_array((np.r_[parts.data, 0.0], (np.r_[parts.row, 0], np.r_[parts.col, 0])))  # stored, yet zero
        twice = coo_array((np.r_[parts.data, parts.data], (np.r_[parts.row, parts.row], np.r_[parts.col, parts.col])))
        assert {self.name(given) for given in (rows.tocsc(), parts, rows.tolil(), zero)} == {self.name(rows)}
        assert self.name(twice) == self.name(rows * 2) != self.name(rows)
        assert self.name(rows) != self.name(self.NUMBERS)

    def test_naming_a_sparse_matrix_does_not_change_it(self) -> None:
        doubled = csr_array((np.ones(2), [1, 1], [0, 2, 2]), shape=(2, 2))
        self.name(doubled)
        assert doubled.nnz == 2

    def test_tables_are_named_by_columns_types_and_cells_of_any_kind(self) -> None:
        table = pd.DataFrame({"a": [1.0, 2.0], "b": ["x", "y"], "c": pd.Categorical(["u", "v"])})
        changes = [
            table.rename(columns={"a": "A"}),
            table.assign(a=[1.0, 3.0]),
            table.assign(b=["x", "z"]),
            table.astype({"a": "float32"}),
            table.assign(c=["u", "v"]),
        ]
        lists = [pd.DataFrame({"a": [[1], [2]]}), pd.DataFrame({"a": [[1], [3]]})]
        names = [self.name(given) for given in (table, *changes, *lists)]
        assert len(set(names)) == len(names)
        assert self.name(table.copy()) == self.name(table.set_index(pd.Index([7, 8]))) == names[0]

    def test_every_cell_label_weight_and_type_matters(self) -> None:
        changed = self.NUMBERS.copy()
        changed[2, 1] += 1e-12
        names = [
            self.name(self.NUMBERS),
            self.name(changed),
            self.name(self.NUMBERS.astype(np.float32)),
            self.name(self.NUMBERS.reshape(3, 4)),
            self.name(self.NUMBERS, y=(0, 1, 1, 1)),
            self.name(self.NUMBERS, sample_weight=np.ones(4)),
            self.name(self.NUMBERS, groups=np.ones(4)),
            self.name(self.NUMBERS.astype(object)),
        ]
        assert len(set(names)) == len(names)

    def test_what_cannot_be_pickled_has_another_name_each_time(self) -> None:
        lock = threading.Lock()
        assert pickled(lock) != pickled(lock)

    def test_functions_are_told_apart_by_what_they_do(self) -> None:
        one, two, again = (lambda x, f=factor: f * x for factor in (1, 2, 1))
        assert pickled(one) != pickled(two)
        assert pickled(one) == pickled(again)

    def test_parameters_that_are_searched_or_without_effect_are_left_out(self) -> None:
        one, other = (make_pipeline(StandardScaler(), SGDClassifier(alpha=a, n_jobs=n)) for a, n in ((1, 2), (3, None)))
        searched = ["sgdclassifier__alpha", "sgdclassifier"]
        for names in (searched, searched[:1]):
            assert pickled(without_irrelevant_params(one, names)) == pickled(without_irrelevant_params(other, names))
        assert pickled(without_irrelevant_params(one, [])) != pickled(without_irrelevant_params(other, []))
        assert one.named_steps["sgdclassifier"].n_jobs == 2


def test_candidates_to_try_first_callbacks_and_patience_are_those_of_minimize() -> None:
    from sklearn.neural_network import MLPClassifier

    X, y = load_iris(return_X_y=True)
    first, seen = [{"max_depth": 2, "min_samples_leaf": 3}, {"max_depth": 3, "min_samples_leaf": 3}], []
    space = {"max_depth": (1, 8), "min_samples_leaf": (1, 9)}
    search = TransferSearchCV(
        DecisionTreeClassifier(random_state=0), space, trials=30, method="random", random_state=0,
        first=first, patience=4, callbacks=[lambda trial, run: seen.append((trial.config, len(run)))],
    ).fit(X, y)  # fmt: skip
    assert search.cv_results_["params"][:2] == first == [config for config, _ in seen[:2]]
    assert len(seen) == len(search.cv_results_["params"]) < 30
    layers = {"hidden_layer_sizes": [(5,), (8, 3)]}
    network = MLPClassifier(max_iter=2000, random_state=0, solver="lbfgs")
    search = TransferSearchCV(network, layers, trials=1, cv=2, first=[{"hidden_layer_sizes": (8, 3)}]).fit(X, y)
    assert search.best_params_ == {"hidden_layer_sizes": (8, 3)}
