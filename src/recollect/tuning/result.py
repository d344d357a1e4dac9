"""What a tuning run returns."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from recollect.history.run import Config, Run
from recollect.optimizer.explain import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The run, why it stopped, and what the past contributed.

    past: the runs it could learn from. settings: method, trials, seed, versions. influences: for each trial of the run
    why it was suggested (`recollect.history.studies`), None where nothing was noted.
    """

    run: Run
    problem: str
    stopped: str
    explanation: Explanation
    past: tuple[Run, ...]
    settings: Mapping[str, Any]
    influences: tuple[Mapping[str, Any] | None, ...]

    @property
    def best_config(self) -> Config | None:
        """The best configuration, None if no trial has succeeded."""
        return None if self.run.best is None else dict(self.run.best.config)

    @property
    def best_value(self) -> float | None:
        """Its value, None if no trial has succeeded."""
        return None if self.run.best is None else self.run.best.value

    def explain(self) -> Explanation:
        """Say what every past run contributed at the end and what drove the last suggestion."""
        return self.explanation

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write a page of HTML that shows the run and what was transferred (extra ``report``)."""
        import_module("recollect.report.run").write_report(self, path)  # the report knows the result, not the other way

    def __str__(self) -> str:
        """Say in two lines how it went."""
        count, failed = len(self.run), len(self.run) - len(self.run.succeeded)
        head = f"{self.run.task}: {count} trial{'' if count == 1 else 's'}, {failed} failed; {self.stopped}"
        if self.run.best is None:
            return f"{head}\nno trial succeeded"
        return f"{head}\nbest {self.best_value:.6g} with {self.best_config}"
