"""LCBench: 2,000 configurations of a neural network measured on each of 35 OpenML datasets. Paper section 5.2.

Read from any of three forms of the same data:

- LCBenchLite, on GitHub: a folder with ``NAME/config.parquet.gzip`` and ``NAME/results.parquet.gzip`` for every
  dataset, 8 MB together, one row per configuration. Needs pyarrow (extra ``parquet``).
- the original on figshare, ``data_2k_lw.json`` (a zip archive of it is read as well), about 1 GB of
  ``{dataset: {number: {"config": {...}, "results": {...}, "log": {...}}}}``. It is streamed, one run at a time.
- a CSV file with the columns task, the seven hyperparameters, error.

The error is 1 - ``final_val_balanced_accuracy``. Seven hyperparameters of the configuration were varied; the others are
ignored. The number of layers 1 is sometimes written as ``true``. ``lcbench_errors.csv`` has best, worst and mean error
of every dataset, with which files without a published checksum are compared.

The data were sampled with weight decays from 1e-5 to 1e-1, and that is the space. The paper has 1e5 as the upper bound,
which squeezes all of them into a millionth of the unit interval (``paper_bounds``). Runs outside the space are left out
and counted. Everything else that is not as published is refused with file, dataset, number and reason.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from recollect._files import read_text
from recollect.bench.benchmark import About, Benchmark
from recollect.bench.data.download import PublishedFile, find_file, published_column
from recollect.bench.problems.tabular import task_tables
from recollect.errors import ConfigError, InputError, MissingExtraError
from recollect.runs.run import Config
from recollect.space.space import Space, compile_space
from recollect.storage.formats.csv_columns import INTEGER, csv_rows, parse_float

SOURCE = "https://github.com/ltiao/LCBenchLite"
COMMIT = "76d9baacc1ae457bc8f5c6405642a62768f2d76b"
ORIGINAL = PublishedFile(
    "https://ndownloader.figshare.com/files/21188598", "data_2k_lw.zip", None, "md5:26c8493006358a15ce12041c0bfc12a2"
)
CITATION = (
    "L. Zimmer, M. Lindauer, F. Hutter: Auto-PyTorch Tabular: Multi-Fidelity MetaLearning for Efficient and Robust "
    "AutoDL. IEEE Transactions on Pattern Analysis and Machine Intelligence, 2021."
)
FACTS_FILE = "lcbench_errors.csv"
FACTS_TOLERANCE = 1e-6
TARGET = "final_val_balanced_accuracy"
PARQUET_FILES = ("config.parquet.gzip", "results.parquet.gzip")
CHARACTERS_PER_READ = 1 << 20
MAX_RUN_CHARACTERS = 1 << 25  # a run has about 15,000; a longer one is damaged
WHITESPACE = " \t\r\n"

HYPERPARAMETERS: Mapping[str, Any] = {
    "batch_size": (16, 512, "log"),
    "learning_rate": (1e-4, 1e-1, "log"),
    "max_dropout": (0.0, 1.0),
    "max_units": (16, 1024, "log"),
    "momentum": (0.1, 0.99),
    "num_layers": (1, 5),
    "weight_decay": (1e-5, 1e-1),
}


class NetworkRun(NamedTuple):
    """One trained network: where it is described, the dataset, the values in the file, and its error."""

    where: str
    task: str
    config: Mapping[str, Any]
    error: float


@dataclass(frozen=True, slots=True, eq=False)
class LcbenchTable:
    """The runs of all datasets: configurations and errors; ``left_out`` counts runs outside the space."""

    space: Space
    tables: dict[str, tuple[list[Config], list[float]]]
    left_out: int


def load_lcbench(path: Path, *, whole: bool = True, paper_bounds: bool = False) -> Benchmark:
    """Return the benchmark from one of the three forms of its data.

    whole: refuse data that are not those of all 35 datasets. paper_bounds: weight decay up to 1e5, as in the paper.
    """
    table = read_lcbench(path, whole=whole, paper_bounds=paper_bounds)
    measured = f"1 - balanced accuracy on validation data after training; {table.left_out} runs left out"
    title = "LCBench: neural networks on OpenML datasets"
    about = About(title, CITATION, "Apache-2.0", SOURCE, "table", True, measured)
    name = "lcbench+paper" if paper_bounds else "lcbench"
    return task_tables(name, table.space, tables=table.tables, about=about)


def lcbench_space(*, paper_bounds: bool = False) -> Space:
    """Return the search space, optionally with the paper's upper bound of the weight decay."""
    bounds = {"weight_decay": (1e-5, 1e5)} if paper_bounds else {}
    return compile_space({**HYPERPARAMETERS, **bounds})


def lite_files() -> tuple[PublishedFile, ...]:
    """Return the files of LCBenchLite, two for every dataset."""
    address = f"{SOURCE.replace('github.com', 'raw.githubusercontent.com')}/{COMMIT}"
    tasks = published_column(FACTS_FILE, "mean")
    return tuple(
        PublishedFile(f"{address}/{task}/{file}", f"{task}/{file}") for task in tasks for file in PARQUET_FILES
    )


