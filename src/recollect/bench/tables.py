"""Tables of results as data: the paper's, with its numbers beside ours; `recollect.bench.typeset` writes them.

Regrets are shown as 100 x ADTM. A cell's value is the mean over the tasks that its method has; methods are compared on
the runs that they share (`recollect.bench.significance`). What was not run is an empty cell, and named in a note.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from recollect.bench.layout import Layout, Mark, Printed, Row
from recollect.bench.published import BENCHMARKS, EVALUATIONS, LAST, LAYOUTS, MAIN, MAIN_FIRST, RHO
from recollect.bench.rho import CHOSEN, TASKS, with_chosen_rho
from recollect.bench.significance import verdicts
from recollect.bench.study import Outcome, Study

CONVENTION = (
    "100 x ADTM. Underlined and bold: the lowest of its column{where}; bold: not significantly different from it "
    "(exact paired two-sided Wilcoxon signed-rank test over tasks, alpha = 0.05)."
)
BESIDE = "In parentheses: the paper's value."


@dataclass(frozen=True, slots=True)
class Column:
    """A column of numbers about a benchmark. form: how to write them, as `format` has it."""

    benchmark: str
    heading: str
    form: str = ".2f"


@dataclass(frozen=True, slots=True)
class Cell:
    """A number, None if there is none; the paper's; a word that belongs to it."""

    value: float | None = None
    mark: Mark = ""
    printed: Printed | None = None
    word: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A row: what it is called, the method, and a cell for every column."""

    label: str
    method: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table with its rows in blocks."""

    name: str
    title: str
    columns: tuple[Column, ...]
    blocks: tuple[tuple[Line, ...], ...]
    notes: tuple[str, ...]


def checkpoints(horizon: int) -> tuple[int, ...]:
    """Return the evaluation counts to report: 10, 20, ... 50 as far as they go, and the last."""
    return tuple(sorted({count for count in EVALUATIONS if count <= horizon} | {horizon}))


def paper_tables(study: Study, benchmarks: Sequence[str], *, names: Collection[str]) -> list[Table]:
    """Return the paper's tables of these names, for these benchmarks, as far as there are runs.

    Benchmarks that the paper does not have follow those it has; each has a main table of its own.
    """
    chosen = with_chosen_rho(study)
    own = [name for name in benchmarks if name not in BENCHMARKS]
    mains = [*MAIN, *map(_main_for, own)]
    others = [layout for layout in LAYOUTS if layout not in MAIN]
    found = []
    for layout in (layout for layout in (*mains, *others) if layout.name in names):
        possible = [name for name in layout.benchmarks if name in benchmarks] + ([] if layout in mains else own)
        columns = [name for name in possible if any(chosen.find(name, row.method) for row in layout.rows)]
        shown = _shown(chosen, _with_own_rho(layout, columns) if layout is RHO else layout, columns)
        if columns and shown.blocks:
            found.append(_paper_table(chosen, shown, columns))
    return found


def mark_cells(outcomes: Sequence[Outcome | None], evaluations: int) -> list[Cell]:
    """Return a column's cells: the mean regret of each method after so many evaluations, compared with the best."""
    known = {
        str(place): outcome for place, outcome in enumerate(outcomes) if outcome is not None and outcome.at(evaluations)
    }
    marks = verdicts({name: outcome.runs_at(evaluations) for name, outcome in known.items()}) if known else {}
    return [
        Cell(100 * float(np.mean(list(known[name].at(evaluations).values()))), marks[name].mark)
        if name in known
        else Cell()
        for name in map(str, range(len(outcomes)))
    ]


def coverage(benchmark: str, outcomes: Sequence[tuple[str, Outcome | None]]) -> str:
    """Return a sentence on tasks and repetitions: what most methods have, and who has something else or nothing."""
    found = [(label, _counts(outcome) if outcome else "no runs") for label, outcome in outcomes]
    usual = Counter(counts for _, counts in found if counts != "no runs").most_common(1)[0][0]
    others: dict[str, list[str]] = {}
    for label, counts in found:
        if counts != usual and label not in others.setdefault(counts, []):
            others[counts].append(label)
    said = [f"{', '.join(labels)}: {counts}" for counts, labels in others.items()]
    return f"{benchmark}: {'; '.join([usual, *said])}."


def comparison(*columns: Sequence[Outcome | None]) -> tuple[str, ...]:
    """Return a sentence on what the methods of a column are compared on, if they do not all have the same runs."""
    if all(len({frozenset(outcome.curves) for outcome in outcomes if outcome}) < 2 for outcomes in columns):
        return ()
    return (
        "The lowest is sought among the methods with most runs; others are compared with it on the tasks and "
        "repetitions that both have.",
    )


