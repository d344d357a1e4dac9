"""All benchmarks by name: the paper's six, other published tables, the embedded suite, and families of formulas.

Formulas and the suite come with the package. All other data belong to their authors. They are taken from ``path`` if
given, else from the user's data folder (`recollect.bench.data.download`), else from the folder named by the environment
variable ``RECOLLECT_DATA``, which is only read. A suffix (``+paper``) names a variant of the same data.
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
from recollect.bench.data.lcbench import SOURCE as LCBENCH
from recollect.bench.data.lcbench import lite_files, load_lcbench, read_lcbench
from recollect.bench.data.oboe import DATA_SETS, MEMBER, OBOE, OBTAINED, TITLES, WHEEL, load_oboe, oboe_notation
from recollect.bench.data.oboe import SOURCE as OBOE_SOURCE
from recollect.bench.data.openml_bot import load_bot, read_bot
from recollect.bench.data.schilling import COMMIT, REPOSITORY, expected_grid, load_grid
from recollect.bench.data.table_files import TABLE_FILES, load_table_file
from recollect.bench.problems.forest_benchmark import ForestBuild
from recollect.bench.problems.suite.suite_benchmarks import SUITE, load_suite, suite_space
from recollect.bench.problems.synthetic import FAMILIES
from recollect.errors import InputError

FIGSHARE = "https://ndownloader.figshare.com/files"
OPENML_BOT = "https://figshare.com/articles/5882230"


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
    licence: str = "MIT"
    derived: str = ""  # how its data came from the source, if they are not published in this form
    data_name: str = ""  # name of its data's folder, if it is not the benchmark's
    check: Callable[[Path], object] = lambda path: path  # raises InputError if a file or folder does not hold its data

    @property
    def needs_data(self) -> bool:
        """Whether its data must be fetched or copied; otherwise it comes with recollect."""
        return bool(self.files or self.derived)

    @property
    def agreement(self) -> float | None:
        """The mean rank correlation between tasks, as measured by ``benchmarks/quality/task_agreement.py``."""
        value = agreements().get(self.name)
        return None if value is None else float(value)

    def folder(self) -> Path:
        """Return the folder of its data once they have been fetched."""
        return download.data_folder() / (self.data_name or self.name.partition("+")[0])

    def find_data(self) -> Path | None:
        """Return where its data are on this computer; None if they are not, or if it needs none."""
        if not self.needs_data:
            return None
        paths = [self.folder()]
        if folder := os.environ.get("RECOLLECT_DATA"):
            paths += [Path(folder).expanduser() / name for name in (paths[0].name, *self.local_names)]
        return next((path for path in paths if path.exists()), None)


def names() -> tuple[str, ...]:
    """Return the names of all benchmarks.

    Examples:
        >>> "branin" in recollect.bench.names()
        True
    """
    return tuple(entry.name for entry in entries())


def load(
    name: str, path: str | os.PathLike[str] | None = None, *, jobs: int | None = None, build: ForestBuild | None = None
) -> Benchmark:
    """Load a benchmark.

    Examples:
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
    if not entry.needs_data and path is not None:
        raise InputError(f"benchmark {name!r} needs no data, so it takes no path, got {os.fspath(path)!r}")
    data = data_path(name) if path is None else Path(path)
    return entry.load(data or Path(), jobs, build or ForestBuild())


def data_path(name: str) -> Path | None:
    """Return where the data of a benchmark are, None if it needs none; InputError if they are missing."""
    entry = find_entry(name)
    path = entry.find_data()
    if entry.needs_data and path is None:
        get = f"`recollect bench fetch {name}` gets them from {entry.source}, or from a copy of yours (--from)"
        if entry.derived:
            get = f"`recollect bench fetch {name} --from PATH` takes a copy of yours ({_not_published(entry)})"
        named = "RECOLLECT_DATA may name a folder that has them"
        raise InputError(f"the data of benchmark {name!r} are not on this computer; {get}; {named}")
    return path


