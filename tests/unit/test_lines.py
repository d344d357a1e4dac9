"""Files that are only appended to: nothing is lost, and nothing is there in part."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from recollect.bench.lines import append_lines, open_lines
from recollect.errors import InputError, StorageError
from recollect.files import put


def test_a_file_is_begun_with_its_head_and_read_back(tmp_path: Path) -> None:
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


def test_without_room_for_a_whole_line_the_file_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "work.csv"
    open_lines(path, "head\n")
    code = (
        "import sys, resource, signal; from pathlib import Path; from recollect.bench.lines import append_lines\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))\n"
        "path = Path(sys.argv[1]); append_lines(path, 'fits\\n')\n"
        "try: append_lines(path, 'a line that is too long\\n')\n"
        "except OSError as error: print(type(error).__name__, 'what was written before is kept' in str(error))"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert done.stdout == "StorageError True\n"
    assert path.read_text() == "head\nfits\n"


def test_a_file_is_put_in_place_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.json"
    put(path, b"first")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        put(path, b"second")
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
        put(tmp_path / "a.json", b"second")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_even_be_begun_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"a\.json: the file cannot be written: No such file or directory"):
        put(tmp_path / "missing" / "a.json", b"content")


def test_a_folder_in_the_place_of_a_file_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match="folder: the file cannot be read and written: Is a directory"):
        open_lines(tmp_path / "folder")
    with pytest.raises(StorageError, match="folder: the file cannot be written: Is a directory"):
        append_lines(tmp_path / "folder", "a\n")
    (tmp_path / "bytes").write_bytes(b"a\n\xff\n")
    with pytest.raises(InputError, match="bytes: expected text: "):
        open_lines(tmp_path / "bytes")
    with pytest.raises(StorageError, match="bytes/below: the folder cannot be made: Not a directory"):
        open_lines(tmp_path / "bytes" / "below" / "lines")
