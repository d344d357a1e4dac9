"""All tables that can be made of a study: the paper's, and for each benchmark all methods' regrets and a summary.

The summary has, for each method: 100 x ADTM at the end; its mean over all evaluations, that is the area under the
curve; the mean rank at the end, among methods without a suffix that have all runs; the task where it
is worst compared with ``gp``. These are the same whenever and wherever the runs are made. How long a suggestion took is
not, so it has a table of its own, which is made only if asked for.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace

from recollect.bench.published import BANDWIDTH, BENCHMARKS, LAYOUTS, printed
from recollect.bench.rho import ROOTS
from recollect.bench.study import Outcome, Study, run_ranks, short_of, worst_gap
from recollect.bench.tables import (
    BESIDE,
    CONVENTION,
    Cell,
    Column,
    Line,
    Table,
    checkpoints,
    comparison,
    coverage,
    mark_cells,
    paper_tables,
)
from recollect.errors import InputError

PAPER = tuple(dict.fromkeys(layout.name for layout in LAYOUTS))
METHODS, SUMMARY, SECONDS, ALL = "methods", "summary", "seconds", "all"
REFERENCE = "gp"


def make_tables(study: Study, which: str = ALL, benchmarks: Collection[str] = ()) -> list[Table]:
    """Return the tables of that name, or all for which there are runs; benchmarks: only these, empty for all."""
    if which not in (*PAPER, METHODS, SUMMARY, SECONDS, ALL):
        raise InputError(f"table: expected {', '.join((*PAPER, METHODS, SUMMARY, SECONDS))} or {ALL}, got {which!r}")
    for name in benchmarks:
        if name not in study.outcomes:
            raise InputError(f"table: no run on benchmark {name!r}; there are runs on {', '.join(study.outcomes)}")
    shown = [name for name in study.outcomes if not benchmarks or name in benchmarks]
    found = paper_tables(study, shown, names=PAPER if which == ALL else (which,))
    for name, make in ((METHODS, _methods_table), (SUMMARY, _summary_table)):
        if which in (name, ALL):
            found += [make(study, benchmark) for benchmark in shown]
    if which == SECONDS:
        return [_seconds_table(study, benchmark) for benchmark in shown]
    if not found:
        rows = dict.fromkeys(row.method for layout in LAYOUTS if layout.name == which for row in layout.rows)
        raise InputError(
            f"table: nothing to compare in table {which!r} on {', '.join(shown)}; it needs runs of {', '.join(rows)}"
        )
    return found


def _ordered(study: Study, benchmark: str) -> list[Outcome]:
    """Methods in the order in which the paper's tables first have them, then by name."""
    order = list(dict.fromkeys(row.method for layout in LAYOUTS for row in layout.rows))
    found = study.outcomes[benchmark]
    return [found[name] for name in (*(name for name in order if name in found), *sorted(found.keys() - set(order)))]


def _methods_table(study: Study, benchmark: str) -> Table:
    outcomes, counts = _ordered(study, benchmark), checkpoints(study.horizons[benchmark])
    parts = {
        Column(benchmark, "tasks", ".0f"): [Cell(len(outcome.tasks)) for outcome in outcomes],
        Column(benchmark, "repetitions", ".0f"): [_repetitions(outcome) for outcome in outcomes],
    }
    for count in counts:
        parts[Column(benchmark, str(count))] = [
            replace(cell, printed=printed(outcome.method, benchmark, count))
            for cell, outcome in zip(mark_cells(outcomes, count), outcomes, strict=True)
        ]
    beside = (BESIDE,) if benchmark in BENCHMARKS else ()
    bandwidth = (BANDWIDTH,) if beside and any(outcome.method in ROOTS for outcome in outcomes) else ()
    notes = (" ".join((CONVENTION.format(where=""), *beside)), *comparison(outcomes), *bandwidth)
    return Table(METHODS, f"All methods on {benchmark}", tuple(parts), _lines(outcomes, parts), notes)


def _summary_table(study: Study, benchmark: str) -> Table:
    outcomes, horizon = _ordered(study, benchmark), study.horizons[benchmark]
    ranks, note = _ranks(outcomes)
    parts = {
        Column(benchmark, str(horizon)): mark_cells(outcomes, horizon),
        Column(benchmark, "area"): [_number(100 * outcome.area) for outcome in outcomes],
        Column(benchmark, "rank"): [_number(ranks.get(outcome.method, math.nan)) for outcome in outcomes],
        Column(benchmark, f"worst against {REFERENCE}"): [
            _worst(outcome, study.find(benchmark, REFERENCE), horizon) for outcome in outcomes
        ],
    }
    notes = (
        f"{horizon}: 100 x ADTM after {horizon} evaluations, marked as in the other tables; area: its mean over all "
        f"evaluations; worst against {REFERENCE}: the largest difference of a task's mean regret, x 100, and the task.",
        *note,
        coverage(benchmark, [(outcome.method, outcome) for outcome in outcomes]),
        *comparison(outcomes),
    )
    return Table(SUMMARY, f"Summary of {benchmark}", tuple(parts), _lines(outcomes, parts), notes)


def _seconds_table(study: Study, benchmark: str) -> Table:
    outcomes = [outcome for outcome in _ordered(study, benchmark) if not math.isnan(outcome.seconds)]
    if not outcomes:
        raise InputError(f"table: the runs on {benchmark} say nothing about seconds; packed results do not have them")
    parts = {Column(benchmark, "seconds", ".3g"): [_number(outcome.seconds) for outcome in outcomes]}
    notes = ("Per suggestion, mean over all evaluations, tasks and repetitions.",)
    return Table(SECONDS, f"Seconds on {benchmark}", tuple(parts), _lines(outcomes, parts), notes)


def _lines(outcomes: list[Outcome], parts: dict[Column, list[Cell]]) -> tuple[tuple[Line, ...]]:
    rows = zip(outcomes, zip(*parts.values(), strict=True), strict=True)
    return (tuple(Line(outcome.method, outcome.method, cells) for outcome, cells in rows),)


def _repetitions(outcome: Outcome) -> Cell:
    fewest, most = outcome.repetitions
    return Cell(fewest, word="" if fewest == most else f"to {most}")


def _number(value: float) -> Cell:
    return Cell(None if math.isnan(value) else value)


def _worst(outcome: Outcome, reference: Outcome | None, horizon: int) -> Cell:
    if reference is None or outcome.method == REFERENCE:
        return Cell()
    gap = worst_gap(outcome, reference, horizon)
    return Cell() if gap is None else Cell(100 * gap.regret, word=gap.task)


def _ranks(outcomes: list[Outcome]) -> tuple[dict[str, float], tuple[str, ...]]:
    """Mean ranks at the end, and over what; methods that lack runs which others have take no part."""
    plain = [outcome for outcome in outcomes if "+" not in outcome.method and not outcome.remark]
    full = [outcome for outcome in plain if not short_of(outcome, plain)]
    if len(full) < 2 or not set.intersection(*(set(outcome.curves) for outcome in full)):
        return {}, ()
    found = run_ranks(full)
    sentence = f"rank: mean among {len(full)} methods without suffix, over {found.runs} runs on {found.tasks} tasks."
    return dict(zip(found.methods, found.ranks[:, -1].tolist(), strict=True)), (sentence,)
