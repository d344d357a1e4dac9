"""LCBench: 2,000 configurations of a neural network measured on each of 35 OpenML data sets: `lcbench`. Spec 5.2.

Published on figshare as ``data_2k_lw.json`` (a zip archive of it is read as well), about 1 GB of

    {data set: {number: {"config": {...}, "results": {...}, "log": {...}}}}

It is read piece by piece, one run at a time. The error is 1 - ``final_val_balanced_accuracy`` of the results. Of the
configuration, seven hyperparameters were varied; what else it holds is ignored. The number of layers 1 is written
``true`` in places.

The data were sampled with weight decays from 1e-5 to 1e-1, and that is the space; the paper has 1e5 as the upper bound,
which squeezes all of them into a millionth of the unit interval (``paper_bounds``). Runs outside of the space are left
out and counted. Anything else that is not as published is refused with file, data set, number and reason.
"""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from recollect.bench.problem import About, Benchmark
from recollect.bench.tabular import shared_table, task_tables
from recollect.errors import ConfigError, InputError
from recollect.history.run import Config
from recollect.space.space import Space, compile_space

SOURCE = "https://figshare.com/projects/LCBench/74151"
CITATION = (
    "L. Zimmer, M. Lindauer, F. Hutter: Auto-PyTorch Tabular: Multi-Fidelity MetaLearning for Efficient and Robust "
    "AutoDL. IEEE Transactions on Pattern Analysis and Machine Intelligence, 2021."
)
DATA_SETS = 35
TARGET = "final_val_balanced_accuracy"
BLOCK = 1 << 20  # characters read at a time
LARGEST_RUN = 1 << 25  # characters; a run has about 15,000, so that what is longer is not closed
WHITE = " \t\r\n"

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
    """The runs of all data sets: configurations and their errors; ``left_out`` counts runs outside of the space."""

    space: Space
    tables: dict[str, tuple[list[Config], list[float]]]
    left_out: int


def load_lcbench(path: str | os.PathLike[str], *, whole: bool = True, paper_bounds: bool = False) -> Benchmark:
    """Return the benchmark from its published file.

    whole: refuse a file that does not hold 35 data sets. paper_bounds: weight decay up to 1e5, as the paper has it.
    """
    table = read_lcbench(path, whole=whole, paper_bounds=paper_bounds)
    measured = f"1 - balanced accuracy on validation data after training; {table.left_out} runs left out"
    licence = "as stated on the figshare page"
    about = About("LCBench: neural networks on OpenML data sets", CITATION, licence, SOURCE, "table", True, measured)
    configs, _ = next(iter(table.tables.values()))
    if all(own == configs for own, _ in table.tables.values()):
        errors = {task: values for task, (_, values) in table.tables.items()}
        return shared_table("lcbench", table.space, configs=configs, errors=errors, about=about)
    return task_tables("lcbench", table.space, tables=table.tables, about=about)


def lcbench_space(*, paper_bounds: bool = False) -> Space:
    """Return the search space; with the paper's upper bound of the weight decay if asked for."""
    changed = {"weight_decay": (1e-5, 1e5)} if paper_bounds else {}
    return compile_space({**HYPERPARAMETERS, **changed})


def read_lcbench(path: str | os.PathLike[str], *, whole: bool = True, paper_bounds: bool = False) -> LcbenchTable:
    """Return the runs in the published file."""
    place, space = Path(path), lcbench_space(paper_bounds=paper_bounds)
    tables: dict[str, tuple[list[Config], list[float]]] = {}
    left_out = 0
    for task, number, run in _runs(place):
        where = f"{place}, data set {task!r}, configuration {number!r}"
        configs, errors = tables.setdefault(task, ([], []))
        config, error = _read_run(run, where)
        if _outside(space, config, where):
            left_out += 1
        else:
            configs.append(config)
            errors.append(error)
    empty = [task for task, (configs, _) in tables.items() if not configs]
    if empty or not tables:
        raise InputError(f"{place}: expected runs of every data set, got none{f' of {empty[0]!r}' if empty else ''}")
    if whole and len(tables) != DATA_SETS:
        raise InputError(f"{place}: expected {DATA_SETS} data sets, got {len(tables)}; is this the published file?")
    return LcbenchTable(space, tables, left_out)


