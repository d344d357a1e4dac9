"""All benchmarks by name: the paper's six, the embedded suite, and families of formulas.

Formulas and the suite come with the package. The data of the paper's six belong to their authors. They are taken from
``path`` if given, else from the user's data folder (`recollect.bench.data.download`), else from the folder named by the
environment variable ``RECOLLECT_DATA``, which is only read. A suffix (``+paper``) names a variant of the same data.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from recollect.bench.benchmark import Benchmark, did_you_mean
from recollect.bench.data import download
from recollect.bench.data.download import DownloadProgress, PublishedFile, find_file
from recollect.bench.data.lcbench import load_lcbench, read_lcbench
from recollect.bench.data.openml_bot import load_bot, read_bot
from recollect.bench.data.schilling import COMMIT, REPOSITORY, expected_grid, load_grid
from recollect.bench.problems.forest_benchmark import ForestBuild
from recollect.bench.problems.suite.suite_benchmarks import SUITE, load_suite, suite_space
from recollect.bench.problems.synthetic import FAMILIES
from recollect.errors import InputError

FIGSHARE = "https://ndownloader.figshare.com/files"
OPENML_BOT = "https://figshare.com/articles/5882230"
LCBENCH = "https://figshare.com/articles/11662422"


class BenchmarkSize(NamedTuple):
    """The number of tasks, of hyperparameters, and of conditional ones among these."""

    tasks: int
    hyperparameters: int
    conditional: int


@dataclass(frozen=True, slots=True)
class Entry:
    """A benchmark that can be loaded."""

    name: str
    title: str  # a few words that describe it
    source: str  # where its data are published
    load: Callable[[Path, int | None, ForestBuild], Benchmark]  # from the path of its data; jobs and build: of forests
    size: BenchmarkSize | None = None  # None if loading it is quick enough to count
    files: tuple[PublishedFile, ...] = ()  # what is published, if it needs data
    local_names: tuple[str, ...] = ()  # names that its data may have in ``RECOLLECT_DATA``
    check: Callable[[Path], object] = lambda path: path  # raises InputError if a file or folder does not hold its data

    def folder(self) -> Path:
        """Return the folder of its data once they have been fetched."""
        return download.data_folder() / self.name.partition("+")[0]

    def find_data(self) -> Path | None:
        """Return where its data are on this computer; None if they are not, or if it needs none."""
        if not self.files:
            return None
        paths = [self.folder()]
        if folder := os.environ.get("RECOLLECT_DATA"):
            paths += [Path(folder).expanduser() / name for name in (paths[0].name, *self.local_names)]
        return next((path for path in paths if path.exists()), None)


def names() -> tuple[str, ...]:
    """Return the names of all benchmarks.

    Example:
        >>> "branin" in recollect.bench.names()
        True
    """
    return tuple(entry.name for entry in entries())


def load(
    name: str, path: str | os.PathLike[str] | None = None, *, jobs: int | None = None, build: ForestBuild | None = None
) -> Benchmark:
    """Load a benchmark.

    Example:
        >>> benchmark = recollect.bench.load("own-xgboost")
        >>> len(benchmark.tasks)
        35

    Args:
        name: One of `names`.
        path: A local copy of its data, in the form in which they are published. By default the data that
            ``recollect bench fetch`` has downloaded, or the folder named by ``RECOLLECT_DATA``.
        jobs: Number of processes that build random forests, if the benchmark has them and they are not stored yet;
            None: one per core; 0: each is built when its task is first used.
        build: How forests are built; None: as in the paper.

    Returns:
        The benchmark.

    Raises:
        InputError: There is no such benchmark, its data are not on this computer, or they are not the published ones.
    """
    entry = find_entry(name)
    if not entry.files and path is not None:
        raise InputError(f"benchmark {name!r} needs no data, so it takes no path, got {os.fspath(path)!r}")
    data = data_path(name) if path is None else Path(path)
    return entry.load(data or Path(), jobs, build or ForestBuild())


def data_path(name: str) -> Path | None:
    """Return where the data of a benchmark are, None if it needs none; InputError if they are missing."""
    entry = find_entry(name)
    path = entry.find_data()
    if entry.files and path is None:
        raise InputError(
            f"the data of benchmark {name!r} are not on this computer; `recollect bench fetch {name}` gets them from "
            f"{entry.source}, or from a copy of yours (--from); RECOLLECT_DATA may name a folder that has them"
        )
    return path


def fetch(name: str, *, source: Path | None = None, progress: DownloadProgress | None = None) -> Path | None:
    """Bring the data of a benchmark into the user's data folder, from a local copy if ``source`` names one.

    Returns the folder; None for a benchmark that needs no data. Data that are there already are not fetched again.
    """
    entry = find_entry(name)
    if not entry.files:
        return None
    folder = entry.folder()
    if source is not None:
        return download.import_copy(folder, source, check=entry.check)
    if folder.exists():
        return folder
    return download.download_files(folder, entry.files, check=entry.check, progress=progress)


def find_entry(name: str) -> Entry:
    """Return the entry with this name; InputError with close matches if there is none."""
    if matches := [entry for entry in entries() if entry.name == name]:
        return matches[0]
    raise InputError(f"there is no benchmark {name!r}{did_you_mean(name, names())}")


def summarize(entry: Entry) -> dict[str, Any]:
    """Return what `recollect bench list` shows; if a benchmark cannot be loaded, sizes are None and note says why."""
    size, note = entry.size, ""
    if size is None:  # loading it is quick
        try:
            size = size_of(entry.load(Path(), None, ForestBuild()))
        except (InputError, ImportError) as error:
            note = str(error)
    offline = entry.find_data() is not None if entry.files else not note
    sizes = dict.fromkeys(BenchmarkSize._fields) if size is None else size._asdict()
    return {"name": entry.name, "title": entry.title, **sizes, "source": entry.source, "offline": offline, "note": note}


def size_of(benchmark: Benchmark) -> BenchmarkSize:
    """Count the tasks and hyperparameters of a benchmark."""
    conditional = sum(condition is not None for condition in benchmark.space.conditions)
    return BenchmarkSize(len(benchmark.tasks), len(benchmark.space.names), conditional)


@cache
def entries() -> tuple[Entry, ...]:
    """Return all benchmarks, the paper's six first."""
    return (
        _grid("adaboost-grid", "AdaBoost, grid of 108", BenchmarkSize(50, 2, 0)),
        _grid("svm-grid", "SVM, grid of 288", BenchmarkSize(50, 6, 0)),
        _bot("glmnet", "elastic net, forests", BenchmarkSize(38, 2, 0), article=10462300),
        _bot("svm", "SVM, forests", BenchmarkSize(38, 4, 2), article=10462312),
        _bot("xgboost", "XGBoost, forests", BenchmarkSize(38, 10, 4), article=10462315),
        _lcbench("lcbench", "neural networks, table", paper_bounds=False),
        _lcbench("lcbench+paper", "weight decay up to 1e5", paper_bounds=True),
        *(_embedded(name, suite_space(name).title, load_suite) for name in SUITE),
        *(_embedded(name, "a family of formulas", lambda family: FAMILIES[family]()) for name in FAMILIES),
    )


