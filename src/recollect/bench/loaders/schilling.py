"""AdaBoost and SVM grids of Schilling, Wistuba and Schmidt-Thieme: `adaboost-grid` and `svm-grid`. Paper section 5.1.

The authors' files: one for each of 50 data sets, named after it, in a folder or a tar archive. One line a grid point,
all in one order: ``accuracy index:value ...``, sparse (what is missing is 0), hyperparameters at the first 2 or 6
indices, meta-features of the data set above them, which are ignored (they must not change within a file).

    AdaBoost  log(I)/log(10000), I iterations; log(M)/log(30), M product terms                          12 x 9 = 108
    SVM       rbf, polynomial, linear indicators; log2(C)/6, log10(gamma)/4, log10(degree), unused = 0
              12 x 14 rbf, 12 x 9 polynomial, 12 linear                                       168 + 108 + 12 = 288

All hyperparameters are plain floats, already on a log scale. The error is 1 - accuracy. A file that is not exactly
that is refused with file, line and reason; accuracies are compared with the published ones by a checksum, which also
finds files under another's name.
"""

from __future__ import annotations

import math
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from recollect.bench.problem import About, Benchmark
from recollect.bench.tabular import shared_table
from recollect.bench.tidy import finite
from recollect.errors import InputError
from recollect.numerics.arrays import FloatArray
from recollect.space.space import compile_space

TOLERANCE = 1e-9  # of a grid value; the files have 16 digits
DECIMALS = 12  # of an error; the files have at most 6, so that 1 - accuracy is rounded to what it means
REPOSITORY = "https://github.com/nicoschilling/ECML2016"
COMMIT = "2138b1ce1cbb6c6dbf5e93e007ef27777981870a"

# The authors' order of values is that of their file names.
ITERATIONS = (10000, 1000, 100, 10, 2000, 200, 20, 2, 5000, 500, 50, 5)
TERMS = (10, 15, 2, 20, 3, 30, 4, 5, 7)
LOG2_COSTS = (-5, -4, -3, -2, -1, 4, 0, 1, 5, 2, 6, 3)
GAMMAS = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.5, 1000, 100, 10, 1, 20, 2, 50, 5)
DEGREES = (10, 2, 3, 4, 5, 6, 7, 8, 9)

# Data set, then the CRC-32 of its accuracies (as little-endian doubles, in the order of the lines) in either grid.
PUBLISHED = """
A9A cccc394b bad0603d, W8A 01a39249 9330ed0c, abalone bc695326 5ddef227, appendicitis 9c837fb2 e7cc0367
australian 4d1995c2 ba0ab643, automobile cca203e0 006df8a5, banana b84635eb 1ec3c66c, bands 6641af51 1d0bbe84
breast-cancer cdfd1b55 30adb782, bupa 79346c59 c1addf08, car 54ddb730 e788a47c, chess e695124a 38570f48
cod-rna 9d3038d0 aff0f32f, coil2000 1706ea1a cd3714d7, colon-cancer b7fd7d56 51400c61, crx 584c67a7 ac55c6da
diabetes df5a4ed8 3707decd, ecoli 6f72c0e4 1daa0cff, german-numer ef984d53 a223ff11, haberman 1608fcd1 a217edd9
housevotes 366162e7 3ecfce9e, ijcnn1 27a0a255 a2dcda73, kr-vs-k afc655dc a425f6d8, led7digit 454210ad e653b47f
letter da01e86c af96e819, lymphography 546fef1e f271f637, magic a8913d00 de45cf5b, monk-2 3ab88eb0 f8a63729
pendigits 0ec4569d c7c890ef, phoneme 88f183e4 574afe25, pima fc2c38fa de60e291, ring 218a748a 3b819a2c
saheart ef96f243 c008c822, segment a1c7b673 a90d882e, seismic 5d6a5443 31e95801, shuttle 688920a3 b4be69c4
sonar-scale 0af66a86 a02aa2fa, spambase b685f81c fe62cc2c, spectfheart 42cb85cb 5a9e1496, splice dd273259 1df1d561
tic-tac-toe bf19bf6c a2742a86, titanic 92316d82 bea67d84, twonorm 4414a7ab e2ce3286, usps 2f285abd 1ea09c68
vehicle 9676792e 7614eed5, wdbc c48a1ad0 f9cdadbb, wine b4921757 125843da, winequality-red 586010f0 eb65393c
wisconsin 0a99d862 7d43165b, yeast b167178b 80701c6b
"""


