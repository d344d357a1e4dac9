"""The paper's tables: their layout, and the values printed in them (100 x ADTM), read from ``published.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from recollect.bench.analysis.statistics import Mark
from recollect.transfer.weighting.ranking_weights import TwoStageWeighting

EVALUATIONS = (10, 20, 30, 40, 50)
LAST_EVALUATION = EVALUATIONS[-1]
BENCHMARKS = ("glmnet", "svm", "lcbench", "xgboost", "adaboost-grid", "svm-grid")
"""The paper's GLMNET-2D, SVM-4D, NN-7D, XGBoost-10D, AdaBoost-2D and SVM-6D, in the order of its tables."""

TST_METHODS = ("tstr-ei", "tstr-taf")
BANDWIDTH_NOTE = (
    f"TST-R uses rho = {TwoStageWeighting().rho:g} here; the paper uses, on each benchmark, the value that was best on "
    "the other benchmarks."
)
_MARKS: dict[str, Mark] = {"!": "best", "*": "even"}


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """A value printed in the paper, and how it was marked."""

    value: float
    mark: Mark


@dataclass(frozen=True, slots=True)
class PaperRow:
    """A row of a table; ``published.toml`` says how ``values`` are written."""

    label: str
    method: str
    values: str


@dataclass(frozen=True, slots=True)
class PaperTableLayout:
    """Rows and columns of a table of the paper."""

    name: str  # as on the command line; the three main tables share a name
    title: str
    benchmarks: tuple[str, ...]  # with columns, in order
    evaluations: tuple[int, ...]  # counts with columns for each benchmark
    blocks: tuple[tuple[PaperRow, ...], ...]  # separated by lines
    separate_blocks: bool  # whether methods are compared within each block rather than in the whole table
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[PaperRow, ...]:
        """The rows of all blocks."""
        return tuple(row for block in self.blocks for row in block)

    def published(self, row: PaperRow, benchmark: str, evaluations: int) -> PublishedValue | None:
        """Return what the paper printed in a cell; None if it has no such cell or value."""
        if benchmark not in self.benchmarks or evaluations not in self.evaluations:
            return None
        index = self.benchmarks.index(benchmark) * len(self.evaluations) + self.evaluations.index(evaluations)
        text = row.values.split()[index]
        return None if text == "-" else PublishedValue(float(text.rstrip("!*")), _MARKS.get(text[-1], ""))


def published_value(method: str, benchmark: str, evaluations: int) -> PublishedValue | None:
    """Return the paper's value for a method, from the first table that has one; None if none has."""
    rows = ((layout, row) for layout in LAYOUTS for row in layout.rows if row.method == method)
    return next((value for layout, row in rows if (value := layout.published(row, benchmark, evaluations))), None)


def _layout(table: dict[str, Any]) -> PaperTableLayout:
    columns = tuple(table["benchmarks"]), tuple(table["evaluations"])
    blocks = tuple(tuple(PaperRow(*row) for row in block) for block in table["blocks"])
    notes = (*([BANDWIDTH_NOTE] if table["default_bandwidth"] else ()), *table["notes"])
    return PaperTableLayout(table["name"], table["title"], *columns, blocks, table["separate_blocks"], notes)


_FILE = files("recollect.bench.paper") / "published.toml"
LAYOUTS = tuple(_layout(table) for table in tomllib.loads(_FILE.read_text(encoding="utf-8"))["tables"])
TABLE_NAMES = tuple(dict.fromkeys(layout.name for layout in LAYOUTS))
MAIN_TABLES = tuple(layout for layout in LAYOUTS if layout.name == "main")
