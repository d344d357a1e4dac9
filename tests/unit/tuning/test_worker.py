"""A worker among others: it stores results together, and gives way without losing time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import optuna
import pytest

from recollect.errors import StorageError
from recollect.runs.run import Config
from recollect.space.space import compile_space
from recollect.storage.memory import Memory
from recollect.storage.studies import get_or_create_study
from recollect.tuning import objective as objective_module
from recollect.tuning import trial_queue
from recollect.tuning import worker as worker_module
from recollect.tuning.minimize import minimize
from recollect.tuning.objective import Evaluation, wait_for_any
from recollect.tuning.trial_queue import ClaimedTrial, TrialQueue


def test_a_worker_that_was_forestalled_suggests_again_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    claim_all, rival, evaluated, pauses = TrialQueue.claim_all, list[ClaimedTrial](), list[Config](), list[float]()

    def forestalled(self: TrialQueue, configs: Sequence[Any], *, limit: int, **given: Any) -> list[ClaimedTrial | None]:
        if not rival:
            other = TrialQueue(self._store, self._study, self._space, grace=60.0)
            rival.extend(trial for trial in claim_all(other, configs, limit=limit) if trial is not None)
            other.finish(rival[0], Evaluation(0.5, 0.1))
        return claim_all(self, configs, limit=limit, **given)

    def evaluate(config: Config) -> float:
        evaluated.append(config)
        return 1.0

    monkeypatch.setattr(TrialQueue, "claim_all", forestalled)
    monkeypatch.setattr(worker_module.time, "sleep", pauses.append)
    space = {"a": (0.0, 1.0)}
    result = minimize(evaluate, space, trials=3, memory=tmp_path / "m.db", task="t", method="random", progress=False)
    assert result.run.configs == [rival[0].config, *evaluated]
    assert len({config["a"] for config in result.run.configs}) == 3
    (pause,) = pauses
    assert 0.0 <= pause <= worker_module.FIRST_PAUSE


def test_pauses_of_a_worker_that_is_forestalled_again_and_again_grow_and_stay_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_all, pauses = TrialQueue.claim_all, list[float]()
    longest = [0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.32, 0.32]

    def forestalled(self: TrialQueue, configs: Sequence[Any], *, limit: int, **given: Any) -> list[ClaimedTrial | None]:
        if len(pauses) < len(longest):
            other = TrialQueue(self._store, self._study, self._space, grace=60.0)
            (trial,) = claim_all(other, configs, limit=limit)
            assert trial is not None
            other.finish(trial, Evaluation(0.5, 0.1))
        return claim_all(self, configs, limit=limit, **given)

    monkeypatch.setattr(TrialQueue, "claim_all", forestalled)
    monkeypatch.setattr(worker_module.time, "sleep", pauses.append)
    monkeypatch.setattr(worker_module.random.Random, "uniform", lambda _self, _low, high: high)
    space, trials = {"a": (0.0, 1.0)}, len(longest) + 1
    result = minimize(lambda _: 1.0, space, trials=trials, memory=tmp_path / "m.db", task="t", method="random",
                      progress=False)  # fmt: skip
    assert result.run.values == [0.5] * len(longest) + [1.0]
    assert pauses == pytest.approx(longest)


@pytest.mark.parametrize("written", ["write_trials", "move_trial"])
def test_a_trial_is_evaluated_once_if_the_storage_fails_right_after_it_was_claimed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    write, read, faults, reads = getattr(trial_queue, written), trial_queue.read_after, list[str](), list[int]()

    def written_then_down(*given: Any, **fields: Any) -> Any:
        answer = write(*given, **fields)
        if not faults:
            faults.append("next")
        return answer

    def sometimes(*given: Any, **fields: Any) -> Any:
        reads.append(1)
        assert len(reads) < 100, "the worker waits for a trial that nobody evaluates"
        if faults == ["next"]:
            faults.append("done")
            raise StorageError("the line is down")
        return read(*given, **fields)

    memory, space, evaluated = Memory(tmp_path / "m.db"), {"a": (0.0, 1.0)}, list[Config]()
    get_or_create_study(memory.store, "p", "t", space=compile_space(space), direction="minimize")
    optuna.load_study(study_name="p/t", storage=memory.store.optuna).enqueue_trial({"a": 0.5})
    monkeypatch.setattr(worker_module, "RETRY_SECONDS", (0.0,))
    monkeypatch.setattr(worker_module, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(trial_queue, written, written_then_down)
    monkeypatch.setattr(trial_queue, "read_after", sometimes)

    def objective(config: Config) -> float:
        evaluated.append(config)
        return 1.0

    result = minimize(objective, space, trials=3, memory=memory, problem="p", task="t", method="random", progress=False)
    assert faults == ["next", "done"]
    assert result.run.configs == evaluated
    states = [trial.state.name for trial in memory.store.optuna.get_all_trials(1)]
    assert states == ["COMPLETE"] * 3


def test_results_that_come_within_a_moment_are_stored_together(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Future[Evaluation](), Future[Evaluation]()
    monkeypatch.setattr(objective_module, "GATHER_SECONDS", 30.0)
    first.set_result(Evaluation(1.0, 0.0))
    later = threading.Timer(0.05, second.set_result, [Evaluation(2.0, 0.0)])
    later.start()
    assert set(wait_for_any([first, second], 30.0)) == {first, second}
    later.join()


def test_a_result_is_not_held_back_by_an_evaluation_that_goes_on() -> None:
    ended, running = Future[Evaluation](), Future[Evaluation]()
    assert set(wait_for_any([ended, running], 0.01)) == set()
    ended.set_result(Evaluation(1.0, 0.0))
    assert set(wait_for_any([ended, running], 30.0)) == {ended}