@dataclass(frozen=True, slots=True)
class Grid:
    """One of the two grids: names of the hyperparameters (d), and its points in the order of the lines."""

    name: str
    folder: str
    hyperparameters: tuple[str, ...]
    points: tuple[tuple[float, ...], ...]
    checksums: dict[str, int]


def grid(name: str) -> Grid:
    """Return what ``adaboost-grid`` or ``svm-grid`` must look like."""
    fields = [line.split() for line in PUBLISHED.replace("\n", ",").split(",") if line]
    if name == "adaboost-grid":
        points = tuple((math.log(i, 10000), math.log(m, 30)) for i in ITERATIONS for m in TERMS)
        checksums = {task: int(first, 16) for task, first, _ in fields}
        return Grid(name, "adaboost", ("log_iterations", "log_product_terms"), points, checksums)
    if name == "svm-grid":
        names = ("rbf", "polynomial", "linear", "log_cost", "log_gamma", "log_degree")
        checksums = {task: int(second, 16) for task, _, second in fields}
        return Grid(name, "svm", names, tuple(_svm_points()), checksums)
    raise InputError(f"expected 'adaboost-grid' or 'svm-grid', got {name!r}")


def _svm_points() -> Iterator[tuple[float, ...]]:
    costs = [cost / 6 for cost in LOG2_COSTS]
    yield from ((1.0, 0.0, 0.0, cost, math.log10(gamma) / 4, 0.0) for cost in costs for gamma in GAMMAS)
    yield from ((0.0, 1.0, 0.0, cost, 0.0, math.log10(degree)) for cost in costs for degree in DEGREES)
    yield from ((0.0, 0.0, 1.0, cost, 0.0, 0.0) for cost in costs)


def load_grid(name: str, path: str | Path, *, published: bool = True) -> Benchmark:
    """Return the benchmark behind the authors' files in a folder or a tar archive.

    ``published=False`` leaves out the comparison of the accuracies with the published ones.
    """
    wanted = grid(name)
    texts = dict(_files(Path(path)))
    _check_names(texts, wanted, Path(path))
    errors: dict[str, FloatArray] = {}
    points: FloatArray | None = None
    for task in sorted(texts):
        where = f"{path}: {task}"
        own, accuracy = read_task(texts[task], wanted, where)
        if published and zlib.crc32(accuracy.astype("<f8").tobytes()) != wanted.checksums[task]:
            raise InputError(f"{where}: the {len(accuracy)} accuracies are not the published ones of {task!r}")
        points = own if points is None else points
        errors[task] = np.round(1.0 - accuracy, DECIMALS)
    assert points is not None  # there are 50 files
    space = compile_space(
        {h: (float(low), float(high)) for h, low, high in zip(wanted.hyperparameters, *_ends(points), strict=True)}
    )
    configs = [dict(zip(wanted.hyperparameters, row, strict=True)) for row in points.tolist()]
    return shared_table(name, space, configs=configs, errors=errors, about=about(name))


def about(name: str) -> About:
    """Say where a grid comes from."""
    learner = "AdaBoost" if name == "adaboost-grid" else "support vector machine"
    return About(
        title=f"{learner} on a grid, 50 data sets",
        citation="N. Schilling, M. Wistuba, L. Schmidt-Thieme: Scalable Hyperparameter Optimization with Products of "
        "Gaussian Process Experts. ECML PKDD 2016",
        licence="none stated",
        source=REPOSITORY,
        kind="table",
        measured="1 - accuracy of trained models",
    )


