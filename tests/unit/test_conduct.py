"""Experiments: all runs of a plan are made once, whatever comes between."""

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
from recollect.bench import cell, conduct, load, making
from recollect.bench.cell import Crashed, Job, Made, kept_from, run_job
from recollect.bench.conduct import draw_past
from recollect.bench.engines import Answer, Function, Local, Lost
from recollect.bench.folder import alone
from recollect.bench.plan import Less, PastSource, Plan, Spec
from recollect.bench.results import Finished, Key, read_runs
from recollect.bench.tune_forest import TuneSettings
from recollect.cli.bench_run import run as run_command
from recollect.errors import InputError, StorageError

SPEC = Spec("forrester", tasks=3)
PLAN = Plan(("random", "gp", "smfo"), (SPEC,), PastSource("gp", 6, 2), repetitions=2, horizon=6)


def made(folder: Path) -> dict[Key, Finished]:
    return {run.key: run for run in read_runs(folder / "runs.csv")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[Key, Finished]:
    folder = tmp_path_factory.mktemp("whole")
    outcome = conduct.conduct(PLAN, folder, engine=Local())
    assert (outcome.runs, outcome.new, outcome.crashed) == (18, 18, ())
    return made(folder)


def equal(a: dict[Key, Finished], b: dict[Key, Finished]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[key].values, b[key].values) for key in a)


