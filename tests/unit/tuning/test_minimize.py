"""`minimize` and `maximize`: they tune, remember, resume, stop and survive failures."""

from __future__ import annotations

import inspect
import itertools
import math
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from recollect import FAILED, FailedTrialWarning, InputError, InputTypeError, Optimizer, RecollectWarning, Run
from recollect.errors import RecollectError, SpaceError, StorageError
from recollect.space.serialization import to_json
from recollect.space.space import compile_space
from recollect.storage.importers.detection import read_runs
from recollect.storage.memory import Memory
from recollect.storage.sql_read import read_studies
from recollect.storage.studies import SETTINGS_KEY, VOID_KEY
from recollect.tuning import minimize as minimize_module
from recollect.tuning import worker as worker_module
from recollect.tuning.minimize import TuningSettings, maximize, minimize, tune_with, worker_count
from recollect.tuning.objective import InProcessEvaluator
from recollect.tuning.trial_queue import TrialQueue

SPACE: dict[str, Any] = {"a": (0.0, 1.0), "b": (0.0, 1.0)}


def bowl(config: dict[str, Any]) -> float:
    return float((config["a"] - 0.3) ** 2 + (config["b"] - 0.7) ** 2)


def quietly(objective: Any, space: Any = SPACE, **given: Any) -> Any:
    return minimize(objective, space, **({"progress": False, "method": "random"} | given))


def test_it_suggests_what_the_optimizer_suggests_and_returns_the_best() -> None:
    opt = Optimizer(SPACE, method="gp", horizon=14, seed=3)
    for _ in range(14):
        config = opt.ask()
        opt.tell(config, bowl(config))
    result = quietly(bowl, trials=14, method="gp", seed=3)
    assert result.run.configs == opt.run.configs
    assert opt.best is not None
    assert result.best_config == opt.best.config
    assert result.best_value == opt.best.value
    assert result.best == result.run.best
    assert result.stopped == "14 of 14 trials finished"
    assert f"best {result.best_value:.6g}" in str(result)
    assert result.explain().trials == 14


def test_maximizing_is_minimizing_the_negative() -> None:
    low = quietly(bowl, trials=13, method="gp")
    high = maximize(lambda config: -bowl(config), SPACE, trials=13, method="gp", progress=False)
    assert high.run.direction == "maximize"
    assert high.run.configs == low.run.configs
    assert high.best_value == -low.best_value
    assert [trial.value for trial in high.run.trials] == [-value for value in low.run.values]


def test_maximize_takes_every_argument_of_minimize_but_the_direction_and_hands_it_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signatures = [inspect.signature(function).parameters for function in (minimize, maximize)]
    assert [parameter for name, parameter in signatures[0].items() if name != "direction"] == [*signatures[1].values()]
    calls: list[Any] = []
    monkeypatch.setattr(minimize_module, "minimize", lambda *args, **settings: calls.append((args, settings)))
    values: dict[str, Any] = {name: object() for name in signatures[1]}
    maximize(**values)
    objective, space = values.pop("objective"), values.pop("space")
    assert calls == [((objective, space), {**values, "direction": "maximize"})]


def test_maximize_learns_from_a_memory_and_from_past_runs_of_the_same_direction(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"memory": tmp_path / "m.db", "problem": "p", "progress": False}
    maximize(lambda config: -bowl(config), SPACE, trials=8, task="one", method="random", **settings)
    given = Run("given", [{"a": a, "b": 0.7} for a in (0.1, 0.3, 0.9)], [-0.04, 0.0, -0.36], direction="maximize")
    result = maximize(lambda config: -bowl(config), SPACE, trials=3, task="two", past=[given], **settings)
    assert [run.task for run in result.past] == ["given", "one"]
    assert result.best_value == max(result.run.values)
    with pytest.raises(InputError, match="maximize"):
        minimize(bowl, SPACE, trials=3, past=[given], progress=False)
    reached = maximize(lambda config: -bowl(config), SPACE, trials=99, target=-0.2, method="random", progress=False)
    assert reached.best_value is not None
    assert -0.2 <= reached.best_value <= 0.0
    assert len(reached.run) < 99


