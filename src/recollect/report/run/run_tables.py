"""The tables of a run's page: past runs, failed trials, settings, and the search space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from recollect._text import plural
from recollect.analysis.run_data import RunData
from recollect.analysis.source_usefulness import SourceUsefulness
from recollect.report.formatting import IN_HOVER, duration_text, join_names, param_text, percent, printable, thinned
from recollect.report.html import tag
from recollect.report.run.trial_explorer import TaskUrl
from recollect.report.table import EMPTY, Cell, Column, Table, link_cell, number_cell, simple_table, text_cell
from recollect.runs.run import FAILED, Run, Trial
from recollect.space.columns import Choices, Interval, SpaceColumn, Steps

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
    Column("coefficient", hint="Factor of its function in the last prediction; negative: reversed."),
    Column("now", numeric=False, hint="Whether it took part in the last suggestion, or was dropped from it."),
    Column("dropped", hint="How often it was dropped, and of how many suggestions."),
    Column("rank of its best here", hint="Rank of its best configuration among the trials of this run."),
    Column("overlap of spaces in %", hint="Values of its trials that could be used unchanged."),
    Column("what was changed", numeric=False, hint="To carry its trials over to this search space."),
)
PRIOR_COLUMNS, DROP_COLUMNS, SPACE_COLUMNS = {5}, {6, 7}, {9, 10}  # that only some runs need
SOURCE_NOTES = (
    "Rank agreement: of the pairs of this run's trials with different values, the share that the past run's model puts "
    "in the right order. 50% is chance; with few trials, chance alone can move it far from that.",
    "Rank of its best: observed if the configuration was tried here; otherwise predicted (\N{ALMOST EQUAL TO}) by a "
    "model of this run's trials.",
)
DROP_NOTE = (
    "Dropped: at random, the more often the worse a past run ranks the trials and the closer the run is to its end."
)
PRIOR_NOTE = (
    "Coefficient: the prediction is the sum of the past runs' functions, each multiplied by its coefficient. The "
    "coefficients add up to the probability that this task is like past ones, minus the probability that it is their "
    "reverse. Weights split what past runs count for by the size of the coefficients."
)
SAME_SPACE = "All past runs had the search space of this run."


def failure_table(data: RunData) -> Table | None:
    """Return the trials that failed and why; None if none did."""
    failed = [
        (number, trial) for number, trial in zip(data.numbers, data.run.trials, strict=True) if trial.state is FAILED
    ]
    if not failed:
        return None
    shown = [failed[place] for place in thinned(len(failed), MAX_FAILED_ROWS)]
    rows = []
    for number, trial in shown:
        config = ", ".join(f"{name} = {param_text(value)}" for name, value in trial.config.items())
        link = tag("a", {"href": f"#trial-{number}"}, str(number))
        rows.append((Cell(link, number), failure_reason(trial), printable(config, MAX_CONFIG)))
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
        "problem": printable(data.problem) if data.problem else "none: an Optuna study",
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
        facts["time in all trials"] = duration_text(sum(seconds))
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
    note = "The ranges are those of the trials, since no search space was stored." if data.space_inferred else ""
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


def source_table(sources: Sequence[SourceUsefulness], trials: int, link: TaskUrl = lambda _: None) -> Table:
    """Return the table of past runs; trials: number of trials of this run that succeeded; link: to their pages."""
    rows = [(link_cell(source.task, link(source.task)), *_source_row(source, trials)) for source in sources]
    prior = any(source.coefficient is not None for source in sources)
    drops = any(source.times_dropped is not None and source.times_dropped[0] for source in sources)
    same = all(source.overlap == 1.0 and not source.changes for source in sources)
    hidden = (PRIOR_COLUMNS if not prior else set()) | (DROP_COLUMNS if prior and not drops else set())
    hidden |= SPACE_COLUMNS if same else set()
    shown = [place for place in range(len(SOURCE_COLUMNS)) if place not in hidden]
    extra = ((PRIOR_NOTE,) if prior else (DROP_NOTE,)) + ((SAME_SPACE,) if same else ())
    return Table(
        "Which past runs were useful?", tuple(SOURCE_COLUMNS[place] for place in shown),
        (tuple(tuple(row[place] for place in shown) for row in rows),), SOURCE_NOTES + extra,
    )  # fmt: skip


def source_summary(sources: Sequence[SourceUsefulness], trials: int) -> str:
    """Return the table in a few sentences."""
    sentences = [f"This run could learn from {plural(len(sources), 'past run')}."]
    ranking = [(source.agreement, printable(source.task)) for source in sources if source.agreement is not None]
    if ranking and trials > 2:
        best, worst = (choose(ranking, key=lambda pair: pair[0]) for choose in (max, min))
        least = f"; {worst[1]} ranks them worst, with {percent(worst[0])}" if worst is not best else ""
        share = percent(best[0])
        sentences.append(f"{best[1]} ranks its trials best, with {share} of the pairs in the right order{least}.")
    if any(source.times_dropped for source in sources) and all(source.coefficient is None for source in sources):
        dropped = sum(source.dropped_last is True for source in sources)
        kept = f"{len(sources) - dropped} took part and {dropped} were dropped"
        all_alike = {0: "all of them took part", len(sources): "all of them were dropped"}
        sentences.append(f"In the last suggestion, {all_alike.get(dropped, kept)}.")
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
        number_cell(source.trials, ",.0f"),
        _percent_cell(source.weight),
        _percent_cell(source.mean_weight),
        _percent_cell(source.agreement, ".0f"),
        number_cell(source.coefficient, "+.2f"),
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
