"""The OpenML random bot's tables of an R learner each: `glmnet`, `svm`, `xgboost`. Paper section 5.1.

Published on figshare as one CSV file a learner (10462300, 10462312, 10462315): a line is one run, with the columns
``data_id`` (OpenML data set), ``auc``, ``runtime``, one for every hyperparameter (NA = not set), and others that are
ignored. Of the data sets, 38 are tasks. The error is 1 - AUC; a forest a task is fitted to it.

Left out, as by the paper's authors: runs with a negative runtime; XGBoost runs without ``eta``, and with trees but
without ``colsample_bytree`` or ``colsample_bylevel``, because the bot ran them with defaults that it did not report.
What is set although it is inactive is ignored. Anything else that does not belong to the search space is refused with
file, line and reason, and so is a file whose data sets do not have the published numbers of rows.
"""

from __future__ import annotations

import csv
import gzip
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from recollect.bench.forest_task import USUAL, Build, forest_benchmark
from recollect.bench.problem import About, Benchmark, hint
from recollect.bench.tidy import finite
from recollect.errors import ConfigError, InputError
from recollect.numerics.arrays import FloatArray
from recollect.space.space import Space, compile_space

SOURCE = "https://figshare.com/articles/OpenML_R_Bot_Benchmark_Data_final_subset_/5882230"
CITATION = (
    "D. Kühn, P. Probst, J. Thomas, B. Bischl: Automatic Exploration of Machine Learning Experiments on OpenML. "
    "arXiv:1806.10961, 2018."
)
NOT_SET = ("NA", "")
LOW, HIGH = 2.0**-10, 2.0**10

# Data set, then the rows that are left of it for glmnet, svm and xgboost.
PUBLISHED = """
3 15546 19644 16867, 31 15528 19644 16867, 37 15488 15985 16866, 44 15527 19644 16867, 50 15545 19644 16866
151 15547 2384 16272, 312 6613 18740 15886, 333 15441 19634 16865, 334 15486 19629 16866, 335 15516 15123 10002
1036 14937 2338 2581, 1038 15547 5716 1370, 1043 6365 10121 16867, 1046 15462 5422 11812, 1049 7396 12064 4453
1050 15521 19644 13758, 1063 15518 19644 16865, 1067 15523 10229 16866, 1068 15546 13893 16866, 1120 15531 3908 8143
1176 13005 14451 13047, 1461 6970 2678 2215, 1462 8955 6320 16859, 1464 15531 19644 16865, 1467 15387 4441 16865
1471 15479 9725 16866, 1479 15546 19644 16867, 1480 15000 19644 16254, 1485 8247 10334 9237, 1486 3866 1490 5813
1487 15543 19644 11194, 1489 15522 17298 16867, 1494 15515 19644 16867, 1504 15527 19644 16867, 1510 15406 19644 16867
1570 15452 19644 16866, 4134 1493 560 2222, 4534 2801 2476 947
"""


@dataclass(frozen=True, slots=True)
class Learner:
    """Hyperparameters as `space_from_dict` reads them; ``only`` says at which choice of ``parent`` one is active."""

    title: str
    hyperparameters: Mapping[str, Any]
    parent: str = ""
    only: Mapping[str, str] = field(default_factory=dict)
    needed: tuple[str, ...] = ()  # a run is left out if one of these is active but not set


LEARNERS = {
    "glmnet": Learner("elastic net (glmnet)", {"alpha": (0.0, 1.0), "lambda": (LOW, HIGH, "log")}),
    "svm": Learner(
        "support vector machine (e1071)",
        {
            "kernel": ["linear", "polynomial", "radial"],
            "cost": (LOW, HIGH, "log"),
            "gamma": (LOW, HIGH, "log"),
            "degree": (2, 5),
        },
        "kernel",
        {"gamma": "radial", "degree": "polynomial"},
    ),
    "xgboost": Learner(
        "gradient boosting (xgboost)",
        {
            "nrounds": (1, 5000),
            "eta": (LOW, 1.0, "log"),
            "subsample": (0.0, 1.0),
            "booster": ["gblinear", "gbtree"],
            "max_depth": (1, 15),
            "min_child_weight": (1.0, 2.0**7, "log"),
            "colsample_bytree": (0.0, 1.0),
            "colsample_bylevel": (0.0, 1.0),
            "lambda": (LOW, HIGH, "log"),
            "alpha": (LOW, HIGH, "log"),
        },
        "booster",
        dict.fromkeys(("max_depth", "min_child_weight", "colsample_bytree", "colsample_bylevel"), "gbtree"),
        ("eta", "colsample_bytree", "colsample_bylevel"),
    ),
}


@dataclass(frozen=True, slots=True, eq=False)
class BotTable:
    """The runs of one learner: encoded points and errors of every task, and how many rows were left out."""

    space: Space
    data: dict[str, tuple[FloatArray, FloatArray]]
    left_out: int


def load_bot(
    name: str, path: str | os.PathLike[str], *, whole: bool = True, jobs: int | None = None, build: Build = USUAL
) -> Benchmark:
    """Return the benchmark ``glmnet``, ``svm`` or ``xgboost`` from its published file.

    whole: refuse a file that is not all of the published one. jobs: processes that build forests; None = one a core,
    0 = each when its task is first asked for.
    """
    table = read_bot(name, path, whole=whole)
    title = f"{LEARNERS[name].title} on {len(table.data)} OpenML data sets, random forests"
    measured = f"1 - AUC, predicted by a forest; {table.left_out} runs of the published table left out"
    about = About(title, CITATION, "as stated on the figshare page", SOURCE, "forest", False, measured)
    return forest_benchmark(name, table.space, table.data, about, jobs=jobs, build=build)


