"""All trials of a run as a table that the page's script fills, with a panel for each trial (``assets/trials.js``).

Ten thousand rows are too many for a document: the page has them as data, and shows 25 at a time. Values of
hyperparameters are JSON texts: no digit and no type is lost on the way to a clipboard or a CSV file.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeAlias

import numpy as np

from recollect.analysis.config_text import value_json
from recollect.analysis.run_data import RunData
from recollect.analysis.source_usefulness import SourcePredictions
from recollect.analysis.trial_records import STATES, TrialRecord, hyperparameter_names
from recollect.report.formatting import IN_TEXT, printable
from recollect.report.html import Html, data_block, tag
from recollect.report.table import MINUTE
from recollect.runs.run import sign_of
from recollect.tuning.suggestion_notes import SuggestionNote

NUMBER, MOMENT, WORDS = "number", "moment", "words"  # classes of cells
COLUMNS = (
    *(("trial", NUMBER), ("state", ""), ("value", NUMBER), ("rank", NUMBER), ("duration", NUMBER)),
    *(("started", MOMENT), ("worker", MOMENT), ("why it was suggested", WORDS)),
)
MAX_SOURCES, MAX_REPORTS = 8, 200  # past runs and intermediate values in the panel of a trial
MAX_NOTE = 2000  # characters
DIGITS = 6
LEAD = "Every trial: click a number for its configuration, its log and why it was suggested."
TaskUrl: TypeAlias = Callable[[str], str | None]  # the URL of a past run's page, None if there is none


def trial_explorer(data: RunData, predictions: SourcePredictions | None, link: TaskUrl) -> Html:
    """Return the table of all trials; predictions: what past runs said about them; link: to the pages of past runs."""
    records = data.records
    names = hyperparameter_names(records, () if data.space is None else data.space.names)
    kinds = [NUMBER if all(_is_number(record.config.get(name)) for record in records) else "" for name in names]
    headings = [*COLUMNS, *zip(map(printable, names), kinds, strict=True)]
    row = tag("tr", {}, *(_heading(name, kind) for name, kind in headings))
    table = tag("table", {"aria-label": "All trials"}, tag("thead", {}, row), tag("tbody"))
    frame = {"class": "frame", "role": "region", "tabindex": "0", "aria-label": "Table: All trials"}
    block = data_block(explorer_data(data, names, predictions, link), {"class": "trials"})
    return tag(
        "div", {"class": "explorer"}, tag("h3", {}, "All trials"), tag("p", {}, LEAD), tag("div", frame, table), block
    )


def _heading(name: str, kind: str) -> Html:
    cell = {"scope": "col", "class": kind or None, "aria-sort": "none"}
    return tag("th", cell, tag("button", {"type": "button"}, name))


def explorer_data(
    data: RunData, names: Sequence[str], predictions: SourcePredictions | None, link: TaskUrl
) -> dict[str, Any]:
    """Return what the script needs: a row per trial, and what is behind it."""
    records, ranks = data.records, _ranks(data)
    workers, reasons = _Index(), _Index()
    sources = _Index(data.source_names)
    rows = [
        [
            record.number, STATES.index(record.state), _finite(record.value), ranks.get(record.number),
            _number(record.seconds), _moment(record.started), workers.place(record.worker),
            reasons.place(None if record.suggestion is None else printable(record.suggestion.reason) or None),
            [_value(record, name) for name in names],
        ]
        for record in records
    ]  # fmt: skip
    details = {str(record.number): _detail(record, sources, predictions) for record in records}
    return {
        "task": printable(data.run.task, 60), "params": [printable(name) for name in names], "states": list(STATES),
        "workers": workers.names, "reasons": reasons.names, "ranked": len(data.run.succeeded), "trials": rows,
        "details": {number: detail for number, detail in details.items() if detail},
        "sources": [printable(name) for name in sources.names], "links": [link(name) for name in sources.names],
    }  # fmt: skip


class _Index:
    """Texts that occur often, each once, and their places."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = list(names)
        self._places = {name: place for place, name in enumerate(names)}

    def place(self, name: str | None) -> int | None:
        """Return the place of a text, which is added if it is new."""
        if name is None:
            return None
        if name not in self._places:
            self._places[name] = len(self.names)
            self.names.append(name)
        return self._places[name]


def _ranks(data: RunData) -> dict[int, int]:
    """Return the rank of each trial with a value by its number; ties share the better one."""
    from scipy.stats import rankdata

    ok = [(number, trial.value) for number, trial in zip(data.numbers, data.run.trials, strict=True) if trial.ok]
    values = sign_of(data.run.direction) * np.array([value for _, value in ok], dtype=np.float64)
    return {number: int(rank) for (number, _), rank in zip(ok, rankdata(values, method="min"), strict=True)}


def _detail(record: TrialRecord, sources: _Index, predictions: SourcePredictions | None) -> dict[str, Any]:
    detail: dict[str, Any] = {}
    if record.remarks:
        detail["notes"] = [printable(note, MAX_NOTE) for note in record.remarks]
    if record.log:
        detail["log"] = printable(record.log)
    if record.ended is not None:
        detail["ended"] = _moment(record.ended)
    if len(record.reports) > 1:
        step = -(-len(record.reports) // MAX_REPORTS)
        shown = [*record.reports[::step], record.reports[-1]] if step > 1 else record.reports
        detail["reports"] = [[at, _number(value)] for at, value in shown]
    note = record.suggestion
    if note is not None and note.expected is not None:
        detail["expected"] = [_number(value) for value in note.expected]
    if note is not None and note.target_weight is not None:
        detail |= {"target": note.target_weight, "dropped": len(note.dropped)}
        if note.prior is not None:
            detail["prior"] = [round(note.prior.alike, 3), round(note.prior.reversed, 3)]
        detail["weights"] = [
            [
                sources.place(task),
                round(weight, 3),
                note.shares.get(task) if note.prior is None else note.coefficients.get(task),
                _predicted_rank(predictions, task, record.number),
            ]
            for task, weight in _largest(note)
        ]
    return detail


def _largest(note: SuggestionNote) -> list[tuple[str, float]]:
    return sorted(note.source_weights.items(), key=lambda pair: -pair[1])[:MAX_SOURCES]


def _predicted_rank(predictions: SourcePredictions | None, task: str, number: int) -> int | None:
    return None if predictions is None else predictions.rank(task, number)


def _value(record: TrialRecord, name: str) -> str | None:
    if name not in record.config:
        return None
    value = record.config[name]
    return value_json(printable(value, IN_TEXT)) if isinstance(value, str) else value_json(value)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float | np.number) and not isinstance(value, bool))


def _finite(value: float | None) -> float | None:
    return None if value is None or not np.isfinite(value) else float(value)


def _number(value: float | None) -> float | None:
    return None if _finite(value) is None else float(f"{value:.{DIGITS}g}")


def _moment(moment: datetime | None) -> str | None:
    return None if moment is None else moment.strftime(f"{MINUTE}:%S")
