"""LCBench: 2,000 configurations of a neural network measured on each of 35 OpenML data sets. Paper section 5.2.

Published on figshare as ``data_2k_lw.json`` (a zip archive of it is read as well), about 1 GB of

    {data set: {number: {"config": {...}, "results": {...}, "log": {...}}}}

The file is streamed, one run at a time. The error is 1 - ``final_val_balanced_accuracy``. Seven hyperparameters of the
configuration were varied; the others are ignored. The number of layers 1 is sometimes written as ``true``.

The data were sampled with weight decays from 1e-5 to 1e-1, and that is the space. The paper has 1e5 as the upper bound,
which squeezes all of them into a millionth of the unit interval (``paper_bounds``). Runs outside the space are left out
and counted. Everything else that is not as published is refused with file, data set, number and reason.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from recollect.bench.benchmark import About, Benchmark
from recollect.bench.problems.tabular import task_tables
from recollect.errors import ConfigError, InputError
from recollect.runs.run import Config
from recollect.space.space import Space, compile_space

SOURCE = "https://figshare.com/projects/LCBench/74151"
CITATION = (
    "L. Zimmer, M. Lindauer, F. Hutter: Auto-PyTorch Tabular: Multi-Fidelity MetaLearning for Efficient and Robust "
    "AutoDL. IEEE Transactions on Pattern Analysis and Machine Intelligence, 2021."
)
DATA_SETS = 35
TARGET = "final_val_balanced_accuracy"
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


@dataclass(frozen=True, slots=True, eq=False)
class LcbenchTable:
    """The runs of all data sets: configurations and errors; ``left_out`` counts runs outside the space."""

    space: Space
    tables: dict[str, tuple[list[Config], list[float]]]
    left_out: int


def load_lcbench(file: Path, *, whole: bool = True, paper_bounds: bool = False) -> Benchmark:
    """Return the benchmark from its published file.

    whole: refuse a file that does not hold 35 data sets. paper_bounds: weight decay up to 1e5, as the paper has it.
    """
    table = read_lcbench(file, whole=whole, paper_bounds=paper_bounds)
    measured = f"1 - balanced accuracy on validation data after training; {table.left_out} runs left out"
    licence = "as stated on the figshare page"
    about = About("LCBench: neural networks on OpenML data sets", CITATION, licence, SOURCE, "table", True, measured)
    return task_tables("lcbench", table.space, tables=table.tables, about=about)


def lcbench_space(*, paper_bounds: bool = False) -> Space:
    """Return the search space, optionally with the paper's upper bound of the weight decay."""
    bounds = {"weight_decay": (1e-5, 1e5)} if paper_bounds else {}
    return compile_space({**HYPERPARAMETERS, **bounds})


def read_lcbench(file: Path, *, whole: bool = True, paper_bounds: bool = False) -> LcbenchTable:
    """Return the runs in the published file."""
    space = lcbench_space(paper_bounds=paper_bounds)
    tables: dict[str, tuple[list[Config], list[float]]] = {}
    left_out = 0
    for task, number, run in _runs(file):
        where = f"{file}, data set {task!r}, configuration {number!r}"
        configs, errors = tables.setdefault(task, ([], []))
        config, error = _read_run(run, where)
        try:
            space.encode([config])
        except ConfigError:
            left_out += 1
            continue
        configs.append(config)
        errors.append(error)
    empty = [task for task, (configs, _) in tables.items() if not configs]
    if empty or not tables:
        raise InputError(f"{file}: expected runs of every data set, got none{f' of {empty[0]!r}' if empty else ''}")
    if whole and len(tables) != DATA_SETS:
        raise InputError(f"{file}: expected {DATA_SETS} data sets, got {len(tables)}; is this the published file?")
    return LcbenchTable(space, tables, left_out)


def _read_run(run: Any, where: str) -> tuple[Config, float]:
    """Return the varied hyperparameters and the error of a run."""
    if not isinstance(run, dict) or not all(isinstance(run.get(part), dict) for part in ("config", "results")):
        raise InputError(f"{where}: expected an object with 'config' and 'results', got {str(run)[:80]}")
    config = {}
    for name, (low, *_) in HYPERPARAMETERS.items():
        value = run["config"].get(name)
        if name == "num_layers" and value is True:
            value = 1
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{where}: expected a number as {name}, got {value!r}")
        if isinstance(low, int) and value != int(value):
            raise InputError(f"{where}: expected a whole number as {name}, got {value!r}")
        config[name] = int(value) if isinstance(low, int) else value
    accuracy = run["results"].get(TARGET)
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float) or not 0.0 <= accuracy <= 1.0:
        raise InputError(f"{where}: expected {TARGET} in [0, 1], got {accuracy!r}")
    return config, 1.0 - accuracy


def _runs(file: Path) -> Iterator[tuple[str, str, Any]]:
    """Yield (data set, number, run)."""
    try:
        with _open_json(file) as stream:
            text = _JsonStream(stream, file)
            for task in text.keys("a data set"):
                for number in text.keys(f"a configuration of {task!r}"):
                    yield task, number, text.value(f"the run {number!r} of {task!r}")
            text.end()
    except (OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{file}: expected LCBench's JSON file, but it cannot be read: {error}") from error


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
