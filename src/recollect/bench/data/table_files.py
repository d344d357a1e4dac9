"""Tables that were drawn from larger public collections: one CSV file each, with a search space as its authors had it.

The files are not published in this form. Each was derived once, as ``TableFile.derived`` says, and is recognised by the
SHA-256 checksum of its unpacked text; any other file is refused. A measured error is one of a model that was trained, a
predicted one the output of the publisher's own surrogate network.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from recollect._files import read_text
from recollect.bench.benchmark import About, Benchmark, conditional_space, did_you_mean
from recollect.bench.problems.tabular import read_table, table_benchmark
from recollect.errors import InputError
from recollect.space.space import Space

YAHPO = (
    "F. Pfisterer, L. Schneider, J. Moosbauer, M. Binder, B. Bischl: YAHPO Gym - An Efficient Multi-Objective "
    "Multi-Fidelity Benchmark for Hyperparameter Optimization. AutoML 2022"
)
YAHPO_SOURCE = "https://github.com/slds-lmu/yahpo_data"
YAHPO_DERIVED = "random configurations, predicted by YAHPO's network {network} (commit 3a646b8)"


@dataclass(frozen=True, slots=True)
class TableFile:
    """One of the tables; ``sha256`` is of its text, ``tasks`` and ``configurations`` say how large it is."""

    title: str
    citation: str
    licence: str
    source: str
    derived: str  # how the file came from the source
    file: str
    sha256: str
    tasks: int
    configurations: int
    hyperparameters: Mapping[str, Any]  # in dict notation
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # the parent, and the choice that activates
    measured: str = "1 - AUC, predicted"
    error: str = "error"  # the column of the error

    def space(self) -> Space:
        """Return the search space."""
        return conditional_space(self.hyperparameters, self.conditions)


def _exponents(low: int, high: int) -> tuple[float, float, str]:
    """Return the range from e^low to e^high on a log scale, with which YAHPO's authors drew."""
    return math.exp(low), math.exp(high), "log"


