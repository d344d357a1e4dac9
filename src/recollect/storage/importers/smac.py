"""SMAC3's runhistory.json, in the three layouts that its versions write.

    2.3 and later   "data": [{"config_id": 1, "seed": 0, "budget": null, "cost": 0.3, "time": 2.1, "status": 1}, ...]
    2.0 to 2.2      "data": [[config_id, instance, seed, budget, cost, time, status, start, end, info], ...]
    before 2.0      "data": [[[config_id, instance, seed, budget], [cost, time, status, start, end, info]], ...]

All have "configs": {"1": {"C": 0.1, ...}, ...}. A configuration that was evaluated more than once, with several seeds
or on several instances, is one trial with the mean of its costs at the largest budget that it reached, as in SMAC's own
comparisons. If one of these evaluations failed, so did the trial. Costs are always minimized.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recollect._files import read_text
from recollect.errors import ConfigError, InputError, SpaceError
from recollect.runs.run import MAX_SECONDS, Config, Run, State, Trial
from recollect.space.serialization import from_json
from recollect.space.space import Space
from recollect.storage.formats.json_lines import parse_json, require_object
from recollect.storage.importers import ImportOptions, ImportResult
from recollect.storage.importers.trial_tables import stem
from recollect.validation import as_number

RUN_HISTORY, SPACE = "runhistory.json", "configspace.json"
NUMBERS = {0: "RUNNING", 1: "SUCCESS", 2: "CRASHED", 3: "TIMEOUT", 4: "MEMORYOUT"}
DONE = ("SUCCESS", "DONOTADVANCE")
FAILURES = ("CRASHED", "TIMEOUT", "MEMORYOUT", "MEMOUT", "ABORT")
UNFINISHED = {
    "RUNNING": "evaluations that are still running",
    "CAPPED": "evaluations that were stopped early, CAPPED",
    "STOP": "evaluations that never ran, STOP",
    "BUDGETEXHAUSTED": "evaluations that never ran, BUDGETEXHAUSTED",
}
LOWER_BUDGET = "evaluations below the largest budget of their configuration"


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One entry of the history; ``error`` is what SMAC noted about a failure."""

    config: str
    budget: float
    cost: float
    seconds: float
    status: str
    error: str

    @property
    def failed(self) -> bool:
        """Whether it has no cost."""
        return self.status in FAILURES or not math.isfinite(self.cost)


def is_history(content: Any) -> bool:
    """Whether the content of a JSON file is a runhistory of SMAC3."""
    return isinstance(content, dict) and "data" in content and "configs" in content


def read_history(path: Path, options: ImportOptions, content: Any = None) -> ImportResult:
    """Read a runhistory.json, with the configspace.json beside it if there is one."""
    where = str(path)
    options.refuse_columns(where, "SMAC stores one cost for each evaluation")
    direction = options.direction_for(where, "minimize")
    history = require_object(where, parse_json(where, read_text(path)) if content is None else content)
    if not is_history(history) or not isinstance(history["configs"], dict):
        raise InputError(f"{where}: expected a runhistory of SMAC3, with 'data' and 'configs'")
    skipped: Counter[str] = Counter()
    finished: dict[str, list[HistoryEntry]] = {}
    for evaluation in _evaluations(where, history):
        if evaluation.status in UNFINISHED:
            skipped[UNFINISHED[evaluation.status]] += 1
        else:
            finished.setdefault(evaluation.config, []).append(evaluation)
    trials = []
    for key, evaluations in finished.items():
        budget = max(one.budget for one in evaluations)
        largest = [one for one in evaluations if one.budget == budget]
        skipped[LOWER_BUDGET] += len(evaluations) - len(largest)
        trials.append(_trial(history["configs"][key], largest))
    space, unread = _space(path.with_name(SPACE))
    # SMAC's folders around a runhistory.json are the name of the scenario and its seed.
    default_task = "/".join(path.absolute().parent.parts[-2:]) if path.name == RUN_HISTORY else stem(path)
    task = default_task if options.task is None else options.task
    try:
        run = Run(task, trials=trials, space=space, direction=direction)
    except ConfigError as error:
        raise InputError(f"{where}: the configurations do not belong to {SPACE} beside it: {error}") from error
    return ImportResult([run], skipped | unread)


