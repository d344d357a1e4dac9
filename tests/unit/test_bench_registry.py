"""Names of benchmarks, and where their data are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

import recollect
from recollect.bench import registry
from recollect.bench.fetch import data_folder
from recollect.bench.loaders.lcbench import lcbench_space
from recollect.bench.loaders.openml_bot import bot_space
from recollect.bench.registry import Shape, entry_of, fetch, listed, load, names, shape_of
from recollect.bench.suite import SUITE
from recollect.errors import InputError

PAPER = ("adaboost-grid", "svm-grid", "glmnet", "svm", "xgboost", "lcbench")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RECOLLECT_DATA_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("RECOLLECT_DATA", raising=False)
    return tmp_path / "home"


def test_the_papers_six_the_suite_and_the_formulas_are_known() -> None:
    assert set(names()) == {*PAPER, "lcbench+paper", *SUITE, *registry.FORMULAS}
    assert names()[:6] == PAPER


def test_the_public_names_of_bench_are_reached_from_recollect() -> None:
    assert recollect.bench.load is load
    assert recollect.bench.names() == names()
    assert callable(recollect.bench.from_table)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = recollect.bench.nonsense


@pytest.mark.parametrize("name", registry.FORMULAS)
def test_a_formula_loads_without_data(name: str) -> None:
    benchmark = load(name)
    assert benchmark.name == name
    row = listed(entry_of(name))
    assert row.offline
    assert row.shape == shape_of(benchmark)
    assert fetch(name) is None
    with pytest.raises(InputError, match="needs no data, so it takes no path"):
        load(name, "somewhere")


@pytest.mark.parametrize("name", PAPER)
def test_missing_data_are_one_sentence_that_says_how_to_get_them(name: str) -> None:
    assert not listed(entry_of(name)).offline
    with pytest.raises(InputError, match=f"not on this computer; `recollect bench fetch {name}` gets them from https"):
        load(name)


@pytest.mark.parametrize("name", ["glmnet", "svm", "xgboost"])
def test_the_listed_shape_is_that_of_the_space_of_the_bots_tables(name: str) -> None:
    space, shape = bot_space(name), entry_of(name).shape
    conditional = sum(condition is not None for condition in space.conditions)
    assert shape == Shape(38, len(space.names), conditional)


def test_the_listed_shape_is_that_of_lcbench() -> None:
    assert entry_of("lcbench").shape == Shape(35, len(lcbench_space().names), 0)


def test_every_published_file_has_an_address_of_its_own() -> None:
    parts = [part for name in PAPER for part in entry_of(name).parts]
    assert len({part.url for part in parts}) == len(parts) == 50 + 50 + 4
    assert all(part.url.startswith("https://") for part in parts)


def test_data_are_looked_for_in_the_data_folder_then_in_the_named_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry, given = entry_of("svm-grid"), tmp_path / "given"
    given.mkdir()
    monkeypatch.setenv("RECOLLECT_DATA", str(given))
    assert entry.place() is None
    (given / "schilling_svm_original.tar.gz").touch()
    assert entry.place() == given / "schilling_svm_original.tar.gz"
    (given / "svm-grid").mkdir()
    assert entry.place() == given / "svm-grid"
    (home / "svm-grid").mkdir(parents=True)
    assert entry.place() == home / "svm-grid"


def test_a_variant_has_the_data_of_the_original(home: Path) -> None:
    assert entry_of("lcbench+paper").home() == entry_of("lcbench").home() == home / "lcbench"


@pytest.mark.parametrize(("name", "told"), [("svmgrid", "did you mean 'svm-grid'"), ("???", "there are 19: adaboost")])
def test_an_unknown_name_is_refused_with_close_matches(name: str, told: str) -> None:
    with pytest.raises(InputError, match="there is no benchmark ") as refused:
        load(name)
    assert told in str(refused.value)


@pytest.mark.parametrize(
    ("platform", "variables", "expected"),
    [
        ("linux", {}, "~/.local/share/recollect"),
        ("linux", {"XDG_DATA_HOME": "/data"}, "/data/recollect"),
        ("linux", {"XDG_DATA_HOME": "relative"}, "~/.local/share/recollect"),
        ("darwin", {}, "~/Library/Application Support/recollect"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/recollect/data"),
        ("win32", {}, "~/AppData/Local/recollect/data"),
        ("linux", {"RECOLLECT_DATA_HOME": "~/mine"}, "~/mine"),
    ],
)
def test_the_data_folder_follows_the_systems_custom(
    platform: str, variables: dict[str, str], expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RECOLLECT_DATA_HOME", "XDG_DATA_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", platform)
    assert data_folder() == Path(expected.replace("~", str(tmp_path)))