TABLE_FILES: Mapping[str, TableFile] = {
    "svm4d_yahpo": TableFile(
        "SVM, predicted: a stand-in for the paper's SVM",
        YAHPO,
        "Apache-2.0",
        YAHPO_SOURCE,
        YAHPO_DERIVED.format(network="rbv2_svm"),
        "svm4d_yahpo.csv.gz",
        "98ae9eb74a87019475932c0eac6f8c18ac260ad59e1b44935268b4ba548790a0",
        52,
        1000,
        {
            **{"kernel": ["linear", "polynomial", "radial"], "cost": _exponents(-10, 10), "gamma": _exponents(-10, 10)},
            **{"degree": (2, 5), "tolerance": (math.exp(-10), 2.0, "log")},
        },
        {"gamma": ("kernel", "radial"), "degree": ("kernel", "polynomial")},
    ),
    "glmnet2d_yahpo": TableFile(
        "elastic net, predicted: a stand-in for the paper's GLMNET",
        YAHPO,
        "Apache-2.0",
        YAHPO_SOURCE,
        YAHPO_DERIVED.format(network="rbv2_glmnet"),
        "glmnet2d_yahpo.csv.gz",
        "168cbeb3cd4c15ae8ffede407bbf90c4d02e399a7f3957caf466dcf7a67a6326",
        58,
        500,
        {"alpha": (0.0, 1.0), "s": _exponents(-7, 7)},
    ),
    "xgboost10d_yahpo": TableFile(
        "XGBoost, predicted: a stand-in for the paper's XGBoost",
        YAHPO,
        "Apache-2.0",
        YAHPO_SOURCE,
        YAHPO_DERIVED.format(network="rbv2_xgboost"),
        "xgboost10d_yahpo.csv.gz",
        "5e66d81693a4abe517b98985fe7f42399dcb90163d12e7399f2fd82fdfd5872c",
        38,
        1000,
        {
            **{"booster": ["gblinear", "gbtree"], "nrounds": (7, 2981, "log"), "subsample": (0.1, 1.0)},
            **{"alpha": _exponents(-7, 7), "lambda": _exponents(-7, 7), "eta": _exponents(-7, 0)},
            **{"max_depth": (1, 15), "min_child_weight": _exponents(1, 5)},
            **{"colsample_bytree": (0.01, 1.0), "colsample_bylevel": (0.01, 1.0)},
        },
        dict.fromkeys(
            ("eta", "max_depth", "min_child_weight", "colsample_bytree", "colsample_bylevel"), ("booster", "gbtree")
        ),
    ),
    "lightgbm5d_tabrepo": TableFile(
        "LightGBM, measured",
        "D. Salinas, N. Erickson: TabRepo - A Large Scale Repository of Tabular Model Evaluations and its AutoML "
        "Applications. AutoML 2024",
        "Apache-2.0",
        "https://github.com/autogluon/tabrepo",
        "data/results/lightgbm/results_ranked_by_dataset_valid.csv and data/configs/configs_lightgbm.json of commit "
        "ba5cd81; bounds rounded outwards from the configurations",
        "lightgbm5d_tabrepo.csv.gz",
        "de20c4475eceda32e0f76dfe6cdce131d6ebeda0ac2051c540e2f03f3c66b076",
        93,
        100,
        {
            **{"extra_trees": [False, True], "feature_fraction": (0.65, 1.0), "learning_rate": (0.005, 0.2, "log")},
            **{"min_data_in_leaf": (2, 60), "num_leaves": (16, 127)},
        },
        measured="validation error of a trained model, in the metric of its dataset",
    ),
    "svm_openml100": TableFile(
        "SVC of scikit-learn, measured",
        "J. N. van Rijn, F. Hutter: Hyperparameter Importance Across Datasets. KDD 2018",
        "BSD-3-Clause",
        "https://github.com/janvanrijn/openml-multitask",
        "the table of the repository, 250 configurations of each dataset",
        "svm_openml100.csv.gz",
        "726a0ac6dc16a14b29fe6e722d440fb975e4beebe28cc534f146609a8676a15f",
        100,
        250,
        {
            **{"C": (2.0**-5, 2.0**15, "log"), "coef0": (-1.0, 1.0), "gamma": (2.0**-15, 8.0, "log")},
            **{"kernel": ["poly", "rbf", "sigmoid"], "tol": (1e-5, 0.1, "log")},
        },
        measured="1 - accuracy of trained models",
    ),
    "taskset": TableFile(
        "Adam on recurrent networks, measured",
        "L. Metz, N. Maheswaranathan, R. Sun, C. D. Freeman, B. Poole, J. Sohl-Dickstein: Using a Thousand "
        "Optimization Tasks to Learn Hyperparameter Search Strategies. arXiv:2002.11887, 2020",
        "Apache-2.0",
        "https://github.com/machinelearningnuremberg/DyHPO",
        "the curves in data/taskset; diverged and missing values are 5.0",
        "taskset_curves.csv.gz",
        "b96f26f130684d91d8b9e51b75279eadc766f164a1b73fc381f54981705da5b7",
        12,
        1000,
        {
            **{"learning_rate": (1e-8, 10.0, "log"), "beta1": (0.0, 0.9999), "beta2": (0.0, 0.999999)},
            **{"epsilon": (1e-10, 1e3, "log"), "l1": (1e-8, 10.0, "log"), "l2": (1e-8, 10.0, "log")},
            **{"linear_decay": (1e-7, 1e-4, "log"), "exponential_decay": (1e-6, 1e-3, "log")},
        },
        measured="validation loss at the last of 51 steps",
        error="step_51",
    ),
}


def table_file(name: str) -> TableFile:
    """Return the table with this name; InputError with close matches if there is none."""
    if name not in TABLE_FILES:
        raise InputError(f"there is no table file {name!r}{did_you_mean(name, tuple(TABLE_FILES))}")
    return TABLE_FILES[name]


def load_table_file(name: str, path: Path, *, whole: bool = True) -> Benchmark:
    """Return the benchmark of one of the tables.

    whole: refuse a file with any other content than the table's.
    """
    table = table_file(name)
    if whole:
        digest = hashlib.sha256(read_text(path).encode("utf-8")).hexdigest()
        if digest != table.sha256:
            raise InputError(
                f"{path}: expected the file {table.file}, whose text has the SHA-256 checksum {table.sha256}, "
                f"got {digest}; to use a table of your own, pass it to from_table or to a plan as table = ..."
            )
    about = About(table.title, table.citation, table.licence, table.source, "table", measured=table.measured)
    rows = read_table(path, tuple(table.hyperparameters), table.error)
    return table_benchmark(name, rows, table.space(), about)
