"""Building a part of the embedded suite as a maintainer does: in processes, stopped and continued, from the command."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from recollect.bench.problems.suite.builder import BuildSettings, TrainingUnit, build_suite, measure_unit, missing_units
from recollect.bench.problems.suite.suite_benchmarks import check_results, configurations, load_suite, read_provenance
from recollect.cli.bench import build
from recollect.errors import InputError

pytest.importorskip("sklearn", reason="models are trained with scikit-learn")

DIGITS = BuildSettings(datasets=("digits",), first=3)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with three configurations of a support vector machine, measured on digits by one process."""
    folder = tmp_path_factory.mktemp("built")
    build_suite("own-svm", folder, work=folder / "work", settings=DIGITS)
    return folder


def test_worker_processes_measure_the_same_errors_as_this_process(built: Path) -> None:
    here = measure_unit(TrainingUnit("own-svm", "digits", (0, 1, 2)))
    benchmark = load_suite("own-svm", built)
    assert benchmark.candidates is not None
    task = benchmark.task("digits")
    assert [task.evaluate(config) for config in benchmark.candidates] == [found.error for found in here]
    assert len({found.error for found in here}) > 1


def test_stored_numbers_can_be_confirmed_by_training_again(built: Path) -> None:
    for checked in check_results("own-svm", [("digits", 0), ("digits", 2)], built):
        assert checked.measured == checked.stored
    with pytest.raises(InputError, match="expected a stored task"):
        check_results("own-svm", [("digits", 77)], built)


def test_an_interrupted_build_continues_and_two_processes_give_the_same_file(built: Path, tmp_path: Path) -> None:
    def stop_at_first(done: int, total: int) -> None:
        assert total == 3
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_suite("own-svm", tmp_path, work=tmp_path, settings=DIGITS, progress=stop_at_first)
    assert not (tmp_path / "own-svm.csv.gz").exists()
    seen: list[tuple[int, int]] = []
    two = BuildSettings(jobs=2, datasets=("digits",), first=3)
    path = build_suite("own-svm", tmp_path, work=tmp_path, settings=two, progress=lambda *counts: seen.append(counts))
    assert seen == [(1, 3), (2, 3), (3, 3)]  # the first was kept
    assert path.read_bytes() == (built / path.name).read_bytes()


def test_the_provenance_records_how_the_numbers_were_computed(built: Path) -> None:
    record = read_provenance(built)["spaces"]["own-svm"]
    assert record["cells"] == 3
    assert record["trainings"] == 3 * record["repeats"]["digits"]
    assert record["versions"]["scikit-learn"]
    assert record["protocol"]["seeds"]
    assert record["wall_seconds"] > 0
    assert record["failed"] == record["late"] == {}
    assert str(built) not in str(record)


def test_a_training_over_the_time_limit_has_the_error_of_guessing_and_is_listed(tmp_path: Path) -> None:
    hasty = BuildSettings(datasets=("digits",), first=2, limit=1e-6)
    build_suite("own-glmnet", tmp_path, work=tmp_path, settings=hasty)
    assert load_suite("own-glmnet", tmp_path).task("digits").worst == 0.5
    assert read_provenance(tmp_path)["spaces"]["own-glmnet"]["late"] == {"digits": [0, 1]}


def test_configurations_that_share_a_training_are_one_unit() -> None:
    configs = configurations("own-adaboost")
    units = missing_units(
        "own-adaboost", ("iris", "wine"), numbers=tuple(range(108)), done={("iris", 0), ("wine", 107)}
    )
    assert len(units) == 2 * 9
    assert sum(len(unit[2]) for unit in units) == 2 * 108 - 2
    for _, _, numbers in units:
        assert len({configs[number]["depth"] for number in numbers}) == 1


def test_the_command_builds_and_says_where_the_table_is(tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(build)
    folders = ["--out", str(tmp_path), "--work", str(tmp_path)]
    done = CliRunner().invoke(app, ["own-glmnet", "--dataset", "digits", "--first", "1", "--jobs", "1", *folders])
    assert done.exit_code == 0, done.output
    assert "own-glmnet.csv.gz" in done.output.replace("\n", "")
    command = read_provenance(tmp_path)["spaces"]["own-glmnet"]["command"]
    assert command == "recollect bench build own-glmnet --jobs 1 --dataset digits --first 1"


@pytest.mark.parametrize("arguments", [["own-nonsense"], ["own-svm", "--dataset", "nonsense"]])
def test_unknown_names_are_refused_before_any_training(arguments: list[str], tmp_path: Path) -> None:
    app = typer.Typer()
    app.command()(build)
    done = CliRunner().invoke(app, [*arguments, "--out", str(tmp_path), "--work", str(tmp_path)])
    assert isinstance(done.exception, InputError)
    assert list(tmp_path.iterdir()) == []
