"""Bring published data to this computer: download them, or copy a local file or folder.

Data are stored in the user's data folder, one folder per benchmark: in ``RECOLLECT_DATA_HOME`` if that is set; else
``XDG_DATA_HOME/recollect`` or ``~/.local/share/recollect``, on Windows ``LOCALAPPDATA/recollect/data``, on macOS
``~/Library/Application Support/recollect``.

Downloads are resumable (a partial file is kept as ``NAME.part``) and atomic: the folder of a benchmark gets its name
when all of its files have arrived and been checked. Sizes and checksums are compared with those that the publisher
states, otherwise the size with the one that the server announces. ``.fetched.json`` records what was received.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import shutil
import tempfile
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from recollect import __version__
from recollect._files import read_text
from recollect._system import user_folder
from recollect.errors import InputError, RecollectError
from recollect.storage.formats.csv_columns import csv_rows

DataCheck = Callable[[Path], object]  # raises an error if a file or folder does not hold the data of a benchmark
DownloadProgress = Callable[[str, int, int | None], None]
"""Called with the file, the number of bytes received, and the total if known."""

RECORD_FILE = ".fetched.json"
CHUNK_BYTES = 1 << 16
TIMEOUT = 30.0  # seconds without an answer


@dataclass(frozen=True, slots=True)
class PublishedFile:
    """One published file; ``checksum`` is ``"md5:..."`` or ``"sha256:..."``, empty if none is published."""

    url: str
    file: str
    size: int | None = None
    checksum: str = ""


def data_folder() -> Path:
    """Return the folder of downloaded data; see the head of the module."""
    return user_folder("data", "RECOLLECT_DATA_HOME")


def find_file(path: Path, file: str) -> Path:
    """Return the data file at a path: the path itself, or the named or only file in a folder."""
    if not path.is_dir():
        return path
    if (path / file).exists():
        return path / file
    files = [entry for entry in path.iterdir() if entry.is_file() and not entry.name.startswith(".")]
    if len(files) != 1:
        raise InputError(f"{path}: expected the file {file} in this folder, got {len(files)} files")
    return files[0]


def published_column(file: str, column: str) -> dict[str, str]:
    """Return a column of a CSV file beside this module, which holds facts about published data, by its first column."""
    (_, header), *rows = csv_rows(file, read_text(Path(__file__).with_name(file)))
    return {row[0]: row[header.index(column)] for _, row in rows}


def download_files(
    folder: Path, files: Sequence[PublishedFile], *, check: DataCheck, progress: DownloadProgress | None = None
) -> Path:
    """Download the files of a benchmark into its folder; ``check`` raises if they are not its data."""
    incomplete = folder.with_name(f"{folder.name}.incomplete")
    with _one_sentence(f"cannot write to {folder.parent}"):
        incomplete.mkdir(parents=True, exist_ok=True)
    try:
        for file in files:
            download(file, incomplete, progress=progress)
    except RecollectError:
        if not any(path.is_file() for path in incomplete.rglob("*")):
            shutil.rmtree(incomplete, ignore_errors=True)
        raise
    records = []
    for file in files:  # without a published checksum, this is how others can compare what they received
        path, checked = incomplete / file.file, file.checksum or "no checksum is published"
        sha256, size = _digest(path, "sha256"), path.stat().st_size
        records.append({"url": file.url, "size": size, "sha256": sha256, "checked": checked})
    try:
        check(incomplete)
    except RecollectError:
        shutil.rmtree(incomplete, ignore_errors=True)  # complete, but not what was expected: download it again
        raise
    with _one_sentence(f"cannot write to {incomplete}"):
        (incomplete / RECORD_FILE).write_text(json.dumps({"version": 1, "files": records}, indent=1))
    _put_in_place(incomplete, folder)
    return folder


def import_copy(folder: Path, source: Path, *, check: DataCheck) -> Path:
    """Copy a local file or folder into the folder of a benchmark; ``check`` raises if it does not hold its data."""
    if not source.exists():
        raise InputError(f"{source}: there is no such file or folder")
    check(source)
    with _one_sentence(f"cannot copy {source} to {folder}"):
        folder.parent.mkdir(parents=True, exist_ok=True)
        copy = Path(tempfile.mkdtemp(prefix=f"{folder.name}.copy-", dir=folder.parent))
        try:
            if source.is_dir():
                shutil.copytree(source, copy, dirs_exist_ok=True)
            else:
                shutil.copy2(source, copy / source.name)
            copy.chmod(0o755)  # mkdtemp hides it from everybody else
        except OSError:
            shutil.rmtree(copy, ignore_errors=True)
            raise
    _put_in_place(copy, folder)
    return folder


def download(published: PublishedFile, folder: Path, *, progress: DownloadProgress | None = None) -> Path:
    """Download one file into a folder; an earlier, interrupted attempt is resumed."""
    target, partial = folder / published.file, folder / f"{published.file}.part"
    if target.exists():
        return target
    with _one_sentence(f"cannot write to {folder}"):
        target.parent.mkdir(parents=True, exist_ok=True)
    received = partial.stat().st_size if partial.exists() else 0
    expected = published.size
    if expected is None or received != expected:
        expected = _receive(published, partial, received, progress)
    received = partial.stat().st_size
    if expected is not None and received < expected:
        raise RecollectError(
            f"{published.url}: expected {expected} bytes, but the connection ended at {received}; try again to resume"
        )
    problem = "" if expected in (None, received) else f"expected {expected} bytes, got {received}"
    if published.checksum and not problem:
        kind, _, checksum = published.checksum.partition(":")
        digest = _digest(partial, kind)
        problem = "" if digest == checksum else f"expected the {kind} checksum {checksum}, got {digest}"
    if problem:
        partial.unlink()
        raise RecollectError(f"{published.url}: {problem}; the received file was deleted")
    partial.replace(target)
    return target


def _receive(published: PublishedFile, partial: Path, received: int, progress: DownloadProgress | None) -> int | None:
    """Append the missing bytes to the partial file; return the size of the whole file, None if it is unknown.

    This does not check whether the file has changed meanwhile: published files do not change under their address.
    """
    headers = {"User-Agent": f"recollect/{__version__}", "Accept-Encoding": "identity"}
    if received:
        headers["Range"] = f"bytes={received}-"

    def report(done: int, total: int | None) -> None:
        if progress is not None:
            progress(published.file, done, total)

    try:
        with urllib.request.urlopen(urllib.request.Request(published.url, headers=headers), timeout=TIMEOUT) as answer:
            total = _store(answer, partial, received, report=report)
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and received:
            if error.headers.get("Content-Range") == f"bytes */{received}":  # the file was complete
                return received
            partial.unlink()  # it is longer than what is published
            return _receive(published, partial, 0, progress)
        raise RecollectError(f"{published.url}: the server refuses: {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise RecollectError(
            f"{published.url} cannot be reached ({error.reason}); if this computer is offline, download the file "
            "elsewhere and pass it with --from"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise RecollectError(f"{published.url}: interrupted ({error}); try again to resume") from error
    return published.size if published.size is not None else total


def _store(
    answer: http.client.HTTPResponse, partial: Path, received: int, *, report: Callable[[int, int | None], None]
) -> int | None:
    """Write an answer to the partial file: append if the server resumes there, otherwise start again."""
    resumes = answer.status == http.client.PARTIAL_CONTENT
    done = received if resumes and (answer.headers.get("Content-Range") or "").startswith(f"bytes {received}-") else 0
    if resumes and not done and received:
        raise http.client.HTTPException(f"requested bytes from {received}, got {answer.headers.get('Content-Range')}")
    length = answer.headers.get("Content-Length")
    total = None if length is None else done + int(length)
    with partial.open("ab" if done else "wb") as file:
        report(done, total)
        while chunk := answer.read(CHUNK_BYTES):
            file.write(chunk)
            done += len(chunk)
            report(done, total)
    return total


def _digest(file: Path, kind: str) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()


def _put_in_place(complete: Path, folder: Path) -> None:
    """Give a complete folder its name, in place of one that was there before."""
    with _one_sentence(f"cannot put {folder} in place"):
        old = Path(tempfile.mkdtemp(prefix=f"{folder.name}.old-", dir=folder.parent))
        if folder.exists():
            folder.rename(old / folder.name)
        complete.rename(folder)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _one_sentence(failure: str) -> Iterator[None]:
    """Turn an error of the file system into a RecollectError."""
    try:
        yield
    except OSError as error:
        raise RecollectError(f"{failure}: {error}") from error
