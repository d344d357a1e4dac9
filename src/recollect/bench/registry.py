"""All benchmarks by name: the paper's six, the embedded suite, and families of formulas.

Formulas and the suite come with the package. The data of the paper's six belong to their authors: they are looked for
where ``path`` says, else in the user's data folder (`recollect.bench.fetch`), else in the folder named by the
environment variable ``RECOLLECT_DATA``, which is only read. A suffix names a variant of the same data.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.bench.fetch import Part, Progress, data_folder, fetch_parts, take_copy
from recollect.bench.problem import Benchmark, hint
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.bench.forest_task import Build

FIGSHARE = "https://ndownloader.figshare.com/files"
OPENML_BOT = "https://figshare.com/articles/5882230"
LCBENCH = "https://figshare.com/articles/11662422"
FORMULAS = ("alpine-1d", "quadratic-3d", "branin", "hartmann-3", "hartmann-6", "forrester")


@dataclass(frozen=True, slots=True)
class Shape:
    """How many tasks, how many hyperparameters, and how many of those are conditional."""

    tasks: int
    dimensions: int
    conditional: int


@dataclass(frozen=True, slots=True)
class Making:
    """How forests are built where there are any: ``jobs`` processes (None: one a core; 0: later), other settings."""

    jobs: int | None = None
    build: Build | None = None


USUAL = Making()


@dataclass(frozen=True, slots=True)
class Entry:
    """A benchmark that can be loaded.

    load: from the place of its data (None: it needs none). shape: None where loading is so quick that it is read off.
    parts: what is published, for those that need data. local: names that its data may have in ``RECOLLECT_DATA``.
    check: raises if a file or folder is not its data.
    """

    name: str
    title: str
    source: str
    load: Callable[[Path | None, Making], Benchmark]
    shape: Shape | None = None
    parts: tuple[Part, ...] = ()
    local: tuple[str, ...] = ()
    check: Callable[[Path], object] = lambda path: path

    def home(self) -> Path:
        """Return the folder of its data when they have been fetched."""
        return data_folder() / self.name.partition("+")[0]

    def place(self) -> Path | None:
        """Return where its data are on this computer; None if they are not, or if it needs none."""
        if not self.parts:
            return None
        own = self.home()
        given = Path(os.environ["RECOLLECT_DATA"]).expanduser() if os.environ.get("RECOLLECT_DATA") else None
        others = [] if given is None else [given / name for name in (own.name, *self.local)]
        return next((place for place in (own, *others) if place.exists()), None)


@dataclass(frozen=True, slots=True)
class Listed:
    """What `recollect bench list` shows; shape is None and reason says why where a benchmark cannot be loaded."""

    name: str
    title: str
    source: str
    shape: Shape | None
    offline: bool
    reason: str


def names() -> tuple[str, ...]:
    """Return the names of all benchmarks."""
    return tuple(entry.name for entry in entries())


def load(
    name: str, path: str | os.PathLike[str] | None = None, *, jobs: int | None = None, build: Build | None = None
) -> Benchmark:
    """Return the benchmark of this name.

    path: a local copy of its data, in the form in which they are published. jobs, build: how forests are built where a
    benchmark has them and they are not stored yet; one process a core unless ``jobs`` says otherwise, and with 0 each
    when its task is first asked for.
    """
    entry = entry_of(name)
    if not entry.parts:
        if path is not None:
            raise InputError(f"benchmark {name!r} needs no data, so it takes no path, got {os.fspath(path)!r}")
        return entry.load(None, USUAL)
    return entry.load(place_of(name) if path is None else Path(path), Making(jobs, build))


def place_of(name: str) -> Path | None:
    """Return where the data of a benchmark are, None if it needs none; InputError if it does and they are not here."""
    entry = entry_of(name)
    place = entry.place() if entry.parts else None
    if entry.parts and place is None:
        raise InputError(
            f"the data of benchmark {name!r} are not on this computer; `recollect bench fetch {name}` gets them from "
            f"{entry.source}, or from a copy of yours (--from), and RECOLLECT_DATA may name a folder that has them"
        )
    return place


def fetch(name: str, *, source: Path | None = None, progress: Progress | None = None) -> Path | None:
    """Bring the data of a benchmark into the user's data folder, from a local copy if ``source`` names one.

    Returns the folder; None for a benchmark that needs no data. What is there already is not fetched again.
    """
    entry = entry_of(name)
    if not entry.parts:
        return None
    if source is not None:
        return take_copy(entry.home(), source, check=entry.check)
    own = entry.home()
    return own if own.exists() else fetch_parts(own, entry.parts, check=entry.check, progress=progress)


def entry_of(name: str) -> Entry:
    """Return the entry of this name; InputError with close matches if there is none."""
    for entry in entries():
        if entry.name == name:
            return entry
    raise InputError(f"there is no benchmark {name!r}{hint(name, names())}")


def listed(entry: Entry) -> Listed:
    """Describe a benchmark, loading it only where that is quick."""
    shape, reason = entry.shape, ""
    if shape is None:
        try:
            shape = shape_of(entry.load(None, USUAL))
        except (InputError, ImportError) as error:
            reason = str(error)
    offline = entry.place() is not None if entry.parts else not reason
    return Listed(entry.name, entry.title, entry.source, shape, offline, reason)


def shape_of(benchmark: Benchmark) -> Shape:
    """Count what a benchmark has."""
    conditional = sum(condition is not None for condition in benchmark.space.conditions)
    return Shape(len(benchmark.tasks), len(benchmark.space.names), conditional)


def entries() -> tuple[Entry, ...]:
    """Return all benchmarks, the paper's six first."""
    from recollect.bench.suite import SUITE

    return (
        _grid("adaboost-grid", "AdaBoost, grid of 108", Shape(50, 2, 0)),
        _grid("svm-grid", "SVM, grid of 288", Shape(50, 6, 0)),
        _bot("glmnet", "elastic net, forests", Shape(38, 2, 0), number=10462300),
        _bot("svm", "SVM, forests", Shape(38, 4, 2), number=10462312),
        _bot("xgboost", "XGBoost, forests", Shape(38, 10, 4), number=10462315),
        _lcbench("lcbench", "neural networks, table", paper_bounds=False),
        _lcbench("lcbench+paper", "weight decay up to 1e5", paper_bounds=True),
        *(_own(name) for name in SUITE),
        *(_formula(name) for name in FORMULAS),
    )