def test_every_cell_of_the_plan_is_run(whole: dict[Key, Finished]) -> None:
    tasks = load("forrester").tasks
    chosen = (tasks[0], tasks[(len(tasks) - 1 + 1) // 2], tasks[-1])
    assert set(whole) == {Key("forrester", m, t, r) for m in PLAN.methods for t in chosen for r in (0, 1)}
    assert {len(run.values) for key, run in whole.items() if key.method != "random"} == {6}
    assert {len(run.values) for key, run in whole.items() if key.method == "random"} == {60}


def test_a_run_is_what_the_optimizer_does_with_its_seed(whole: dict[Key, Finished]) -> None:
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


def test_seeds_differ_between_tasks_and_repetitions_but_not_between_methods(whole: dict[Key, Finished]) -> None:
    seeds = {key: run.seed for key, run in whole.items()}
    assert len(set(seeds.values())) == 6
    assert all(seeds[key] == seeds[key._replace(method="gp")] for key in seeds)


def test_the_initial_design_depends_on_seed_and_task_not_on_the_method(
    tmp_path: Path, whole: dict[Key, Finished]
) -> None:
    conduct.conduct(replace(PLAN, methods=("gcp",)), tmp_path, engine=Local())
    for key, run in made(tmp_path).items():
        np.testing.assert_array_equal(run.values, whole[key._replace(method="gp")].values)  # ten points of a design


def test_the_number_of_processes_does_not_change_the_results(tmp_path: Path, whole: dict[Key, Finished]) -> None:
    conduct.conduct(PLAN, tmp_path, engine=Local(2))
    assert equal(made(tmp_path), whole)


class Stopping:
    """An engine that is interrupted after some answers, as by Ctrl-C."""

    def __init__(self, after: int) -> None:
        self.after = after

    def answers(self, function: Function, jobs: Sequence[Job]) -> Iterator[Answer]:
        for job in jobs:
            if self.after == 0:
                raise KeyboardInterrupt
            self.after -= 1
            yield function(job)


def test_what_was_made_before_an_interruption_is_not_made_again(
    tmp_path: Path, whole: dict[Key, Finished], monkeypatch: pytest.MonkeyPatch
) -> None:
    for after in (4, 3, 5):  # within the past runs, then within the cells
        with pytest.raises(KeyboardInterrupt):
            conduct.conduct(PLAN, tmp_path, engine=Stopping(after))
    with (tmp_path / "runs.csv").open("a") as file:
        file.write("1,forrester,smfo,cut off")
    counted: Counter[Key] = Counter()
    monkeypatch.setattr(making, "run_job", lambda job: counted.update([job.key]) or run_job(job))
    outcome = conduct.conduct(PLAN, tmp_path, engine=Local())
    assert outcome.runs == 18
    assert 0 < sum(counted.values()) == 18 - 12  # six past runs, which are those of gp, and six others were there
    assert equal(made(tmp_path), whole)
    again = conduct.conduct(PLAN, tmp_path, engine=Local())
    assert (again.runs, again.new) == (18, 0)


def test_a_plan_may_be_extended_but_not_changed(tmp_path: Path, whole: dict[Key, Finished]) -> None:
    conduct.conduct(replace(PLAN, methods=("gp",), repetitions=1), tmp_path, engine=Local())
    assert conduct.conduct(PLAN, tmp_path, engine=Local()).runs == 18
    assert equal(made(tmp_path), whole)
    with pytest.raises(InputError, match=r"holds runs with horizon = 6, and the plan says 7; .*another folder"):
        conduct.conduct(replace(PLAN, horizon=7), tmp_path, engine=Local())
    with pytest.raises(InputError, match="with past = "):
        conduct.conduct(replace(PLAN, past=PastSource("random", 6, 2)), tmp_path, engine=Local())


def test_runs_with_other_past_runs_are_not_mixed(tmp_path: Path) -> None:
    plan = replace(PLAN, methods=("smfo",), repetitions=1, less=(Less(("smfo",), past=1),))
    conduct.conduct(plan, tmp_path, engine=Local())
    for change, message in (
        ({"benchmarks": (replace(SPEC, tasks=4),)}, r"tasks on forrester = \['0', .*\], and the plan says .* \(4\);"),
        ({"less": ()}, r"past runs of smfo on forrester = 1, and the plan says 'all'"),
    ):
        with pytest.raises(InputError, match=message):
            conduct.conduct(replace(plan, **change), tmp_path, engine=Local())
    more = replace(plan, methods=("smfo", "gp"), benchmarks=(SPEC, Spec("branin", tasks=2)), repetitions=2)
    assert conduct.conduct(more, tmp_path, engine=Local()).runs == 2 * 2 * (3 + 2)


def test_a_table_that_has_changed_is_another_benchmark(tmp_path: Path) -> None:
    table, lines = tmp_path / "t.csv", ["task,x,error", *(f"{task},{x},{x * x}" for task in "ab" for x in range(9))]
    table.write_text("\n".join(lines) + "\n")
    plan = Plan(("random",), (Spec("t", str(table)),), PastSource("gp", 6, 1), horizon=6)
    conduct.conduct(plan, tmp_path / "study", engine=Local())
    conduct.conduct(plan, tmp_path / "study", engine=Local())
    table.write_text("\n".join(lines).replace("b,4,16", "b,4,17") + "\n")
    with pytest.raises(InputError, match=r"study holds runs with another table on t, whose contents have changed"):
        conduct.conduct(plan, tmp_path / "study", engine=Local())


def test_only_forests_of_the_plans_tasks_are_built_with_progress(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("recollect.bench.tune_forest.TABLE", TuneSettings(1, 2, 5, 5))
    points = np.linspace(0.0, 1.0, 30)
    rows = [f"{task},{x:.3f},{(x - task / 4) ** 2:.4f}\n" for task in range(4) for x in points]
    (tmp_path / "mine.csv").write_text("task,x,error\n" + "".join(rows))
    spec, told = Spec("mine", str(tmp_path / "mine.csv"), "forest", tasks=2), []
    plan = replace(PLAN, benchmarks=(spec,), methods=("random", "gp"))
    for _ in range(2):
        conduct.conduct(plan, tmp_path / "study", engine=Local(), progress=lambda *now: told.append(now))
        assert [now[1:] for now in told if now[0] == "mine, forests"] == [(0, 2), (1, 2), (2, 2)]
    assert len(list((tmp_path / "cache" / "forests").iterdir())) == 2
    assert {key.task for key in made(tmp_path / "study")} == {"0", "3"}


def test_a_study_begun_without_these_notes_goes_on(tmp_path: Path, whole: dict[Key, Finished]) -> None:
    conduct.conduct(replace(PLAN, methods=("gp",)), tmp_path, engine=Local())
    path = tmp_path / "study.json"
    content = json.loads(path.read_text())
    del content["benchmarks"]
    path.write_text(json.dumps(content))
    conduct.conduct(PLAN, tmp_path, engine=Local())
    assert equal(made(tmp_path), whole)
    assert json.loads(path.read_text())["benchmarks"]["forrester"]["past runs of smfo"] == "all"


@pytest.mark.parametrize("content", ["[1]", "null", "{", '{"benchmarks": 3}', "\udcff"])
def test_damaged_settings_are_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "study.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(InputError, match=r"study\.json: expected the settings of a study"):
        conduct.conduct(PLAN, tmp_path, engine=Local())


def test_all_benchmarks_are_looked_for_before_the_first_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path))
    plan = replace(PLAN, benchmarks=(SPEC, Spec("glmnet")))
    with pytest.raises(InputError, match="the data of benchmark 'glmnet' are not on this computer"):
        conduct.conduct(plan, tmp_path / "study", engine=Local())
    assert not (tmp_path / "study").exists()


@pytest.mark.parametrize("place", ["file", "file/study"])
def test_a_place_that_is_no_folder_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="the folder cannot be made"):
        conduct.conduct(PLAN, tmp_path / place, engine=Local())


