"""``recollect bench table`` and ``recollect bench pack``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.helpers.result_tables import runs_of

from recollect import InputError, StorageError
from recollect.bench.experiment.results import append_result, open_results, pack_results
from recollect.cli.bench import pack as pack_command
from recollect.cli.bench import table as command


def test_the_command_reads_folders_and_files_and_prints_or_writes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, packed = tmp_path / "one", tmp_path / "two.csv.gz"
    open_results(folder / "runs.csv")
    for run in runs_of({"gp": 0.4}):
        append_result(folder / "runs.csv", run)
    pack_results(runs_of({"rgpe-taf": 0.1}), packed)
    command([folder, packed], which="main")
    shown = capsys.readouterr().out
    assert "| GP | 43.50 (9.66) |" in shown
    assert "| RGPE(TAF) | <ins>**13.50**</ins> (<ins>**2.95**</ins>) |" in shown
    out = tmp_path / "new" / "table.md"
    command([folder, packed], which="main", out=out)
    assert out.read_text() == shown
    assert capsys.readouterr().out == f"{out}\n"
    command([folder, packed], which="main", form="csv", benchmark=["svm-grid"])
    assert capsys.readouterr().out.startswith("table,block,row,method,benchmark,column,value")
    alone = runs_of({"gp": 0.9})[0]
    append_result(folder / "runs.csv", replace(alone, key=alone.key._replace(repetition=7)))
    command([folder, packed], which="main")
    assert capsys.readouterr().out != shown
    command([folder, packed], which="main", common=True)
    assert capsys.readouterr().out == shown


def test_results_are_not_overwritten_by_tables_or_packed_results(tmp_path: Path) -> None:
    file = tmp_path / "runs.csv"
    pack_results(runs_of({"gp": 0.2}), file)
    before = file.read_bytes()
    for given in (file, tmp_path):
        with pytest.raises(InputError, match="results are read from"):
            command([given], out=file)
        with pytest.raises(InputError, match="results are read from"):
            pack_command([given], out=file)
    with pytest.raises(InputError, match=r"x\.zip: expected a name that ends in \.csv\.gz, \.csv\.xz or \.csv"):
        pack_command([file], out=tmp_path / "x.zip")
    assert file.read_bytes() == before


def test_errors_of_the_command_name_file_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    pack_results(runs_of({"gp": 0.4}), tmp_path / "runs.csv.gz")
    with pytest.raises(InputError, match="expected a file of results, but there is none"):
        command([path])
    with pytest.raises(InputError, match="is both in"):
        command([tmp_path / "runs.csv.gz", tmp_path / "runs.csv.gz"])
    with pytest.raises(StorageError, match="the file cannot be written: Is a directory"):
        command([tmp_path / "runs.csv.gz"], out=tmp_path)
