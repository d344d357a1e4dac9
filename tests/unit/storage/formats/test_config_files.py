"""Files with configurations."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from recollect import InputError
from recollect.storage.formats.config_files import read_configs

EXPECTED = [{"lr": 0.1, "depth": 3, "kind": "a"}, {"lr": 1e-3, "kind": "b"}]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.json", '[{"lr": 0.1, "depth": 3, "kind": "a"}, {"lr": 0.001, "depth": null, "kind": "b"}]'),
        ("c.jsonl", '{"lr": 0.1, "depth": 3, "kind": "a"}\n{"lr": 0.001, "kind": "b"}\n'),
        ("c.csv", "lr, depth,kind\n0.1,3,a\n1e-3,,b\n"),
    ],
)
def test_json_json_lines_and_csv_hold_the_same(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_configs(tmp_path / name) == EXPECTED
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    assert read_configs(tmp_path / f"{name}.gz") == EXPECTED


def test_a_single_object_is_one_configuration(tmp_path: Path) -> None:
    (tmp_path / "c.json").write_text('{"lr": 0.1}')
    assert read_configs(tmp_path / "c.json") == [{"lr": 0.1}]


@pytest.mark.parametrize(
    ("name", "text"), [("c.json", "[1]"), ("c.json", "["), ("c.csv", ""), ("c.txt", "{}"), ("c.csv", "a,b\n1\n")]
)
def test_anything_else_is_refused_with_the_name_of_the_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=name):
        read_configs(tmp_path / name)


def test_a_file_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_configs(tmp_path / "c.json")