def _evaluations(where: str, history: Mapping[str, Any]) -> list[HistoryEntry]:
    data, evaluations = history["data"], []
    if not isinstance(data, list) or not data:
        raise InputError(f"{where}: expected a list of evaluations in 'data', got {str(data)[:40]!r}")
    for number, entry in enumerate(data):
        place = f"{where}, entry {number} of 'data'"
        try:
            evaluation = _evaluation(place, *_fields(entry))
        except InputError:
            raise
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise InputError(f"{place}: expected an evaluation as SMAC3 writes it, got {str(entry)[:80]}") from error
        if not isinstance(history["configs"].get(evaluation.config), dict):
            raise InputError(f"{place}: there is no configuration {evaluation.config!r} in 'configs'")
        evaluations.append(evaluation)
    return evaluations


def _fields(entry: Any) -> tuple[Any, Any, Any, Any, Any, Any]:
    """Return configuration, budget, cost, seconds, status and further information of an entry of any layout."""
    if isinstance(entry, dict):
        names = ("config_id", "budget", "cost", "time", "status")
        config, budget, cost, seconds, status = (entry[name] for name in names)
        return config, budget, cost, seconds, status, entry.get("additional_info")
    if isinstance(entry[0], list):
        key, value = entry
        return key[0], key[3] if len(key) > 3 else None, value[0], value[1], value[2], value[-1]
    return entry[0], entry[3], entry[4], entry[5], entry[6], entry[-1]


def _evaluation(place: str, *fields: Any) -> HistoryEntry:
    config, budget, cost, seconds, status, info = fields
    if isinstance(cost, list):
        if len(cost) != 1:
            raise InputError(f"{place}: expected one cost, got {len(cost)}: several objectives cannot be used")
        cost = cost[0]
    name = str(status["__enum__"]).rpartition(".")[2] if isinstance(status, dict) else NUMBERS.get(status, str(status))
    if name not in (*DONE, *FAILURES, *UNFINISHED):
        raise InputError(f"{place}: expected a status of SMAC3, got {name!r}")
    error = str(info["error"]) if isinstance(info, dict) and "error" in info else ""
    numbers = {"budget": budget or 0.0, "cost": cost, "time": seconds}
    budget, cost, seconds = (as_number(number, f"{place}, {what}", "a number") for what, number in numbers.items())
    if math.isnan(budget) or not 0 <= seconds <= MAX_SECONDS:
        raise InputError(
            f"{place}: expected a budget, and a time from 0 to {MAX_SECONDS:g} s; got {budget} and {seconds} s"
        )
    return HistoryEntry(str(config), budget, cost, seconds, name, error)


def _trial(config: Config, evaluations: Sequence[HistoryEntry]) -> Trial:
    count, budget = len(evaluations), evaluations[0].budget
    seconds = sum(one.seconds for one in evaluations)
    at = [f"at budget {budget:g}"] if budget else []
    bad = [one for one in evaluations if one.failed]
    if bad:
        status = f"{bad[0].status}: {bad[0].error}" if bad[0].error else bad[0].status
        part = [f"{len(bad)} of {count} evaluations"] if count > 1 else []
        return Trial(config, None, State.FAILED, seconds, (" ".join([*part, *at, f"ended as {status}"]),))
    if count > 1:
        at = [f"mean of {count} evaluations", *at]
    mean = math.fsum(one.cost for one in evaluations) / count
    return Trial(config, mean, seconds=seconds, notes=(" ".join(at),) if at else ())


def _space(path: Path) -> tuple[Space | None, Counter[str]]:
    """Return the space in a file; None, with a count for the warning, if it cannot be read."""
    if not path.is_file():
        return None, Counter()
    try:
        return from_json(read_text(path)), Counter()
    except (SpaceError, InputError):
        return None, Counter({f"search spaces that cannot be read, in {path.name}": 1})
