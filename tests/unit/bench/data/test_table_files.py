"""Tables drawn from larger collections, as small files in the same form."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import replace
from pathlib import Path

import pytest

from recollect.bench.data import table_files
from recollect.bench.data.table_files import TABLE_FILES, load_table_file
from recollect.errors import InputError

SVM = (
    "task,kernel,cost,tolerance,gamma,degree,error\n"
    "1040,radial,702.931,0.0091537,0.277582,,0.0726269\n"
    "1040,linear,7.6591,0.402314,,,-0.00361085\n"
    "1040,polynomial,7.6591,0.402314,,3,0.5\n"
)


def test_a_table_has_its_authors_space_and_an_empty_cell_is_inactive(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(SVM)
    benchmark = load_table_file("svm4d_yahpo", tmp_path / "t.csv", whole=False)
    assert benchmark.candidates == (
        {"kernel": "radial", "cost": 702.931, "tolerance": 0.0091537, "gamma": 0.277582},
        {"kernel": "linear", "cost": 7.6591, "tolerance": 0.402314},
        {"kernel": "polynomial", "cost": 7.6591, "tolerance": 0.402314, "degree": 3},
    )
    task = benchmark.task("1040")
    assert (task.best, task.worst) == (-0.00361085, 0.5)
    assert benchmark.about.licence == "Apache-2.0"


def test_the_error_of_a_curve_is_its_last_value(tmp_path: Path) -> None:
    names = list(TABLE_FILES["taskset"].hyperparameters)
    cells = ["0.001", "0.9", "0.999", "1e-08", "1e-05", "1e-05", "1e-06", "1e-05"]
    header = ",".join(["task", *names, *(f"step_{number}" for number in range(1, 52))])
    row = ",".join(["lm", *cells, *(f"{5 - number / 50}" for number in range(1, 52))])
    (tmp_path / "t.csv").write_text(f"{header}\n{row}\n")
    task = load_table_file("taskset", tmp_path / "t.csv", whole=False).task("lm")
    assert task.best == pytest.approx(5 - 51 / 50)


def test_a_table_is_recognised_packed_or_not_by_its_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = replace(TABLE_FILES["svm4d_yahpo"], sha256=hashlib.sha256(SVM.encode()).hexdigest())
    monkeypatch.setattr(table_files, "TABLE_FILES", {"svm4d_yahpo": known})
    (tmp_path / "t.csv").write_text(SVM)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(SVM.encode()))
    for name in ("t.csv", "t.csv.gz"):
        assert load_table_file("svm4d_yahpo", tmp_path / name).tasks == ("1040",)
    (tmp_path / "t.csv").write_text(SVM.replace("0.5", "0.51"))
    with pytest.raises(InputError, match=f"t.csv: expected the file svm4d_yahpo.csv.gz, .*{known.sha256}"):
        load_table_file("svm4d_yahpo", tmp_path / "t.csv")


def test_a_configuration_outside_the_space_is_refused_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(SVM.replace("702.931", "1e9"))
    with pytest.raises(InputError, match=r"t.csv, line 2: .*cost"):
        load_table_file("svm4d_yahpo", tmp_path / "t.csv", whole=False)


def test_an_unknown_table_is_refused_with_close_matches(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did you mean 'svm4d_yahpo'"):
        load_table_file("svm4d", tmp_path)


@pytest.mark.parametrize("name", TABLE_FILES)
def test_every_table_says_where_it_comes_from(name: str) -> None:
    table = TABLE_FILES[name]
    assert table.source.startswith("https://github.com/")
    assert table.licence in ("Apache-2.0", "BSD-3-Clause")
    assert table.citation
    assert table.derived
    assert len(bytes.fromhex(table.sha256)) == 32