class Unlucky:
    """Answers that something went wrong, for some methods always, for others once; some kill their process."""

    def __init__(self, *, always: str = "", once: str = "", lost: str = "") -> None:
        self.always, self.once, self.lost = always, once, lost
        self.tried: Counter[Key] = Counter()

    def answers(self, function: Function, jobs: Sequence[Job]) -> Iterator[Answer]:
        for job in jobs:
            self.tried[job.key] += 1
            if job.key.method == self.lost and self.tried[job.key] == 1:
                yield Lost(job.key)
                return
            bad = job.key.method == self.always or (job.key.method == self.once and self.tried[job.key] == 1)
            yield Crashed(job.key, "Traceback: because") if bad else function(job)


def test_a_crash_is_tried_once_more_and_then_reported(tmp_path: Path, whole: dict[Key, Finished]) -> None:
    engine = Unlucky(always="smfo", once="random")
    outcome = conduct.conduct(PLAN, tmp_path, engine=engine)
    assert {crash.key for crash in outcome.crashed} == {key for key in whole if key.method == "smfo"}
    assert {crash.reason for crash in outcome.crashed} == {"Traceback: because"}
    assert {engine.tried[crash.key] for crash in outcome.crashed} == {2}
    assert outcome.runs == 12
    assert conduct.conduct(PLAN, tmp_path, engine=Local()).new == 6
    assert equal(made(tmp_path), whole)


def test_runs_whose_process_was_killed_are_made_again(tmp_path: Path, whole: dict[Key, Finished]) -> None:
    assert conduct.conduct(PLAN, tmp_path, engine=Unlucky(lost="smfo")).crashed == ()
    assert equal(made(tmp_path), whole)


def test_runs_that_are_lost_every_time_are_reported(tmp_path: Path) -> None:
    class Silent:
        def answers(self, *_: object) -> Iterator[Answer]:
            return iter(())

    outcome = conduct.conduct(replace(PLAN, methods=("random",)), tmp_path, engine=Silent())
    assert len(outcome.crashed) == 6
    assert "ended without an answer" in outcome.crashed[0].reason


def test_a_crashed_past_run_holds_up_only_those_that_learn_from_it(tmp_path: Path, whole: dict[Key, Finished]) -> None:
    first = min(key.task for key in whole)

    class Failing:
        def answers(self, function: Function, jobs: Sequence[Job]) -> Iterator[Answer]:
            for job in jobs:
                bad = job.key == Key("forrester", "gp", first, 0)
                yield Crashed(job.key, "Traceback: because") if bad else function(job)

    outcome = conduct.conduct(PLAN, tmp_path, engine=Failing())
    (crash,) = outcome.crashed
    assert crash.key == Key("forrester", "gp", first, 0)
    assert crash.reason == "(a past run, which others learn from)\nTraceback: because"
    there = made(tmp_path)
    assert {key for key in whole if key.method != "smfo"} - there.keys() == {crash.key}
    learning = {key for key in there if key.method == "smfo"}
    assert {Key("forrester", "smfo", first, r) for r in (0, 1)} <= learning  # they learn from other tasks
    assert outcome.waiting == 6 - len(learning) > 0
    later = conduct.conduct(PLAN, tmp_path, engine=Local())
    assert (later.new, later.waiting) == (outcome.waiting + 1, 0)
    assert equal(made(tmp_path), whole)


def test_an_exception_in_a_run_is_an_answer_with_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Job) -> Made:
        raise ZeroDivisionError("deep inside")

    monkeypatch.setattr(cell, "make_run", fail)
    answer = run_job(Job(Key("b", "gp", "t", 0), SPEC, 0, 5, 5))
    assert isinstance(answer, Crashed)
    assert "ZeroDivisionError: deep inside" in answer.reason
    assert "in fail" in answer.reason


def test_two_processes_do_not_work_on_one_study(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="locks of this kind are missing here")
    with alone(tmp_path), pytest.raises(InputError, match="another process is working on this study"):
        conduct.conduct(PLAN, tmp_path, engine=Local())


