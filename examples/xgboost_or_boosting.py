"""Tune gradient boosting on one dataset after another with `recollect.minimize` and a memory.

    python examples/xgboost_or_boosting.py [boosting.db]

It tunes xgboost if that is installed, otherwise scikit-learn's histogram boosting. Each is a
problem of its own in the memory. From the second dataset on, the search starts from what was
learned on the earlier ones.
"""

from __future__ import annotations

import sys
from functools import partial

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold, cross_val_score
from threadpoolctl import threadpool_limits

import recollect

try:
    from xgboost import XGBClassifier
except ImportError:
    XGBClassifier = None

LEARNER = "histogram boosting" if XGBClassifier is None else "xgboost"
SPACE = {
    "learning_rate": (0.01, 1.0, "log"),
    "rounds": (5, 60, "log"),
    "depth": (1, 6),
    "l2": (1e-3, 1e2, "log"),
}
TRIALS = 12
SHOWN = (1, 3, 6, TRIALS)


def datasets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    X, progression = load_diabetes(return_X_y=True)
    return {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "diabetes": (X, (progression > np.median(progression)).astype(int)),
    }


def model(config: dict):
    names = {
        "learning_rate": config["learning_rate"],
        "max_depth": config["depth"],
        "random_state": 0,
    }
    if XGBClassifier is not None:
        return XGBClassifier(
            **names, n_estimators=config["rounds"], reg_lambda=config["l2"], n_jobs=1, verbosity=0
        )
    return HistGradientBoostingClassifier(
        **names, max_iter=config["rounds"], l2_regularization=config["l2"]
    )


def log_loss(config: dict, X: np.ndarray, y: np.ndarray) -> float:
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    with threadpool_limits(1):  # threads cost more than they bring on data as small as these
        return -cross_val_score(model(config), X, y, cv=folds, scoring="neg_log_loss").mean()


def main() -> None:
    memory = sys.argv[1] if len(sys.argv) > 1 else "boosting.db"
    heads = "".join(f"{f'after {count}':>10}" for count in SHOWN)
    print(f"{LEARNER}\n{'best log loss':<15}{'past runs':>10}{heads}")
    for name, (X, y) in datasets().items():
        result = recollect.minimize(
            partial(log_loss, X=X, y=y),
            SPACE,
            trials=TRIALS,
            memory=memory,
            problem=LEARNER,
            task=name,
        )
        best = np.minimum.accumulate(result.run.y)
        cells = "".join(f"{best[count - 1]:>10.4f}" for count in SHOWN)
        print(f"{name:<15}{len(result.explain().past):>10}{cells}")


if __name__ == "__main__":
    main()
