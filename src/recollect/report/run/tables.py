"""Tables of a run: its best configuration, its failures, how it was tuned, what was searched."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping

from recollect.history.run import Run, Trial
from recollect.report.html import Html, tag
from recollect.report.names import listed, named
from recollect.report.run.axes import config_text, value_text
from recollect.report.run.values import counted, shown, thinned
from recollect.report.story import Story
from recollect.report.table import Column, Row, Table, number, word
from recollect.space.columns import Choices, Interval, Steps
from recollect.space.columns import Column as SpaceColumn

MOST = 100  # failed trials in the table
REASON = 300  # signs of a reason
TWO = (Column("setting", numeric=False), Column("value", numeric=False))


def best_table(trial: Trial) -> Table:
    """Return the best configuration."""
    rows = tuple((word(named(name)), word(value_text(value))) for name, value in trial.config.items())
    columns = (Column("name", numeric=False), Column("value", numeric=False))
    return Table(f"The best configuration: value {shown(trial.value)}", columns, (rows,))


def best_copy(trial: Trial) -> Html:
    """Return the best configuration as JSON, all digits, to be copied."""
    return tag("li", {}, "To copy: ", tag("code", {}, json.dumps(trial.config, ensure_ascii=False, default=str)))


def failure_table(run: Run) -> Table | None:
    """Return the trials that failed and why; None if none did."""
    failed = [(place, trial) for place, trial in enumerate(run.trials, start=1) if not trial.ok]
    if not failed:
        return None
    rows = []
    for place in thinned(len(failed), MOST):
        trial, config = failed[place][0], config_text(failed[place][1].config)
        rows.append((number(trial, ".0f"), word(reason(failed[place][1])), word(config)))
    columns = (Column("trial"), Column("reason", numeric=False), Column("configuration", numeric=False))
    notes = (f"{len(rows)} of {len(failed)} failed trials are shown.",) if len(rows) < len(failed) else ()
    return Table("Why did trials fail?", columns, (tuple(rows),), notes)


def failure_words(run: Run) -> str:
    """Say how many trials failed, and the reasons by number."""
    reasons = Counter(reason(trial) for trial in run.trials if not trial.ok)
    total = sum(reasons.values())
    parts = [f"{named(text, 80)} ({count})" for text, count in reasons.most_common()]
    return (
        f"{total} of {counted(len(run), 'trial')} failed: {listed(parts, most=3)}. A failed configuration is not tried "
        "again, and its surroundings are avoided."
    )


def reason(trial: Trial) -> str:
    """Return why a trial failed, in one line."""
    first = trial.notes[0] if trial.notes else "no reason was kept"
    return named(" ".join(first.split()) or "no reason was kept", REASON)


def settings_table(story: Story) -> Table:
    """Return how the run was tuned, as far as it is known."""
    settings, method = story.settings, story.method
    facts: dict[str, str] = {
        "problem": named(story.problem) if story.problem else "none: a study of another program",
        "task": named(story.run.task),
        "direction": story.run.direction,
        "method": _known(settings, "method") + (f": {method.summary}" if method is not None else ""),
        "trials planned": _known(settings, "trials"),
        "trials made": f"{len(story.run)}, of which {len(story.run) - len(story.run.succeeded)} failed",
        "seed": _known(settings, "seed"),
    }
    if story.times is not None:
        begun, ended = story.times
        facts |= {"first trial begun": f"{begun:%Y-%m-%d %H:%M:%S}", "last trial ended": f"{ended:%Y-%m-%d %H:%M:%S}"}
    seconds = [trial.seconds for trial in story.run.trials if trial.seconds is not None]
    if seconds:
        facts["time in all trials"] = _duration(sum(seconds))
    versions = settings.get("versions")
    if isinstance(versions, Mapping):
        named_ = [f"{name} {given}" for name, given in versions.items()]
        facts["versions"] = listed([named(text, 60) for text in named_], most=20)
    rows = tuple((word(name), word(text)) for name, text in facts.items())
    notes = () if settings else ("How it was tuned is not known: it was added or imported, or is older.",)
    return Table("How was it tuned?", TWO, (rows,), notes)


def space_table(story: Story) -> Table | None:
    """Return the hyperparameters that were searched, None if nothing is known of them."""
    if story.space is None:
        return None
    space = story.space
    columns = tuple(Column(head, numeric=False) for head in ("name", "kind", "values", "only used if"))
    rows = tuple(
        _space_row(column, condition) for column, condition in zip(space.columns, space.condition_texts, strict=True)
    )
    inferred = story.run.space is None and not story.settings
    notes = ("The ranges are those of the trials: no search space was kept.",) if inferred else ()
    return Table("What was searched?", columns, (rows,), notes)


def _space_row(column: SpaceColumn, condition: str) -> Row:
    if isinstance(column, Interval):
        kind, values = "number", f"{column.lower:g} to {column.upper:g}"
    elif isinstance(column, Steps) and column.choices is None:
        kind, values = "integer", f"{column.lower} to {column.lower + column.size - 1}"
    else:
        choices = column.choices if isinstance(column, Choices | Steps) and column.choices is not None else ()
        constant = isinstance(column, Choices) and column.constant
        kind = "constant" if constant else "choice" if column.categorical else "ordered choice"
        values = listed([value_text(choice) for choice in choices], most=12)
    log = ", log scale" if isinstance(column, Interval | Steps) and column.log else ""
    only = condition.split("|", 1)[-1].strip()
    return (word(named(column.name)), word(kind + log), word(values), word(named(only) if only else "always used"))


def _known(settings: Mapping[str, object], key: str) -> str:
    given = settings.get(key)
    if key in settings and given is None:
        return "none: fresh entropy"
    return "not known" if given is None else named(str(given), 60)


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min {rest} s" if hours else f"{minutes} min {rest} s"