def test_past_runs_are_drawn_anew_for_each_repetition_and_task() -> None:
    bases = [(task, r) for task in "abcdefgh" for r in range(5)]
    drawn = {
        (task, round_): draw_past(bases, Key("b", "m", task, 0), round_=round_, few=None)
        for task in "ab"
        for round_ in range(40)
    }
    for (task, _), runs in drawn.items():
        assert [other for other, _ in runs] == [other for other in "abcdefgh" if other != task]
    chosen = np.array([[repetition for _, repetition in runs] for runs in drawn.values()])
    assert len({tuple(row) for row in chosen.tolist()}) == 80
    assert (np.abs(np.bincount(chosen.ravel(), minlength=5) / chosen.size - 0.2) < 0.06).all()
    again = draw_past(bases, Key("b", "other method", "a", 0), round_=0, few=None)
    assert [repetition for _, repetition in again] == chosen[0].tolist()
    few = draw_past(bases, Key("b", "m", "a", 0), round_=0, few=3)
    assert len({task for task, _ in few} - {"a"}) == 3


def test_a_method_with_fewer_past_runs_gets_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, set[int]] = {}
    monkeypatch.setattr(
        making, "run_job", lambda job: seen.setdefault(job.key.method, set()).add(len(job.past)) or run_job(job)
    )
    plan = replace(PLAN, methods=("smfo", "random"), less=(Less(("smfo",), past=1, repetitions=1),))
    conduct.conduct(plan, tmp_path, engine=Local())
    assert seen == {"gp": {0}, "smfo": {1}, "random": {0}}


def test_weights_are_kept_where_they_are_asked_for(tmp_path: Path) -> None:
    plan = replace(PLAN, methods=("rgpe-mean", "smfo"), weights=("rgpe-mean",), repetitions=1)
    conduct.conduct(plan, tmp_path, engine=Local())
    for key, run in made(tmp_path).items():
        assert (run.weights is not None) == (key.method == "rgpe-mean")
        if run.weights is not None:
            assert run.weights.shape == (6, 5)
            assert np.isnan(run.weights[0]).all()  # the portfolio came first
            np.testing.assert_allclose(run.weights[-1, :4].sum(), 1.0, atol=5e-3)
            assert 1 <= run.weights[-1, 4] <= 3


def test_runs_made_before_their_weights_were_asked_for_are_counted(tmp_path: Path) -> None:
    plan = replace(PLAN, methods=("rgpe-mean",), repetitions=1)
    assert conduct.conduct(plan, tmp_path, engine=Local()).unweighed == 0
    assert conduct.conduct(replace(plan, weights=("rgpe-mean",)), tmp_path, engine=Local()).unweighed == 3


def test_runs_that_crash_for_the_same_reason_are_reported_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('format = 1\nmethods = ["kl"]\nhorizon = 3\n[[benchmarks]]\nname = "own-svm"\ntasks = 3\n')
    with pytest.raises(typer.Exit):
        run_command(plan, out=tmp_path / "out")
    said = capsys.readouterr().err
    assert said.count("Traceback") == 1
    assert "kl needs a search space of floats and integers" in said
    assert " 0 and 2 other runs crashed:" in said
    assert "3 runs crashed; the same command tries them again" in said


def test_a_run_on_a_list_is_kept_by_positions() -> None:
    job = Job(Key("own-glmnet", "random", "iris", 0), Spec("own-glmnet"), 3, 5, 5)
    answer = run_job(job)
    assert isinstance(answer, Made)
    benchmark = load("own-glmnet")
    run = answer.kept.run(benchmark)
    assert answer.kept.picks is not None
    assert answer.kept.configs is None
    assert run.configs == [benchmark.candidates[pick] for pick in answer.kept.picks]  # type: ignore[index]
    assert kept_from(answer.kept.line()).run(benchmark) == run


def test_a_damaged_file_of_past_runs_is_refused(tmp_path: Path) -> None:
    conduct.conduct(replace(PLAN, methods=("gp",)), tmp_path, engine=Local())
    path = tmp_path / "past-forrester.jsonl"
    (tmp_path / "runs.csv").unlink()
    whole_file = path.read_bytes()
    for line in (b'{"task": 1}', b"[]", b"null"):
        path.write_bytes(whole_file + line + b"\n")
        with pytest.raises(InputError, match=r"past-forrester.jsonl, line 7: expected a past run, got"):
            conduct.conduct(PLAN, tmp_path, engine=Local())
    path.write_bytes(whole_file + b"\xff\n")
    with pytest.raises(InputError, match=r"past-forrester.jsonl: expected text"):
        conduct.conduct(PLAN, tmp_path, engine=Local())
