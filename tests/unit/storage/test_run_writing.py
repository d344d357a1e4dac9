"""Many runs at once: checked before any is stored, stored in batches, each run whole or not at all."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import optuna
import pytest

from recollect import FAILED, InputError, Memory, RecollectWarning, Run, Trial, write_runs
from recollect.storage import run_writing, transitions
from recollect.storage.studies import INCOMPLETE_KEY

SPACE: dict[str, Any] = {"lr": (0.0, 1.0), "opt": ["adam", "sgd"]}


def runs(count: int) -> list[Run]:
    trials = [
        Trial({"lr": 0.125, "opt": "adam"}, 0.5, seconds=1.0),
        Trial({"lr": 0.25, "opt": "sgd"}, None, FAILED, 2.0, ("out of memory",)),
    ]
    return [Run(f"t{k}", trials=trials[: 1 + k % 2], space=SPACE if k % 3 else None) for k in range(count)]


@pytest.fixture(params=["file", "journal"])
def memory(request: pytest.FixtureRequest, tmp_path: Path) -> Memory:
    return Memory(tmp_path / "m.db" if request.param == "file" else f"journal:{tmp_path / 'm.log'}")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_runs(runs(7), tmp_path / "runs.jsonl")
    return tmp_path / "runs.jsonl"


def test_batches_store_the_same_as_one_run_at_a_time(
    memory: Memory, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writing, "TRIALS_PER_BATCH", 3)
    reports: list[tuple[int, int]] = []
    imported = memory.import_(source, "p", report=lambda *done: reports.append(done))
    whole = memory.store.engine is not None  # a journal has no transactions, so each run is stored by itself
    assert [done for done, _ in reports] == ([2, 4, 6, 7] if whole else [1, 2, 3, 4, 5, 6, 7])
    assert {total for _, total in reports} == {7}
    single = Memory(tmp_path / "single.db")
    for run in runs(7):
        single.add(run, "p")
    assert [run.trials for run in memory.runs("p")] == [run.trials for run in single.runs("p")]
    assert [run.task for run in imported] == [f"t{k}" for k in range(7)]
    for name in ("p/t0", "p/t1"):
        pair = [optuna.load_study(study_name=name, storage=place.store.optuna) for place in (memory, single)]
        assert [trial.params for trial in pair[0].trials] == [trial.params for trial in pair[1].trials]
        assert [trial.number for trial in pair[0].trials] == [trial.number for trial in pair[1].trials]


def test_one_run_that_cannot_be_stored_stores_none(memory: Memory) -> None:
    good, bad = runs(3), Run("bad", [{"x": [1, 2]}], [1.0])
    with pytest.raises(InputError, match="'bad'"):
        run_writing.store_runs(memory.store, [run_writing.StoredRun("p", run) for run in (*good, bad)])
    assert memory.store.missing


def test_an_interrupted_import_leaves_whole_runs_and_is_continued(
    memory: Memory, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_writing, "TRIALS_PER_BATCH", 3)

    def interrupt(done: int, _total: int) -> None:
        if done >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        memory.import_(source, "p", report=interrupt)
    assert [len(run) for run in memory.runs("p")] == [1, 2, 1, 2]
    with pytest.raises(InputError, match="has the task 't0' already; nothing was imported"):
        memory.import_(source, "p")
    with pytest.warns(RecollectWarning, match="skipped 4 runs whose tasks exist"):
        rest = memory.import_(source, "p", skip_existing=True)
    assert [run.task for run in rest] == ["t4", "t5", "t6"]
    assert [run.trials for run in memory.runs("p")] == [run.trials for run in runs(7)]


@pytest.mark.parametrize("after", [0, 1, 2, 3])
def test_half_a_run_in_a_journal_is_left_out_and_written_again(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, after: int
) -> None:
    """A journal has no transactions: the process may be killed between any two of its entries."""
    memory = Memory(f"journal:{tmp_path / 'm.log'}")
    storage = type(memory.store.optuna)
    original, steps = storage.create_new_trial, []

    def killed(*given: Any) -> Any:
        if len(steps) == after:
            raise KeyboardInterrupt
        steps.append(given)
        return original(*given)

    with monkeypatch.context() as patch:
        patch.setattr(storage, "create_new_trial", killed)
        with pytest.raises(KeyboardInterrupt):
            memory.import_(source, "p")
    assert [len(run) for run in memory.runs()] == [1, 2][: (after + 1) // 2]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecollectWarning)
        memory.import_(source, "p", skip_existing=True)
    assert [run.trials for run in memory.runs("p")] == [run.trials for run in runs(7)]


def test_a_run_that_is_being_written_cannot_be_tuned(tmp_path: Path) -> None:
    memory = Memory(f"journal:{tmp_path / 'm.log'}")
    memory.add(runs(2)[1], "p")
    study = memory.store.optuna.get_study_id_from_name("p/t1")
    memory.store.optuna.set_study_user_attr(study, INCOMPLETE_KEY, True)
    assert memory.tasks() == []
    with pytest.raises(OSError, match="not written to its end"):
        memory.add(runs(2)[1], "p")


def test_what_another_process_stores_at_the_same_moment_is_skipped(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory, other = Memory(tmp_path / "m.db"), Memory(tmp_path / "m.db")
    original = transitions.create_studies
    others = runs(7)[2:3]

    def create(*given: Any) -> None:
        while others:
            other.add(others.pop(), "p")
        original(*given)

    monkeypatch.setattr(run_writing, "create_studies", create)
    with pytest.warns(RecollectWarning, match="skipped 1 run"):
        imported = memory.import_(source, "p", skip_existing=True)
    assert len(imported) == 6
    assert sorted(memory.tasks("p")) == [f"t{k}" for k in range(7)]


@pytest.mark.parametrize("skip_existing", [False, True])
def test_what_was_stored_before_another_process_interfered_counts_as_imported(
    memory: Memory, source: Path, monkeypatch: pytest.MonkeyPatch, skip_existing: bool
) -> None:
    monkeypatch.setattr(run_writing, "TRIALS_PER_BATCH", 3)
    original, others, reports = transitions.create_studies, runs(7)[3:4], list[int]()

    def create(store: Any, studies: Any) -> None:
        if others and any(study.name == "p/t3" for study in studies):
            memory.add(others.pop(), "p")
        original(store, studies)

    monkeypatch.setattr(run_writing, "create_studies", create)
    if skip_existing:
        with pytest.warns(RecollectWarning, match="skipped 1 run whose tasks exist: 't3'"):
            imported = memory.import_(source, "p", skip_existing=True, report=lambda done, _: reports.append(done))
        assert [run.task for run in imported] == ["t0", "t1", "t2", "t4", "t5", "t6"]
        assert reports == sorted(set(reports))
        assert reports[-1] == 6
    else:
        with pytest.raises(InputError, match=r"has the task 't3' already; [23] runs"):
            memory.import_(source, "p")
        assert {"t0", "t1", "t3"} <= set(memory.tasks("p")) <= {"t0", "t1", "t2", "t3"}


def test_integers_beyond_the_exact_floats_are_kept_and_numbers_are_no_booleans(memory: Memory) -> None:
    configs = [{"seed": 2**60 + 1}, {"seed": 2**60 + 3}]
    memory.add(Run("large", configs, [1.0, 2.0]))
    assert memory.run("large").configs == configs
    with pytest.raises(InputError, match="run 'mixed', 'flag': expected numbers or booleans, got both"):
        memory.add(Run("mixed", [{"flag": 1}, {"flag": True}], [1.0, 2.0]))
