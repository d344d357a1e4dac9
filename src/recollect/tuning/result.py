"""What a tuning run returns."""

from __future__ import annotations

from dataclasses import dataclass

from recollect.history.run import Config, Run
from recollect.optimizer.explain import Explanation


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """The run, its best configuration, why it stopped, and what the past contributed."""

    run: Run
    problem: str
    stopped: str
    explanation: Explanation

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

    def __str__(self) -> str:
        """Say in two lines how it went."""
        failed = len(self.run) - len(self.run.succeeded)
        head = f"{self.run.task}: {len(self.run)} trials, {failed} failed; {self.stopped}"
        if self.run.best is None:
            return f"{head}\nno trial succeeded"
        return f"{head}\nbest {self.best_value:.6g} with {self.best_config}"
