"""Killed processes: only the run that kills its process is given up, and nothing is tried for ever."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from recollect.bench import making
from recollect.bench.cell import Crashed, Job, Kept, Made
from recollect.bench.engines import Answer, Function, Local, Lost
from recollect.bench.making import make_all
from recollect.bench.plan import Spec
from recollect.bench.results import Finished, Key

WINDOW = 4  # jobs that are under way together


def job(number: int) -> Job:
    return Job(Key("b", "m", str(number), 0), Spec("forrester"), number, 5, 5)


def answer(asked: Job) -> Made:
    kept = Kept(asked.key.task, 0, asked.seed, None, ({"x": 0.5},), (1.0,), 0.1, "0")
    return Made(Finished(asked.key, asked.seed, 0.0, 1.0, np.ones(1), None, 0.1, "0"), kept)


class Pool:
    """Processes that some jobs kill: always, or the first time only; others crash. All under way are lost with one."""

    def __init__(self, *, deadly: Sequence[int] = (), once: Sequence[int] = (), crashing: Sequence[int] = ()) -> None:
        self.deadly, self.once, self.crashing = set(deadly), set(once), set(crashing)
        self.begun: Counter[int] = Counter()
        self.rounds = 0

    def answers(self, function: Function, jobs: Sequence[Job]) -> Iterator[Answer]:
        self.rounds += 1
        assert self.rounds < 1000, "no end in sight"
        for at, asked in enumerate(jobs):
            self.begun[asked.seed] += 1
            if asked.seed in self.deadly or (asked.seed in self.once and self.begun[asked.seed] == 1):
                yield from (Lost(other.key) for other in jobs[at : at + WINDOW])
                return
            yield Crashed(asked.key, "because") if asked.seed in self.crashing else function(asked)


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "run_job", answer)


def results(pool: Pool, count: int = 30) -> tuple[list[int], dict[int, str]]:
    kept: list[int] = []
    told: list[tuple[int, int]] = []
    crashed = make_all(
        [job(number) for number in range(count)],
        pool,
        keep=lambda made: kept.append(made.finished.seed),
        tell=lambda done, total: told.append((done, total)),
    )
    assert told[0] == (0, count)
    assert told[-1] == (len(kept), count)
    return sorted(kept), {int(crash.key.task): crash.reason for crash in crashed}


@pytest.mark.usefixtures("tried")
@pytest.mark.parametrize("deadly", [[0], [12], [29], [0, 1, 2], [3, 7, 8, 29], list(range(30))])
def test_only_runs_that_kill_their_process_are_given_up(deadly: list[int]) -> None:
    pool = Pool(deadly=deadly)
    kept, crashed = results(pool)
    assert kept == [number for number in range(30) if number not in deadly]
    assert sorted(crashed) == deadly
    assert all("ended without an answer" in reason for reason in crashed.values())


@pytest.mark.usefixtures("tried")
def test_a_process_that_is_killed_once_costs_nothing() -> None:
    kept, crashed = results(Pool(once=[0, 5, 17, 29]))
    assert (kept, crashed) == (list(range(30)), {})


@pytest.mark.usefixtures("tried")
def test_crashes_and_kills_together_come_to_an_end() -> None:
    pool = Pool(deadly=[0, 20], crashing=[1, 19, 25])
    kept, crashed = results(pool)
    assert kept == [number for number in range(30) if number not in {0, 1, 19, 20, 25}]
    assert {number: reason for number, reason in crashed.items() if reason == "because"}.keys() == {1, 19, 25}
    assert {pool.begun[number] for number in (19, 25)} == {2}


def test_of_nothing_nothing_is_told() -> None:
    def unexpected(*_: object) -> None:
        raise AssertionError

    assert make_all([], Local(), keep=unexpected, tell=unexpected) == ()


def test_with_real_processes_only_the_killer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def deadly(asked: Job) -> Made:
        if asked.seed == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        kept = Kept(asked.key.task, 0, asked.seed, None, ({"x": 0.5},), (1.0,), 0.1, "0")
        return Made(Finished(asked.key, asked.seed, 0.0, 1.0, np.ones(1), None, 0.1, "0"), kept)

    monkeypatch.setattr(making, "run_job", deadly)
    kept, crashed = results(Local(2), 8)  # type: ignore[arg-type]
    assert kept == [0, 2, 3, 4, 5, 6, 7]
    assert list(crashed) == [1]
