"""The board: what several workers see of one task, and how they keep out of each other's way."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import optuna
import pytest
from optuna.trial import TrialState

from recollect import RecollectWarning
from recollect.history.memory import Memory
from recollect.history.studies import VOID_KEY, begin
from recollect.space.space import compile_space
from recollect.tuning import board as boards
from recollect.tuning.board import BEAT_KEY, Board
from recollect.tuning.outcome import Outcome
from recollect.tuning.presence import Pulse, Watch, begun, sign

SPACE = compile_space({"a": (0.0, 1.0), "k": ["x", "y"]})
ONE, TWO = {"a": 0.25, "k": "x"}, {"a": 0.5, "k": "y"}


@pytest.fixture(params=["database", "journal"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / "m.db") if request.param == "database" else f"journal:{tmp_path / 'm.log'}"


def board(where: Any, grace: float = 100.0) -> Board:
    store = Memory(where).store
    return Board(store, begin(store, "p", "t", space=SPACE, direction="minimize"), SPACE, grace=grace)


def states(where: str) -> list[tuple[str, bool]]:
    trials = Memory(where).store.optuna.get_all_trials(1 if "journal" not in where else 0)
    return [(trial.state.name, VOID_KEY in trial.user_attrs) for trial in trials]


def elsewhere(monkeypatch: pytest.MonkeyPatch, count: int = 0) -> None:
    """Make new trials look as if another machine ran them."""
    monkeypatch.setattr(boards, "sign", lambda: {"machine": "far away", "pid": 1, "begun": "0", "count": count})


def test_what_one_puts_up_the_other_sees_and_learns_the_end_of(where: str) -> None:
    mine, other = board(where), board(where)
    slip = mine.put_up(ONE, most=5)
    assert slip is not None
    assert other.read().running == {0: ONE}
    mine.finish(slip, Outcome(0.5, 1.0))
    view = other.read()
    assert view.running == {}
    assert [(trial.config, trial.value) for trial in other.read().news()] == [(ONE, 0.5)]
    assert view.news() == []
    assert other.read().news() == []


def test_a_failure_is_kept_with_its_reason(where: str) -> None:
    mine = board(where)
    slip = mine.put_up(ONE, most=5)
    assert slip is not None
    mine.finish(slip, Outcome(None, 1.0, ("ValueError: no", "more")))
    (trial,) = board(where).read().fresh
    assert not trial.ok
    assert trial.notes == ("ValueError: no", "more")


def test_of_two_who_put_up_the_same_configuration_the_second_gives_way(where: str) -> None:
    mine, other = board(where), board(where)
    assert mine.put_up(ONE, most=5) is not None
    assert other.put_up(ONE, most=5) is None
    assert other.put_up(TWO, most=5) is not None
    assert states(where) == [("RUNNING", False), ("FAIL", True), ("RUNNING", False)]
    assert set(mine.read().running) == {0, 2}


def test_no_more_trials_are_begun_than_the_task_shall_have(where: str) -> None:
    mine, other = board(where), board(where)
    assert mine.put_up(ONE, most=1) is not None
    assert other.put_up(TWO, most=1) is None
    assert len(Memory(where).runs()[0]) == 0
    assert mine.read().counted() == [0]


def test_what_is_withdrawn_counts_for_nothing(where: str) -> None:
    mine = board(where)
    slip = mine.put_up(ONE, most=5)
    assert slip is not None
    mine.withdraw(slip, "interrupted")
    view = board(where).read()
    assert view.counted() == []
    assert view.fresh == []
    assert Memory(where).runs()[0].trials == ()


def test_a_trial_whose_worker_died_on_this_machine_is_queued_again_at_once_and_only_once(where: str) -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from tests_board_helper import board, ONE\n"
        "print(board(sys.argv[1]).put_up(ONE, most=5))\n"
    )
    folder = Path(where.removeprefix("journal:")).parent
    (folder / "tests_board_helper.py").write_text(f"exec(open({str(Path(__file__))!r}).read())")
    subprocess.run([sys.executable, "-c", code, where, str(folder)], check=True, stdout=subprocess.DEVNULL)
    first, second = board(where), board(where)
    first.read()
    second.read()
    assert states(where) == [("FAIL", True), ("WAITING", False)]
    first.read()
    slip = first.take_queued(most=5)
    assert slip is not None
    assert slip.config == ONE
    second.read()
    assert second.take_queued(most=5) is None
    first.finish(slip, Outcome(0.1, 0.0))
    assert [trial.value for trial in Memory(where).runs()[0].trials] == [0.1]


def test_a_worker_elsewhere_is_dead_when_it_has_given_no_sign_for_a_while(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        elsewhere(patch)
        away = board(where)
        slip = away.put_up(ONE, most=5)
        assert slip is not None
    watcher = board(where, grace=0.2)
    assert set(watcher.read().running) == {0}
    time.sleep(0.15)
    away.beat(slip.id, {"machine": "far away", "pid": 1, "begun": "0", "count": 1})
    assert set(watcher.read().running) == {0}
    time.sleep(0.25)
    assert watcher.read().running == {}
    watcher.read()
    assert states(where) == [("FAIL", True), ("WAITING", False)]
    with pytest.warns(RecollectWarning, match="others took it over"):
        away.finish(slip, Outcome(0.5, 1.0))
    assert states(where) == [("FAIL", True), ("WAITING", False)]


def test_a_trial_that_is_lost_twice_has_failed(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        elsewhere(patch)
        assert board(where).put_up(ONE, most=5) is not None
    watcher = board(where, grace=0.0)
    for _ in range(2):
        watcher.read()
        time.sleep(0.01)
    watcher.read()
    with monkeypatch.context() as patch:
        elsewhere(patch, count=7)
        taker = board(where, grace=100.0)
        taker.read()
        assert taker.take_queued(most=5) is not None
    for _ in range(3):
        watcher.read()
        time.sleep(0.01)
    assert states(where) == [("FAIL", True), ("FAIL", False)]
    (trial,) = Memory(where).runs()[0].trials
    assert trial.notes == ("the worker that ran it stopped giving signs of life, twice",)


def test_a_queued_trial_gives_way_to_the_same_configuration_begun_meanwhile(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the death of a worker and the queueing of its trial somebody may suggest the configuration again."""
    with monkeypatch.context() as patch:
        elsewhere(patch)
        assert board(where).put_up(ONE, most=5) is not None
    buried, write = board(where, grace=0.0), boards.write
    hasty, slips = board(where), []

    def slowly(*given: Any) -> Any:
        if not slips:
            slips.append(None)  # put_up writes as well
            slips[0] = hasty.put_up(ONE, most=5)
        return write(*given)

    buried.read()
    time.sleep(0.01)
    monkeypatch.setattr(boards, "write", slowly)
    buried.read()
    assert slips[0] is not None
    buried.read()
    assert set(buried.view.queued) == {2}
    assert buried.take_queued(most=5) is None
    assert states(where) == [("FAIL", True), ("RUNNING", False), ("FAIL", True)]


