"""The result of a tuning run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from recollect._text import plural
from recollect.optimizer.explanation import Explanation
from recollect.runs.run import Config, Run, Trial


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Result:
    """What `recollect.minimize` and `recollect.maximize` return.

    Attributes:
        run: All finished trials of the task, with the search space and the direction.
        problem: Name of the problem.
        stopped: Why the run stopped, such as "12 of 12 trials finished".
        explanation: What past runs contributed.
        past: The past runs that the method learned from.
        settings: Method, trials, seed and versions of the libraries.
        influences: For each trial, why it was suggested; None where nothing was noted.
    """

    run: Run
    problem: str
    stopped: str
    explanation: Explanation
    past: tuple[Run, ...]
    settings: Mapping[str, Any]
    influences: tuple[Mapping[str, Any] | None, ...]

    @property
    def best(self) -> Trial | None:
        """The best trial, the first of those tied; None if no trial succeeded."""
        return self.run.best

    @property
    def best_config(self) -> Config | None:
        """The best configuration; None if no trial succeeded."""
        return None if self.run.best is None else dict(self.run.best.config)

    @property
    def best_value(self) -> float | None:
        """The value of the best configuration; None if no trial succeeded."""
        return None if self.run.best is None else self.run.best.value

    def explain(self) -> Explanation:
        """Return what each past run contributed at the end and what drove the last suggestion; ``print`` it."""
        return self.explanation

    def report(self, path: str | os.PathLike[str]) -> None:
        """Write an HTML page that shows the run and what was transferred (extra ``report``).

        Args:
            path: File to write.

        Raises:
            MissingExtraError: plotly is not installed.
            StorageError: The file cannot be written.
        """
        import_module("recollect.report.run.run_page").write_run_report(self, path)  # the report imports this module

    def __repr__(self) -> str:
        """Return the task, the number of trials and the best value in one line."""
        trials = plural(len(self.run), "trial")
        best = "none succeeded" if self.best_value is None else f"best value {self.best_value!r}"
        return f"<Result of {self.problem!r}, {self.run.task!r}: {trials}, {best}>"

    def __str__(self) -> str:
        """Return a summary of two lines."""
        count, failed = len(self.run), len(self.run.failed)
        head = f"{self.run.task}: {plural(count, 'trial')}, {failed} failed; {self.stopped}"
        if self.run.best is None:
            return f"{head}\nno trial succeeded"
        return f"{head}\nbest {self.best_value:.6g} with {self.best_config}"
