"""Contestants: what a plan may name, and that all get the same past runs, seeds, candidates and budget."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recollect
from recollect.bench.analysis.aggregate import aggregate_runs
from recollect.bench.analysis.figure_data import OUTSIDE, line_up_ranks, method_panels
from recollect.bench.analysis.result_tables import make_tables
from recollect.bench.experiment.contestants import ContestantSpec, OnCandidates, RunSetting, contestant_spec
from recollect.bench.experiment.executors import LocalExecutor
from recollect.bench.experiment.experiment_run import CompletedRun
from recollect.bench.experiment.plan import Plan, load_plan
from recollect.bench.experiment.results import read_results
from recollect.bench.experiment.runner import run_experiment
from recollect.errors import InputError, MissingExtraError
from recollect.optimizer.method import Method
from recollect.space.space import compile_space

MODULE = '''
import dataclasses, json
from pathlib import Path
import recollect

QUICK = dataclasses.replace(recollect.method("gp"), name="quick")
NUMBER = 5

class Recorder:
    """Asks for the first candidates, and notes what it was given."""

    def __init__(self, space, past, *, horizon, seed, candidates, log=None):
        self.left = list(candidates)
        self.given = {"past": len(past), "tasks": sorted(run.task for run in past), "horizon": horizon, "seed": seed}
        self.log, self.told = log, []

    def ask(self):
        return self.left[0]

    def tell(self, config, value):
        self.told.append(value)
        self.left.remove(config)

    def close(self):
        if self.log is not None:
            with Path(self.log).open("a") as file:
                file.write(json.dumps({**self.given, "told": self.told}) + "\\n")

class Nothing:
    def __init__(self, *_, **__):
        pass

def broken(space, past, **settings):
    raise RuntimeError("broken on purpose")
'''
TABLE = "".join(
    f"{task},{x},{abs(x - best)}\n" for task, best in zip("abcd", (1, 2, 5, 7), strict=True) for x in range(9)
)
PLAN = """
format = 1
methods = [{methods}]
horizon = 5
[past]
method = "random"
[[benchmarks]]
table = "t.csv"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mypkg.py").write_text(MODULE)
    (tmp_path / "t.csv").write_text(f"task,x,error\n{TABLE}")
    return tmp_path


def plan_of(folder: Path, *methods: str, more: str = "") -> Plan:
    names = ", ".join(f"'{method}'" for method in methods)
    (folder / "plan.toml").write_text(PLAN.format(methods=names) + more)
    return load_plan(folder / "plan.toml")


def runs_of(folder: Path, plan: Plan) -> list[CompletedRun]:
    summary = run_experiment(plan, folder / "out", executor=LocalExecutor())
    assert summary.failed == ()
    return list(read_results(folder / "out" / "runs.csv"))


@pytest.mark.parametrize(
    ("text", "kind", "target", "settings", "transfers"),
    [
        ("rgpe-taf+none", "method", "", (), True),
        ("gp", "method", "", (), False),
        ("optuna:TPESampler", "optuna", "TPESampler", (), False),
        ("optuna:TPESampler(multivariate=True, n_startup_trials=3)", "optuna", "TPESampler",
         (("multivariate", True), ("n_startup_trials", 3)), False),
        ("mypkg:QUICK", "module", "QUICK", (), False),
        ("mypkg:Recorder(log='x')", "module", "Recorder", (("log", "x"),), True),
        ("recollect.optimizer.optimizer:Optimizer", "module", "Optimizer", (), True),
        ("command: sh peer.py --fast", "command", "sh peer.py --fast", (), True),
    ],
)  # fmt: skip
def test_a_contestant_is_named_in_a_line(
    text: str, kind: str, target: str, settings: Any, transfers: bool, folder: Path
) -> None:
    spec = contestant_spec(text, folder)
    assert (spec.name, spec.kind, spec.target, spec.settings) == (text, kind, target, settings)
    assert spec.transfers() == transfers
    assert pickle.loads(pickle.dumps(spec)) == spec


def test_a_program_is_found_beside_the_plan_and_a_link_is_not_followed(folder: Path) -> None:
    (folder / "environment").mkdir()
    (folder / "environment" / "python").symlink_to(folder / "mypkg.py")
    spec = contestant_spec("command: environment/python mypkg.py 'a b'", folder)
    assert spec.target == f"{folder}/environment/python {folder}/mypkg.py 'a b'"
    assert spec.definition() == "command python mypkg.py a b"