def test_a_run_learns_from_earlier_runs_of_the_same_problem_only(tmp_path: Path) -> None:
    memory = tmp_path / "m.db"
    for task in ("one", "two"):
        quietly(bowl, trials=12, memory=memory, problem="p", task=task, seed=ord(task[0]))
    quietly(lambda c: -bowl(c), trials=12, memory=memory, problem="other", task="three")
    result = quietly(bowl, trials=3, memory=memory, problem="p", task="four", method="rgpe-taf")
    assert [entry.task for entry in result.explain().past] == ["one", "two"]
    assert result.best_value < 0.05
    given = Run("mine", [{"a": i / 5, "b": i / 5} for i in range(6)], [float(i) for i in range(6)])
    result = quietly(bowl, trials=2, memory=memory, problem="p", task="five", method="rgpe-taf", past=[given])
    assert [entry.task for entry in result.explain().past] == ["mine", "one", "two", "four"]


def test_an_unfinished_task_is_resumed_and_is_not_its_own_past(tmp_path: Path) -> None:
    whole = quietly(bowl, trials=20, method="gp+paper")
    first = quietly(bowl, trials=8, method="gp+paper", memory=tmp_path / "m.db", problem="p", task="t")
    calls = []

    def counted(config: dict[str, Any]) -> float:
        calls.append(config)
        return bowl(config)

    second = quietly(counted, trials=20, method="gp+paper", memory=tmp_path / "m.db", problem="p", task="t")
    assert len(calls) == 12
    assert second.run.configs[:8] == first.run.configs
    assert second.run.configs[:10] == whole.run.configs[:10]
    assert second.explain().past == ()
    assert len(quietly(counted, trials=20, memory=tmp_path / "m.db", problem="p", task="t").run) == 20
    assert len(calls) == 12


def test_every_trial_is_in_the_memory_as_soon_as_it_is_made(tmp_path: Path) -> None:
    seen = []

    def objective(config: dict[str, Any]) -> float:
        seen.append(len(Memory(tmp_path / "m.db").run("t", "p")))
        return bowl(config)

    quietly(objective, trials=4, memory=tmp_path / "m.db", problem="p", task="t")
    assert seen == [0, 1, 2, 3]


def test_it_stops_at_a_target_and_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    result = quietly(bowl, trials=500, target=0.05)
    assert result.best_value <= 0.05
    assert len(result.run) < 500
    assert result.stopped == "target 0.05 reached"
    high = quietly(lambda c: -bowl(c), trials=500, target=-0.05, direction="maximize")
    assert high.run.configs == result.run.configs
    seconds = itertools.count()  # every look at the clock is a second later
    monkeypatch.setattr(worker_module, "time", SimpleNamespace(monotonic=lambda: next(seconds), sleep=time.sleep))
    result = quietly(bowl, trials=10_000, seconds=20)
    assert len(result.run) == 19
    assert result.stopped == "time budget of 20 s spent"


def test_it_ends_when_a_finite_space_is_used_up() -> None:
    result = quietly(lambda c: c["n"], {"n": (1, 4)}, trials=50)
    assert sorted(config["n"] for config in result.run.configs) == [1, 2, 3, 4]
    assert result.stopped == "all configurations have been tried"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (math.nan, "got nan"),
        (math.inf, "got inf"),
        ("0.5", r"got '0.5' \(str\)"),
        (None, r"got None \(NoneType\)"),
        (True, r"got True \(bool\)"),
        (FAILED, "reported a failure"),
    ],
)
def test_what_is_no_number_is_a_failure_with_a_reason(answer: Any, reason: str) -> None:
    with pytest.warns(FailedTrialWarning, match=reason):
        result = quietly(lambda c: answer if c["n"] == 2 else c["n"], {"n": (1, 3)}, trials=3)
    assert len(result.run) == 3
    assert len(result.run.succeeded) == 2
    assert result.best_value == 1


