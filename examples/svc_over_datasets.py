"""Tune a support vector machine on five datasets; each search starts from what earlier ones found.

    python examples/svc_over_datasets.py [svc.db]

Trials are stored in a file, ``svc.db`` by default. Run it twice: the second time nothing is left to
try.
"""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from recollect.sklearn import TransferSearchCV

SPACE = {
    "svc__C": (1e-3, 1e3, "log"),
    "svc__gamma": (1e-5, 10.0, "log"),
    "svc__kernel": ["rbf", "sigmoid"],
}
SHOWN = (1, 3, 5, 10)  # trials


def datasets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    X, y = load_digits(return_X_y=True)
    small, large = np.flatnonzero(y < 5)[:300], np.flatnonzero(y >= 5)[:300]
    return {
        "iris": load_iris(return_X_y=True),
        "wine": load_wine(return_X_y=True),
        "breast cancer": load_breast_cancer(return_X_y=True),
        "digits 0 to 4": (X[small], y[small]),
        "digits 5 to 9": (X[large], y[large]),
    }


def main() -> None:
    memory = sys.argv[1] if len(sys.argv) > 1 else "svc.db"
    heads = "".join(f"{f'after {count}':>10}" for count in SHOWN)
    print(f"{'best accuracy':<15}{'past runs':>10}{heads}   with")
    for name, (X, y) in datasets().items():
        search = TransferSearchCV(
            make_pipeline(StandardScaler(), SVC()),
            SPACE,
            trials=max(SHOWN),
            memory=memory,
            task=name,
            random_state=0,
        )
        search.fit(X, y)
        best = np.maximum.accumulate(search.cv_results_["mean_test_score"])
        cells = "".join(f"{best[count - 1]:>10.3f}" for count in SHOWN)
        chosen = "C {svc__C:.3g}, gamma {svc__gamma:.3g}, {svc__kernel}".format(
            **search.best_params_
        )
        print(f"{name:<15}{len(search.explanation_.past):>10}{cells}   {chosen}")


if __name__ == "__main__":
    main()
