"""`TransferSearchCV` is a scikit-learn estimator: it passes the checks that scikit-learn's own searches pass.

Two of the four instances that scikit-learn tests ``GridSearchCV`` with, a classifier and a regressor in a pipeline, and
one that is written as ``RandomizedSearchCV`` is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sklearn.base import is_regressor
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline
from sklearn.utils.estimator_checks import check_supervised_y_2d, parametrize_with_checks

from recollect.sklearn import TransferSearchCV

QUIET = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning", "ignore::RuntimeWarning")
NO_WARNING = "a search hands a y of two dimensions on to Ridge, which takes it without the warning that is looked for"


def search(estimator: Any, name: str) -> TransferSearchCV:
    return TransferSearchCV(estimator, {name: [0.1, 1.0]}, trials=2, cv=2, error_score="raise", random_state=0)


SEARCHES = [
    search(LogisticRegression(), "C"),
    TransferSearchCV(
        Ridge(), param_distributions={"alpha": [0.1, 1.0]}, n_iter=2, cv=2, error_score="raise", random_state=0
    ),
    search(Pipeline([("pca", PCA()), ("ridge", Ridge())]), "ridge__alpha"),
]


def expected(estimator: Any) -> dict[str, str]:
    return {"check_supervised_y_2d": NO_WARNING} if is_regressor(estimator) else {}


@QUIET
@parametrize_with_checks(SEARCHES, expected_failed_checks=expected)
def test_estimator_checks(estimator: TransferSearchCV, check: Callable[[Any], None]) -> None:
    check(estimator)


@QUIET
def test_the_check_that_is_expected_to_fail_fails_for_grid_search_too() -> None:
    with pytest.raises(AssertionError, match="expected 1 DataConversionWarning, got"):
        check_supervised_y_2d("GridSearchCV", GridSearchCV(Ridge(), {"alpha": [0.1, 1.0]}, cv=2))
