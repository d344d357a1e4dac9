"""The OpenML random bot's tables, one per R learner: `glmnet`, `svm`, `xgboost`. Paper section 5.1.

Published on figshare as one CSV file per learner (10462300, 10462312, 10462315). A line is one run, with the columns
``data_id`` (OpenML dataset), ``auc``, ``runtime``, one per hyperparameter (NA = not set), and others that are ignored.
38 of the datasets are tasks; ``openml_bot_rows.csv`` has their numbers of usable runs. The error is 1 - AUC; each task
is a forest fitted to it.

Left out, as by the paper's authors: runs with a negative runtime; XGBoost runs without ``eta``, and with trees but
without ``colsample_bytree`` or ``colsample_bylevel``, because the bot ran them with defaults that it did not report.
Values of inactive hyperparameters are ignored. Everything else outside the search space is refused with file, line and
reason, and so is a file whose datasets do not have the published numbers of runs.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from recollect.bench.benchmark import About, Benchmark, conditional_space, did_you_mean
from recollect.bench.data.download import published_column
from recollect.bench.problems.forest_benchmark import PAPER_BUILD, ForestBuild, forest_benchmark
from recollect.bench.problems.tabular import encode_rows
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.runs.run import Config
from recollect.space.space import Space
from recollect.storage.formats.csv_columns import csv_rows, finite_number

SOURCE = "https://figshare.com/articles/OpenML_R_Bot_Benchmark_Data_final_subset_/5882230"
CITATION = (
    "D. Kühn, P. Probst, J. Thomas, B. Bischl: Automatic Exploration of Machine Learning Experiments on OpenML. "
    "arXiv:1806.10961, 2018."
)
NOT_SET = ("NA", "")
WIDE = (2.0**-10, 2.0**10, "log")


@dataclass(frozen=True, slots=True)
class BotLearner:
    """A learner of the bot."""

    title: str  # its name, with the R package
    hyperparameters: Mapping[str, Any]  # in dict notation
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # the parent, and the choice that activates
    required: tuple[str, ...] = ()  # a run is left out if one of these is active but not set


LEARNERS = {
    "glmnet": BotLearner("elastic net (glmnet)", {"alpha": (0.0, 1.0), "lambda": WIDE}),
    "svm": BotLearner(
        "support vector machine (e1071)",
        {"kernel": ["linear", "polynomial", "radial"], "cost": WIDE, "gamma": WIDE, "degree": (2, 5)},
        {"gamma": ("kernel", "radial"), "degree": ("kernel", "polynomial")},
    ),
    "xgboost": BotLearner(
        "gradient boosting (xgboost)",
        {
            **{"nrounds": (1, 5000), "eta": (2.0**-10, 1.0, "log"), "subsample": (0.0, 1.0)},
            **{"booster": ["gblinear", "gbtree"], "max_depth": (1, 15), "min_child_weight": (1.0, 2.0**7, "log")},
            **{"colsample_bytree": (0.0, 1.0), "colsample_bylevel": (0.0, 1.0), "lambda": WIDE, "alpha": WIDE},
        },
        dict.fromkeys(
            ("max_depth", "min_child_weight", "colsample_bytree", "colsample_bylevel"), ("booster", "gbtree")
        ),
        ("eta", "colsample_bytree", "colsample_bylevel"),
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class BotTable:
    """The runs of one learner: encoded points and errors of every task, and the number of runs left out."""

    space: Space
    data: dict[str, tuple[FloatArray, FloatArray]]
    left_out: int


def load_bot(
    name: str, file: Path, *, whole: bool = True, jobs: int | None = None, build: ForestBuild = PAPER_BUILD
) -> Benchmark:
    """Return the benchmark ``glmnet``, ``svm`` or ``xgboost`` from its published file.

    whole: refuse a file that is not the complete published one. jobs: processes that build forests; None: one per core;
    0: each is built when its task is first used.
    """
    table = read_bot(name, file, whole=whole)
    title = f"{LEARNERS[name].title} on {len(table.data)} OpenML datasets, random forests"
    measured = f"1 - AUC, predicted by a forest; {table.left_out} runs of the published table left out"
    about = About(title, CITATION, "as stated on the figshare page", SOURCE, "forest", False, measured)
    return forest_benchmark(name, table.space, table.data, about, jobs=jobs, build=build)


def bot_space(name: str) -> Space:
    """Return the search space of a learner."""
    learner = _learner(name)
    return conditional_space(learner.hyperparameters, learner.conditions)


def read_bot(name: str, file: Path, *, whole: bool = True) -> BotTable:
    """Return the runs of a learner from its published file; InputError with file, line and reason for another file."""
    learner, space = _learner(name), bot_space(name)
    published = {task: int(count) for task, count in published_column("openml_bot_rows.csv", name).items()}
    runs: dict[str, list[tuple[int, Config, float]]] = {task: [] for task in published}
    left_out = 0
    for line, cells in _rows(file, ["data_id", "auc", "runtime", *learner.hyperparameters]):
        where = f"{file}, line {line}"
        task = cells["data_id"]
        if task not in runs:
            if not task.isdecimal():
                raise InputError(f"{where}: expected a data_id, the number of a dataset, got {task!r}")
            continue
        auc = finite_number(cells["auc"], where, "a number as auc")
        if not 0.0 <= auc <= 1.0:
            raise InputError(f"{where}: expected an auc in [0, 1], got {cells['auc']}")
        runtime = finite_number(cells["runtime"], where, "a number as runtime")
        config = None if runtime < 0.0 else _config(learner, cells, where)
        if config is None:
            left_out += 1
        else:
            runs[task].append((line, config, 1.0 - auc))
    if not any(runs.values()):
        raise InputError(f"{file}: expected runs on the {len(runs)} datasets of {name!r}, got none")
    wrong = [task for task in runs if len(runs[task]) != published[task]]
    if whole and wrong:
        raise InputError(
            f"{file}: expected {published[wrong[0]]} usable runs of dataset {wrong[0]}, got {len(runs[wrong[0]])}, "
            f"and {len(wrong)} of {len(runs)} datasets differ; is this the complete published file of {name!r}?"
        )
    return BotTable(space, {task: _encode(space, own, file) for task, own in runs.items() if own}, left_out)


def _encode(space: Space, runs: list[tuple[int, Config, float]], file: Path) -> tuple[FloatArray, FloatArray]:
    X = encode_rows(space, [config for _, config, _ in runs], lambda number: f"{file}, line {runs[number][0]}")
    return X, np.array([error for _, _, error in runs])


def _config(learner: BotLearner, cells: Mapping[str, str], where: str) -> Config | None:
    """Return the configuration of a run; None if the run does not report it completely."""
    inactive = {child for child, (parent, choice) in learner.conditions.items() if cells[parent] != choice}
    if any(cells[name] in NOT_SET for name in learner.required if name not in inactive):
        return None
    config: Config = {}
    for name, form in learner.hyperparameters.items():
        if name in inactive:
            continue
        if isinstance(form, list):
            config[name] = cells[name]
        else:
            value = finite_number(cells[name], where, f"a number as {name}")
            config[name] = int(value) if isinstance(form[0], int) and value.is_integer() else value
    return config


def _rows(file: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Yield (line number, cells of these columns); the files are large, so they are read line by line."""
    try:
        with (gzip.open if file.suffix == ".gz" else open)(file, "rt", encoding="utf-8", newline="") as stream:
            rows = csv_rows(str(file), stream)
            _, header = next(rows, (1, []))
            missing = [name for name in columns if header.count(name) != 1]
            if missing:
                raise InputError(f"{file}, line 1: expected one column {missing[0]!r}, got the header {header[:20]}")
            positions = [(name, header.index(name)) for name in columns]
            for line, row in rows:
                yield line, {name: row[position] for name, position in positions}
    except (OSError, EOFError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: expected a CSV file of the OpenML bot, but it cannot be read: {error}") from error


def _learner(name: str) -> BotLearner:
    if name not in LEARNERS:
        raise InputError(f"the OpenML bot's tables have no learner {name!r}{did_you_mean(name, tuple(LEARNERS))}")
    return LEARNERS[name]