def fetch(name: str, *, source: Path | None = None, progress: DownloadProgress | None = None) -> Path | None:
    """Bring the data of a benchmark into the user's data folder, from a local copy if ``source`` names one.

    Returns the folder; None for a benchmark that needs no data. Data that are there already are not fetched again.
    """
    entry = find_entry(name)
    if not entry.needs_data:
        return None
    folder = entry.folder()
    if source is not None:
        return download.import_copy(folder, source, check=entry.check)
    if folder.exists():
        return folder
    if entry.derived:
        raise InputError(f"there is nothing to download for {name!r}: {_not_published(entry)}; pass a copy with --from")
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
    offline = entry.find_data() is not None if entry.needs_data else not note
    sizes = dict.fromkeys(BenchmarkSize._fields) if size is None else size._asdict()
    return {
        **{"name": entry.name, "title": entry.title, **sizes, "agreement": entry.agreement},
        **{"licence": entry.licence, "source": entry.source, "derived": entry.derived},
        **{"offline": offline, "note": note},
    }


def _not_published(entry: Entry) -> str:
    return f"{entry.local_names[0]} is not published in this form, it was derived from {entry.source}: {entry.derived}"


@cache
def agreements() -> dict[str, str]:
    """Return the mean rank correlations between the tasks of benchmarks, by name."""
    return download.published_column("task_agreement.csv", "mean")


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
        *(_table_file(name) for name in TABLE_FILES),
        *(_oboe(name) for name in OBOE),
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

    return Entry(name, title, REPOSITORY, load_entry, size, files, (archive,), "none stated", check=load_entry)


def _bot(name: str, title: str, size: BenchmarkSize, *, article: int) -> Entry:
    file = f"{name}.csv"
    published = PublishedFile(f"{FIGSHARE}/{article}", file)

    def check(path: Path) -> object:
        return read_bot(name, find_file(path, file))

    def load_entry(path: Path, jobs: int | None, build: ForestBuild) -> Benchmark:
        return load_bot(name, find_file(path, file), jobs=jobs, build=build)

    names, licence = (file, str(article)), "as stated on the figshare page"
    return Entry(name, title, OPENML_BOT, load_entry, size, (published,), names, licence, check=check)


def _lcbench(name: str, title: str, *, paper_bounds: bool) -> Entry:
    def load_entry(path: Path, *_: object) -> Benchmark:
        return load_lcbench(path, paper_bounds=paper_bounds)

    size, names = BenchmarkSize(35, 7, 0), ("data_2k_lw.zip", "data_2k_lw.json", "lcbench.csv.gz")
    return Entry(name, title, LCBENCH, load_entry, size, lite_files(), names, "Apache-2.0", check=read_lcbench)


def _table_file(name: str) -> Entry:
    table = TABLE_FILES[name]

    def load_entry(path: Path, *_: object) -> Benchmark:
        return load_table_file(name, find_file(path, table.file))

    size = BenchmarkSize(table.tasks, len(table.hyperparameters), len(table.conditions))
    facts = table.licence, table.derived
    return Entry(name, table.title, table.source, load_entry, size, (), (table.file,), *facts, check=load_entry)


def _oboe(name: str) -> Entry:
    def load_entry(path: Path, *_: object) -> Benchmark:
        return load_oboe(name, find_file(path, WHEEL))

    learner = OBOE[name]
    title = "twelve learners as one space, measured" if learner is None else f"{TITLES[learner]}, measured"
    size = BenchmarkSize(DATA_SETS, *map(len, oboe_notation(name)))
    names, facts = ("oboe", WHEEL, Path(MEMBER).name), ("BSD-3-Clause", OBTAINED, "oboe")
    return Entry(name, title, OBOE_SOURCE, load_entry, size, (), names, *facts, check=load_entry)


def _embedded(name: str, title: str, load_named: Callable[[str], Benchmark]) -> Entry:
    return Entry(name, title, "with recollect", lambda _path, _jobs, _build: load_named(name))
