"""Candidates of a scikit-learn search as trials: scikit-learn evaluates them, the scores of the folds are stored.

The scores of the folds go into the notes of a trial, and all rows of ``cv_results_`` are built from these notes, no
matter where the trial was run: in this fit, in an interrupted one before it, or in another process.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

import numpy as np

from recollect.runs.run import Config, Trial
from recollect.tuning.objective import Evaluation, Finished, judge

Scores: TypeAlias = dict[str, list[float]]
"""The scores of each metric, fold by fold."""

Evaluate: TypeAlias = Callable[[list[Config]], dict[str, Any]]
"""Evaluates candidates; returns the folds of all candidates so far under "folds"."""

NOTE_PREFIX = "cross-validation: "
ALL_FITS_FAILED = "fits failed"
"""In the ValueError that scikit-learn raises if all fits of a call failed; it has no type of its own for this."""
MAX_REASON_LENGTH = 2000  # characters of a traceback that are stored


class SearchAborted(KeyboardInterrupt):
    """Ends a search as Ctrl-C would: running trials are given up and do not count."""

    def __init__(self, reason: Exception) -> None:
        """Keep the error that ended the search."""
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True, slots=True)
class FoldScores:
    """The cross-validation scores of one candidate, and the seconds per fold."""

    scoring_id: str  # short name of how it was scored
    test: Scores
    train: Scores  # empty if they were not requested
    fit_time: list[float]
    score_time: list[float]

    @property
    def note(self) -> str:
        """The scores as the note of a trial."""
        content = asdict(self)
        return NOTE_PREFIX + json.dumps({"way": content.pop("scoring_id"), **content})

    @classmethod
    def of(cls, trial: Trial) -> FoldScores | None:
        """Read the scores from the notes of a trial; None if it has none because its worker died."""
        for note in trial.notes:
            if note.startswith(NOTE_PREFIX):
                content = json.loads(note.removeprefix(NOTE_PREFIX))
                return cls(content.pop("way"), **content)
        return None

    @classmethod
    def from_folds(cls, folds: Sequence[Mapping[str, Any]], scoring_id: str) -> FoldScores:
        """Return the scores from what scikit-learn returns for the folds of a candidate."""
        test, train = (_by_metric([fold.get(f"{kind}_scores") for fold in folds]) for kind in ("test", "train"))
        times = {kind: [float(fold[kind]) for fold in folds] for kind in ("fit_time", "score_time")}
        return cls(scoring_id, test, train, **times)

    def folds(self, splits: int, names: Iterable[str], *, missing: float) -> list[dict[str, Any]]:
        """Return the folds as scikit-learn does for these metrics; ``missing`` is the score of a failed fold.

        Unknown times, and training scores that were not requested when the candidate was evaluated, are nan.
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
class ScoringRules:
    """How candidates are scored."""

    scoring_id: str  # short name of estimator, metrics and folds
    metric: str | None  # to maximize; None for the first
    missing: float  # the score of a failed fold; nan if such a candidate is a failed trial


class CandidateEvaluator:
    """Evaluates candidates, several in one call of scikit-learn if there are more jobs than folds."""

    def __init__(
        self, evaluate: Evaluate, *, params: Callable[[Config], Config], rules: ScoringRules, jobs: int
    ) -> None:
        """Run ``jobs`` fits at the same time; ``params`` turns a configuration into parameters."""
        self.rules = rules
        self.last: dict[str, Any] | None = None  # what scikit-learn returned; None before a candidate could be fitted
        self.splits = 0  # number of folds; 0 before it is known
        self._evaluated = 0
        self._evaluate, self._params, self._jobs = evaluate, params, jobs
        self._batch: list[tuple[int, Config]] = []

    @property
    def capacity(self) -> int:
        """As many candidates as keep all jobs busy; one while the number of folds is unknown."""
        return -(-self._jobs // self.splits) if self.splits else 1

    def start(self, number: int, config: Config) -> None:
        """Accept a candidate."""
        self._batch.append((number, config))

    def wait(self, seconds: float) -> Finished:  # noqa: ARG002 - fits cannot be interrupted
        """Evaluate all accepted candidates; an error other than a failed fit ends the search."""
        batch, self._batch = self._batch, []
        start = time.perf_counter()
        try:
            measured, reasons = self.measure([config for _, config in batch])
        except Exception as error:
            raise SearchAborted(error) from error
        each = (time.perf_counter() - start) / max(1, len(batch))
        results = zip(batch, measured, reasons, strict=True)
        return [(number, self._evaluation(scores, why, each)) for (number, _), scores, why in results]

    def close(self) -> None:
        """Do nothing: nothing runs outside `wait`."""

    def measure(self, configs: Sequence[Config]) -> tuple[list[FoldScores], list[str]]:
        """Cross-validate configurations; also return why the first fold of each failed, empty if none did."""
        try:
            self.last = self._evaluate([self._params(config) for config in configs])
        except ValueError as error:
            if ALL_FITS_FAILED not in str(error):
                raise
            nothing = FoldScores(self.rules.scoring_id, {}, {}, [], [])
            return [nothing] * len(configs), [str(error)] * len(configs)
        folds = self.last["folds"][self._evaluated :]
        self._evaluated += len(folds)
        self.splits = len(folds) // len(configs)
        each = [folds[start : start + self.splits] for start in range(0, len(folds), self.splits)]
        errors = [next((fold["fit_error"] for fold in own if fold["fit_error"]), "") for own in each]
        return [FoldScores.from_folds(own, self.rules.scoring_id) for own in each], errors

    def _evaluation(self, measured: FoldScores, why: str, seconds: float) -> Evaluation:
        rules = self.rules
        metric = rules.metric if rules.metric in measured.test else next(iter(measured.test), "")
        evaluation = judge(float(np.mean(measured.test.get(metric, rules.missing))), seconds)
        if evaluation.ok:
            return Evaluation(evaluation.value, seconds, (measured.note,))
        if not why:
            return Evaluation(None, seconds, (f"a score is not finite: {measured.test}", measured.note))
        reason = why.strip()
        return Evaluation(None, seconds, (reason.splitlines()[-1], reason[-MAX_REASON_LENGTH:], measured.note))


def _by_metric(scores: Sequence[Any]) -> Scores:
    """Return scores by metric from a dict, or a number for a single metric, per fold; empty if not requested."""
    if any(score is None for score in scores):
        return {}
    dicts = [score if isinstance(score, Mapping) else {"score": score} for score in scores]
    return {name: [float(score[name]) for score in dicts] for name in dicts[0]}
