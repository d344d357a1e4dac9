"""The page of one run: how it went, what past runs contributed, what mattered, what failed, how it was tuned."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from recollect._text import plural
from recollect.analysis.importance import MIN_TRIALS, Importance, importance
from recollect.analysis.run_data import RunData, read_run_data, run_data_of
from recollect.analysis.source_usefulness import SourceUsefulness, WeightHistory, source_usefulness, weight_history
from recollect.report.formatting import IN_HOVER, join_names, number_text, param_text, percent, printable, thinned
from recollect.report.html import tag
from recollect.report.page import Page, Part, Section, render, write_page
from recollect.report.run.axes import hyperparameter_axes
from recollect.report.run.hyperparameter_figures import importance_figure, parallel_coordinates_figure, slice_figures
from recollect.report.run.progress_figures import progress_figure, weight_figure
from recollect.report.table import EMPTY, Cell, Column, Table, number_cell, simple_table, text_cell
from recollect.runs.run import Run, State, Trial
from recollect.space.columns import Choices, Interval, SpaceColumn, Steps
from recollect.transfer.weighting.base import slowdown_factor
from recollect.transfer.weighting.ranking_weights import RankingWeighting, TwoStageWeighting

if TYPE_CHECKING:
    from recollect.storage.memory import Memory
    from recollect.tuning.result import Result

NO_PAST_RUNS = "There were no past runs to learn from: this was plain Bayesian optimization."
LEAD = (
    "How the run went, what it learned from past runs, and what can be learned from it. "
    "Each figure answers the question above it."
)


def run_page(memory: Memory, problem: str | None, task: str) -> Page:
    """Return the page of a task in a memory; with problem None, of whichever problem has it."""
    return page_of_run(read_run_data(memory, problem, task))


def write_run_report(result: Result, path: str | os.PathLike[str]) -> None:
    """Write the page of a result."""
    write_page(render(page_of_run(run_data_of(result))), Path(path))


def page_of_run(data: RunData) -> Page:
    """Return the page of a run."""
    history = weight_history(data)
    failures, tables = failure_table(data.run), (settings_table(data), space_table(data))
    contents: dict[str, list[Part]] = {
        "At a glance": _glance(data, history),
        "Past runs": _past_runs(data, history),
        "Hyperparameters": _hyperparameters(data, importance(data)),
        "Failed trials": [] if failures is None else [tag("p", {}, failure_summary(data.run)), failures],
        "Settings": [table for table in tables if table is not None],
    }
    sections = [Section(title, tuple(parts)) for title, parts in contents.items() if parts]
    problem = f"Problem: {printable(data.problem)}. " if data.problem else ""
    lead = LEAD if data.run.trials else "No trial has ended yet."
    trials = plural(len(data.run), "trial")
    source = f"{trials} in {printable(data.storage)}" if data.storage else trials
    return Page(f"Tuning report: {printable(data.run.task)}", f"{problem}{lead}", tuple(sections), source)


def _glance(data: RunData, history: WeightHistory | None) -> list[Part]:
    items = [tag("li", {}, sentence) for sentence in run_summary(data, history)]
    best, table = data.run.best, None
    if best is not None:  # the text to copy has all digits
        text = json.dumps(best.config, ensure_ascii=False, default=str)
        items.append(tag("li", {}, "To copy: ", tag("code", {}, text)))
        rows = [(printable(name), param_text(value)) for name, value in best.config.items()]
        title = f"The best configuration: value {number_text(best.value)}"
        table = simple_table(title, [("name", ""), ("value", "")], rows)
    parts = (progress_figure(data), None if history is None else weight_figure(history), table)
    return [tag("ul", {}, *items), *(part for part in parts if part is not None)]


def _past_runs(data: RunData, history: WeightHistory | None) -> list[Part]:
    method = data.method
    if method is None or not method.transfers or data.space is None or not (data.past or history):
        return []
    sources, trials = source_usefulness(data, method, history), len(data.run.succeeded)
    return [tag("p", {}, source_summary(sources, trials)), source_table(sources, trials)]


def _hyperparameters(data: RunData, important: Importance | None) -> list[Part]:
    axes = hyperparameter_axes(data, () if important is None else tuple(important.shares))
    figures = [
        parallel_coordinates_figure(data, axes),
        None if important is None else importance_figure(important),
        *slice_figures(data, axes),
    ]
    parts: list[Part] = [figure for figure in figures if figure is not None]
    varying = 0 if data.space is None else int(data.space.varying.sum())
    if parts and len(axes) < varying:
        parts.insert(0, tag("p", {}, f"The figures show the {len(axes)} most important of {varying} hyperparameters."))
    if parts and important is None:
        parts.insert(0, tag("p", {}, f"Importance needs {MIN_TRIALS} trials with values that differ."))
    return parts


def run_summary(data: RunData, history: WeightHistory | None) -> list[str]:
    """Return the sentences at the top of the page."""
    run, method, best = data.run, data.method, data.run.best
    planned = f" of {data.horizon:,} planned" if data.horizon is not None and data.horizon != len(run) else ""
    better = "Lower" if run.direction == "minimize" else "Higher"
    how = f", tuned by {printable(method.name)} ({method.summary})" if method is not None else ""
    failed = f"{data.failed or 'none'} of them failed" + (f" and {data.pruned} were pruned" if data.pruned else "")
    amount = f"{plural(len(run), 'trial')}{planned}, {failed}{how}. {better} values are better."
    found = "No trial has succeeded, so there is no best configuration."
    if best is not None:
        found = f"The best value is {number_text(best.value)}, found in trial {run.trials.index(best) + 1}."
    return [amount, found, _past_sentence(data, history), worst_case(data)]


def worst_case(data: RunData) -> str:
    """Say how much past runs can slow the search down at worst (paper section 4.4)."""
    method, past, horizon = data.method, len(data.past), data.horizon
    if method is None or horizon is None:
        return "Worst case: unknown, since it is unknown how the run was tuned."
    if past == 0 or not method.transfers:
        return "Worst case: no past run was used, so none can have slowed the search down."
    weighting = method.weighting  # there is a bound if past runs are dropped with a probability that reaches 1
    if not isinstance(weighting, RankingWeighting | TwoStageWeighting) or weighting.dilution != "probabilistic":
        return (
            f"Worst case: no bound is known for {printable(method.name)}; misleading past runs may slow the search "
            "down until its end."
        )
    return (
        f"Worst case: however misleading the {plural(past, 'past run')}, this search needs at most "
        f"{slowdown_factor(horizon, past):.3g} times as many trials as one without them for the same guarantee on how "
        f"close it comes to the best (section 4.4 of the paper, for {plural(horizon, 'trial')}). Past runs that rank "
        "the trials badly are dropped far sooner than this bound assumes."
    )


def _past_sentence(data: RunData, history: WeightHistory | None) -> str:
    if data.method is not None and not data.method.transfers:
        return f"{printable(data.method.name)} does not use past runs."
    if not data.past and history is None:
        return NO_PAST_RUNS if data.settings else "It is unknown whether it learned from past runs."
    first = next((note for note in data.notes if note is not None), None)
    portfolio = first is not None and "past runs" in first.reason
    start = f" It started with {printable(first.reason)}." if first is not None and portfolio else ""
    if history is None:
        return f"It could learn from {plural(len(data.past), 'past run')}; no weights were recorded.{start}"
    mean, last = 1.0 - float(history.target.mean()), 1.0 - float(history.target[-1])
    return (
        f"It could learn from {plural(max(len(data.past), len(history.sources)), 'past run')}: they had "
        f"{percent(mean)} of the weight on average, and {percent(last)} in the last suggestion.{start}"
    )


MAX_FAILED_ROWS = 100
MAX_REASON, MAX_CONFIG = 300, 400  # characters
NO_REASON = "no reason was recorded"
SECOND = "%Y-%m-%d %H:%M:%S"
MAX_CHANGES = 240  # characters of what was changed in a past run
SOURCE_COLUMNS = (
    Column("past run", numeric=False),
    Column("trials", hint="Trials of the past run, including failed ones."),
    Column("weight now in %", hint="Its weight in the last suggestion of this run."),
    Column("mean weight in %", hint="Its mean weight over all suggestions that weighed past runs."),
    Column("rank agreement now in %", hint="Pairs of this run's trials that its model puts in the right order."),
    Column("now", numeric=False, hint="Whether it took part in the last suggestion, or was dropped from it."),
    Column("dropped", hint="How often it was dropped, and of how many suggestions."),
    Column("rank of its best here", hint="Rank of its best configuration among the trials of this run."),
    Column("overlap of spaces in %", hint="Values of its trials that could be used unchanged."),
    Column("what was changed", numeric=False, hint="To carry its trials over to this search space."),
)
SOURCE_NOTES = (
    "Rank agreement: the share of pairs of this run's trials with different values that the past run's model puts in "
    "the right order. Chance gives 50 %; with few trials it decides much.",
    "Rank of its best: observed if it was tried here; otherwise predicted (\N{ALMOST EQUAL TO}) by a model of this "
    "run's trials, and only as good as that model.",
    "Dropped: at random, more often the worse a past run ranks the trials and the closer the end of the run.",
)


def failure_table(run: Run) -> Table | None:
    """Return the trials that failed and why; None if none did."""
    failed = [(number, trial) for number, trial in enumerate(run.trials, start=1) if trial.state is State.FAILED]
    if not failed:
        return None
    shown = [failed[place] for place in thinned(len(failed), MAX_FAILED_ROWS)]
    rows = []
    for number, trial in shown:
        config = ", ".join(f"{name} = {param_text(value)}" for name, value in trial.config.items())
        rows.append((number, failure_reason(trial), printable(config, MAX_CONFIG)))
    note = f"{len(rows)} of {len(failed)} failed trials are shown." if len(rows) < len(failed) else ""
    return simple_table("Why did trials fail?", [("trial", ".0f"), ("reason", ""), ("configuration", "")], rows, note)


def failure_summary(run: Run) -> str:
    """Say how many trials failed, and the most common reasons."""
    reasons = Counter(failure_reason(trial) for trial in run.failed)
    counts = [f"{printable(text, 80)} ({count})" for text, count in reasons.most_common()]
    return (
        f"{sum(reasons.values())} of {plural(len(run), 'trial')} failed: {join_names(counts, most=3)}. A failed "
        "configuration is not tried again, and its neighbourhood is avoided."
    )


def failure_reason(trial: Trial) -> str:
    """Return why a trial failed, in one line."""
    first = trial.notes[0] if trial.notes else NO_REASON
    return printable(" ".join(first.split()) or NO_REASON, MAX_REASON)


def settings_table(data: RunData) -> Table:
    """Return how the run was tuned, as far as it is known."""
    settings, method = data.settings, data.method
    pruned = f" and {data.pruned} were pruned" if data.pruned else ""
    facts: dict[str, str] = {
        "problem": printable(data.problem) if data.problem else "none: a study of another program",
        "task": printable(data.run.task),
        "direction": data.run.direction,
        "method": _setting(settings, "method") + (f": {method.summary}" if method is not None else ""),
        "trials planned": _setting(settings, "trials"),
        "trials finished": f"{len(data.run)}, of which {data.failed} failed{pruned}",
        "seed": _setting(settings, "seed"),
    }
    if data.times is not None:
        started, ended = data.times
        facts |= {"first trial started": started.strftime(SECOND), "last trial ended": ended.strftime(SECOND)}
    seconds = [trial.seconds for trial in data.run.trials if trial.seconds is not None]
    if seconds:
        facts["time in all trials"] = _duration(sum(seconds))
    if isinstance(versions := settings.get("versions"), Mapping):
        texts = [printable(f"{name} {version}", IN_HOVER) for name, version in versions.items()]
        facts["versions"] = join_names(texts, most=20)
    note = "" if settings else "How it was tuned is unknown: it was added, imported, or tuned by an old version."
    return simple_table("How was it tuned?", [("setting", ""), ("value", "")], facts.items(), note)


def space_table(data: RunData) -> Table | None:
    """Return the hyperparameters that were searched, None if nothing is known of them."""
    space = data.space
    if space is None:
        return None
    columns = [(heading, "") for heading in ("name", "kind", "values", "only used if")]
    inferred = data.run.space is None and not data.settings
    note = "The ranges are those of the trials, since no search space was stored." if inferred else ""
    return simple_table("What was searched?", columns, map(_space_row, space.columns, space.condition_texts), note)


def _space_row(column: SpaceColumn, condition: str) -> tuple[str, ...]:
    if isinstance(column, Interval):
        kind, values = "number", f"{column.lower:g} to {column.upper:g}"
    elif isinstance(column, Steps) and column.choices is None:
        kind, values = "integer", f"{column.lower} to {column.lower + column.size - 1}"
    else:
        choices = column.choices if isinstance(column, Choices | Steps) and column.choices is not None else ()
        constant = isinstance(column, Choices) and column.constant
        kind = "constant" if constant else "choice" if column.categorical else "ordered choice"
        values = join_names([param_text(choice) for choice in choices], most=12)
    log = ", log scale" if isinstance(column, Interval | Steps) and column.log else ""
    clause = condition.split("|", 1)[-1].strip()
    return (printable(column.name), kind + log, values, printable(clause) if clause else "always used")


def _setting(settings: Mapping[str, object], key: str) -> str:
    value = settings.get(key)
    if key in settings and value is None:
        return "none: fresh entropy"
    return "unknown" if value is None else printable(str(value), IN_HOVER)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"


def source_table(sources: Sequence[SourceUsefulness], trials: int) -> Table:
    """Return the table of past runs; trials: number of trials of this run that succeeded."""
    rows = tuple(_source_row(source, trials) for source in sources)
    return Table("Which past runs were useful?", SOURCE_COLUMNS, (rows,), SOURCE_NOTES)


def source_summary(sources: Sequence[SourceUsefulness], trials: int) -> str:
    """Return the table in a few sentences."""
    sentences = [f"This run could learn from {plural(len(sources), 'past run')}."]
    ranking = [(source.agreement, printable(source.task)) for source in sources if source.agreement is not None]
    if ranking and trials > 2:
        best, worst = (choose(ranking, key=lambda pair: pair[0]) for choose in (max, min))
        least = f"; {worst[1]} ranks them worst, with {percent(worst[0])}" if worst is not best else ""
        share = percent(best[0])
        sentences.append(f"{best[1]} ranks its trials best, with {share} of the pairs in the right order{least}.")
    if any(source.times_dropped for source in sources):
        dropped = sum(source.dropped_last is True for source in sources)
        kept = len(sources) - dropped
        sentences.append(f"In the last suggestion, {kept or 'none'} took part and {dropped or 'none'} were dropped.")
    if tried := sum(source.best is not None and source.best.tried for source in sources):
        sentences.append(f"The best configuration of {plural(tried, 'past run')} was tried.")
    if changed := sum(source.overlap is not None and source.overlap < 1.0 for source in sources):
        others = plural(changed, "past run")
        sentences.append(f"{others} had other hyperparameters or ranges; the last column says what was changed.")
    return " ".join(sentences)


def _source_row(source: SourceUsefulness, trials: int) -> tuple[Cell, ...]:
    empty = Cell(EMPTY, None)
    state = {None: empty, True: text_cell("dropped"), False: text_cell("kept")}[source.dropped_last]
    times, suggestions = source.times_dropped or (0, 0)
    changes = "it is not in this memory" if source.trials is None else source.changes or "nothing"
    return (
        text_cell(printable(source.task)),
        number_cell(source.trials, ",.0f"),
        _percent_cell(source.weight),
        _percent_cell(source.mean_weight),
        _percent_cell(source.agreement, ".0f"),
        state,
        Cell(f"{times} of {suggestions}", times / suggestions) if suggestions else empty,
        _rank_cell(source, trials),
        _percent_cell(source.overlap, ".0f"),
        text_cell(printable(changes, MAX_CHANGES)),
    )


def _percent_cell(share: float | None, form: str = ".1f") -> Cell:
    return number_cell(None if share is None else 100.0 * share, form)


def _rank_cell(source: SourceUsefulness, trials: int) -> Cell:
    best = source.best
    if best is None:
        return Cell(EMPTY, None)
    if best.rank is None:
        return Cell("tried, failed", trials + 2)
    if best.tried:
        return Cell(f"{best.rank} of {trials}", best.rank)
    return Cell(f"\N{ALMOST EQUAL TO} {best.rank} of {trials + 1}", best.rank + 0.5)
