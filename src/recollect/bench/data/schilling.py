"""AdaBoost and SVM grids of Schilling, Wistuba and Schmidt-Thieme: `adaboost-grid` and `svm-grid`. Paper section 5.1.

The authors' files: one for each of 50 datasets, named after it, in a folder or a tar archive. One line per grid point,
always in the same order: ``accuracy index:value ...``, sparse (missing values are 0), hyperparameters at the first 2 or
6 indices, meta-features of the dataset above them, which are ignored (but must not change within a file).

    AdaBoost  log(I)/log(10000), I iterations; log(M)/log(30), M product terms                          12 x 9 = 108
    SVM       rbf, polynomial, linear indicators; log2(C)/6, log10(gamma)/4, log10(degree), unused = 0
              12 x 14 rbf, 12 x 9 polynomial, 12 linear                                       168 + 108 + 12 = 288

All hyperparameters are plain floats, already on a log scale. The error is 1 - accuracy. Any other file is refused with
file, line and reason. ``schilling_checksums.csv`` has the CRC-32 of the published accuracies (as little-endian doubles,
in the order of the lines), which also detects files with another's name.
"""

from __future__ import annotations

import math
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from recollect._text import name_list
from recollect.bench.benchmark import About, Benchmark
from recollect.bench.data.download import published_column
from recollect.bench.problems.tabular import shared_table
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.space.space import compile_space
from recollect.storage.formats.csv_columns import finite_number

GRID_TOLERANCE = 1e-9  # the files have 16 digits
ERROR_DECIMALS = 12  # the files have at most 6; removes the rounding error of 1 - accuracy
CITATION = (
    "N. Schilling, M. Wistuba, L. Schmidt-Thieme: Scalable Hyperparameter Optimization with Products of "
    "Gaussian Process Experts. ECML PKDD 2016"
)
REPOSITORY = "https://github.com/nicoschilling/ECML2016"
COMMIT = "2138b1ce1cbb6c6dbf5e93e007ef27777981870a"

# In the authors' order, which is that of their file names.
ITERATIONS = (10000, 1000, 100, 10, 2000, 200, 20, 2, 5000, 500, 50, 5)
TERMS = (10, 15, 2, 20, 3, 30, 4, 5, 7)
LOG2_COSTS = (-5, -4, -3, -2, -1, 4, 0, 1, 5, 2, 6, 3)
GAMMAS = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.5, 1000, 100, 10, 1, 20, 2, 50, 5)
DEGREES = (10, 2, 3, 4, 5, 6, 7, 8, 9)


@dataclass(frozen=True, slots=True)
class Grid:
    """One of the two grids: names of the hyperparameters (d), points in the order of the lines, checksums by task."""

    name: str
    folder: str
    hyperparameters: tuple[str, ...]
    points: tuple[tuple[float, ...], ...]
    checksums: dict[str, int]


def expected_grid(name: str) -> Grid:
    """Return what ``adaboost-grid`` or ``svm-grid`` must look like."""
    if name not in ("adaboost-grid", "svm-grid"):
        raise InputError(f"expected 'adaboost-grid' or 'svm-grid', got {name!r}")
    checksums = {task: int(crc, 16) for task, crc in published_column("schilling_checksums.csv", name).items()}
    if name == "adaboost-grid":
        points = tuple((math.log(i, 10000), math.log(m, 30)) for i in ITERATIONS for m in TERMS)
        return Grid(name, "adaboost", ("log_iterations", "log_product_terms"), points, checksums)
    names = ("rbf", "polynomial", "linear", "log_cost", "log_gamma", "log_degree")
    costs = [cost / 6 for cost in LOG2_COSTS]
    radial = [(1.0, 0.0, 0.0, cost, math.log10(gamma) / 4, 0.0) for cost in costs for gamma in GAMMAS]
    polynomial = [(0.0, 1.0, 0.0, cost, 0.0, math.log10(degree)) for cost in costs for degree in DEGREES]
    linear = [(0.0, 0.0, 1.0, cost, 0.0, 0.0) for cost in costs]
    return Grid(name, "svm", names, (*radial, *polynomial, *linear), checksums)