def bot_space(name: str) -> Space:
    """Return the search space of a learner."""
    from ConfigSpace import EqualsCondition

    from recollect.space.dicts import space_from_dict

    learner = _learner(name)
    source = space_from_dict(learner.hyperparameters)
    parent = learner.parent
    source.add(*(EqualsCondition(source[child], source[parent], choice) for child, choice in learner.only.items()))
    return compile_space(source)


def read_bot(name: str, path: str | os.PathLike[str], *, whole: bool = True) -> BotTable:
    """Return the runs of a learner from its published file; InputError with file, line and reason if it is another."""
    learner, place = _learner(name), Path(path)
    space, known = bot_space(name), _published(name)
    found: dict[str, list[tuple[int, dict[str, Any], float]]] = {task: [] for task in known}
    left_out = 0
    for line, cells in _rows(place, ["data_id", "auc", "runtime", *learner.hyperparameters]):
        where = f"{place}, line {line}"
        task = cells["data_id"]
        if task not in found:
            if not task.isdecimal():
                raise InputError(f"{where}: expected a data_id, the number of a data set, got {task!r}")
            continue
        error, runtime = _error(cells["auc"], where), finite(cells["runtime"], where, "a number as runtime")
        config = None if runtime < 0.0 else _config(learner, cells, where)
        if config is None:
            left_out += 1
        else:
            found[task].append((line, config, error))
    counts = {task: len(rows) for task, rows in found.items()}
    if not any(counts.values()):
        raise InputError(f"{place}: expected runs on the {len(known)} data sets of {name!r}, got none")
    wrong = [task for task in known if counts[task] != known[task]]
    if whole and wrong:
        raise InputError(
            f"{place}: expected {known[wrong[0]]} usable runs of data set {wrong[0]}, got {counts[wrong[0]]}, and "
            f"{len(wrong)} of {len(known)} data sets differ; is this all of the published file of {name!r}?"
        )
    return BotTable(space, {task: _encoded(space, rows, place) for task, rows in found.items() if rows}, left_out)


def _encoded(
    space: Space, rows: Sequence[tuple[int, dict[str, Any], float]], place: Path
) -> tuple[FloatArray, FloatArray]:
    try:
        X = space.encode([config for _, config, _ in rows])
    except ConfigError:
        for line, config, _ in rows:  # once more, one by one, to find the line
            try:
                space.encode([config])
            except ConfigError as error:
                reason = str(error).removeprefix("configuration 0: ")
                raise InputError(f"{place}, line {line}: {reason}") from error
        raise
    return X, np.array([error for _, _, error in rows])


def _config(learner: Learner, cells: Mapping[str, str], where: str) -> dict[str, Any] | None:
    """Return the configuration of a run; None if the run does not say what was used."""
    choice = cells[learner.parent] if learner.parent else ""
    active = [name for name in learner.hyperparameters if learner.only.get(name, choice) == choice]
    if any(cells[name] in NOT_SET for name in active if name in learner.needed):
        return None
    config: dict[str, Any] = {}
    for name in active:
        form = learner.hyperparameters[name]
        if isinstance(form, list):
            config[name] = cells[name]
        else:
            value = finite(cells[name], where, f"a number as {name}")
            config[name] = int(value) if isinstance(form[0], int) and value.is_integer() else value
    return config


def _error(text: str, where: str) -> float:
    auc = finite(text, where, "a number as auc")
    if not 0.0 <= auc <= 1.0:
        raise InputError(f"{where}: expected an auc in [0, 1], got {text}")
    return 1.0 - auc


def _rows(place: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Read the lines after the header, as (line number, cells of the columns asked for)."""
    try:
        with _opened(place) as stream:
            reader = csv.reader(stream, strict=True)
            header = next(reader, [])
            missing = [name for name in columns if header.count(name) != 1]
            if missing:
                raise InputError(f"{place}, line 1: expected one column {missing[0]!r}, got the header {header[:20]}")
            places = [(name, header.index(name)) for name in columns]
            for row in reader:
                if len(row) != len(header):
                    where = f"{place}, line {reader.line_num}"
                    raise InputError(f"{where}: expected {len(header)} cells, got {len(row)}; is the file cut?")
                yield reader.line_num, {name: row[position] for name, position in places}
    except (OSError, EOFError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{place}: expected a table of the OpenML bot (CSV), but it cannot be read: {error}"
        ) from error


def _opened(place: Path) -> TextIO:
    if place.suffix == ".gz":
        return gzip.open(place, "rt", encoding="utf-8", newline="")
    return place.open(encoding="utf-8", newline="")


def _learner(name: str) -> Learner:
    if name not in LEARNERS:
        raise InputError(f"the OpenML bot's tables have no learner {name!r}{hint(name, tuple(LEARNERS))}")
    return LEARNERS[name]


def _published(name: str) -> dict[str, int]:
    """Return the number of usable rows of every data set."""
    position = 1 + list(LEARNERS).index(name)
    lines = (entry.split() for entry in PUBLISHED.replace("\n", ",").split(",") if entry.strip())
    return {entry[0]: int(entry[position]) for entry in lines}
