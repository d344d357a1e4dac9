"""Published data brought to this computer: downloaded, or taken from a local copy.

What was fetched is kept in the user's data folder, one folder a benchmark: in ``RECOLLECT_DATA_HOME`` if that is set;
else ``XDG_DATA_HOME/recollect`` or ``~/.local/share/recollect``, on Windows ``LOCALAPPDATA/recollect/data``, on macOS
``~/Library/Application Support/recollect``.

A download is resumable (what has come is kept as ``NAME.part`` and asked for no second time) and atomic: the folder of
a benchmark appears under its name when all of its files are there and checked. Sizes and checksums are compared where
the publisher states them; otherwise the size that the server announces is. What was received is written down in
``.fetched.json`` beside the files.
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
from typing import Any

from recollect import __version__
from recollect.errors import InputError, RecollectError
from recollect.system import UserFolder

Progress = Callable[[str, int, int | None], None]
"""Told the file, how many bytes of it have come, and how many there are (None: not known)."""

RECORD = ".fetched.json"
AT_ONCE = 1 << 16
PATIENCE = 30.0  # seconds without an answer
DATA = UserFolder(
    variable="RECOLLECT_DATA_HOME",
    fallback="recollect-data",
    windows="recollect/data",
    mac="Application Support/recollect",
    xdg=("XDG_DATA_HOME", ".local/share"),
)


@dataclass(frozen=True, slots=True)
class Part:
    """One published file; ``checksum`` is ``"md5:..."`` or ``"sha256:..."``, empty where none is published."""

    url: str
    file: str
    size: int | None = None
    checksum: str = ""


def data_folder() -> Path:
    """Folder of fetched data; see the head of the module."""
    return DATA.path()


def fetch_parts(
    folder: Path, parts: Sequence[Part], *, check: Callable[[Path], object], progress: Progress | None = None
) -> Path:
    """Download the files of a benchmark into its folder, which ``check`` looks at before it gets its name."""
    coming = folder.with_name(f"{folder.name}.incomplete")
    with _told(f"cannot write to {folder.parent}"):
        coming.mkdir(parents=True, exist_ok=True)
    try:
        for part in parts:
            download(part, coming, progress=progress)
    except RecollectError:
        if not any(coming.iterdir()):
            coming.rmdir()
        raise
    received = [_record(part, coming / part.file) for part in parts]
    try:
        check(coming)
    except RecollectError:
        shutil.rmtree(coming, ignore_errors=True)  # whole, but not what was expected: to be received anew
        raise
    with _told(f"cannot write to {coming}"):
        (coming / RECORD).write_text(json.dumps({"version": 1, "files": received}, indent=1))
    _put_in_place(coming, folder)
    return folder


def _record(part: Part, file: Path) -> dict[str, Any]:
    """Say what was received: where no checksum is published, this is how others can compare."""
    checked = part.checksum or "no checksum is published"
    return {"url": part.url, "size": file.stat().st_size, "sha256": _digest(file, "sha256"), "checked": checked}


def take_copy(folder: Path, source: Path, *, check: Callable[[Path], object]) -> Path:
    """Copy a local file or folder into the folder of a benchmark, after ``check`` has looked at it."""
    if not source.exists():
        raise InputError(f"{source}: there is no such file or folder")
    check(source)
    with _told(f"cannot copy {source} to {folder}"):
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


def download(part: Part, folder: Path, *, progress: Progress | None = None) -> Path:
    """Bring one file into a folder, and go on where an earlier attempt stopped."""
    target, partial = folder / part.file, folder / f"{part.file}.part"
    if target.exists():
        return target
    have = partial.stat().st_size if partial.exists() else 0
    expected = part.size
    if expected is None or have != expected:
        expected = _receive(part, partial, have, progress=progress)
    got = partial.stat().st_size
    if expected is not None and got < expected:
        raise RecollectError(
            f"{part.url}: expected {expected} bytes, but the connection ended at {got}; try again to go on from there"
        )
    wrong = _what_is_wrong(part, partial, expected)
    if wrong:
        partial.unlink()
        raise RecollectError(f"{part.url}: {wrong}; what was received is thrown away")
    partial.replace(target)
    return target


def _receive(part: Part, partial: Path, have: int, *, progress: Progress | None) -> int | None:
    """Append what is missing to the partial file; return how long the whole is, or None if nobody says.

    Whether the file has changed meanwhile is not asked: published files do not change under their address.
    """
    headers = {"User-Agent": f"recollect/{__version__}", "Accept-Encoding": "identity"}
    if have:
        headers["Range"] = f"bytes={have}-"
    try:
        with urllib.request.urlopen(urllib.request.Request(part.url, headers=headers), timeout=PATIENCE) as answer:
            total = _store(answer, partial, have, tell=lambda done, all_: progress and progress(part.file, done, all_))
    except urllib.error.HTTPError as error:
        if error.code == http.client.REQUESTED_RANGE_NOT_SATISFIABLE and have:
            if error.headers.get("Content-Range") == f"bytes */{have}":  # all of it had come
                return have
            partial.unlink()  # it is longer than what is published
            return _receive(part, partial, 0, progress=progress)
        raise RecollectError(f"{part.url}: the server refuses: {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise RecollectError(
            f"{part.url} cannot be reached ({error.reason}); if this computer is offline, download the file elsewhere "
            "and name it with --from"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise RecollectError(f"{part.url}: interrupted ({error}); try again to go on from there") from error
    return part.size if part.size is not None else total


def _store(
    answer: http.client.HTTPResponse, partial: Path, have: int, *, tell: Callable[[int, int | None], object]
) -> int | None:
    """Write an answer to the partial file: behind what is there if the server goes on from there, else anew."""
    goes_on = answer.status == http.client.PARTIAL_CONTENT
    done = have if goes_on and (answer.headers.get("Content-Range") or "").startswith(f"bytes {have}-") else 0
    if goes_on and not done and have:
        raise http.client.HTTPException(f"asked for bytes from {have}, got {answer.headers.get('Content-Range')}")
    length = answer.headers.get("Content-Length")
    total = None if length is None else done + int(length)
    with partial.open("ab" if done else "wb") as file:
        tell(done, total)
        while chunk := answer.read(AT_ONCE):
            file.write(chunk)
            done += len(chunk)
            tell(done, total)
    return total


def _what_is_wrong(part: Part, file: Path, expected: int | None) -> str:
    """Compare size and checksum with what is published; an empty text if all is well."""
    got = file.stat().st_size
    if expected is not None and got != expected:
        return f"expected {expected} bytes, got {got}"
    if not part.checksum:
        return ""
    kind, _, wanted = part.checksum.partition(":")
    found = _digest(file, kind)
    return "" if found == wanted else f"expected the {kind} checksum {wanted}, got {found}"


def _digest(file: Path, kind: str) -> str:
    with file.open("rb") as content:
        return hashlib.file_digest(content, lambda: hashlib.new(kind, usedforsecurity=False)).hexdigest()


def _put_in_place(complete: Path, folder: Path) -> None:
    """Give a complete folder its name; one that was there before goes."""
    with _told(f"cannot put {folder} in place"):
        old = Path(tempfile.mkdtemp(prefix=f"{folder.name}.old-", dir=folder.parent))
        if folder.exists():
            folder.rename(old / folder.name)
        complete.rename(folder)
        shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Turn a refusal of the file system into one sentence."""
    try:
        yield
    except OSError as error:
        raise RecollectError(f"{what}: {error}") from error