def test_a_method_in_a_module_is_run_as_a_method_of_recollect(folder: Path) -> None:
    method = contestant_spec("mypkg:QUICK", folder).method()
    assert isinstance(method, Method)
    assert method.name == "quick"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpp", "gpp"),
        ("optuna:TPSampler", "Optuna has no sampler 'TPSampler'; did you mean 'TPESampler'"),
        ("optuna:TPESampler(startup=3)", "optuna:TPESampler cannot be created: .*startup"),
        ("optuna:GridSampler", "optuna:GridSampler cannot be created: .*search_space"),
        ("optuna:TPESampler(3)", "expected a name, perhaps with settings"),
        ("optuna:TPESampler(seed=__import__('os'))", "expected a name, perhaps with settings"),
        ("optuna:", "expected a name, perhaps with settings"),
        ("nowhere_at_all:Thing", "expected Thing in nowhere_at_all"),
        ("mypkg:Absent", "expected Absent in .*mypkg.py"),
        ("mypkg:NUMBER", "expected a Method or a factory, got int"),
        ("command:", "expected a program after 'command:'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_the_experiment_starts(text: str, message: str, folder: Path) -> None:
    with pytest.raises(InputError, match=message):
        contestant_spec(text, folder)


@pytest.mark.parametrize("program", ["nosuchprog --fast", "mypkg.py"])
def test_a_program_that_cannot_be_run_is_refused(program: str, folder: Path) -> None:
    (folder / "mypkg.py").chmod(0o644)
    spec = contestant_spec(f"command: {program}", folder)
    with pytest.raises(InputError, match=program.split(maxsplit=1)[0]):
        spec.check()
    contestant_spec("command: sh mypkg.py", folder).check()


def test_a_sampler_whose_library_is_missing_is_refused_with_its_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Needy:
        def __init__(self) -> None:
            raise ImportError("Tried to import 'torch'")

    monkeypatch.setattr("optuna.samplers.GPSampler", Needy)
    with pytest.raises(MissingExtraError, match=r"optuna:GPSampler needs a library that is not installed: .*torch"):
        contestant_spec("optuna:GPSampler", folder)


def test_every_contestant_gets_the_same_past_runs_seeds_and_budget(folder: Path) -> None:
    log = folder / "log"
    name = f'mypkg:Recorder(log="{log}")'
    runs = runs_of(folder, plan_of(folder, "smfo", name))
    ours = {run.key.task: run for run in runs if run.key.method == "smfo"}
    theirs = {run.key.task: run for run in runs if run.key.method == name}
    assert {task: run.seed for task, run in theirs.items()} == {task: run.seed for task, run in ours.items()}
    assert {len(run.values) for run in runs} == {5}
    notes = [json.loads(line) for line in log.read_text().splitlines()]
    assert [note["tasks"] for note in notes] == [sorted(set("abcd") - {task}) for task in "abcd"]
    assert [note["seed"] for note in notes] == [theirs[task].seed for task in "abcd"]
    assert {note["horizon"] for note in notes} == {5}
    assert [note["told"] for note in notes] == [theirs[task].values.tolist() for task in "abcd"]


def test_past_runs_are_not_created_for_samplers_that_do_not_learn_from_them(folder: Path) -> None:
    runs_of(folder, plan_of(folder, "optuna:RandomSampler"))
    assert not (folder / "out" / "past-t.jsonl").exists()


def test_a_seed_decides_what_a_sampler_of_optuna_does(folder: Path) -> None:
    plan = plan_of(folder, "optuna:TPESampler(n_startup_trials=2)", "optuna:CmaEsSampler", "optuna:RandomSampler")
    first = {run.key: run.values.tolist() for run in runs_of(folder, plan)}
    (folder / "out" / "runs.csv").unlink()
    assert {run.key: run.values.tolist() for run in runs_of(folder, plan)} == first
    assert len({tuple(values) for values in first.values()}) > 4


def test_a_conditional_hyperparameter_is_suggested_where_it_is_active() -> None:
    benchmark = recollect.bench.load("own-svm")
    spec = ContestantSpec("t", "optuna", "TPESampler", "", (("n_startup_trials", 5),))
    contestant = spec.create(RunSetting(benchmark.space, (), 20, 3, None))
    kernels = set()
    for _ in range(20):
        config = dict(contestant.ask())
        benchmark.space.encode([config])
        kernels.add(config["kernel"])
        contestant.tell(config, float(config["cost"]))
    assert kernels == {"linear", "polynomial", "radial"}


def test_a_sampler_learns_the_configuration_that_was_evaluated_not_the_one_it_asked_for() -> None:
    space = compile_space({"x": (0.0, 1.0), "k": ["a", "b"]})
    spec = ContestantSpec("t", "optuna", "TPESampler")
    contestant: Any = spec.create(RunSetting(space, (), 5, 0, None))
    contestant.ask()
    contestant.tell({"x": 0.125, "k": "b"}, 2.0)
    asked = contestant.ask()
    contestant.tell(asked, 1.0)
    complete = [trial for trial in contestant._study.trials if trial.state.name == "COMPLETE"]
    assert [(trial.params, trial.value) for trial in complete] == [({"x": 0.125, "k": "b"}, 2.0), (asked, 1.0)]


def test_the_nearest_candidate_that_is_left_is_evaluated() -> None:
    told: list[float] = []

    class Stubborn:
        def ask(self) -> dict[str, Any]:
            return {"x": 0.52}

        def tell(self, config: dict[str, Any], value: float) -> None:
            told.append(config["x"] + value)

    candidates = tuple({"x": x} for x in (0.0, 0.4, 0.5, 0.7, 1.0))
    setting = RunSetting(compile_space({"x": (0.0, 1.0)}), (), 5, 0, candidates)
    contestant = OnCandidates(Stubborn(), setting)
    asked = []
    for _ in range(5):
        asked.append(contestant.ask()["x"])
        contestant.tell({"x": asked[-1]}, 0.0)
    assert asked == [0.5, 0.4, 0.7, 1.0, 0.0]
    assert told == asked


def test_a_contestant_that_fails_is_reported_and_the_others_are_run(folder: Path) -> None:
    plan = plan_of(folder, "random", "mypkg:broken", "mypkg:Nothing")
    summary = run_experiment(plan, folder / "out", executor=LocalExecutor())
    assert (summary.runs, len(summary.failed)) == (4, 8)
    reasons = "".join(failure.reason for failure in summary.failed)
    assert "broken on purpose" in reasons
    assert "expected an object with ask and tell, but it has no ask" in reasons


def test_a_contestant_has_a_short_name_and_a_folder_remembers_what_it_means(folder: Path) -> None:
    def named(run: str) -> str:
        return f'[[contestants]]\nname = "peer"\nrun = "{run}"\n'

    plan = plan_of(folder, "random", "peer", more=named("optuna:RandomSampler"))
    assert {run.key.method for run in runs_of(folder, plan)} == {"random", "peer"}
    other = plan_of(folder, "random", "peer", more=named("optuna:TPESampler"))
    with pytest.raises(InputError, match=r"holds runs with peer = .*RandomSampler.* the plan has .*TPESampler"):
        run_experiment(other, folder / "out", executor=LocalExecutor())
    for wrong in ("gp", "optuna", ""):
        with pytest.raises(InputError, match=r"contestants: expected a name .* and run = "):
            plan_of(folder, "random", "peer", more=named(wrong))


def test_weights_are_recorded_of_methods_of_recollect_only(folder: Path) -> None:
    text = PLAN.format(methods='"mypkg:QUICK", "optuna:TPESampler"')
    (folder / "plan.toml").write_text(text.replace("horizon", 'weights = ["mypkg:QUICK"]\nhorizon'))
    assert load_plan(folder / "plan.toml").weights == ("mypkg:QUICK",)
    (folder / "plan.toml").write_text(text.replace("horizon", 'weights = ["optuna:TPESampler"]\nhorizon'))
    with pytest.raises(InputError, match="weights: expected methods of the plan that are recollect's own"):
        load_plan(folder / "plan.toml")


def test_contestants_from_outside_are_rows_of_every_table_and_lines_of_every_figure(folder: Path) -> None:
    names = ("random", "gp", "rgpe-taf", "optuna:TPESampler", "mypkg:Recorder")
    plan = plan_of(folder, *names)
    results = aggregate_runs(runs_of(folder, plan))
    for table in ("main", "methods", "summary", "seconds"):
        (made,) = make_tables(results, table)
        rows = {row.method: row for block in made.blocks for row in block}
        for name in names[3:]:
            assert any(cell.value is not None for cell in rows[name].cells), table
    panels = dict(method_panels([*names, *recollect.methods()]))
    assert panels[OUTSIDE] == ["gp", "random", *names[3:]]
    ((_, (_, ranks)),) = line_up_ranks(results)
    assert ranks is not None
    assert set(names[3:]) <= set(ranks.methods)
    assert np.isfinite(ranks.ranks).all()
