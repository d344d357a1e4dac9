"""Killed processes: only the run that kills its process is given up, and nothing is tried for ever."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from recollect.bench.experiment import executors
from recollect.bench.experiment.executors import LocalExecutor, RunFunction, RunOutcome, run_with_retries
from recollect.bench.experiment.experiment_run import CompletedRun, FailedRun, RunKey, RunSpec
from recollect.bench.experiment.plan import BenchmarkSpec


def spec_of(number: int) -> RunSpec:
    return RunSpec(RunKey("b", "m", str(number), 0), BenchmarkSpec("forrester"), number, 5, 5)


def complete(spec: RunSpec) -> CompletedRun:
    return CompletedRun(spec.key, spec.seed, 0.0, 1.0, np.ones(1), None, 0.1, "0")


class Pool:
    """Processes that some runs kill: always, or the first time only; others fail."""

    def __init__(self, *, deadly: Sequence[int] = (), once: Sequence[int] = (), failing: Sequence[int] = ()) -> None:
        self.deadly, self.once, self.failing = set(deadly), set(once), set(failing)
        self.begun: Counter[int] = Counter()
        self.batches: list[list[int]] = []

    def execute(self, function: RunFunction, specs: Sequence[RunSpec]) -> Iterator[RunOutcome]:
        self.batches.append([spec.seed for spec in specs])
        for spec in specs:
            self.begun[spec.seed] += 1
            if spec.seed in self.deadly or (spec.seed in self.once and self.begun[spec.seed] == 1):
                yield FailedRun(spec.key, "killed", process_died=True)
            else:
                yield FailedRun(spec.key, "because") if spec.seed in self.failing else function(spec)


@pytest.fixture
def completing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executors, "try_run", complete)


def results(pool: Pool, count: int = 30) -> tuple[list[int], dict[int, str]]:
    completed: list[int] = []
    reports: list[tuple[int, int]] = []
    failed = run_with_retries(
        [spec_of(number) for number in range(count)],
        pool,
        on_completed=lambda run: completed.append(run.seed),
        progress=lambda done, total: reports.append((done, total)),
    )
    assert reports[0] == (0, count)
    assert reports[-1] == (len(completed), count)
    return sorted(completed), {int(failure.key.task): failure.reason for failure in failed}


@pytest.mark.usefixtures("completing")
@pytest.mark.parametrize("deadly", [[0], [12], [29], [0, 1, 2], [3, 7, 8, 29], list(range(30))])
def test_only_runs_that_kill_their_process_are_given_up(deadly: list[int]) -> None:
    pool = Pool(deadly=deadly)
    completed, failed = results(pool)
    assert completed == [number for number in range(30) if number not in deadly]
    assert sorted(failed) == deadly
    assert set(failed.values()) == {"killed"}
    assert pool.batches[1:] == [[number] for number in deadly], "each alone"


@pytest.mark.usefixtures("completing")
def test_a_process_that_is_killed_once_costs_nothing() -> None:
    completed, failed = results(Pool(once=[0, 5, 17, 29]))
    assert (completed, failed) == (list(range(30)), {})


@pytest.mark.usefixtures("completing")
def test_failures_and_kills_together_come_to_an_end() -> None:
    pool = Pool(deadly=[0, 20], failing=[1, 19, 25])
    completed, failed = results(pool)
    assert completed == [number for number in range(30) if number not in {0, 1, 19, 20, 25}]
    assert {number: reason for number, reason in failed.items() if reason == "because"}.keys() == {1, 19, 25}
    assert pool.batches[1:] == [[1, 19, 25], [0], [20]]


def test_without_runs_no_progress_is_reported() -> None:
    def unexpected(*_: object) -> None:
        raise AssertionError

    assert run_with_retries([], LocalExecutor(), on_completed=unexpected, progress=unexpected) == ()