def read_lcbench(path: Path, *, whole: bool = True, paper_bounds: bool = False) -> LcbenchTable:
    """Return the runs in one of the three forms of the data."""
    space = lcbench_space(paper_bounds=paper_bounds)
    tables: dict[str, tuple[list[Config], list[float]]] = {}
    is_inside: dict[tuple[Any, ...], bool] = {}  # most configurations come once for every dataset
    left_out = 0
    for run in _network_runs(path):
        configs, errors = tables.setdefault(run.task, ([], []))
        config = _read_config(run)
        key = tuple(config.values())
        if key not in is_inside:
            is_inside[key] = _inside(space, config)
        if is_inside[key]:
            configs.append(config)
            errors.append(run.error)
        else:
            left_out += 1
    empty = [task for task, (configs, _) in tables.items() if not configs]
    if empty or not tables:
        raise InputError(f"{path}: expected runs of every dataset, got none{f' of {empty[0]!r}' if empty else ''}")
    if whole:
        _check_facts(path, {task: errors for task, (_, errors) in tables.items()})
    return LcbenchTable(space, tables, left_out)


def _inside(space: Space, config: Config) -> bool:
    try:
        space.encode([config])
    except ConfigError:
        return False
    return True


def _check_facts(path: Path, errors: Mapping[str, Sequence[float]]) -> None:
    """Refuse data whose datasets, or their best, worst and mean errors, are not the published ones."""
    facts = {name: published_column(FACTS_FILE, name) for name in ("best", "worst", "mean")}
    if set(errors) != set(facts["mean"]):
        different = sorted(set(errors) ^ set(facts["mean"]))[0]
        raise InputError(
            f"{path}: expected {len(facts['mean'])} datasets, got {len(errors)}; {different!r} is in one of both only"
        )
    for task, own in errors.items():
        got = {"best": min(own), "worst": max(own), "mean": math.fsum(own) / len(own)}
        for name, value in got.items():
            if abs(value - float(facts[name][task])) > FACTS_TOLERANCE:
                expected = f"{facts[name][task]} as the {name} error of dataset {task!r}"
                raise InputError(f"{path}: expected {expected}, got {value:.7f}; these are not the published runs")


def _read_config(run: NetworkRun) -> Config:
    """Return the varied hyperparameters of a run."""
    config = {}
    for name, (low, *_) in HYPERPARAMETERS.items():
        value = run.config.get(name)
        if name == "num_layers" and value is True:
            value = 1
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{run.where}: expected a number as {name}, got {value!r}")
        if isinstance(low, int) and value != int(value):
            raise InputError(f"{run.where}: expected a whole number as {name}, got {value!r}")
        config[name] = int(value) if isinstance(low, int) else value
    return config


def _network_runs(path: Path) -> Iterator[NetworkRun]:
    """Yield the runs of whichever form the data have."""
    if path.is_dir() and any(path.glob(f"*/{PARQUET_FILES[0]}")):
        return _parquet_runs(path)
    file = find_file(path, ORIGINAL.file)
    return _csv_runs(file) if file.name.endswith((".csv", ".csv.gz")) else _json_runs(file)


def _parquet_runs(folder: Path) -> Iterator[NetworkRun]:
    for dataset in sorted(file.parent for file in folder.glob(f"*/{PARQUET_FILES[0]}")):
        configs, results = (_parquet_columns(dataset / file) for file in PARQUET_FILES)
        where = f"{dataset}: {PARQUET_FILES[0]} and {PARQUET_FILES[1]}"
        missing = [name for name in HYPERPARAMETERS if name not in configs]
        missing += [name for name in (TARGET,) if name not in results]
        if missing:
            raise InputError(f"{where}: expected a column {missing[0]!r}, got {[*configs, *results][:20]}")
        accuracies = results[TARGET]
        if len(accuracies) != len(configs["batch_size"]):
            rows = f"{len(configs['batch_size'])} and {len(accuracies)}"
            raise InputError(f"{where}: expected a row for every configuration in both, got {rows} rows")
        for number, accuracy in enumerate(accuracies):
            place = f"{where}, row {number}"
            config = {name: configs[name][number] for name in HYPERPARAMETERS}
            yield NetworkRun(place, dataset.name, config, _error(accuracy, place))