def _ends(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    return points.min(axis=0), points.max(axis=0)


def _check_names(texts: dict[str, str], wanted: Grid, path: Path) -> None:
    expected = set(wanted.checksums)
    unknown, missing = sorted(set(texts) - expected), sorted(expected - set(texts))
    if not texts or unknown or missing:
        told = [f"unknown: {', '.join(unknown[:3])}"] if unknown else []
        told += [f"missing: {', '.join(missing[:3])}"] if missing else []
        raise InputError(
            f"{path}: expected the {len(expected)} files of {wanted.name}, named after their data sets, got "
            f"{len(texts)} ({'; '.join(told)})"
        )


def _files(path: Path) -> Iterator[tuple[str, str]]:
    """Go through the files of a folder or an archive; hidden ones are left out."""
    if path.is_dir():
        files = [file for file in sorted(path.iterdir()) if file.is_file() and not file.name.startswith(".")]
        if len(files) == 1 and tarfile.is_tarfile(files[0]):  # a folder made for the archive alone
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
        raise InputError(f"{path}: expected a folder or a whole tar archive, got something else: {reason}") from error


def _text(data: bytes, where: str) -> str:
    try:
        return data.decode("ascii")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise InputError(f"{where}, line {line}: expected plain text, got the byte {data[error.start]:#04x}") from error


def read_task(text: str, wanted: Grid, where: str) -> tuple[FloatArray, FloatArray]:
    """Return the grid points (m, d) and the accuracies (m,) of one file, or raise InputError with line and reason."""
    lines = text.splitlines()
    points, accuracies = [], []
    features: tuple[tuple[int, float], ...] | None = None
    for number, line in enumerate(lines[: len(wanted.points)], 1):
        place = f"{where}, line {number}"
        accuracy, point, own = _read_line(line, len(wanted.hyperparameters), place)
        _check_point(point, wanted, number - 1, place)
        if features is not None and own != features:
            raise InputError(f"{place}: its meta-features differ from those of line 1, so it is of another data set")
        points.append(point)
        accuracies.append(accuracy)
        features = own
    if len(lines) != len(wanted.points):
        raise InputError(
            f"{where}, line {min(len(lines), len(wanted.points)) + 1}: expected {len(wanted.points)} lines, one for "
            f"every grid point, got {len(lines)}"
        )
    return np.array(points), np.array(accuracies)


def _read_line(line: str, d: int, place: str) -> tuple[float, tuple[float, ...], tuple[tuple[int, float], ...]]:
    """Return accuracy, hyperparameters (d) and meta-features of a line."""
    first, *cells = line.split() or [""]
    accuracy = finite(first, place, "an accuracy")
    if not 0.0 <= accuracy <= 1.0:
        raise InputError(f"{place}: expected an accuracy in [0, 1], got {first!r}")
    point, last = [0.0] * d, -1
    features: list[tuple[int, float]] = []
    for cell in cells:
        label, colon, value = cell.partition(":")
        if not colon or not label.isdecimal():
            raise InputError(f"{place}: expected index:value, got {cell!r}")
        index = int(label)
        if index <= last:
            raise InputError(f"{place}: expected rising indices, got {index} after {last}")
        last = index
        if index < d:
            point[index] = finite(value, place, f"a number at index {index}")
        else:
            features.append((index, finite(value, place, f"a number at index {index}")))
    return accuracy, tuple(point), tuple(features)


def _check_point(point: tuple[float, ...], wanted: Grid, position: int, place: str) -> None:
    expected = wanted.points[position]
    if _same(point, expected):
        return
    elsewhere = next((line for line, other in enumerate(wanted.points, 1) if _same(point, other)), None)
    reason = "which is no point of the grid" if elsewhere is None else f"which belongs in line {elsewhere}"
    shown = ", ".join(f"{h}={v:.6g}" for h, v in zip(wanted.hyperparameters, expected, strict=True))
    got = ", ".join(f"{v:.6g}" for v in point)
    raise InputError(f"{place}: expected the grid point {shown}, got {got}, {reason}")


def _same(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return all(abs(v - w) <= TOLERANCE for v, w in zip(a, b, strict=True))
