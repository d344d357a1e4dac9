"""The trial queue: what several workers see of one task, and how they avoid conflicts."""

from __future__ import annotations

import os
import threading
from datetime import datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from recollect import RecollectWarning, StorageError
from recollect.errors import TaskRemovedError
from recollect.space.space import compile_space
from recollect.storage import sql_read
from recollect.storage.memory import Memory
from recollect.storage.studies import VOID_KEY, get_or_create_study
from recollect.tuning import heartbeat as heartbeat_module
from recollect.tuning import trial_queue
from recollect.tuning.heartbeat import Heartbeat, HeartbeatMonitor, heartbeat, machine_id, process_start
from recollect.tuning.objective import Evaluation
from recollect.tuning.trial_queue import HEARTBEAT_KEY, ClaimedTrial, TrialQueue

SPACE = compile_space({"a": (0.0, 1.0), "k": ["x", "y"]})
ONE, TWO = {"a": 0.25, "k": "x"}, {"a": 0.5, "k": "y"}


@pytest.fixture(params=["database", "journal"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "m.db") if request.param == "database" else f"journal:{tmp_path / 'm.log'}"


def open_queue(where: Any, grace: float = 100.0) -> TrialQueue:
    store = Memory(where).store
    study = get_or_create_study(store, "p", "t", space=SPACE, direction="minimize")
    return TrialQueue(store, study, SPACE, grace=grace)


def states(where: str) -> list[tuple[str, bool]]:
    trials = Memory(where).store.optuna.get_all_trials(1 if "journal" not in where else 0)
    return [(trial.state.name, VOID_KEY in trial.user_attrs) for trial in trials]


def elsewhere(monkeypatch: pytest.MonkeyPatch, count: int = 0) -> None:
    """Make new trials look as if another machine ran them."""
    latest = {"machine": "far away", "pid": 1, "begun": "0", "count": count}
    monkeypatch.setattr(trial_queue, "heartbeat", lambda: latest)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Return the time that heartbeats are judged by; add to it instead of waiting."""
    now = [0.0]
    monkeypatch.setattr(heartbeat_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    return now


def test_what_one_worker_claims_another_sees_and_learns_the_result_of(where: str) -> None:
    queue, other = open_queue(where), open_queue(where)
    trial = queue.claim(ONE, limit=5)
    assert trial is not None
    assert other.read().running == {0: ONE}
    queue.finish(trial, Evaluation(0.5, 1.0))
    state = other.read()
    assert state.running == {}
    assert [(trial.config, trial.value) for trial in other.read().pop_finished()] == [(ONE, 0.5)]
    assert state.pop_finished() == []
    assert other.read().pop_finished() == []


def test_seconds_are_those_measured_although_the_clock_was_changed(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def before() -> datetime:
        return datetime.now() - timedelta(hours=1)

    queue = open_queue(where)
    with monkeypatch.context() as patch:
        patch.setattr(trial_queue, "datetime", SimpleNamespace(now=before))
        trials = [queue.claim(config, limit=5) for config in (ONE, TWO)]
    for trial, evaluation in zip(trials, (Evaluation(0.5, 1.5), Evaluation(None, 2.5, ("no",))), strict=True):
        assert trial is not None
        queue.finish(trial, evaluation)
    assert [trial.seconds for trial in open_queue(where).read().pop_finished()] == [1.5, 2.5]
    assert [trial.seconds for trial in Memory(where).run("t", "p").trials] == [1.5, 2.5]


def test_a_failure_is_kept_with_its_reason(where: str) -> None:
    queue = open_queue(where)
    trial = queue.claim(ONE, limit=5)
    assert trial is not None
    queue.finish(trial, Evaluation(None, 1.0, ("ValueError: no", "more")))
    (trial,) = open_queue(where).read().unread
    assert not trial.ok
    assert trial.notes == ("ValueError: no", "more")


def test_reading_again_reads_only_what_is_new_or_had_not_ended(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    queue, other = open_queue(where), open_queue(where)
    configs = [{"a": k / 16, "k": "x"} for k in range(12)]
    long, *short = (queue.claim(config, limit=20) for config in configs)
    assert long is not None
    for trial in short:
        assert trial is not None
        queue.finish(trial, Evaluation(0.5, 1.0))
    assert set(other.read().finished) == set(range(1, 12))
    counts: list[int] = []
    original = trial_queue.read_after

    def counted(*given: Any, **options: Any) -> Any:
        records = original(*given, **options)
        counts.append(len(records))
        return records

    monkeypatch.setattr(trial_queue, "read_after", counted)
    assert set(other.read().running) == {0}
    queue.finish(long, Evaluation(0.25, 1.0))
    assert other.read().finished[0].value == 0.25
    assert other.read().running == {}
    assert counts == [1, 1, 0]
    assert (len(other.state.planned()), other.state.planned().before(5)) == (12, 5)


def test_a_trial_that_goes_on_while_many_end_is_still_read(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_read, "MAX_LISTED_TRIALS", 3)
    queue, other = open_queue(where), open_queue(where)
    trials = [queue.claim({"a": k / 16, "k": "x"}, limit=20) for k in range(8)]
    assert set(other.read().running) == set(range(8))
    for trial in trials[2:]:
        assert trial is not None
        queue.finish(trial, Evaluation(0.5, 1.0))
    state = other.read()
    assert (set(state.running), set(state.finished)) == ({0, 1}, set(range(2, 8)))


def test_of_two_workers_that_claim_the_same_configuration_the_second_gives_way(where: str) -> None:
    queue, other = open_queue(where), open_queue(where)
    assert queue.claim(ONE, limit=5) is not None
    assert other.claim(ONE, limit=5) is None
    assert other.claim(TWO, limit=5) is not None
    assert states(where) == [("RUNNING", False), ("FAIL", True), ("RUNNING", False)]
    assert set(queue.read().running) == {0, 2}


def test_several_claims_and_results_are_written_in_one_step_each(where: str) -> None:
    queue, other = open_queue(where), open_queue(where)
    assert other.claim(ONE, limit=9) is not None
    configs = [{"a": k / 16, "k": "y"} for k in range(4)]
    claims = queue.claim_all(
        [(config, {"reason": str(config["a"])}) for config in (*configs[:2], ONE, *configs[2:])], limit=4
    )
    trials = [trial for trial in claims if trial is not None]
    assert [trial.config for trial in trials] == configs[:3]  # not the one that runs, nor the one beyond the limit
    assert states(where) == [("RUNNING", False)] * 3 + [("FAIL", True), ("RUNNING", False), ("FAIL", True)]
    results = [Evaluation(0.5, 1.0), Evaluation(None, 2.0, ("no",)), Evaluation(0.25, 3.0)]
    queue.finish_all(list(zip(trials, results, strict=True))[::-1])
    state = open_queue(where).read()
    assert [(state.finished[trial.number].value, state.finished[trial.number].seconds) for trial in trials] == [
        (result.value, result.seconds) for result in results
    ]
    assert [state.influences[trial.number]["reason"] for trial in trials] == ["0.0", "0.0625", "0.125"]


def test_no_more_trials_are_started_than_the_limit_allows(where: str) -> None:
    queue, other = open_queue(where), open_queue(where)
    assert queue.claim(ONE, limit=1) is not None
    assert other.claim(TWO, limit=1) is None
    assert len(Memory(where).runs()[0]) == 0
    assert list(queue.read().started()) == [0]


def test_a_released_trial_does_not_count(where: str) -> None:
    queue = open_queue(where)
    trial = queue.claim(ONE, limit=5)
    assert trial is not None
    queue.release(trial, "interrupted")
    state = open_queue(where).read()
    assert list(state.started()) == []
    assert state.unread == []
    assert Memory(where).runs()[0].trials == ()


def test_a_trial_whose_worker_died_on_this_machine_is_queued_again_at_once_and_only_once(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        dead = {"machine": machine_id(), "pid": os.getpid(), "begun": "of an earlier process", "count": 0}
        patch.setattr(trial_queue, "heartbeat", lambda: dead)
        assert open_queue(where).claim(ONE, limit=5) is not None
    first, second = open_queue(where), open_queue(where)
    first.read()
    second.read()
    assert states(where) == [("FAIL", True), ("WAITING", False)]
    first.read()
    trial = first.claim_waiting(limit=5)
    assert trial is not None
    assert trial.config == ONE
    second.read()
    assert second.claim_waiting(limit=5) is None
    first.finish(trial, Evaluation(0.1, 0.0))
    assert [trial.value for trial in Memory(where).runs()[0].trials] == [0.1]


def test_a_worker_elsewhere_is_dead_when_it_has_sent_no_heartbeat_for_a_while(
    where: str, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    with monkeypatch.context() as patch:
        elsewhere(patch)
        away = open_queue(where)
        trial = away.claim(ONE, limit=5)
        assert trial is not None
    watcher = open_queue(where, grace=20.0)
    assert set(watcher.read().running) == {0}
    clock[0] += 15.0
    away.write_heartbeat(trial.id, {"machine": "far away", "pid": 1, "begun": "0", "count": 1})
    assert set(watcher.read().running) == {0}
    clock[0] += 25.0
    assert watcher.read().running == {}
    watcher.read()
    assert states(where) == [("FAIL", True), ("WAITING", False)]
    with pytest.warns(RecollectWarning, match="took it over"):
        away.finish(trial, Evaluation(0.5, 1.0))
    assert states(where) == [("FAIL", True), ("WAITING", False)]


def test_a_trial_that_is_lost_twice_has_failed(where: str, monkeypatch: pytest.MonkeyPatch, clock: list[float]) -> None:
    with monkeypatch.context() as patch:
        elsewhere(patch)
        assert open_queue(where).claim(ONE, limit=5) is not None
    watcher = open_queue(where, grace=0.0)
    for _ in range(2):
        watcher.read()
        clock[0] += 1.0
    watcher.read()
    with monkeypatch.context() as patch:
        elsewhere(patch, count=7)
        taker = open_queue(where, grace=100.0)
        taker.read()
        assert taker.claim_waiting(limit=5) is not None
    for _ in range(3):
        watcher.read()
        clock[0] += 1.0
    assert states(where) == [("FAIL", True), ("FAIL", False)]
    (trial,) = Memory(where).runs()[0].trials
    assert trial.notes == ("the worker that ran it stopped sending heartbeats, twice",)


def test_a_queued_trial_gives_way_to_the_same_configuration_claimed_meanwhile(
    where: str, monkeypatch: pytest.MonkeyPatch, clock: list[float]
) -> None:
    """Between the death of a worker and the queueing of its trial somebody may suggest the configuration again."""
    with monkeypatch.context() as patch:
        elsewhere(patch)
        assert open_queue(where).claim(ONE, limit=5) is not None
    buried, write = open_queue(where, grace=0.0), trial_queue.write_trials
    hasty, claims = open_queue(where), []

    def slowly(*given: Any) -> Any:
        if not claims:
            claims.append(None)  # claim writes as well
            claims[0] = hasty.claim(ONE, limit=5)
        return write(*given)

    buried.read()
    clock[0] += 1.0
    monkeypatch.setattr(trial_queue, "write_trials", slowly)
    buried.read()
    assert claims[0] is not None
    buried.read()
    assert set(buried.state.waiting) == {2}
    assert buried.claim_waiting(limit=5) is None
    assert states(where) == [("FAIL", True), ("RUNNING", False), ("FAIL", True)]


def test_the_second_claim_of_a_configuration_is_void_if_its_worker_died_before_it_gave_way(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = open_queue(where)
    assert queue.claim(ONE, limit=5) is not None
    with monkeypatch.context() as patch:
        dead = {"machine": machine_id(), "pid": os.getpid(), "begun": "of an earlier process", "count": 0}
        patch.setattr(trial_queue, "heartbeat", lambda: dead)
        killed = open_queue(where)
        patch.setattr(killed, "_stands", lambda _trial, _limit: True)
        assert killed.claim(ONE, limit=5) is not None
    state = queue.read()
    assert (list(state.planned()), state.void) == ([0], {1})
    assert states(where) == [("RUNNING", False), ("FAIL", True)]


def dead_claim(
    where: str, monkeypatch: pytest.MonkeyPatch, queue: TrialQueue | None = None
) -> trial_queue.ClaimedTrial:
    """A claim of ONE by a worker of this machine that has died; of a waiting trial, if there is one."""
    with monkeypatch.context() as patch:
        dead = {"machine": machine_id(), "pid": os.getpid(), "begun": "of an earlier process", "count": 0}
        patch.setattr(trial_queue, "heartbeat", lambda: dead)
        worker = queue or open_queue(where)
        trial = worker.claim_waiting(limit=5) or worker.claim(ONE, limit=5)
    assert trial is not None
    return trial


def test_a_result_written_while_its_worker_is_declared_dead_is_not_computed_twice(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed worker's last write may arrive after it was seen to be dead, and before its trial is taken from it."""
    worker, move = open_queue(where), trial_queue.move_trial
    trial, late = dead_claim(where, monkeypatch, worker), []

    def overtaken(*given: Any, **fields: Any) -> bool:
        if not late:
            late.append(trial)
            worker.finish(trial, Evaluation(0.5, 1.0))
        return move(*given, **fields)

    monkeypatch.setattr(trial_queue, "move_trial", overtaken)
    queue = open_queue(where)
    assert queue.claim(ONE, limit=5) is None
    assert late
    assert states(where) == [("COMPLETE", False), ("FAIL", True)]
    assert list(queue.read().started()) == [0]


def test_a_result_that_was_written_but_not_acknowledged_is_used_without_a_warning(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, move = open_queue(where), trial_queue.move_trials
    trials = [queue.claim(config, limit=5) for config in (ONE, TWO)]
    results = [(trial, Evaluation(value, 1.25)) for trial, value in zip(trials, (0.5, None), strict=True) if trial]

    def cut_off(*given: Any) -> list[bool]:
        move(*given)
        raise OSError("the line is down")

    with monkeypatch.context() as patch:
        patch.setattr(trial_queue, "move_trials", cut_off)
        with pytest.raises(StorageError):
            queue.finish_all(results)
    queue.finish_all(results)  # warnings are errors in tests
    assert [trial.value for trial in queue.read().unread] == [0.5, None]
    assert queue.claimed == ()


def test_a_trial_that_fails_for_good_keeps_its_configuration_from_being_claimed_again(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead_claim(where, monkeypatch)
    taker = open_queue(where)
    taker.read()
    dead_claim(where, monkeypatch, taker)
    queue = open_queue(where)
    assert queue.claim(ONE, limit=5) is None
    assert states(where) == [("FAIL", True), ("FAIL", False), ("FAIL", True)]


def test_a_waiting_trial_counts_towards_the_limit(where: str) -> None:
    queue = open_queue(where)
    frozen = queue._frozen(ONE, TrialState.WAITING, user={}, system={})
    trial_queue.write_trials(queue._store, queue._study.key, [frozen])
    queue.read()
    assert queue.claim(TWO, limit=1) is None
    assert queue.claim_waiting(limit=1) is not None


def test_a_trial_that_somebody_enqueued_with_optuna_is_run(tmp_path: Path) -> None:
    where = str(tmp_path / "m.db")
    queue = open_queue(where)
    study = optuna.load_study(study_name="p/t", storage=f"sqlite:///{where}")
    study.enqueue_trial({"a": 7.0, "k": "x"})
    study.enqueue_trial(TWO)
    queue.read()
    trial = queue.claim_waiting(limit=5)
    assert trial is not None
    assert trial.config == TWO
    queue.finish(trial, Evaluation(0.25, 1.0))
    assert study.best_params == TWO
    assert queue.claim_waiting(limit=5) is None


def test_a_running_trial_of_optuna_itself_is_pending_and_never_declared_dead(
    tmp_path: Path, clock: list[float]
) -> None:
    where = str(tmp_path / "m.db")
    queue = open_queue(where, grace=0.0)
    trial = optuna.load_study(study_name="p/t", storage=f"sqlite:///{where}").ask()
    trial.suggest_float("a", 0.0, 1.0)
    trial.suggest_categorical("k", ["x", "y"])
    for _ in range(3):
        state = queue.read()
        clock[0] += 1.0
    assert set(state.running) == {0}
    assert state.alive == set()


def test_a_trial_outside_the_space_is_left_out_with_a_warning(tmp_path: Path) -> None:
    where = str(tmp_path / "m.db")
    queue = open_queue(where)
    study = optuna.load_study(study_name="p/t", storage=f"sqlite:///{where}")
    trial = study.ask()
    trial.suggest_float("a", 0.0, 9.0)
    study.tell(trial, 1.0)
    with pytest.warns(RecollectWarning, match="trial 0 of 'p/t' is left out"):
        assert queue.read().unread == []


@pytest.mark.parametrize("pid", ["x", None, [], 1.5, -1, 10**400])
def test_a_worker_with_a_damaged_heartbeat_is_dead_when_it_sends_no_other(
    pid: Any, where: str, clock: list[float]
) -> None:
    queue, other = open_queue(where), open_queue(where, grace=1.0)
    trial = queue.claim(ONE, limit=5)
    assert trial is not None
    queue.write_heartbeat(trial.id, heartbeat() | {"pid": pid})
    other.read()
    clock[0] += 2.0
    state = other.read()
    assert (state.void, {number: waiting.config for number, waiting in state.waiting.items()}) == ({0}, {1: ONE})


@pytest.mark.parametrize("retries", ["x", None, [1]])
def test_a_damaged_count_of_retries_spoils_no_other_trial(
    where: str, monkeypatch: pytest.MonkeyPatch, retries: Any
) -> None:
    dead = dead_claim(where, monkeypatch)
    Memory(where).store.optuna.set_trial_system_attr(dead.id, trial_queue.RETRY_KEY, retries)
    queue = open_queue(where)
    assert queue.claim(TWO, limit=5) is not None


@pytest.mark.parametrize(
    "params", ["x", 5, None, [], ["a", "k"], {"a": [1], "k": {}}, {"a": None, "k": "x"}, {"a": 10**400, "k": "x"}]
)
def test_a_damaged_configuration_that_waits_spoils_no_other_trial(where: str, params: Any) -> None:
    queue = open_queue(where)
    system = {trial_queue.ENQUEUED_KEY: params}
    frozen = queue._frozen({}, TrialState.WAITING, user={}, system=system)
    trial_queue.write_trials(queue._store, queue._study.key, [frozen])
    trial = queue.claim(ONE, limit=5)
    assert trial is not None
    assert (set(queue.state.running), set(queue.state.waiting)) == ({trial.number}, set())


def test_a_reused_process_id_is_not_taken_for_the_dead_process() -> None:
    here = heartbeat()
    assert not HeartbeatMonitor(100.0).is_dead(1, here)
    assert HeartbeatMonitor(100.0).is_dead(1, here | {"begun": "1"})
    assert process_start(os.getpid()) == here["begun"]
    assert process_start(2**22 + 1) is None  # above the largest process id of Linux


def test_a_live_worker_of_a_machine_with_the_same_name_is_not_declared_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    latest = heartbeat()
    monkeypatch.setattr(heartbeat_module, "process_start", lambda _pid: None)
    assert HeartbeatMonitor().is_dead(0, latest)
    read = Path.read_bytes
    clone = lambda path: b"of the clone" if path.name == "boot_id" else read(path)  # noqa: E731
    monkeypatch.setattr(Path, "read_bytes", clone)
    heartbeat_module._boot.cache_clear()
    try:
        assert not HeartbeatMonitor().is_dead(0, latest)
    finally:
        heartbeat_module._boot.cache_clear()


def test_heartbeats_are_written_while_a_trial_runs(tmp_path: Path) -> None:
    where = str(tmp_path / "m.db")
    queue = open_queue(where)
    trial = queue.claim(ONE, limit=5)
    assert trial is not None
    written = threading.Event()

    def write(trial_id: int, latest: dict[str, Any]) -> None:
        queue.write_heartbeat(trial_id, latest)
        if latest["count"] >= 3:
            written.set()

    with Heartbeat(write, interval=0.001) as thread:
        thread.set_trials([trial.id])
        assert written.wait(30.0)
    latest = Memory(where).store.optuna.get_trial(trial.id).system_attrs[HEARTBEAT_KEY]
    assert latest["count"] >= 3
    assert latest["pid"] == os.getpid()
    assert Memory(where).store.optuna.get_trial(trial.id).state == TrialState.RUNNING


def act(queue: TrialQueue, trial: ClaimedTrial, what: str) -> None:
    actions = {
        "read": queue.read,
        "claim": lambda: queue.claim(TWO, limit=9),
        "finish": lambda: queue.finish(trial, Evaluation(100.0, 1.0)),
        "release": lambda: queue.release(trial, "interrupted"),
    }
    queue.write_heartbeat(trial.id, {"count": -1})
    actions[what]()


@pytest.mark.parametrize("next_task", [None, "t", "next"])
@pytest.mark.parametrize("what", ["read", "claim", "finish", "release"])
def test_who_goes_on_with_a_removed_task_is_told_and_leaves_the_next_one_alone(
    where: str, what: str, next_task: str | None
) -> None:
    queue, memory = open_queue(where), Memory(where)
    trial = queue.claim(ONE, limit=5)
    assert trial is not None
    memory.remove("t", "p")
    if next_task is not None:  # in a SQLite file with the ids of the study and of the trial
        study = get_or_create_study(memory.store, "p", next_task, space=SPACE, direction="minimize")
        assert TrialQueue(memory.store, study, SPACE, grace=100.0).claim(TWO, limit=5) is not None
    with pytest.raises(TaskRemovedError):
        act(queue, trial, what)
    if next_task is not None:
        (kept,) = Memory(where).store.optuna.get_all_trials(study.id)
        assert (kept.params, kept.state, kept.user_attrs) == (TWO, TrialState.RUNNING, {})
        assert kept.system_attrs == {HEARTBEAT_KEY: heartbeat()}


def test_a_task_that_was_renamed_goes_on(tmp_path: Path) -> None:
    where = str(tmp_path / "m.db")
    queue = open_queue(where)
    trial = queue.claim(ONE, limit=5)
    assert trial is not None
    Memory(where).rename("other", task="t", problem="p")
    queue.finish(trial, Evaluation(0.5, 1.0))
    assert queue.claim(TWO, limit=5) is not None
    assert Memory(where).run("other", "p").values == [0.5]