def test_an_objective_that_raises_fails_its_trial_and_the_run_continues(tmp_path: Path) -> None:
    def objective(config: dict[str, Any]) -> float:
        if config["n"] == 2:
            raise ValueError("n must not be 2")
        if config["n"] == 3:
            sys.exit("enough")
        return float(config["n"])

    with (
        pytest.warns(FailedTrialWarning, match="ValueError: n must not be 2"),
        pytest.warns(FailedTrialWarning, match="SystemExit: enough"),
    ):
        result = quietly(objective, {"n": (1, 9)}, trials=9, memory=tmp_path / "m.db", problem="p", task="t")
    failed = {trial.config["n"]: trial for trial in Memory(tmp_path / "m.db").run("t", "p").trials if not trial.ok}
    assert set(failed) == {2, 3}
    assert failed[2].notes[0] == "ValueError: n must not be 2"
    assert "raise ValueError" in failed[2].notes[1]
    assert failed[3].notes[0] == "SystemExit: enough"
    assert sorted(config["n"] for config in result.run.configs) == list(range(1, 10))


@pytest.mark.filterwarnings("ignore::recollect.FailedTrialWarning")
def test_an_exception_that_cannot_be_shown_fails_its_trial_alone() -> None:
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    def objective(config: dict[str, Any]) -> float:
        if config["n"] == 1:
            raise Unspeakable
        return float(config["n"])

    (failed,) = quietly(objective, {"n": (1, 4)}, trials=4).run.failed
    assert failed.notes[0] == "Unspeakable"


def test_a_warning_of_a_failed_trial_points_to_the_call() -> None:
    with pytest.warns(FailedTrialWarning, match="trial 0 failed") as caught:
        result = minimize(lambda _config: math.nan, SPACE, trials=1, progress=False)
    assert [warning.filename for warning in caught] == [__file__]
    assert str(result).splitlines()[0].endswith(": 1 trial, 1 failed; 1 of 1 trial finished")


def test_a_task_that_has_more_trials_than_asked_for_says_so(tmp_path: Path) -> None:
    given = {"memory": tmp_path / "memory.db", "task": "t"}
    quietly(bowl, SPACE, trials=4, **given)
    result = quietly(bowl, SPACE, trials=2, **given)
    assert str(result).splitlines()[0].startswith("t: 4 trials, 0 failed; ")
    assert "more than the 2 requested" in result.stopped
    assert quietly(bowl, SPACE, trials=4, **given).stopped == "4 of 4 trials finished"


def test_past_runs_of_another_space_are_left_out_as_from_a_memory() -> None:
    strange = Run("strange", [{"z": float(z)} for z in range(4)], range(4))
    with pytest.warns(
        RecollectWarning, match="not used as past runs because they have no hyperparameter in common: 'strange'"
    ):
        result = quietly(bowl, SPACE, trials=3, past=[strange])
    assert result.past == ()
    assert result.run.configs == quietly(bowl, SPACE, trials=3).run.configs


def test_hyperparameters_of_past_runs_are_renamed_wherever_they_come_from(tmp_path: Path) -> None:
    old = {name: f"old {name}" for name in SPACE}
    configs = quietly(bowl, SPACE, trials=6, method="random").run.configs
    past = [Run(task, [{old[k]: v for k, v in c.items()} for c in configs], map(bowl, configs)) for task in ("a", "b")]
    Memory(tmp_path / "m.db").add(past[0], "p")
    rename = {new: name for name, new in old.items()}
    given = {"memory": tmp_path / "m.db", "problem": "p", "past": past[1:], "task": "t", "trials": 1}
    assert [run.task for run in quietly(bowl, SPACE, rename=rename, **given).past] == ["b", "a"]


