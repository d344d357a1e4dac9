"""Files are put in place whole or not at all."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from recollect import _files
from recollect._files import read_text, write_atomically
from recollect.errors import InputError, StorageError


def test_a_file_is_put_in_place_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    write_atomically(path, b"first")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        write_atomically(path, b"second")
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("reason", [OSError("no space left"), KeyboardInterrupt("stopped")])
def test_what_was_written_in_part_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: BaseException
) -> None:
    def half(place: Path, content: bytes) -> None:
        with place.open("wb") as file:
            file.write(content[:3])
        raise reason

    monkeypatch.setattr(Path, "write_bytes", half)
    expected = StorageError if isinstance(reason, OSError) else type(reason)
    with pytest.raises(expected, match=str(reason)):
        write_atomically(tmp_path / "a.json", b"second")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_even_be_begun_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"a\.json: the file cannot be written: No such file or directory"):
        write_atomically(tmp_path / "missing" / "a.json", b"content")


def test_a_gz_file_that_would_fill_the_memory_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"1,2\n" * 2**18))
    assert len(read_text(path)) == 2**20  # packs more than 200 times, but is small
    monkeypatch.setattr(_files, "UNPACKED_ANYWAY", 2**10)
    with pytest.raises(InputError, match=r"a\.csv\.gz: expected at most .* MB .*unpack"):
        read_text(path)
    monkeypatch.setattr(_files, "MAX_RATIO", 2000)
    assert len(read_text(path)) == 2**20
    monkeypatch.setattr(_files, "MAX_UNPACKED", 2**19)
    with pytest.raises(InputError, match="expected at most"):
        read_text(path)
