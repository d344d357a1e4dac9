"""Plans: what they say is what is run, and mistakes in them are named."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from recollect.bench.experiment.plan import (
    BenchmarkSpec,
    Limits,
    Plan,
    Reduction,
    SourceSettings,
    evenly_spaced,
    load_plan,
)
from recollect.bench.paper.published import LAYOUTS
from recollect.bench.paper.tst_bandwidth import RHO_GRID
from recollect.errors import InputError
from recollect.transfer.weighting.ranking_weights import TwoStageWeighting

PLANS = Path(__file__).parents[4] / "benchmarks" / "plans"
WHOLE = """
format = 1
methods = ["random", "gp", "rgpe-taf"]
repetitions = 3
horizon = 20
seed = 4
weights = ["rgpe-taf"]
[past]
method = "random"
evaluations = 30
repetitions = 2
[[benchmarks]]
name = "forrester"
tasks = 5
[[benchmarks]]
name = "mine"
table = "mine.csv"
mode = "forest"
repetitions = 1
[[less]]
methods = ["rgpe-taf"]
benchmarks = ["forrester"]
repetitions = 2
tasks = 2
past = 3
"""


def written(folder: Path, text: str) -> Path:
    (folder / "mine.csv").write_text("task,x,error\na,1,0.5\n")
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def test_a_plan_says_everything(tmp_path: Path) -> None:
    assert load_plan(written(tmp_path, WHOLE)) == Plan(
        methods=("random", "gp", "rgpe-taf"),
        benchmarks=(
            BenchmarkSpec("forrester", tasks=5),
            BenchmarkSpec("mine", str(tmp_path / "mine.csv"), "forest", None, 1),
        ),
        past=SourceSettings("random", 30, 2),
        repetitions=3,
        horizon=20,
        seed=4,
        weights=("rgpe-taf",),
        less=(Reduction(("rgpe-taf",), ("forrester",), 2, 2, 3),),
    )


def test_defaults_are_those_of_the_paper(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, 'format = 1\nmethods = ["gp"]\n[[benchmarks]]\nname = "branin"\n'))
    assert (plan.horizon, plan.repetitions, plan.past) == (50, 1, SourceSettings("gp", 50, 1))


def test_a_table_is_looked_for_in_the_folder_of_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "far.csv").write_text("task,x,error\na,1,0.5\n")
    text = 'format = 1\nmethods = ["gp"]\n[[benchmarks]]\nname = "t"\ntable = "far.csv"\n'
    with pytest.raises(InputError, match=r"there is no table 'far.csv' in "):
        load_plan(written(tmp_path, text))
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path / "data"))
    spec = load_plan(written(tmp_path, text)).benchmarks[0]
    assert spec.table == str(tmp_path / "data" / "far.csv")


def test_a_table_without_a_name_is_named_after_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.v2.csv").write_text("task,x,error\na,1,0.5\n")
    text = 'format = 1\nmethods = ["gp"]\n[[benchmarks]]\ntable = "mine.v2.csv"\n'
    (spec,) = load_plan(written(tmp_path, text)).benchmarks
    assert (spec.name, spec.table) == ("mine.v2", str(tmp_path / "mine.v2.csv"))
    assert spec.open().tasks == ("a",)


def test_the_runs_are_all_methods_tasks_and_repetitions_but_for_reductions(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, WHOLE))
    tasks = ("a", "b", "c", "d")
    keys = list(plan.run_keys(plan.benchmarks[0], tasks))
    assert len(set(keys)) == len(keys) == 3 * 4 + 3 * 4 + 2 * 2
    assert {key.task for key in keys if key.method == "rgpe-taf"} == {"a", "d"}
    assert [key.repetition for key in keys] == sorted(key.repetition for key in keys)
    other = list(plan.run_keys(plan.benchmarks[1], tasks))
    assert len(other) == 3 * 4
    assert plan.limits("rgpe-taf", "mine") == Limits()


def test_of_several_limits_all_hold() -> None:
    less = (Reduction(("a", "b"), tasks=4, past=2), Reduction(("a",), ("x",), repetitions=1, tasks=9, past=5))
    less += (Reduction(("a",), repetitions=0, tasks=2, past=3),)
    plan = Plan(("a", "b"), (BenchmarkSpec("x"), BenchmarkSpec("y")), SourceSettings(), less=less)
    assert plan.limits("a", "x") == Limits(0, (4, 9, 2), 2)
    assert plan.limits("a", "y") == Limits(0, (4, 2), 2)
    assert plan.limits("b", "x") == Limits(None, (4,), 2)


def test_fewer_tasks_are_drawn_from_those_that_an_earlier_entry_leaves() -> None:
    names = [f"task {number}" for number in range(50)]
    half, tenth = Limits(tasks=(20,)).tuned(names), Limits(tasks=(20, 10)).tuned(names)
    assert half == evenly_spaced(names, 20)
    assert tenth == evenly_spaced(half, 10)
    assert set(tenth) < set(half)
    assert not set(evenly_spaced(names, 10)) <= set(half)
    assert Limits().tuned(names) == names


def test_a_method_can_be_left_out_of_a_benchmark(tmp_path: Path) -> None:
    plan = load_plan(written(tmp_path, WHOLE.replace("repetitions = 2\ntasks = 2", "repetitions = 0")))
    assert {key.method for key in plan.run_keys(plan.benchmarks[0], "ab")} == {"random", "gp"}


@pytest.mark.parametrize("path", sorted(PLANS.glob("*.toml")), ids=lambda path: path.stem)
def test_the_plans_that_come_with_the_repository_are_plans(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECOLLECT_DATA", str(tmp_path))
    for entry in tomllib.loads(path.read_text())["benchmarks"]:
        if "table" in entry:
            (tmp_path / entry["table"]).touch()
    plan = load_plan(path)
    tasks = tuple("abcdefgh")
    assert sum(1 for spec in plan.benchmarks for _ in plan.run_keys(spec, tasks)) > 0
    assert {"gp", "random", "rgpe-taf"} <= set(plan.methods)


def test_the_plan_of_the_paper_has_the_runs_of_every_row_of_its_tables() -> None:
    methods = set(tomllib.loads((PLANS / "paper.toml").read_text())["methods"])
    for name in {row.method for layout in LAYOUTS for row in layout.rows}:
        family, chosen, _ = name.partition("+rho-")
        values = [rho for rho in RHO_GRID if rho != TwoStageWeighting().rho] if chosen else []
        multiple = re.fullmatch(r"random-\d+x", name) is not None
        assert {"random" if multiple else family, *(f"{family}+rho{rho}" for rho in values)} <= methods, name


@pytest.mark.parametrize(
    ("count", "expected"), [(None, "abcdefg"), (9, "abcdefg"), (7, "abcdefg"), (4, "aceg"), (2, "ag"), (1, "a")]
)
def test_names_are_chosen_evenly(count: int | None, expected: str) -> None:
    assert "".join(evenly_spaced("abcdefg", count)) == expected


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("format = 1", "format = 2"), "expected format = 1, got 2"),
        (("format = 1", "format = "), "expected a plan in TOML"),
        (("horizon = 20", "horizont = 20"), "the plan: unknown key 'horizont'; known are format, methods"),
        (("horizon = 20", "horizon = 0"), "the plan: horizon must be at least 1, got 0"),
        (("horizon = 20", "horizon = 1000000"), "the plan: horizon must be at most 100000, got 1000000"),
        (('name = "forrester"', 'name = "forester"'), "there is no benchmark 'forester'; did you mean 'forrester'"),
        (("horizon = 20", 'horizon = "20"'), "the plan: horizon must be of type int, got '20'"),
        (("repetitions = 3", "repetitions = 1001"), "the plan: repetitions must be at most 1000, got 1001"),
        (("repetitions = 3", "repetitions = true"), "repetitions must be of type int, got True"),
        (("seed = 4", "seed = -1"), "seed must be at least 0, got -1"),
        (('"gp", "rgpe', '"gpp", "rgpe'), "gpp"),
        (('"gp", "rgpe', '"random", "rgpe'), "methods: expected different ones"),
        (('methods = ["random", "gp", "rgpe-taf"]', "methods = []"), "methods must be a list of 1 or more names"),
        (('weights = ["rgpe-taf"]', 'weights = ["smfo"]'), r"weights: expected methods of the plan .* got \['smfo'\]"),
        (('method = "random"', 'method = "smfo"'), "past: method must be 'gp' or 'gp[+]paper' or 'random', got 'smfo'"),
        (("evaluations = 30", "trials = 30"), "past: unknown key 'trials'"),
        (('name = "mine"', 'name = "forrester"'), "benchmarks]] with different names"),
        (('name = "forrester"', ""), "benchmarks: expected a name or a table"),
        (('name = "mine"', 'name = "../mine"'), "expected a name of at most 100 letters, digits and . _ [+] -, got"),
        (('name = "mine"', f'name = "{101 * "m"}"'), "expected a name of at most 100 letters"),
        (('name = "mine"', 'name = "[red]"'), "expected a name of at most 100 letters"),
        (("repetitions = 1\n", "repetitions = 4\n"), "benchmarks: repetitions must be at most 3, got 4"),
        (('mode = "forest"', 'mode = "trees"'), "mode must be 'table' or 'forest', got 'trees'"),
        (('table = "mine.csv"', ""), "mode = 'forest' needs a table, and 'mine' has none"),
        (('benchmarks = ["forrester"]', 'benchmarks = ["b"]'), "less: expected methods and benchmarks of the plan"),
        (("past = 3", "past = 0"), "less: past must be at least 1, got 0"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, change: tuple[str, str], message: str) -> None:
    assert change[0] in WHOLE
    path = written(tmp_path, WHOLE.replace(*change, 1))
    with pytest.raises(InputError, match=message) as caught:
        load_plan(path)
    assert str(path) in str(caught.value)


def test_past_runs_are_as_long_as_the_plans_by_default(tmp_path: Path) -> None:
    assert load_plan(written(tmp_path, WHOLE.replace("evaluations = 30", ""))).past.evaluations == 20


def test_a_missing_plan_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.toml: expected a plan, but there is no such file"):
        load_plan(tmp_path / "none.toml")