def _read_run(run: Any, where: str) -> tuple[Config, float]:
    """Return the varied hyperparameters and the error of a run."""
    if not isinstance(run, dict) or not all(isinstance(run.get(part), dict) for part in ("config", "results")):
        raise InputError(f"{where}: expected an object with 'config' and 'results', got {str(run)[:80]}")
    config = {}
    for name in HYPERPARAMETERS:
        value = run["config"].get(name)
        if name == "num_layers" and value is True:
            value = 1
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InputError(f"{where}: expected a number as {name}, got {value!r}")
        config[name] = value
    accuracy = run["results"].get(TARGET)
    if isinstance(accuracy, bool) or not isinstance(accuracy, int | float) or not 0.0 <= accuracy <= 1.0:
        raise InputError(f"{where}: expected {TARGET} in [0, 1], got {accuracy!r}")
    return config, 1.0 - accuracy


def _outside(space: Space, config: Config, where: str) -> bool:
    """Whether a configuration lies outside of the space; a fraction where a whole number belongs is an error."""
    for name in ("batch_size", "max_units", "num_layers"):
        if config[name] != int(config[name]):
            raise InputError(f"{where}: expected a whole number as {name}, got {config[name]!r}")
        config[name] = int(config[name])
    try:
        space.encode([config])
    except ConfigError:
        return True
    return False


def _runs(place: Path) -> Iterator[tuple[str, str, Any]]:
    """Read (data set, number, run) one after the other."""
    try:
        with _opened(place) as stream:
            text = _Text(stream, place)
            for task in text.keys("a data set"):
                for number in text.keys(f"a configuration of {task!r}"):
                    yield task, number, text.value(f"the run {number!r} of {task!r}")
            text.end()
    except (OSError, EOFError, UnicodeDecodeError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{place}: expected LCBench's JSON file, but it cannot be read: {error}") from error


@contextmanager
def _opened(place: Path) -> Iterator[TextIO]:
    """Open the JSON file, or the only one in an archive."""
    if not zipfile.is_zipfile(place):
        with place.open(encoding="utf-8") as stream:
            yield stream
        return
    with zipfile.ZipFile(place) as archive:
        members = [name for name in archive.namelist() if name.endswith(".json") and not name.startswith("__MACOSX")]
        if len(members) != 1:
            raise InputError(f"{place}: expected one JSON file in the archive, got {len(members)}")
        with archive.open(members[0]) as raw:
            yield io.TextIOWrapper(raw, encoding="utf-8")


class _Text:
    """JSON text taken from a stream as far as it is needed."""

    __slots__ = ("_at", "_before", "_decoder", "_place", "_rest", "_stream")

    def __init__(self, stream: TextIO, place: Path) -> None:
        self._stream, self._place = stream, place
        self._rest, self._at, self._before = "", 0, 0  # _before: characters that were dropped from the buffer
        self._decoder = json.JSONDecoder()

    def keys(self, what: str) -> Iterator[str]:
        """Go through an object: yield each key, with the position at its value, which the caller must take."""
        self._expect("{", f"an object with {what} for every key")
        first = True
        while self._peek() != "}":
            if not first:
                self._expect(",", "a comma or the end of the object")
            key = self.value(f"the name of {what}")
            if not isinstance(key, str):
                raise self._complaint(f"the name of {what}")
            self._expect(":", f"a colon after {key!r}")
            yield key
            first = False
        self._at += 1

    def value(self, what: str) -> Any:
        """Take one whole value."""
        self._peek()
        while True:
            try:
                value, self._at = self._decoder.raw_decode(self._rest, self._at)
                return value
            except json.JSONDecodeError as error:
                # the value may go on beyond what has been read
                if len(self._rest) - self._at > LARGEST_RUN or not self._more():
                    raise self._complaint(f"{what}, in JSON ({error.msg})") from error

    def end(self) -> None:
        """Make sure that nothing follows."""
        if self._peek():
            raise self._complaint("the end of the file")

    def _peek(self) -> str:
        """Return the next character that is not white; none at the end."""
        while True:
            while self._at < len(self._rest):
                if self._rest[self._at] not in WHITE:
                    return self._rest[self._at]
                self._at += 1
            if not self._more():
                return ""

    def _expect(self, character: str, what: str) -> None:
        if self._peek() != character:
            raise self._complaint(what)
        self._at += 1

    def _more(self) -> bool:
        block = self._stream.read(max(BLOCK, len(self._rest) - self._at))
        self._before += self._at
        self._rest, self._at = self._rest[self._at :] + block, 0
        return bool(block)

    def _complaint(self, what: str) -> InputError:
        here = self._rest[self._at : self._at + 40]
        got = f"{here!r}" if here else "the end of the file"
        return InputError(f"{self._place}, character {self._before + self._at}: expected {what}, got {got}")
