"""Experiments: all runs of a plan are executed once, whatever interrupts them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer

from recollect import Optimizer
from recollect.bench import load
from recollect.bench.experiment import executors
from recollect.bench.experiment import experiment_run as run_module
from recollect.bench.experiment.executors import LocalExecutor, RunFunction, RunOutcome
from recollect.bench.experiment.experiment_run import CompletedRun, FailedRun, RunKey, RunSpec, SourceRun, try_run
from recollect.bench.experiment.plan import BenchmarkSpec, Plan, Reduction, SourceSettings
from recollect.bench.experiment.results import read_results
from recollect.bench.experiment.runner import draw_sources, exclusive_access, run_experiment
from recollect.bench.problems.forest_benchmark import TuneSettings
from recollect.cli.bench import run as run_command
from recollect.errors import InputError, StorageError

SPEC = BenchmarkSpec("forrester", tasks=3)
PLAN = Plan(("random", "gp", "smfo"), (SPEC,), SourceSettings("gp", 6, 2), repetitions=2, horizon=6)


def results_in(folder: Path) -> dict[RunKey, CompletedRun]:
    return {run.key: run for run in read_results(folder / "runs.csv")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[RunKey, CompletedRun]:
    folder = tmp_path_factory.mktemp("whole")
    outcome = run_experiment(PLAN, folder, executor=LocalExecutor())
    assert (outcome.runs, outcome.new, outcome.failed) == (18, 18, ())
    return results_in(folder)


def equal(a: dict[RunKey, CompletedRun], b: dict[RunKey, CompletedRun]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key].values, b[key].values) for key in a)


def test_every_run_of_the_plan_is_executed(whole: dict[RunKey, CompletedRun]) -> None:
    tasks = load("forrester").tasks
    chosen = (tasks[0], tasks[(len(tasks) - 1 + 1) // 2], tasks[-1])
    assert set(whole) == {RunKey("forrester", m, t, r) for m in PLAN.methods for t in chosen for r in (0, 1)}
    assert {len(run.values) for key, run in whole.items() if key.method != "random"} == {6}
    assert {len(run.values) for key, run in whole.items() if key.method == "random"} == {60}


def test_a_run_is_what_the_optimizer_does_with_its_seed(whole: dict[RunKey, CompletedRun]) -> None:
    benchmark = load("forrester")
    for key in (key for key in whole if key.method == "gp"):
        task, run = benchmark.task(key.task), whole[key]
        assert run.seed == 1000 * key.repetition + sorted(benchmark.tasks).index(key.task)
        optimizer = Optimizer(benchmark.space, (), "gp", horizon=6, seed=run.seed)
        for _ in range(6):
            config = optimizer.ask()
            optimizer.tell(config, task.evaluate(config))
        np.testing.assert_array_equal(run.values, optimizer.run.y)
        assert (run.best, run.worst) == (task.best, task.worst)


def test_seeds_differ_between_tasks_and_repetitions_but_not_between_methods(whole: dict[RunKey, CompletedRun]) -> None:
    seeds = {key: run.seed for key, run in whole.items()}
    assert len(set(seeds.values())) == 6
    assert all(seeds[key] == seeds[key._replace(method="gp")] for key in seeds)


def test_the_initial_design_depends_on_seed_and_task_not_on_the_method(
    tmp_path: Path, whole: dict[RunKey, CompletedRun]
) -> None:
    run_experiment(replace(PLAN, methods=("gcp", "gp+paper")), tmp_path, executor=LocalExecutor())
    results = results_in(tmp_path)
    assert {key.method for key in results} == {"gcp", "gp+paper"}
    for key, run in results.items():
        np.testing.assert_array_equal(run.values, results[key._replace(method="gcp")].values)  # ten points of a design


class Stopping:
    """An executor that is interrupted after some answers, as by Ctrl-C."""

    def __init__(self, after: int) -> None:
        self.after = after

    def execute(self, function: RunFunction, specs: Sequence[RunSpec]) -> Iterator[RunOutcome]:
        for spec in specs:
            if self.after == 0:
                raise KeyboardInterrupt
            self.after -= 1
            yield function(spec)


def test_runs_completed_before_an_interruption_are_not_executed_again(
    tmp_path: Path, whole: dict[RunKey, CompletedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    for after in (4, 3, 5):  # within the past runs, then within the others
        with pytest.raises(KeyboardInterrupt):
            run_experiment(PLAN, tmp_path, executor=Stopping(after))
    with (tmp_path / "runs.csv").open("a") as file:
        file.write("1,forrester,smfo,cut off")
    counted: Counter[RunKey] = Counter()
    monkeypatch.setattr(executors, "try_run", lambda spec: counted.update([spec.key]) or try_run(spec))
    outcome = run_experiment(PLAN, tmp_path, executor=LocalExecutor())
    assert outcome.runs == 18
    assert 0 < sum(counted.values()) == 18 - 12  # six past runs, which are those of gp, and six others were there
    assert equal(results_in(tmp_path), whole)
    again = run_experiment(PLAN, tmp_path, executor=LocalExecutor())
    assert (again.runs, again.new) == (18, 0)


def test_a_plan_may_be_extended_but_not_changed(tmp_path: Path, whole: dict[RunKey, CompletedRun]) -> None:
    run_experiment(replace(PLAN, methods=("gp",), repetitions=1), tmp_path, executor=LocalExecutor())
    assert run_experiment(PLAN, tmp_path, executor=LocalExecutor()).runs == 18
    assert equal(results_in(tmp_path), whole)
    with pytest.raises(InputError, match=r"horizon = 6, .* 7; .*another folder"):
        run_experiment(replace(PLAN, horizon=7), tmp_path, executor=LocalExecutor())
    with pytest.raises(InputError, match="with past = "):
        run_experiment(replace(PLAN, past=SourceSettings("random", 6, 2)), tmp_path, executor=LocalExecutor())


def test_runs_with_other_past_runs_are_not_mixed(tmp_path: Path) -> None:
    plan = replace(PLAN, methods=("smfo",), repetitions=1, less=(Reduction(("smfo",), past=1),))
    run_experiment(plan, tmp_path, executor=LocalExecutor())
    for change, message in (
        ({"benchmarks": (replace(SPEC, tasks=4),)}, r"tasks on forrester = \['0', .*\], .* \(4\);"),
        ({"less": ()}, r"past runs of smfo on forrester = 1, .* 'all'"),
    ):
        with pytest.raises(InputError, match=message):
            run_experiment(replace(plan, **change), tmp_path, executor=LocalExecutor())
    more = replace(plan, methods=("smfo", "gp"), benchmarks=(SPEC, BenchmarkSpec("branin", tasks=2)), repetitions=2)
    assert run_experiment(more, tmp_path, executor=LocalExecutor()).runs == 2 * 2 * (3 + 2)


def test_a_table_that_has_changed_is_another_benchmark(tmp_path: Path) -> None:
    table, lines = tmp_path / "t.csv", ["task,x,error", *(f"{task},{x},{x * x}" for task in "ab" for x in range(9))]
    table.write_text("\n".join(lines) + "\n")
    plan = Plan(("random",), (BenchmarkSpec("t", str(table)),), SourceSettings("gp", 6, 1), horizon=6)
    run_experiment(plan, tmp_path / "study", executor=LocalExecutor())
    run_experiment(plan, tmp_path / "study", executor=LocalExecutor())
    table.write_text("\n".join(lines).replace("b,4,16", "b,4,17") + "\n")
    with pytest.raises(InputError, match=r"study holds runs with another table on t, whose contents have changed"):
        run_experiment(plan, tmp_path / "study", executor=LocalExecutor())


def test_only_forests_of_the_plans_tasks_are_built_with_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("recollect.bench.problems.tabular.CSV_SETTINGS", TuneSettings(1, 2, 5, 5))
    points = np.linspace(0.0, 1.0, 30)
    rows = [f"{task},{x:.3f},{(x - task / 4) ** 2:.4f}\n" for task in range(4) for x in points]
    (tmp_path / "mine.csv").write_text("task,x,error\n" + "".join(rows))
    spec, reports = BenchmarkSpec("mine", str(tmp_path / "mine.csv"), "forest", tasks=2), []
    plan = replace(PLAN, benchmarks=(spec,), methods=("random", "gp"))
    for _ in range(2):
        run_experiment(plan, tmp_path / "study", executor=LocalExecutor(), progress=lambda *now: reports.append(now))
        assert [now[1:] for now in reports if now[0] == "mine, forests"] == [(0, 2), (1, 2), (2, 2)]
    assert len(list((tmp_path / "cache" / "forests").iterdir())) == 2
    assert {key.task for key in results_in(tmp_path / "study")} == {"0", "3"}


def test_an_experiment_whose_manifest_lists_no_benchmarks_resumes(
    tmp_path: Path, whole: dict[RunKey, CompletedRun]
) -> None:
    run_experiment(replace(PLAN, methods=("gp",)), tmp_path, executor=LocalExecutor())
    path = tmp_path / "study.json"
    content = json.loads(path.read_text())
    del content["benchmarks"]
    path.write_text(json.dumps(content))
    run_experiment(PLAN, tmp_path, executor=LocalExecutor())
    assert equal(results_in(tmp_path), whole)
    assert json.loads(path.read_text())["benchmarks"]["forrester"]["past runs of smfo"] == "all"


@pytest.mark.parametrize("content", ["[1]", "null", "{", '{"benchmarks": 3}', "\udcff"])
def test_damaged_settings_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "study.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"study\.json: expected the settings"):
        run_experiment(PLAN, tmp_path, executor=LocalExecutor())


def test_all_benchmarks_are_looked_for_before_the_first_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path))
    plan = replace(PLAN, benchmarks=(SPEC, BenchmarkSpec("glmnet")))
    with pytest.raises(InputError, match="the data of benchmark 'glmnet' are not on this computer"):
        run_experiment(plan, tmp_path / "study", executor=LocalExecutor())
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("place", ["file", "file/study"])
def test_a_place_that_is_no_folder_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="the folder cannot be created"):
        run_experiment(PLAN, tmp_path / place, executor=LocalExecutor())


class Unlucky:
    """Answers that something went wrong, for some methods always, for others once; some kill their process."""

    def __init__(self, *, always: str = "", once: str = "", lost: str = "") -> None:
        self.always, self.once, self.lost = always, once, lost
        self.tried: Counter[RunKey] = Counter()

    def execute(self, function: RunFunction, specs: Sequence[RunSpec]) -> Iterator[RunOutcome]:
        for spec in specs:
            self.tried[spec.key] += 1
            if spec.key.method == self.lost and self.tried[spec.key] == 1:
                yield FailedRun(spec.key, "killed", process_died=True)
                continue
            bad = spec.key.method == self.always or (spec.key.method == self.once and self.tried[spec.key] == 1)
            yield FailedRun(spec.key, "Traceback: because") if bad else function(spec)


def test_a_failed_run_is_tried_once_more_and_then_reported(tmp_path: Path, whole: dict[RunKey, CompletedRun]) -> None:
    executor = Unlucky(always="smfo", once="random")
    outcome = run_experiment(PLAN, tmp_path, executor=executor)
    assert {failure.key for failure in outcome.failed} == {key for key in whole if key.method == "smfo"}
    assert {failure.reason for failure in outcome.failed} == {"Traceback: because"}
    assert {executor.tried[failure.key] for failure in outcome.failed} == {2}
    assert outcome.runs == 12
    assert run_experiment(PLAN, tmp_path, executor=LocalExecutor()).new == 6
    assert equal(results_in(tmp_path), whole)


def test_runs_whose_process_was_killed_are_executed_again(tmp_path: Path, whole: dict[RunKey, CompletedRun]) -> None:
    assert run_experiment(PLAN, tmp_path, executor=Unlucky(lost="smfo")).failed == ()
    assert equal(results_in(tmp_path), whole)


def test_runs_that_are_lost_every_time_are_reported(tmp_path: Path) -> None:
    class Silent:
        def execute(self, *_: object) -> Iterator[RunOutcome]:
            return iter(())

    outcome = run_experiment(replace(PLAN, methods=("random",)), tmp_path, executor=Silent())
    assert len(outcome.failed) == 6
    assert "without an outcome" in outcome.failed[0].reason


def test_a_failed_past_run_holds_up_only_those_that_learn_from_it(
    tmp_path: Path, whole: dict[RunKey, CompletedRun]
) -> None:
    first = min(key.task for key in whole)

    class Failing:
        def execute(self, function: RunFunction, specs: Sequence[RunSpec]) -> Iterator[RunOutcome]:
            for spec in specs:
                bad = spec.key == RunKey("forrester", "gp", first, 0)
                yield FailedRun(spec.key, "Traceback: because") if bad else function(spec)

    outcome = run_experiment(PLAN, tmp_path, executor=Failing())
    (failure,) = outcome.failed
    assert failure.key == RunKey("forrester", "gp", first, 0)
    assert failure.reason == "(a past run, which others learn from)\nTraceback: because"
    there = results_in(tmp_path)
    assert {key for key in whole if key.method != "smfo"} - there.keys() == {failure.key}
    learning = {key for key in there if key.method == "smfo"}
    assert {RunKey("forrester", "smfo", first, r) for r in (0, 1)} <= learning  # they learn from other tasks
    assert outcome.waiting == 6 - len(learning) > 0
    later = run_experiment(PLAN, tmp_path, executor=LocalExecutor())
    assert (later.new, later.waiting) == (outcome.waiting + 1, 0)
    assert equal(results_in(tmp_path), whole)


def test_an_exception_in_a_run_is_a_failure_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: RunSpec) -> CompletedRun:
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr(run_module, "execute_run", fail)
    answer = try_run(RunSpec(RunKey("b", "gp", "t", 0), SPEC, 0, 5, 5))
    assert isinstance(answer, FailedRun)
    assert "ZeroDivisionError: deep inside" in answer.reason
    assert "in fail" in answer.reason


def test_two_processes_do_not_work_on_one_experiment(tmp_path: Path) -> None:
    with exclusive_access(tmp_path), pytest.raises(InputError, match="another process"):
        run_experiment(PLAN, tmp_path, executor=LocalExecutor())


def test_past_runs_are_drawn_anew_for_each_repetition_and_task() -> None:
    available = [(task, r) for task in "abcdefgh" for r in range(5)]
    drawn = {
        (task, number): draw_sources(available, RunKey("b", "m", task, 0), draw_seed=number, limit=None)
        for task in "ab"
        for number in range(40)
    }
    for (task, _), runs in drawn.items():
        assert [other for other, _ in runs] == [other for other in "abcdefgh" if other != task]
    chosen = np.array([[repetition for _, repetition in runs] for runs in drawn.values()])
    assert len({tuple(row) for row in chosen.tolist()}) == 80
    assert (np.abs(np.bincount(chosen.ravel(), minlength=5) / chosen.size - 0.2) < 0.06).all()
    again = draw_sources(available, RunKey("b", "other method", "a", 0), draw_seed=0, limit=None)
    assert [repetition for _, repetition in again] == chosen[0].tolist()
    some = draw_sources(available, RunKey("b", "m", "a", 0), draw_seed=0, limit=3)
    assert len({task for task, _ in some} - {"a"}) == 3


def test_a_method_with_fewer_past_runs_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[int]] = {}
    monkeypatch.setattr(
        executors,
        "try_run",
        lambda spec: seen.setdefault(spec.key.method, set()).add(len(spec.sources)) or try_run(spec),
    )
    plan = replace(PLAN, methods=("smfo", "random"), less=(Reduction(("smfo",), past=1, repetitions=1),))
    run_experiment(plan, tmp_path, executor=LocalExecutor())
    assert seen == {"gp": {0}, "smfo": {1}, "random": {0}}


def test_weights_are_recorded_for_the_methods_in_the_plan(tmp_path: Path) -> None:
    plan = replace(PLAN, methods=("rgpe-mean", "smfo"), weights=("rgpe-mean",), repetitions=1)
    run_experiment(plan, tmp_path, executor=LocalExecutor())
    for key, run in results_in(tmp_path).items():
        assert (run.weights is not None) == (key.method == "rgpe-mean")
        if run.weights is not None:
            assert run.weights.shape == (6, 5)
            assert np.isnan(run.weights[0]).all()  # the portfolio came first
            np.testing.assert_allclose(run.weights[-1, :4].sum(), 1.0, atol=5e-3)
            assert 1 <= run.weights[-1, 4] <= 3


def test_earlier_runs_without_weights_are_counted(tmp_path: Path) -> None:
    plan = replace(PLAN, methods=("rgpe-mean",), repetitions=1)
    assert run_experiment(plan, tmp_path, executor=LocalExecutor()).without_weights == 0
    assert (
        run_experiment(replace(plan, weights=("rgpe-mean",)), tmp_path, executor=LocalExecutor()).without_weights == 3
    )


def test_runs_that_fail_for_the_same_reason_are_reported_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('format = 1\nmethods = ["kl"]\nhorizon = 3\n[[benchmarks]]\nname = "own-svm"\ntasks = 3\n')
    with pytest.raises(typer.Exit):
        run_command(plan, out=tmp_path / "out")
    message = capsys.readouterr().err
    assert message.count("Traceback") == 1
    assert "kl needs a search space of floats and integers" in message
    assert " 0 and 2 other runs failed:" in message
    assert "3 runs failed" in message


def test_a_run_on_candidates_is_stored_by_positions() -> None:
    spec = RunSpec(RunKey("own-glmnet", "random", "iris", 0), BenchmarkSpec("own-glmnet"), 3, 5, 5)
    answer = try_run(spec)
    assert isinstance(answer, CompletedRun)
    assert answer.source is not None
    benchmark = load("own-glmnet")
    run = answer.source.as_run(benchmark)
    assert answer.source.picks is not None
    assert answer.source.configs is None
    assert run.configs == [benchmark.candidates[pick] for pick in answer.source.picks]  # type: ignore[index]
    assert SourceRun.from_json(answer.source.to_json()).as_run(benchmark) == run


def test_a_damaged_file_of_past_runs_is_refused(tmp_path: Path) -> None:
    run_experiment(replace(PLAN, methods=("gp",)), tmp_path, executor=LocalExecutor())
    path = tmp_path / "past-forrester.jsonl"
    (tmp_path / "runs.csv").unlink()
    whole_file = path.read_bytes()
    for line in (b'{"task": 1}', b"[]", b"null"):
        path.write_bytes(whole_file + line + b"\n")
        with pytest.raises(InputError, match=r"past-forrester.jsonl, line 7: expected a past run, got"):
            run_experiment(PLAN, tmp_path, executor=LocalExecutor())
    path.write_bytes(whole_file + b"\xff\n")
    with pytest.raises(InputError, match=r"past-forrester.jsonl: expected text"):
        run_experiment(PLAN, tmp_path, executor=LocalExecutor())