def test_a_new_name_that_the_space_does_not_have_is_refused_before_anything_is_stored(tmp_path: Path) -> None:
    Memory(tmp_path / "m.db").add(Run("old", [{"old a": 0.1, "b": 1.0}] * 2, [1.0, 2.0]), "p")
    with pytest.raises(InputError, match=f"'aa'.*{' and '.join(SPACE)}"):
        quietly(bowl, SPACE, memory=tmp_path / "m.db", problem="p", task="new", rename={"old a": "aa"})
    assert Memory(tmp_path / "m.db").tasks("p") == ["old"]


def test_tags_and_a_note_are_stored_with_the_run_and_added_to_those_it_has(tmp_path: Path) -> None:
    given: dict[str, Any] = {"memory": tmp_path / "m.db", "problem": "p", "task": "t"}
    for trials, tags, note in ((2, ("gpu", "old data"), "first"), (3, "new", ""), (4, "gpu", "second")):
        quietly(bowl, trials=trials, tags=tags, note=note, **given)
        (stored,) = Memory(tmp_path / "m.db").stored_runs("p", tags="gpu")
        assert stored.note == (note or "first")
    assert stored.tags == ("gpu", "old data", "new")


def test_a_range_of_integers_where_past_runs_have_floats_is_warned_about_once(tmp_path: Path) -> None:
    given: dict[str, Any] = {"memory": tmp_path / "m.db", "problem": "p", "trials": 3}
    quietly(lambda config: config["C"], {"C": (0.5, 9.5)}, task="old", **given)
    for space in ({"C": (1, 9)}, compile_space({"C": (1, 9)})):
        with pytest.warns(RecollectWarning) as caught:
            quietly(lambda config: config["C"], space, task="new", **given)
        assert len([warning for warning in caught if "range of integers" in str(warning.message)]) == 1


def test_nothing_succeeds_is_a_result_too() -> None:
    with pytest.warns(FailedTrialWarning):
        result = quietly(lambda _c: math.nan, trials=12, method="gp")
    assert result.best_config is None
    assert result.best_value is None
    assert "no trial succeeded" in str(result)


def test_an_objective_that_cannot_be_sent_is_refused_before_anything_is_run(tmp_path: Path) -> None:
    import threading

    lock = threading.Lock()
    with pytest.raises(InputTypeError, match="cannot be sent to another process"):
        quietly(lambda _c: bool(lock) and 1.0, workers=2, memory=tmp_path / "m.db")
    assert not (tmp_path / "m.db").exists()


def test_a_task_of_the_same_name_in_another_space_is_refused(tmp_path: Path) -> None:
    given = {"memory": tmp_path / "m.db", "problem": "p", "task": "t", "trials": 2}
    quietly(bowl, **given)
    for space, said in (
        ({"a": (0.0, 1.0)}, "'b' was removed"),
        ({**SPACE, "c": (0, 1)}, "'c' is new"),
        ({**SPACE, "a": (0.0, 2.0)}, "'a' was .*1.0.* is .*2.0"),
    ):
        with pytest.raises(InputError, match=f"has another search space .*{said}.*give the task another name"):
            quietly(bowl, space, **given)
    with pytest.raises(InputError, match="to minimize, not to maximize"):
        quietly(bowl, direction="maximize", **given)


