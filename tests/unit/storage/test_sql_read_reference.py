"""What is read from and written to the tables in bulk is what Optuna reads and writes one by one."""

from __future__ import annotations

import gc
import math
import threading
from contextlib import nullcontext
from datetime import datetime, timedelta
from pathlib import Path

import optuna
import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState, create_trial

from recollect.errors import InputError
from recollect.space.space import compile_space
from recollect.storage import sql_read
from recollect.storage.memory import Memory
from recollect.storage.open import open_store
from recollect.storage.optuna_conversion import finished_trials
from recollect.storage.run_reading import valid_trials
from recollect.storage.sql_read import StoredTrial, read_after, read_finished, read_studies
from recollect.storage.sql_write import insert_trials
from recollect.storage.studies import get_or_create_study
from recollect.storage.study_key import StudyKey

DISTRIBUTIONS = {
    "f": FloatDistribution(1e-5, 10.0, log=True),
    "s": FloatDistribution(0.0, 1.0, step=0.25),
    "i": IntDistribution(-3, 9),
    "c": CategoricalDistribution(["x", 3, 2.5, True, None]),
}


def trials() -> list[optuna.trial.FrozenTrial]:
    begun = datetime(2026, 3, 29, 1, 30)  # a night in which clocks are changed in some places
    found = []
    for number, value in enumerate([0.5, math.inf, -math.inf, 1e-300, -2.0]):
        params = {"f": 10.0 ** (number - 4), "s": 0.25 * (number % 4), "i": number - 3}
        params["c"] = DISTRIBUTIONS["c"].choices[number]  # type: ignore[attr-defined]
        if number == 3:
            del params["s"]
        trial = create_trial(
            value=value,
            params=params,
            distributions={name: DISTRIBUTIONS[name] for name in params},
            user_attrs={"note": ["a", {"b": 1}], "other": "'; drop"},
            system_attrs={"hidden": number},
            intermediate_values={1: 0.5, 7: math.nan, 8: math.inf},
        )
        trial.datetime_start = begun
        trial.datetime_complete = begun + timedelta(seconds=number)
        found.append(trial)
    pruned = create_trial(state=TrialState.PRUNED, params={}, distributions={}, intermediate_values={1: 0.25})
    failed = create_trial(state=TrialState.FAIL, params={}, distributions={})
    for trial in (pruned, failed):
        trial.datetime_start, trial.datetime_complete = begun, begun + timedelta(seconds=60)
    return [*found, pruned, failed]