def load_grid(name: str, path: str | Path, *, published: bool = True) -> Benchmark:
    """Return the benchmark in the authors' files, in a folder or a tar archive.

    ``published=False`` does not compare the accuracies with the published ones.
    """
    grid = expected_grid(name)
    texts = dict(_files(Path(path)))
    expected = set(grid.checksums)
    unknown, missing = sorted(set(texts) - expected), sorted(expected - set(texts))
    if unknown or missing:
        raise InputError(
            f"{path}: expected the {len(expected)} files of {grid.name}, named after their datasets, got "
            f"{len(texts)} (unknown: {name_list(unknown, 3)}; missing: {name_list(missing, 3)})"
        )
    errors: dict[str, FloatArray] = {}
    points: list[FloatArray] = []
    for task in sorted(texts):
        where = f"{path}: {task}"
        X, accuracy = read_task(texts[task], grid, where)
        if published and zlib.crc32(accuracy.astype("<f8").tobytes()) != grid.checksums[task]:
            raise InputError(f"{where}: the {len(accuracy)} accuracies are not the published ones of {task!r}")
        points.append(X)
        errors[task] = np.round(1.0 - accuracy, ERROR_DECIMALS)
    low, high = points[0].min(axis=0).tolist(), points[0].max(axis=0).tolist()
    space = compile_space(dict(zip(grid.hyperparameters, zip(low, high, strict=True), strict=True)))
    configs = [dict(zip(grid.hyperparameters, row, strict=True)) for row in points[0].tolist()]
    learner = "AdaBoost" if name == "adaboost-grid" else "support vector machine"
    title, measured = f"{learner} on a grid, 50 datasets", "1 - accuracy of trained models"
    about = About(title, CITATION, "none stated", REPOSITORY, "table", measured=measured)
    return shared_table(name, space, configs=configs, errors=errors, about=about)


def _files(path: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of the files in a folder or an archive, except hidden ones."""
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
        if len(files) == 1 and tarfile.is_tarfile(files[0]):  # a folder for the archive only
            yield from _files(files[0])
            return
        for file in files:
            yield file.name, _text(file.read_bytes(), f"{path}: {file.name}")
        return
    try:
        with tarfile.open(path) as archive:
            for member in archive:
                name = PurePosixPath(member.name).name
                stored = archive.extractfile(member) if member.isfile() else None
                if stored is not None and not name.startswith("."):
                    yield name, _text(stored.read(), f"{path}: {name}")
    except FileNotFoundError as error:
        raise InputError(f"{path}: there is no such file or folder") from error
    except (tarfile.TarError, OSError, EOFError, zlib.error) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{path}: expected a folder or a complete tar archive: {reason}") from error


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{where}, line {line}: expected plain text, got the byte {data[error.start]:#04x}") from error


def read_task(text: str, grid: Grid, where: str) -> tuple[FloatArray, FloatArray]:
    """Return the grid points (m, d) and the accuracies (m,) of one file; InputError with line and reason."""
    lines, d = text.splitlines(), len(grid.hyperparameters)
    points, accuracies = [], []
    meta_features: dict[int, float] | None = None
    for number, line in enumerate(lines[: len(grid.points)], 1):
        place = f"{where}, line {number}"
        accuracy, values = _read_line(line, place)
        points.append([values.pop(index, 0.0) for index in range(d)])
        accuracies.append(accuracy)
        _check_point(points[-1], grid, number - 1, place)
        if meta_features is not None and values != meta_features:
            raise InputError(f"{place}: its meta-features differ from those of line 1, so it is of another dataset")
        meta_features = values
    if len(lines) != len(grid.points):
        raise InputError(
            f"{where}, line {min(len(lines), len(grid.points)) + 1}: expected {len(grid.points)} lines, one per grid "
            f"point, got {len(lines)}"
        )
    return np.array(points), np.array(accuracies)


def _read_line(line: str, place: str) -> tuple[float, dict[int, float]]:
    """Return the accuracy and the values by index of a line."""
    first, *cells = line.split() or [""]
    accuracy = finite_number(first, place, "an accuracy")
    if not 0.0 <= accuracy <= 1.0:
        raise InputError(f"{place}: expected an accuracy in [0, 1], got {first!r}")
    values: dict[int, float] = {}
    last = -1
    for cell in cells:
        label, colon, value = cell.partition(":")
        if not colon or not label.isdecimal():
            raise InputError(f"{place}: expected index:value, got {cell!r}")
        index = int(label)
        if index <= last:
            raise InputError(f"{place}: expected rising indices, got {index} after {last}")
        last = index
        values[index] = finite_number(value, place, f"a number at index {index}")
    return accuracy, values


def _check_point(point: list[float], grid: Grid, position: int, place: str) -> None:
    def same(other: tuple[float, ...]) -> bool:
        return all(abs(v - w) <= GRID_TOLERANCE for v, w in zip(point, other, strict=True))

    expected = grid.points[position]
    if same(expected):
        return
    elsewhere = next((line for line, other in enumerate(grid.points, 1) if same(other)), None)
    reason = "which is no point of the grid" if elsewhere is None else f"which belongs in line {elsewhere}"
    point_text = ", ".join(f"{h}={v:.6g}" for h, v in zip(grid.hyperparameters, expected, strict=True))
    got = ", ".join(f"{v:.6g}" for v in point)
    raise InputError(f"{place}: expected the grid point {point_text}, got {got}, {reason}")