def _counts(outcome: Outcome) -> str:
    tasks, (fewest, most) = len(outcome.tasks), outcome.repetitions
    times = str(fewest) if fewest == most else f"{fewest} to {most}"
    return f"{tasks} task{'s' * (tasks > 1)}, {times} repetition{'s' * (most > 1)}"


def _shown(study: Study, layout: Layout, benchmarks: Sequence[str]) -> Layout:
    """A table without rows of which neither we nor the paper say anything, and without blocks of one to compare."""

    def says(row: Row) -> bool:
        return any(study.find(name, row.method) or layout.printed(row, name, LAST) for name in benchmarks)

    blocks = [tuple(row for row in block if says(row)) for block in layout.blocks]
    least = 2 if layout.apart else 1
    return replace(layout, blocks=tuple(block for block in blocks if len(block) >= least))


def _main_for(benchmark: str) -> Layout:
    """The rows of the main table, for a benchmark of which the paper says nothing."""
    nothing = " ".join("-" * len(EVALUATIONS))
    blocks = tuple(tuple(replace(row, numbers=nothing) for row in block) for block in MAIN_FIRST.blocks)
    return replace(MAIN_FIRST, benchmarks=(benchmark,), blocks=blocks, notes=())


def _with_own_rho(layout: Layout, benchmarks: Sequence[str]) -> Layout:
    """The table of bandwidths with rows for benchmarks of ours, without the paper's where it has no number to show."""
    own = [name for name in benchmarks if name not in BENCHMARKS]
    nothing = " ".join("-" * len(BENCHMARKS))
    blocks = []
    for block in layout.blocks:
        others, tasks, *theirs = block
        mine = [
            Row(f"{tasks.label.removesuffix(')')},{name})", tasks.method.replace(TASKS, f"{CHOSEN}{name}"), nothing)
            for name in own
        ]
        blocks.append((others, tasks, *(theirs if len(own) < len(benchmarks) else ()), *mine))
    return replace(layout, blocks=tuple(blocks))


def _paper_table(study: Study, layout: Layout, benchmarks: Sequence[str]) -> Table:
    columns, parts = [], []
    for benchmark in benchmarks:
        horizon = study.horizons[benchmark]
        counts = checkpoints(horizon) if layout.evaluations == EVALUATIONS else (min(LAST, horizon),)
        for count in counts:
            columns.append(Column(benchmark, str(count)))
            parts.append(_column(study, layout, benchmark=benchmark, evaluations=count))
    cells = iter(zip(*parts, strict=True))
    blocks = tuple(tuple(Line(row.label, row.method, next(cells)) for row in block) for block in layout.blocks)
    title = f"{layout.title} on {' and '.join(benchmarks)}" if layout.name == MAIN_FIRST.name else layout.title
    return Table(layout.name, title, tuple(columns), blocks, _notes(study, layout, benchmarks))


def _column(study: Study, layout: Layout, *, benchmark: str, evaluations: int) -> list[Cell]:
    """Cells of all rows; the paper's tables are tested in one, or block by block."""
    tested = layout.blocks if layout.apart else (layout.rows,)
    cells = [cell for rows in tested for cell in mark_cells(_outcomes(study, benchmark, rows), evaluations)]
    return [
        replace(cell, printed=layout.printed(row, benchmark, evaluations))
        for row, cell in zip(layout.rows, cells, strict=True)
    ]


def _outcomes(study: Study, benchmark: str, rows: Sequence[Row]) -> list[Outcome | None]:
    return [study.find(benchmark, row.method) for row in rows]


def _notes(study: Study, layout: Layout, benchmarks: Sequence[str]) -> tuple[str, ...]:
    convention = [CONVENTION.format(where=" and block" if layout.apart else "")]
    if set(benchmarks) & set(BENCHMARKS):
        convention.append(BESIDE)
    labels = [row.label for row in layout.rows]
    outcomes = {name: _outcomes(study, name, layout.rows) for name in benchmarks}
    covered = [coverage(name, list(zip(labels, found, strict=True))) for name, found in outcomes.items()]
    covered += comparison(*outcomes.values())
    return (" ".join(convention), *covered, *_chosen_rho(study, layout, benchmarks), *layout.notes)


def _chosen_rho(study: Study, layout: Layout, benchmarks: Sequence[str]) -> list[str]:
    """What bandwidths were chosen, a sentence for every row that has one."""
    sentences = []
    for row in layout.rows if any("+rho-" in row.method for row in layout.rows) else ():
        found = [(name, study.find(name, row.method)) for name in benchmarks]
        said = [f"{outcome.remark} on {name}" for name, outcome in found if outcome and outcome.remark]
        if said:
            sentences.append(f"{row.label}: {'; '.join(said)}.")
    return sentences
