"""Names of benchmarks, and where their data are looked for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import recollect
from recollect.bench.data.download import data_folder
from recollect.bench.data.lcbench import lcbench_space
from recollect.bench.data.oboe import OBOE, oboe_space
from recollect.bench.data.openml_bot import bot_space
from recollect.bench.data.table_files import TABLE_FILES
from recollect.bench.problems.suite.suite_benchmarks import SUITE
from recollect.bench.problems.synthetic import FAMILIES
from recollect.bench.registry import BenchmarkSize, fetch, find_entry, load, names, size_of, summarize
from recollect.errors import InputError

PAPER = ("adaboost-grid", "svm-grid", "glmnet", "svm", "xgboost", "lcbench")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RECOLLECT_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RECOLLECT_DATA", raising=False)
    return tmp_path / "home"


def test_the_papers_six_published_tables_the_suite_and_the_formulas_are_known() -> None:
    assert set(names()) == {*PAPER, "lcbench+paper", *TABLE_FILES, *OBOE, *SUITE, *FAMILIES}
    assert names()[:6] == PAPER


def test_the_public_names_of_bench_are_reached_from_recollect() -> None:
    assert recollect.bench.load is load
    assert recollect.bench.names() == names()
    assert callable(recollect.bench.from_table)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = recollect.bench.nonsense
    assert dir(recollect.bench) == sorted(recollect.bench.__all__)


@pytest.mark.parametrize("name", FAMILIES)
def test_a_formula_loads_without_data(name: str) -> None:
    benchmark = load(name)
    assert benchmark.name == name
    row = summarize(find_entry(name))
    assert row["offline"]
    assert (row["tasks"], row["hyperparameters"], row["conditional"]) == size_of(benchmark)
    assert fetch(name) is None
    with pytest.raises(InputError, match="needs no data, so it takes no path"):
        load(name, "somewhere")


@pytest.mark.parametrize("name", PAPER)
def test_missing_data_are_one_sentence_that_says_how_to_get_them(name: str) -> None:
    assert not summarize(find_entry(name))["offline"]
    with pytest.raises(InputError, match=f"not on this computer; `recollect bench fetch {name}` gets them from https"):
        load(name)


@pytest.mark.parametrize("name", ["glmnet", "svm", "xgboost"])
def test_the_listed_size_is_that_of_the_space_of_the_bots_tables(name: str) -> None:
    space, size = bot_space(name), find_entry(name).size
    conditional = sum(condition is not None for condition in space.conditions)
    assert size == BenchmarkSize(38, len(space.names), conditional)


def test_the_listed_size_is_that_of_lcbench() -> None:
    assert find_entry("lcbench").size == BenchmarkSize(35, len(lcbench_space().names), 0)


@pytest.mark.parametrize("name", OBOE)
def test_the_listed_size_is_that_of_the_space_of_oboe(name: str) -> None:
    space = oboe_space(name)
    conditional = sum(condition is not None for condition in space.conditions)
    assert find_entry(name).size == BenchmarkSize(418, len(space.names), conditional)


@pytest.mark.parametrize("name", TABLE_FILES)
def test_the_listed_size_is_that_of_the_space_of_a_table(name: str) -> None:
    space, table = TABLE_FILES[name].space(), TABLE_FILES[name]
    conditional = sum(condition is not None for condition in space.conditions)
    assert find_entry(name).size == BenchmarkSize(table.tasks, len(space.names), conditional)


@pytest.mark.parametrize("name", TABLE_FILES)
def test_missing_data_that_nobody_publishes_are_said_to_come_from_a_copy(name: str) -> None:
    with pytest.raises(InputError, match=f"`recollect bench fetch {name} --from PATH` .*derived from https"):
        load(name)
    with pytest.raises(InputError, match=r"nothing to download .* --from"):
        fetch(name)


def test_the_agreement_of_tasks_is_listed_for_every_benchmark_whose_data_could_be_had() -> None:
    unknown = [name for name in names() if find_entry(name).agreement is None]
    assert unknown == ["glmnet", "svm", "xgboost"]
    assert all(-1.0 <= (find_entry(name).agreement or 0.0) <= 1.0 for name in names())


def test_all_benchmarks_of_oboe_share_one_copy_of_the_data(home: Path) -> None:
    assert {find_entry(name).folder() for name in OBOE} == {home / "oboe"}


def test_every_published_file_has_an_address_of_its_own() -> None:
    parts = [part for name in PAPER for part in find_entry(name).files]
    assert len({part.url for part in parts}) == len(parts) == 50 + 50 + 3 + 70
    assert all(part.url.startswith("https://") for part in parts)


def test_data_are_looked_for_in_the_data_folder_then_in_the_named_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, given = find_entry("svm-grid"), tmp_path / "given"
    given.mkdir()
    monkeypatch.setenv("RECOLLECT_DATA", str(given))
    assert entry.find_data() is None
    (given / "schilling_svm_original.tar.gz").touch()
    assert entry.find_data() == given / "schilling_svm_original.tar.gz"
    (given / "svm-grid").mkdir()
    assert entry.find_data() == given / "svm-grid"
    (home / "svm-grid").mkdir(parents=True)
    assert entry.find_data() == home / "svm-grid"


def test_a_variant_has_the_data_of_the_original(home: Path) -> None:
    assert find_entry("lcbench+paper").folder() == find_entry("lcbench").folder() == home / "lcbench"


@pytest.mark.parametrize(("name", "hint"), [("svmgrid", "did you mean 'svm-grid'"), ("???", "there are 36: adaboost")])
def test_an_unknown_name_is_refused_with_close_matches(name: str, hint: str) -> None:
    with pytest.raises(InputError, match="there is no benchmark ") as refused:
        load(name)
    assert hint in str(refused.value)


def test_the_data_folder_is_the_one_that_the_environment_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_DATA_HOME", "~/mine")
    assert data_folder() == Path.home() / "mine"


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have other folders")
def test_otherwise_it_is_the_users_folder_for_data(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECOLLECT_DATA_HOME", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert data_folder() == Path("/data/recollect")
