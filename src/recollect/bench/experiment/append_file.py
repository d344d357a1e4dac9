"""Append-only files: work can be stopped at any time by Ctrl-C, kill -9 or a full disk, and resumed.

Whole lines are written with one call and reach the disk before it returns. A last line that was cut off is dropped when
the file is opened again; a line that does not fit on the disk leaves the file as it was.
"""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from recollect._files import make_folder, write_atomically
from recollect.errors import InputError, StorageError

Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class CsvRecords(Generic[Record]):
    """The format of a CSV file with a header line and one record per line."""

    fields: tuple[str, ...]  # names of the columns
    to_cells: Callable[[Record], Iterable[object]]
    from_cells: Callable[[Sequence[str]], Record]  # of as many cells as fields; its ValueError says what is wrong

    def open(self, path: Path) -> list[Record]:
        """Return the records of a file to append to; it is created if there is none."""
        return self.parse(path, open_lines(path, csv_line(self.fields)))

    def append(self, path: Path, *records: Record) -> None:
        """Append records, all or none of them."""
        append_lines(path, self.lines(records))

    def lines(self, records: Iterable[Record]) -> str:
        """Return records as lines of the file."""
        return "".join(csv_line(self.to_cells(record)) for record in records)

    def parse(self, path: Path, text: str, *, header: bool = True) -> list[Record]:
        """Return the records of a text; InputError with file, line and reason if it has other content.

        Without ``header``, the first line of the file is something else, and ``text`` begins with the second.
        """
        limit = csv.field_size_limit(len(text) + 1)  # however long a cell is
        try:
            rows = list(csv.reader(io.StringIO(text, newline="")))
        except csv.Error as error:
            raise InputError(f"{path}: expected a CSV file: {error}") from error
        finally:
            csv.field_size_limit(limit)
        names = rows.pop(0) if header and rows else []
        if header and tuple(names) != self.fields:
            raise InputError(f"{path}, line 1: expected {','.join(self.fields)}, got {','.join(names)[:200]!r}")
        records = []
        for number, row in enumerate(rows, start=2):
            try:
                if len(row) != len(self.fields):
                    raise ValueError(f"expected {len(self.fields)} cells, got {len(row)}")
                records.append(self.from_cells(row))
            except ValueError as error:
                raise InputError(f"{path}, line {number}: {error}") from error
        return records


def open_lines(path: Path, header: str = "") -> str:
    """Return the whole lines of a file as one text; the file is created with ``header`` if there is none."""
    if not path.exists():
        make_folder(path.parent)
        write_atomically(path, header.encode("utf-8"))
        return header
    try:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(path, whole)
        return content[:whole].decode("utf-8")
    except OSError as error:
        raise StorageError(f"{path}: the file cannot be read and written: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected text: {error}") from error


def append_lines(path: Path, text: str) -> None:
    """Append whole lines, all or none of them."""
    data = text.encode("utf-8")
    try:
        handle = os.open(path, os.O_WRONLY | os.O_APPEND)
    except OSError as error:
        raise StorageError(f"{path}: the file cannot be written: {error.strerror or error}") from error
    try:
        size = os.fstat(handle).st_size
        try:
            written = os.write(handle, data)
            if written < len(data):
                raise OSError(f"only {written} of {len(data)} bytes could be written")
            os.fsync(handle)
        except OSError as error:
            os.ftruncate(handle, size)
            raise StorageError(f"{path}: {error}; what was written before is kept") from error
    finally:
        os.close(handle)


def csv_line(cells: Iterable[object]) -> str:
    """Return cells as a line of a CSV file."""
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n").writerow(list(cells))
    return buffer.getvalue()
