"""SMAC3's histories as runs, against what SMAC itself makes of them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from recollect.errors import InputError, RecollectWarning
from recollect.runs.run import FAILED, Run
from recollect.storage.importers.detection import read_runs

DATA = Path(__file__).parents[3] / "data" / "importers"
COSTS = json.loads((DATA / "smac-costs.json").read_text())
BELOW = "evaluations below the largest budget"


def read(folder: str) -> Run:
    if folder in ("smac-2.4", "smac-1.4"):
        (run,) = read_runs(DATA / folder / "runhistory.json")
    else:
        with pytest.warns(RecollectWarning, match=rf"left out {BELOW} of their configuration \(4\)"):
            (run,) = read_runs(DATA / folder / "runhistory.json")
    return run


def history(
    folder: Path, data: list[Any], configs: dict[str, Any] | None = None, name: str = "runhistory.json"
) -> Path:
    path = folder / name
    path.write_text(json.dumps({"data": data, "configs": configs or {"1": {"x": 1}, "2": {"x": 2}}}))
    return path


def entry(config: int = 1, cost: Any = 0.5, status: Any = 1, **more: Any) -> dict[str, Any]:
    known = {"instance": None, "seed": 0, "budget": None, "time": 2.0, "starttime": 0.0, "endtime": 2.0}
    return {"config_id": config, "cost": cost, "status": status, "additional_info": {}, **known, **more}


@pytest.mark.parametrize(
    ("folder", "reference"),
    [
        ("smac-2.4", "smac-2.4"),
        ("smac-1.4", "smac-2.4"),
        ("smac-2.4-budgets", "smac-2.4-budgets"),
        ("smac-2.2", "smac-2.4-budgets"),
    ],
)
def test_values_are_the_costs_that_smac_itself_compares(folder: str, reference: str) -> None:
    run = read(folder)
    configs = json.loads((DATA / folder / "runhistory.json").read_text())["configs"]
    assert len(run) == len(configs) == len(COSTS[reference])
    for trial in run.trials:
        (key,) = [key for key, config in configs.items() if config == trial.config]
        assert trial.value == (
            None if COSTS[reference][key] is None else pytest.approx(COSTS[reference][key], rel=1e-12)
        )
        assert trial.ok == (COSTS[reference][key] is not None)


def test_the_space_beside_a_history_is_the_runs() -> None:
    run = read("smac-2.4")
    assert run.space is not None
    assert set(run.space.names) == {"C", "kernel", "gamma", "degree", "shrinking"}
    assert run.X.shape == (6, 5)
    assert read("smac-1.4").space is None


def test_notes_tell_of_means_budgets_and_failures() -> None:
    notes = {trial.notes for trial in read("smac-2.4").trials}
    assert notes == {("mean of 3 evaluations",), (), ("ended as CRASHED: RuntimeError('no convergence')",)}
    notes = {trial.notes for trial in read("smac-2.4-budgets").trials}
    assert ("at budget 9",) in notes
    assert ("at budget 3 ended as CRASHED: RuntimeError('no convergence')",) in notes


def test_the_run_is_named_by_scenario_and_seed_or_as_asked(tmp_path: Path) -> None:
    folder = tmp_path / "svm" / "3"
    shutil.copytree(DATA / "smac-2.4", folder)
    assert read_runs(folder)[0].task == "svm/3"
    assert read_runs(folder, task="a9a")[0].task == "a9a"
    other = (folder / "runhistory.json").rename(folder / "old.json")
    assert read_runs(other)[0].task == "old"


def test_seconds_add_up_and_the_mean_is_over_seeds_and_instances(tmp_path: Path) -> None:
    data = [entry(cost=0.2, seed=1), entry(cost=0.4, seed=2, instance="i"), entry(2, cost=1)]
    (run,) = read_runs(history(tmp_path, data))
    assert run.values == [pytest.approx(0.3), 1.0]
    assert [trial.seconds for trial in run.trials] == [4.0, 2.0]


@pytest.mark.parametrize("status", [2, 3, 4])
def test_one_evaluation_that_failed_makes_the_trial_fail(status: int, tmp_path: Path) -> None:
    (run,) = read_runs(history(tmp_path, [entry(seed=1), entry(seed=2, status=status, cost=1e6), entry(2)]))
    assert run.values == [None, 0.5]
    assert run.trials[0].state is FAILED
    assert run.trials[0].notes[0].startswith("1 of 2 evaluations ended as ")


def test_a_success_with_an_infinite_cost_is_a_failure(tmp_path: Path) -> None:
    (run,) = read_runs(history(tmp_path, [entry(cost=float("inf")), entry(2, cost=float("nan"))]))
    assert run.values == [None, None]


def test_what_is_still_running_is_left_out_and_counted(tmp_path: Path) -> None:
    data = [entry(), entry(2, status=0), entry(seed=1, status=0)]
    with pytest.warns(RecollectWarning, match=r"left out evaluations that are still running \(2\)"):
        (run,) = read_runs(history(tmp_path, data))
    assert run.values == [0.5]


@pytest.mark.parametrize(
    ("name", "value"),
    [("SUCCESS", 0.5), ("DONOTADVANCE", 0.5), ("MEMOUT", None), ("ABORT", None), ("TIMEOUT", None), ("CAPPED", "out")],
)
def test_the_states_of_old_versions_are_known(name: str, value: Any, tmp_path: Path) -> None:
    old = [[[1, None, 0], [0.25, 1.0, {"__enum__": "StatusType.SUCCESS"}, None]]]
    data = [*old, [[2, None, 0, 0.0], [0.5, 1.0, {"__enum__": f"StatusType.{name}"}, 0.0, 1.0, {}]]]
    path = history(tmp_path, data)
    if value == "out":
        with pytest.warns(RecollectWarning, match=r"evaluations that were stopped early, CAPPED \(1\)"):
            (run,) = read_runs(path)
        assert run.values == [0.25]
    else:
        (run,) = read_runs(path)
        assert run.values == [0.25, value]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([entry(cost=[0.1, 0.2])], r"entry 0 of 'data': expected one cost, got 2: several objectives cannot be used"),
        ([entry(), entry(3)], r"entry 1 of 'data': there is no configuration '3' in 'configs'"),
        ([entry(status=17)], r"expected a status of SMAC3, got '17'"),
        ([{"config_id": 1}], r"entry 0 of 'data': expected an evaluation as SMAC3 writes it"),
        ([[1, 2]], r"entry 0 of 'data': expected an evaluation as SMAC3 writes it"),
        ([[]], r"expected an evaluation as SMAC3 writes it"),
        ([3], r"expected an evaluation as SMAC3 writes it"),
        ([entry(cost="abc")], r"expected an evaluation as SMAC3 writes it"),
        ([], r"expected a list of evaluations in 'data'"),
        ({}, r"expected a list of evaluations in 'data'"),
    ],
)
def test_other_data_are_refused_with_their_place(data: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=message):
        read_runs(history(tmp_path, data))


@pytest.mark.parametrize("text", ["[]", "{}", '{"data": [], "configs": []}', '{"data": [', "3"])
def test_a_runhistory_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "runhistory.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"runhistory\.json: expected"):
        read_runs(path)


def test_a_history_is_recognised_by_what_it_holds(tmp_path: Path) -> None:
    assert read_runs(history(tmp_path, [entry(cost=[0.25])], name="mine.json"))[0].values == [0.25]
    assert read_runs(history(tmp_path, [entry()], name="mine.txt"), kind="smac")[0].values == [0.5]


def test_a_cost_is_minimized_and_has_no_columns(tmp_path: Path) -> None:
    path = history(tmp_path, [entry()])
    assert read_runs(path, direction="minimize")[0].direction == "minimize"
    with pytest.raises(InputError, match=r"direction is 'minimize', but .*'maximize'"):
        read_runs(path, direction="maximize")
    with pytest.raises(InputError, match=r"value has no meaning here: SMAC stores one cost"):
        read_runs(path, value="cost")
    with pytest.raises(InputError, match=r"columns has no meaning here"):
        read_runs(path, columns={"x": "ignore"})


def test_a_space_that_cannot_be_read_is_left_out_and_told(tmp_path: Path) -> None:
    path = history(tmp_path, [entry()])
    (tmp_path / "configspace.json").write_text("{")
    with pytest.warns(RecollectWarning, match=r"cannot be read, in configspace\.json \(1\)"):
        (run,) = read_runs(path)
    assert run.space is None


def test_configurations_outside_the_space_beside_them_are_refused(tmp_path: Path) -> None:
    shutil.copy(DATA / "smac-2.4" / "configspace.json", tmp_path)
    with pytest.raises(InputError, match=r"do not belong to configspace\.json beside it: .*'x'"):
        read_runs(history(tmp_path, [entry()]))


@pytest.mark.parametrize(
    "fields",
    [
        {"budget": float("nan")},
        {"status": {"__enum__": 5}},
        *({"time": seconds} for seconds in (float("nan"), float("inf"), 1e300, 10**400, "x")),
    ],
)
def test_an_entry_that_smac_does_not_write_is_refused_with_its_place(tmp_path: Path, fields: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="entry 1 of 'data'"):
        read_runs(history(tmp_path, [entry(), entry(2, **fields)]))


def test_numbers_beyond_the_range_of_floats_are_infinite(tmp_path: Path) -> None:
    path = history(tmp_path, [entry(cost=10**400), entry(2, 0.25), entry(2, 0.125, budget=10**400)])
    with pytest.warns(RecollectWarning, match=BELOW):
        assert read_runs(path)[0].values == [None, 0.125]
