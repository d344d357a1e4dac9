"""Candidates of a scikit-learn search as trials: evaluated by scikit-learn, kept with the scores of their folds.

The scores of the folds go into the notes of a trial, and all rows of ``cv_results_`` come from there, whoever made the
trial: this fit, an interrupted one before it, or another process. So what a search tells does not depend on that.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from recollect.history.run import Config, Trial
from recollect.tuning.evaluators import Ended
from recollect.tuning.outcome import Outcome, judge

Scores: TypeAlias = dict[str, list[float]]
"""Scores of each metric, fold by fold."""

HEAD = "cross-validation: "
ALL_FAILED = "fits failed"
"""What scikit-learn says when not one fold of the candidates could be fitted."""
LONGEST = 2000


class Abandoned(KeyboardInterrupt):
    """Ends a session as Ctrl-C would: what runs is given up and counts for nothing."""

    def __init__(self, reason: Exception) -> None:
        """Keep what happened."""
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Measured:
    """What cross-validation found for one candidate. way: how it was scored, as a short name."""

    way: str
    test: Scores
    train: Scores
    fit_time: list[float]
    score_time: list[float]

    @property
    def note(self) -> str:
        """Return it as the note of a trial."""
        return HEAD + json.dumps(asdict(self))

    @classmethod
    def of(cls, trial: Trial) -> Measured | None:
        """Read it from the notes of a trial; None if there is none, as for one whose worker was lost."""
        for note in trial.notes:
            if note.startswith(HEAD):
                return cls(**json.loads(note.removeprefix(HEAD)))
        return None

    @classmethod
    def from_folds(cls, folds: Sequence[Mapping[str, Any]], way: str) -> Measured:
        """Take it from what scikit-learn returns for the folds of a candidate."""
        test, train = (_by_metric([fold.get(f"{kind}_scores") for fold in folds]) for kind in ("test", "train"))
        times = {kind: [float(fold[kind]) for fold in folds] for kind in ("fit_time", "score_time")}
        return cls(way, test, train, **times)

    def folds(self, splits: int, names: Iterable[str], *, missing: float) -> list[dict[str, Any]]:
        """Return it as scikit-learn would for these metrics; ``missing`` is the score of a fold that failed.

        Training scores that were not asked for when the candidate was evaluated are nan, and so are times not known.
        """
        fit_time, score_time = (times or [math.nan] * splits for times in (self.fit_time, self.score_time))
        tests = {name: self.test.get(name, [missing] * splits) for name in names}
        trains = {name: self.train.get(name, [math.nan if self.test else missing] * splits) for name in names}
        return [
            {
                "fit_time": fit_time[split],
                "score_time": score_time[split],
                "test_scores": {name: scores[split] for name, scores in tests.items()},
                "train_scores": {name: scores[split] for name, scores in trains.items()},
            }
            for split in range(splits)
        ]


@dataclass(frozen=True, slots=True)
class Rules:
    """How candidates are judged.

    way: how they are scored, as a short name; metric: the one to maximize, None for the first; missing: the score of a
    fold that failed, nan if a candidate fails with it.
    """

    way: str
    metric: str | None
    missing: float


class Candidates:
    """Evaluates candidates, several in one call of scikit-learn where there are more jobs than folds.

    last: what scikit-learn returned last, None while no candidate could be fitted; splits: number of folds, then known.
    """

    def __init__(
        self,
        evaluate: Callable[[list[Config]], dict[str, Any]],
        *,
        params: Callable[[Config], Config],
        rules: Rules,
        jobs: int,
    ) -> None:
        """Prepare.

        ``evaluate`` returns the folds of all candidates so far under "folds"; ``params`` turns a configuration into
        parameters; so many fits run at the same time.
        """
        self.rules = rules
        self.last: dict[str, Any] | None = None
        self.splits = 0
        self._evaluated = 0
        self._evaluate, self._params, self._jobs = evaluate, params, jobs
        self._begun: list[tuple[Hashable, Config]] = []

    @property
    def places(self) -> int:
        """As many candidates as keep all jobs busy; one while the number of folds is not known."""
        return -(-self._jobs // self.splits) if self.splits else 1

    def begin(self, name: Hashable, config: Config) -> None:
        """Take a candidate."""
        self._begun.append((name, config))

    def wait(self, seconds: float) -> Ended:  # noqa: ARG002 - the work takes the time it takes
        """Evaluate all that were taken; an error that is not one of fitting ends the search."""
        batch, self._begun = self._begun, []
        start = time.perf_counter()
        try:
            measured, reasons = self.measure([config for _, config in batch])
        except Exception as error:
            raise Abandoned(error) from error
        each = (time.perf_counter() - start) / max(1, len(batch))
        return [
            (name, self._outcome(found, why, each))
            for (name, _), found, why in zip(batch, measured, reasons, strict=True)
        ]

    def close(self) -> None:
        """Nothing runs outside `wait`."""

    def measure(self, configs: Sequence[Config]) -> tuple[list[Measured], list[str]]:
        """Cross-validate configurations; also why their first folds failed, empty where none did."""
        try:
            self.last = self._evaluate([self._params(config) for config in configs])
        except ValueError as error:
            if ALL_FAILED not in str(error):
                raise
            nothing = Measured(self.rules.way, {}, {}, [], [])
            return [nothing] * len(configs), [str(error)] * len(configs)
        folds = self.last["folds"][self._evaluated :]
        self._evaluated += len(folds)
        self.splits = len(folds) // len(configs)
        each = [folds[start : start + self.splits] for start in range(0, len(folds), self.splits)]
        errors = [next((fold["fit_error"] for fold in own if fold["fit_error"]), "") for own in each]
        return [Measured.from_folds(own, self.rules.way) for own in each], errors

    def _outcome(self, measured: Measured, why: str, seconds: float) -> Outcome:
        rules = self.rules
        metric = rules.metric if rules.metric in measured.test else next(iter(measured.test), "")
        outcome = judge(float(np.mean(measured.test.get(metric, rules.missing))), seconds)
        if outcome.ok:
            return Outcome(outcome.value, seconds, (measured.note,))
        if not why:
            return Outcome(None, seconds, (f"a score is not finite: {measured.test}", measured.note))
        return Outcome(None, seconds, (why.strip().splitlines()[-1], why.strip()[-LONGEST:], measured.note))


def _by_metric(scores: Sequence[Any]) -> Scores:
    """Return scores by metric, from a dict for each fold or, of a single metric, a number; none if they were not asked
    for."""
    if any(score is None for score in scores):
        return {}
    dicts = [score if isinstance(score, Mapping) else {"score": score} for score in scores]
    return {name: [float(score[name]) for score in dicts] for name in dicts[0]}