def test_a_task_whose_choices_had_no_order_yet_is_resumed_with_the_order(tmp_path: Path) -> None:
    given: dict[str, Any] = {"memory": tmp_path / "m.db", "problem": "p", "task": "t"}
    unordered = {"n": {"choices": [16, 32, 64, 128], "ordered": False}, "a": (0.0, 1.0)}
    ordered = {**unordered, "n": [16, 32, 64, 128]}
    first = quietly(lambda config: config["n"] + config["a"], unordered, trials=3, **given)
    second = quietly(lambda config: config["n"] + config["a"], ordered, trials=6, **given)
    assert second.run.configs[:3] == first.run.configs
    assert len(second.run) == 6
    stored = Memory(tmp_path / "m.db").run("t", "p").space
    assert stored is not None
    assert to_json(stored) == to_json(second.run.space)
    for other in ({**ordered, "n": [16, 32, 64, 256]}, {**ordered, "a": (0.0, 2.0)}, unordered):
        with pytest.raises(InputError, match="another search space"):
            quietly(lambda _config: 0.0, other, trials=7, **given)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"trials": 0}, InputError, "trials"),
        ({"trials": 2.5}, InputTypeError, "trials"),
        ({"workers": 0}, InputError, "workers"),
        ({"seconds": -1}, InputError, "seconds"),
        ({"seconds": "1"}, InputTypeError, "seconds"),
        ({"target": math.nan}, InputError, "target"),
        ({"trial_seconds": 0}, InputError, "trial_seconds"),
        ({"direction": "up"}, InputError, "direction"),
        ({"method": "nonsense"}, InputError, "nonsense"),
        ({"space": {}}, SpaceError, "the search space is empty"),
        ({"space": None}, InputTypeError, "expected a dict, a list of dicts, .* or a Space, got None"),
        ({"space": {"x": (0, 10**400)}}, SpaceError, "'x': integers must lie within"),
        ({"task": ""}, InputError, "task"),
        ({"tags": "a,b"}, InputError, "tags"),
        ({"tags": [1]}, InputTypeError, "tags"),
        ({"tags": None}, InputTypeError, "tags"),
        ({"note": 1}, InputTypeError, "note"),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_run(given: Any, kind: type[Exception], said: str) -> None:
    def never(_config: dict[str, Any]) -> float:
        raise AssertionError("it was run")

    with pytest.raises(kind, match=said):
        minimize(never, **({"space": SPACE, "progress": False} | given))
    with pytest.raises(InputTypeError, match="expected a function"):
        minimize("not a function", SPACE)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [{"trials": 0}, {"first": [{"c": 1}]}, {"memory": "/nowhere/m.db"}], ids=str)
def test_the_evaluator_is_closed_also_if_nothing_can_be_tuned(given: dict[str, Any]) -> None:
    closed: list[int] = []
    evaluator = InProcessEvaluator(bowl)
    evaluator.close = lambda: closed.append(1)  # type: ignore[method-assign]
    with pytest.raises(RecollectError):
        tune_with(evaluator, SPACE, TuningSettings(**given))
    assert closed == [1]


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    settings = {"trials": np.int64(3), "seed": np.int64(7), "seconds": np.int32(60), "target": np.float32(-1)}
    limits = {"patience": np.int64(9), "min_improvement": np.float32(0), "memory": tmp_path / "m.db", "task": "t"}
    assert quietly(bowl, **settings, **limits).run.configs == quietly(bowl, trials=3, seed=7).run.configs


def test_a_run_that_ends_with_an_exception_gives_up_its_trials(tmp_path: Path) -> None:
    memory = Memory(tmp_path / "m.db")
    with pytest.raises(FailedTrialWarning):  # warnings are errors in tests
        minimize(lambda _: FAILED, SPACE, method="random", memory=memory, task="t", progress=False)
    (trial,) = memory.store.optuna.get_all_trials(1)
    assert trial.state.name == "FAIL"
    assert VOID_KEY in trial.user_attrs


def test_when_the_storage_fails_for_a_moment_nothing_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "RETRY_SECONDS", (0.01, 0.01, 0.01))
    faults = iter([False, False, True, True] + [False] * 100)
    finish = TrialQueue.finish_all

    def sometimes(self: TrialQueue, *given: Any) -> None:
        if next(faults):
            raise StorageError("the line is down")
        finish(self, *given)

    monkeypatch.setattr(TrialQueue, "finish_all", sometimes)
    result = quietly(bowl, trials=6, memory=tmp_path / "m.db", problem="p", task="t")
    assert (len(result.run), len(list(faults))) == (6, 96)
    assert Memory(tmp_path / "m.db").run("t", "p").values == result.run.values