def _grid(name: str, title: str, size: BenchmarkSize) -> Entry:
    expected = expected_grid(name)
    address = f"{REPOSITORY.replace('github.com', 'raw.githubusercontent.com')}/{COMMIT}/data/{expected.folder}"
    files = tuple(PublishedFile(f"{address}/{task}", task) for task in expected.checksums)
    archive = f"schilling_{expected.folder}_original.tar.gz"

    def load_entry(path: Path, *_: object) -> Benchmark:
        return load_grid(name, path)

    return Entry(name, title, REPOSITORY, load_entry, size, files, (archive,), load_entry)


def _bot(name: str, title: str, size: BenchmarkSize, *, article: int) -> Entry:
    file = f"{name}.csv"
    published = PublishedFile(f"{FIGSHARE}/{article}", file)

    def check(path: Path) -> object:
        return read_bot(name, find_file(path, file))

    def load_entry(path: Path, jobs: int | None, build: ForestBuild) -> Benchmark:
        return load_bot(name, find_file(path, file), jobs=jobs, build=build)

    return Entry(name, title, OPENML_BOT, load_entry, size, (published,), (file, str(article)), check)


def _lcbench(name: str, title: str, *, paper_bounds: bool) -> Entry:
    file = "data_2k_lw.zip"
    published = PublishedFile(f"{FIGSHARE}/21188598", file, checksum="md5:26c8493006358a15ce12041c0bfc12a2")

    def check(path: Path) -> object:
        return read_lcbench(find_file(path, file))

    def load_entry(path: Path, *_: object) -> Benchmark:
        return load_lcbench(find_file(path, file), paper_bounds=paper_bounds)

    local_names = file, "data_2k_lw.json"
    return Entry(name, title, LCBENCH, load_entry, BenchmarkSize(35, 7, 0), (published,), local_names, check)


def _embedded(name: str, title: str, load_named: Callable[[str], Benchmark]) -> Entry:
    return Entry(name, title, "with recollect", lambda _path, _jobs, _build: load_named(name))
