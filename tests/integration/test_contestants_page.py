"""The example of contestants from outside in docs/experiments.md, and programs that misbehave."""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

import pytest

from recollect import FAILED, InputError, Run, compile_space
from recollect.bench.analysis.aggregate import aggregate_runs
from recollect.bench.analysis.result_tables import make_tables
from recollect.bench.experiment.contestants import RunSetting
from recollect.bench.experiment.executors import LocalExecutor
from recollect.bench.experiment.plan import KEYS, Plan, load_plan
from recollect.bench.experiment.results import read_results
from recollect.bench.experiment.runner import run_experiment
from recollect.bench.experiment.subprocess_contestant import SubprocessContestant

PAGE = Path(__file__).parents[2] / "docs" / "experiments.md"


def block(language: str, part: str) -> str:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    (found,) = [text for text in blocks if part in text]
    return str(found)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mypkg.py").write_text(block("python", "class MyOptimizer"))
    (tmp_path / "peer.py").write_text(block("python", "sys.stdin"))
    plan = block("toml", "mypkg:MyOptimizer").replace("command: python", f"command: {sys.executable}")
    (tmp_path / "plan.toml").write_text(plan)
    return tmp_path


def test_the_first_plan_of_the_page_runs(tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(block("toml", '"own-svm"  # comes with'))
    plan = load_plan(tmp_path / "plan.toml")
    summary = run_experiment(plan, tmp_path / "study", executor=LocalExecutor())
    assert (summary.runs, summary.failed) == (len(plan.methods) * 3, ())


def test_the_page_lists_every_key_of_a_plan() -> None:
    rows = re.findall(r"^\| (`.*?) \|", PAGE.read_text(), re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`\[*([a-z]+)\]*`", row)}
    assert listed >= {key for keys in KEYS.values() for key in keys}


def only_the_program(folder: Path) -> Plan:
    """The plan without its other contestants, and with past runs that are quick to make."""
    text = re.sub("methods = .*", 'methods = ["peer"]', (folder / "plan.toml").read_text())
    (folder / "plan.toml").write_text(f'{text}\n[past]\nmethod = "random"\n')
    return load_plan(folder / "plan.toml")


def test_the_example_makes_a_table_with_all_contestants(folder: Path) -> None:
    plan = load_plan(folder / "plan.toml")
    summary = run_experiment(plan, folder / "out", executor=LocalExecutor())
    assert (summary.runs, summary.failed) == (5 * 4, ())
    runs = read_results(folder / "out" / "runs.csv")
    assert {len(run.values) for run in runs} == {12}
    (table,) = make_tables(aggregate_runs(runs), "methods")
    assert {row.method for (rows,) in [table.blocks] for row in rows} == set(plan.methods)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        ("raise SystemExit('out of order')", "the program ended with code 1 in the middle of a run:\nout of order"),
        ("print('hello', flush=True); input(); input(); input()", "in one line, got 'hello"),
        ("print('{\"config\": 3}', flush=True); input(); input()", "in one line, got "),
    ],
)
def test_a_program_that_misbehaves_is_reported_with_what_it_wrote(folder: Path, program: str, reason: str) -> None:
    (folder / "peer.py").write_text(program)
    plan = only_the_program(folder)
    summary = run_experiment(plan, folder / "out", executor=LocalExecutor())
    assert (summary.runs, len(summary.failed)) == (0, 4)
    assert all(reason in failure.reason for failure in summary.failed)


def test_a_program_that_is_missing_is_refused_and_one_that_does_not_start_is_reported(folder: Path) -> None:
    text, program = (folder / "plan.toml").read_text(), folder / "python"
    (folder / "plan.toml").write_text(text.replace(sys.executable, str(program)))
    plan = only_the_program(folder)
    with pytest.raises(InputError, match=str(program)):
        run_experiment(plan, folder / "out", executor=LocalExecutor())
    program.write_text("neither a program nor a script")
    program.chmod(0o755)
    summary = run_experiment(plan, folder / "out", executor=LocalExecutor())
    assert (summary.runs, len(summary.failed)) == (0, 4)
    assert all("the program cannot be started" in failure.reason for failure in summary.failed)


ECHO = """
import json, sys
from pathlib import Path
setting = json.loads(sys.stdin.readline())
for line in sys.stdin:
    message = json.loads(line)
    if "ask" in message:
        print(json.dumps({"config": setting["candidates"].pop()}), flush=True)
    else:
        with Path(sys.argv[1]).open("a") as file:
            file.write(json.dumps([setting["space"]["hyperparameters"][0]["lower"], message["tell"]["config"]]) + "\\n")
"""


def test_a_program_gets_configurations_that_lie_within_the_bounds_it_is_told(folder: Path) -> None:
    """ConfigSpace rounds the bounds of -5/6 to 1 to 13 decimals, and other programs refuse what lies outside."""
    (folder / "peer.py").write_text(ECHO)
    rows = "".join(f"{task},{x!r},0.5\n" for task in "ab" for x in (-5 / 6, 0.25, 1.0))
    (folder / "t.csv").write_text(f"task,x,error\n{rows}")
    text = (folder / "plan.toml").read_text().replace('name = "own-svm"\ntasks = 4', 'table = "t.csv"')
    (folder / "plan.toml").write_text(text.replace("peer.py", f"peer.py {folder / 'told'}"))
    summary = run_experiment(only_the_program(folder), folder / "out", executor=LocalExecutor())
    assert (summary.runs, summary.failed) == (2, ())
    told = [json.loads(line) for line in (folder / "told").read_text().splitlines()]
    assert len(told) == 6
    assert all(config["x"] >= lower for lower, config in told)


@pytest.mark.parametrize(("value", "told"), [(0.5, 0.5), (math.nan, None), (math.inf, None)])
def test_a_program_is_told_a_failed_evaluation_in_valid_json(value: float, told: float | None) -> None:
    program = """
import json, sys
sys.stdin.readline()
line, _ = sys.stdin.readline(), sys.stdin.readline()
print(json.dumps({"config": {"line": line}}), flush=True)
"""
    setting = RunSetting(compile_space({"x": (0.0, 1.0)}), (), horizon=3, seed=0, candidates=None)
    contestant = SubprocessContestant([sys.executable, "-c", program], setting)
    try:
        contestant.tell({"x": 0.25}, value)
        message = json.loads(contestant.ask()["line"], parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    finally:
        contestant.close()
    assert message == {"tell": {"config": {"x": 0.25}, "value": told}}


def test_a_program_gets_past_runs_without_the_evaluations_that_failed() -> None:
    program = """
import json, sys
setting, _ = json.loads(sys.stdin.readline()), sys.stdin.readline()
print(json.dumps({"config": setting["past"][0]}), flush=True)
"""
    past = Run("a", [{"x": 0.25}, {"x": 0.5}, {"x": 0.75}], [3.0, FAILED, 1.0])
    setting = RunSetting(compile_space({"x": (0.0, 1.0)}), (past,), horizon=3, seed=0, candidates=None)
    contestant = SubprocessContestant([sys.executable, "-c", program], setting)
    try:
        assert contestant.ask() == {"task": "a", "configs": [{"x": 0.25}, {"x": 0.75}], "values": [3.0, 1.0]}
    finally:
        contestant.close()