def test_when_the_storage_is_lost_what_is_known_is_saved_to_a_file_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_module, "RETRY_SECONDS", (0.01, 0.01))
    monkeypatch.chdir(tmp_path)
    made = []

    def objective(config: dict[str, Any]) -> float:
        made.append(config)
        if len(made) == 4:
            (tmp_path / "m.db").write_bytes(b"gone " * 5000)
        return bowl(config)

    with pytest.raises(StorageError, match=r"4 trials .* saved in .*\.jsonl") as caught:
        quietly(objective, trials=9, memory=tmp_path / "m.db", problem="p", task="t")
    (run,) = read_runs(str(caught.value).rsplit(" ", 1)[1])
    assert run.configs == made
    assert run.values == [bowl(config) for config in made]


def test_a_progress_bar_is_shown_at_a_terminal_only(capfd: pytest.CaptureFixture[str]) -> None:
    minimize(bowl, SPACE, trials=3, method="random")
    out, err = capfd.readouterr()
    assert (out, len(err.splitlines())) == ("", 3)


def test_why_trials_were_suggested_and_how_it_was_tuned_is_kept(tmp_path: Path) -> None:
    memory = tmp_path / "m.db"
    quietly(bowl, trials=12, memory=memory, problem="p", task="one")
    result = quietly(bowl, trials=6, memory=memory, problem="p", task="two", method="rgpe-taf", seed=5)
    assert [run.task for run in result.past] == ["one"]
    assert result.settings["method"] == "rgpe-taf"
    assert (result.settings["trials"], result.settings["seed"]) == (6, 5)
    assert result.settings["versions"]["recollect"]
    assert len(result.influences) == 6
    assert "portfolio" in result.influences[0]["reason"]
    last = result.influences[-1]
    assert last["target"] + sum(last["past"].values()) == pytest.approx(1.0, abs=0.02)
    again = quietly(bowl, trials=6, memory=memory, problem="p", task="two", method="rgpe-taf", seed=5)
    assert again.influences == result.influences
    row = next(row for row in read_studies(Memory(memory).store) if row.name == "p/two")
    assert row.user_attrs[SETTINGS_KEY] == result.settings


def test_the_repr_of_a_result_is_one_short_line() -> None:
    result = minimize(lambda config: config["a"], {"a": (0.0, 1.0)}, trials=3, task="t", method="random")
    assert repr(result) == f"<Result of 'default', 't': 3 trials, best value {result.best_value!r}>"
    with pytest.warns(FailedTrialWarning):
        failed = quietly(lambda _: FAILED, trials=2, task="f")
    assert repr(failed) == "<Result of 'default', 'f': 2 trials, none succeeded>"


@pytest.mark.parametrize(("workers", "count"), [(1, 1), (5, 5), (-1, 3)])
def test_minus_one_worker_stands_for_one_per_core(workers: int, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minimize_module, "available_cores", lambda: 3)
    assert worker_count(workers) == count


def test_runs_without_a_task_never_share_one(tmp_path: Path) -> None:
    results = [quietly(lambda config, k=k: config["a"] + k, memory=tmp_path / "m.db", trials=2) for k in range(3)]
    assert [min(result.run.y) >= k for k, result in enumerate(results)] == [True] * 3
    assert len(Memory(tmp_path / "m.db").tasks()) == 3


def test_an_infinite_time_limit_is_none() -> None:
    assert len(quietly(bowl, trials=2, trial_seconds=math.inf).run.succeeded) == 2


def test_a_task_that_was_added_without_a_space_gets_that_of_its_first_run(tmp_path: Path) -> None:
    memory, space = Memory(tmp_path / "m.db"), {"a": (0.0, 1.0)}
    given: dict[str, Any] = {"memory": memory, "task": "t", "trials": 4}
    memory.add(Run("t", [{"a": 0.1}, {"a": 0.2}], [0.1, 0.2]))
    quietly(lambda config: config["a"], space, **given)
    assert memory.run("t").space == compile_space(space)
    with pytest.raises(InputError, match="has another search space"):
        quietly(lambda config: config["a"], {"a": (0.15, 50.0)}, **given)