def _grid(name: str, title: str, shape: Shape) -> Entry:
    from recollect.bench.loaders import schilling

    folder = name.removesuffix("-grid")
    address = schilling.REPOSITORY.replace("github.com", "raw.githubusercontent.com")
    tasks = schilling.grid(name).checksums
    return Entry(
        name,
        title,
        schilling.REPOSITORY,
        lambda path, _: schilling.load_grid(name, _needed(path)),
        shape,
        tuple(Part(f"{address}/{schilling.COMMIT}/data/{folder}/{task}", task) for task in tasks),
        (f"schilling_{folder}_original.tar.gz",),
        lambda path: schilling.load_grid(name, path),
    )


def _bot(name: str, title: str, shape: Shape, *, number: int) -> Entry:
    file = f"{name}.csv"

    def load_forests(path: Path | None, making: Making) -> Benchmark:
        from recollect.bench.forest_task import Build
        from recollect.bench.loaders.openml_bot import load_bot

        return load_bot(name, _inside(_needed(path), file), jobs=making.jobs, build=making.build or Build())

    def check(path: Path) -> object:
        from recollect.bench.loaders.openml_bot import read_bot

        return read_bot(name, _inside(path, file))

    part = Part(f"{FIGSHARE}/{number}", file)
    return Entry(name, title, OPENML_BOT, load_forests, shape, (part,), (file, str(number)), check)


def _lcbench(name: str, title: str, *, paper_bounds: bool) -> Entry:
    file = "data_2k_lw.zip"

    def load_table(path: Path | None, _: Making) -> Benchmark:
        from recollect.bench.loaders.lcbench import load_lcbench

        return load_lcbench(_inside(_needed(path), file), paper_bounds=paper_bounds)

    def check(path: Path) -> object:
        from recollect.bench.loaders.lcbench import read_lcbench

        return read_lcbench(_inside(path, file))

    part = Part(f"{FIGSHARE}/21188598", file, checksum="md5:26c8493006358a15ce12041c0bfc12a2")
    return Entry(name, title, LCBENCH, load_table, Shape(35, 7, 0), (part,), (file, "data_2k_lw.json"), check)


def _own(name: str) -> Entry:
    from recollect.bench.suite.spaces import suite_space

    def load_own(_: Path | None, __: Making) -> Benchmark:
        from recollect.bench.suite import load_suite

        return load_suite(name)

    return Entry(name, suite_space(name).title, "with recollect", load_own)


def _formula(name: str) -> Entry:
    def load_formula(_: Path | None, __: Making) -> Benchmark:
        from recollect.bench import synthetic

        makers = (
            synthetic.alpine_1d,
            synthetic.quadratic_3d,
            synthetic.branin,
            synthetic.hartmann_3,
            synthetic.hartmann_6,
            synthetic.forrester,
        )
        return dict(zip(FORMULAS, makers, strict=True))[name]()

    return Entry(name, "a family of formulas", "with recollect", load_formula)


def _needed(path: Path | None) -> Path:
    assert path is not None  # `load` has found the data
    return path


def _inside(path: Path, file: str) -> Path:
    """Return the file of a folder that holds it, under its own name or as the only one."""
    if not path.is_dir():
        return path
    if (path / file).exists():
        return path / file
    files = [entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith(".")]
    if len(files) != 1:
        raise InputError(f"{path}: expected the file {file} in this folder, got {len(files)} files")
    return files[0]