@pytest.fixture(params=["by optuna", "in bulk"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    store = open_store(tmp_path / "m.db")
    for name in ("first", "second"):
        study = optuna.create_study(study_name=name, storage=f"sqlite:///{tmp_path / 'm.db'}")
        if request.param == "by optuna":
            study.add_trials(trials())
        else:
            insert_trials(store.engine, StudyKey(study._study_id), trials())  # type: ignore[arg-type]
        study.ask()
        study.set_user_attr("said", name)
    store.close()
    return tmp_path / "m.db"


def seen_by_optuna(file: Path, name: str) -> list[optuna.trial.FrozenTrial]:
    return optuna.load_study(study_name=name, storage=f"sqlite:///{file}").trials


def test_trials_are_what_optuna_reads(file: Path) -> None:
    found = read_finished(open_store(file), [1, 2], keys=("note",))
    for name, records in zip(("first", "second"), found.values(), strict=True):
        expected = [trial for trial in seen_by_optuna(file, name) if trial.state.is_finished()]
        assert [trial.number for trial in expected] == list(range(7))
        for record, trial in zip(records, expected, strict=True):
            assert (record.id, record.number, record.state) == (trial._trial_id, trial.number, trial.state.name)
            assert record.params == trial.params
            assert list(map(type, record.params.values())) == list(map(type, trial.params.values()))
            assert record.values == trial.values
            assert repr(dict(record.intermediate_values)) == repr(trial.intermediate_values)
            assert record.user_attrs == {key: value for key, value in trial.user_attrs.items() if key == "note"}
            if trial.duration is not None:
                assert record.datetime_complete is not None
                assert record.datetime_start is not None
                assert record.datetime_complete - record.datetime_start == trial.duration


def test_writing_in_bulk_is_what_optuna_writes(file: Path) -> None:
    for trial, given in zip(seen_by_optuna(file, "second"), trials(), strict=False):
        assert (trial.state, trial.values, trial.params) == (given.state, given.values, given.params)
        assert trial.distributions == given.distributions
        assert (trial.user_attrs, trial.system_attrs) == (given.user_attrs, given.system_attrs)
        assert (trial.datetime_start, trial.datetime_complete) == (given.datetime_start, given.datetime_complete)


def test_what_is_made_of_the_records_is_what_is_made_of_optunas_trials(file: Path) -> None:
    records = read_finished(open_store(file), [1], keys=())[1]
    frozen = [trial for trial in seen_by_optuna(file, "first") if trial.state.is_finished()]
    expected = [trial for _, trial in finished_trials(frozen, "minimize")]
    assert valid_trials(records, "minimize") == expected
    assert len(expected) == 7
    plain = [record.as_trial() for record in records]
    assert [trial for trial in plain if trial is not None] == [expected[k] for k in (0, 3, 4, 6)]


def test_unfinished_trials_and_hidden_attributes_are_read_for_the_board(file: Path) -> None:
    records = read_after(open_store(file), StudyKey(1), 2)
    assert [(record.number, record.state) for record in records][-1] == (7, "RUNNING")
    assert [record.system_attrs for record in records][:2] == [{"hidden": 2}, {"hidden": 3}]
    assert records[0].user_attrs["other"] == "'; drop"


def test_studies_are_what_optuna_reads(file: Path) -> None:
    rows = read_studies(open_store(file))
    assert [(row.id, row.name, row.directions, row.user_attrs) for row in rows] == [
        (1, "first", ("MINIMIZE",), {"said": "first"}),
        (2, "second", ("MINIMIZE",), {"said": "second"}),
    ]


def test_more_studies_than_a_query_names_are_all_read(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sql_read, "STUDIES_PER_QUERY", 1)
    assert [len(records) for records in read_finished(open_store(file), [1, 2], keys=()).values()] == [7, 7]


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("fails", [True, False])
def test_the_collection_of_garbage_is_left_as_it_was(
    file: Path, enabled: bool, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []

    def read(*_: object, **__: object) -> list[tuple[int, StoredTrial]]:
        seen.append(gc.isenabled())
        if fails:
            raise InputError("in the middle")
        return []

    monkeypatch.setattr(sql_read, "_read", read)
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with pytest.raises(InputError) if fails else nullcontext():
            read_finished(open_store(file), [1, 2], keys=())
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert seen == [False]


def test_old_names_of_distributions_are_understood() -> None:
    old = '{"name": "IntUniformDistribution", "attributes": {"low": 1, "high": 5, "step": 1}}'
    assert repr(sql_read._decoder(old)(3.0)) == "3"
    assert repr(sql_read._decoder(old.replace("IntUniform", "LogUniform"))(3.0)) == "3.0"


def test_a_record_of_a_running_trial_is_none_of_those_that_count() -> None:
    assert StoredTrial(1, 0, "RUNNING", None, None, None, {}, {}, {}, {}).as_trial() is None


def test_studies_begun_at_the_same_moment_are_one_study(tmp_path: Path) -> None:
    Memory(tmp_path / "m.db").close()
    space = compile_space({"a": (0.0, 1.0)})
    found: list[int] = []

    def start() -> None:
        store = open_store(tmp_path / "m.db")
        found.append(get_or_create_study(store, "p", "t", space=space, direction="minimize").id)

    threads = [threading.Thread(target=start) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [found[0]] * 6
    assert len(read_studies(open_store(tmp_path / "m.db"))) == 1