def test_what_is_queued_counts_when_it_is_asked_whether_there_are_enough(where: str) -> None:
    mine = board(where)
    frozen = mine._frozen(ONE, TrialState.WAITING, user={}, system={})
    boards.write(mine._store, mine._entry.id, [frozen])
    mine.read()
    assert mine.put_up(TWO, most=1) is None
    assert mine.take_queued(most=1) is not None


def test_a_trial_that_somebody_enqueued_with_optuna_is_run(tmp_path: Path) -> None:
    where = str(tmp_path / "m.db")
    mine = board(where)
    study = optuna.load_study(study_name="p/t", storage=f"sqlite:///{where}")
    study.enqueue_trial({"a": 7.0, "k": "x"})
    study.enqueue_trial(TWO)
    mine.read()
    slip = mine.take_queued(most=5)
    assert slip is not None
    assert slip.config == TWO
    mine.finish(slip, Outcome(0.25, 1.0))
    assert study.best_params == TWO
    assert mine.take_queued(most=5) is None


def test_a_running_trial_of_optuna_itself_is_pending_and_never_declared_dead(tmp_path: Path) -> None:
    where = str(tmp_path / "m.db")
    mine = board(where, grace=0.0)
    trial = optuna.load_study(study_name="p/t", storage=f"sqlite:///{where}").ask()
    trial.suggest_float("a", 0.0, 1.0)
    trial.suggest_categorical("k", ["x", "y"])
    for _ in range(3):
        view = mine.read()
        time.sleep(0.01)
    assert set(view.running) == {0}
    assert view.awaited == set()


def test_a_trial_outside_the_space_is_left_out_with_a_warning(tmp_path: Path) -> None:
    where = str(tmp_path / "m.db")
    mine = board(where)
    study = optuna.load_study(study_name="p/t", storage=f"sqlite:///{where}")
    trial = study.ask()
    trial.suggest_float("a", 0.0, 9.0)
    study.tell(trial, 1.0)
    with pytest.warns(RecollectWarning, match="trial 0 of 'p/t' is left out: not of this space"):
        assert mine.read().fresh == []


def test_a_process_number_that_was_given_again_is_not_taken_for_the_dead_one() -> None:
    here = sign()
    assert not Watch(100.0).gone(1, here)
    assert Watch(100.0).gone(1, here | {"begun": "1"})
    assert begun(os.getpid()) == here["begun"]
    child = subprocess.Popen([sys.executable, "-c", "pass"])
    child.wait()
    assert begun(child.pid) is None


def test_signs_of_life_go_on_while_a_trial_runs(tmp_path: Path) -> None:
    where = str(tmp_path / "m.db")
    mine = board(where)
    slip = mine.put_up(ONE, most=5)
    assert slip is not None
    with Pulse(mine.beat, every=0.02) as pulse:
        pulse.running([slip.id])
        time.sleep(0.3)
    life = Memory(where).store.optuna.get_trial(slip.id).system_attrs[BEAT_KEY]
    assert life["count"] >= 3
    assert life["pid"] == os.getpid()
    assert Memory(where).store.optuna.get_trial(slip.id).state == TrialState.RUNNING
