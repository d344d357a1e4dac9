"""Append-only files: nothing is lost, and nothing is there in part."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.bench.experiment.append_file import CsvRecords, append_lines, open_lines
from recollect.errors import InputError, StorageError


def test_a_file_is_created_with_its_header_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "work.csv"
    assert open_lines(path, "head\n") == "head\n"
    append_lines(path, "one\n")
    append_lines(path, "two\nthree é\n")
    assert open_lines(path, "another head\n") == "head\none\ntwo\nthree é\n"


def test_a_line_that_was_cut_off_is_dropped_for_good(tmp_path: Path) -> None:
    path = tmp_path / "work.csv"
    path.write_bytes("head\none\ntw\xc3".encode("latin-1"))
    assert open_lines(path) == "head\none\n"
    append_lines(path, "two\n")
    assert path.read_text() == "head\none\ntwo\n"


def test_a_folder_in_the_place_of_a_file_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="folder: the file cannot be read and written: Is a directory"):
        open_lines(tmp_path / "folder")
    with pytest.raises(StorageError, match="folder: the file cannot be written: Is a directory"):
        append_lines(tmp_path / "folder", "a\n")
    (tmp_path / "bytes").write_bytes(b"a\n\xff\n")
    with pytest.raises(InputError, match="bytes: expected text: "):
        open_lines(tmp_path / "bytes")
    with pytest.raises(StorageError, match="bytes/below: the folder cannot be created: Not a directory"):
        open_lines(tmp_path / "bytes" / "below" / "lines")


RECORDS = CsvRecords(
    ("name", "count"), to_cells=lambda record: record, from_cells=lambda cells: (cells[0], int(cells[1]))
)


def test_records_are_read_back_and_may_have_long_cells_and_commas(tmp_path: Path) -> None:
    path, records = tmp_path / "records.csv", [("a, b", 1), ("x" * 200_000, 2)]
    assert RECORDS.open(path) == []
    RECORDS.append(path, *records)
    assert RECORDS.open(path) == records
    assert path.read_text().splitlines()[:2] == ["name,count", '"a, b",1']
    header, _, body = path.read_text().partition("\n")
    assert RECORDS.parse(path, body, header=False) == RECORDS.parse(path, f"{header}\n{body}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1: expected name,count"),
        ("name\n", "line 1: expected name,count"),
        ("name,count\na\n", "line 2: expected 2 cells"),
        ("name,count\na,1\nb,two\n", "line 3: .*'two'"),
    ],
)
def test_files_with_other_content_are_refused_with_line_and_reason(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RECORDS.parse(tmp_path / "records.csv", text)