def _parquet_columns(file: Path) -> dict[str, list[Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        message = "reading the files of LCBenchLite needs pyarrow: pip install 'recollect[parquet]'"
        raise MissingExtraError(message) from error
    try:
        columns: dict[str, list[Any]] = parquet.read_table(file).to_pydict()
    except (OSError, ArrowException) as error:
        raise InputError(f"{file}: expected a Parquet file: {error}") from error
    return columns


def _csv_runs(file: Path) -> Iterator[NetworkRun]:
    rows = csv_rows(str(file), read_text(file))
    _, header = next(rows, (1, []))
    if set(header) != {"task", *HYPERPARAMETERS, "error"}:
        raise InputError(
            f"{file}, line 1: expected the columns task, {', '.join(HYPERPARAMETERS)}, error, got {header}"
        )
    for line, row in rows:
        cells = dict(zip(header, row, strict=True))
        where = f"{file}, line {line}"
        config = {
            name: int(cells[name]) if INTEGER.match(cells[name]) else parse_float(cells[name])
            for name in HYPERPARAMETERS
        }
        error = parse_float(cells["error"])
        if error is None or not 0.0 <= error <= 1.0:
            raise InputError(f"{where}: expected an error in [0, 1], got {cells['error']!r}")
        yield NetworkRun(where, cells["task"], config, error)


def _json_runs(file: Path) -> Iterator[NetworkRun]:
    try:
        with _open_json(file) as stream:
            text = _JsonStream(stream, file)
            for task in text.keys("a dataset"):
                for number in text.keys(f"a configuration of {task!r}"):
                    run = text.value(f"the run {number!r} of {task!r}")
                    where = f"{file}, dataset {task!r}, configuration {number!r}"
                    parts = ("config", "results")
                    if not isinstance(run, dict) or not all(isinstance(run.get(part), dict) for part in parts):
                        expected = "an object with 'config' and 'results'"
                        raise InputError(f"{where}: expected {expected}, got {str(run)[:80]}")
                    yield NetworkRun(where, task, run["config"], _error(run["results"].get(TARGET), where))
            text.end()
    except (OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{file}: expected LCBench's JSON file, but it cannot be read: {error}") from error


def _error(accuracy: Any, where: str) -> float:
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float) or not 0.0 <= accuracy <= 1.0:
        raise InputError(f"{where}: expected {TARGET} in [0, 1], got {accuracy!r}")
    return 1.0 - accuracy


@contextmanager
def _open_json(file: Path) -> Iterator[TextIO]:
    """Open the JSON file, or the only one in an archive."""
    if not zipfile.is_zipfile(file):
        with file.open(encoding="utf-8") as stream:
            yield stream
        return
    with zipfile.ZipFile(file) as archive:
        members = [name for name in archive.namelist() if name.endswith(".json") and not name.startswith("__MACOSX")]
        if len(members) != 1:
            raise InputError(f"{file}: expected one JSON file in the archive, got {len(members)}")
        with archive.open(members[0]) as raw:
            yield io.TextIOWrapper(raw, encoding="utf-8")


class _JsonStream:
    """JSON text, read from a file as far as it is needed."""

    def __init__(self, stream: TextIO, file: Path) -> None:
        self._stream, self._file = stream, file
        self._buffer, self._position, self._dropped = "", 0, 0  # _dropped: characters no longer in the buffer
        self._decoder = json.JSONDecoder()

    def keys(self, what: str) -> Iterator[str]:
        """Yield the keys of an object; the caller must read the value before the next key."""
        self._expect("{", f"an object with {what} for every key")
        first = True
        while self._peek() != "}":
            if not first:
                self._expect(",", "a comma or the end of the object")
            key = self.value(f"the name of {what}")
            if not isinstance(key, str):
                raise self._error(f"the name of {what}")
            self._expect(":", f"a colon after {key!r}")
            yield key
            first = False
        self._position += 1

    def value(self, what: str) -> Any:
        """Read one value."""
        self._peek()
        while True:
            try:
                value, self._position = self._decoder.raw_decode(self._buffer, self._position)
                return value
            except json.JSONDecodeError as error:
                # the value may continue beyond the buffer
                if len(self._buffer) - self._position > MAX_RUN_CHARACTERS or not self._read_more():
                    raise self._error(f"{what}, in JSON ({error.msg})") from error

    def end(self) -> None:
        """Check that nothing follows."""
        if self._peek():
            raise self._error("the end of the file")

    def _peek(self) -> str:
        """Return the next character that is not whitespace; an empty text at the end."""
        while True:
            while self._position < len(self._buffer):
                if self._buffer[self._position] not in WHITESPACE:
                    return self._buffer[self._position]
                self._position += 1
            if not self._read_more():
                return ""

    def _expect(self, character: str, what: str) -> None:
        if self._peek() != character:
            raise self._error(what)
        self._position += 1

    def _read_more(self) -> bool:
        block = self._stream.read(max(CHARACTERS_PER_READ, len(self._buffer) - self._position))
        self._dropped += self._position
        self._buffer, self._position = self._buffer[self._position :] + block, 0
        return bool(block)

    def _error(self, what: str) -> InputError:
        here = self._buffer[self._position : self._position + 40]
        got = f"{here!r}" if here else "the end of the file"
        return InputError(f"{self._file}, character {self._dropped + self._position}: expected {what}, got {got}")
