"""SQLite files, read without Optuna: healed if a writer was killed, and read even where a text is damaged."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any

from recollect.errors import StorageError

SQLITE_TIMEOUT = 60.0
"""Seconds to wait for another process that is writing to the same SQLite file."""

ROWS_AT_ONCE = 1000
"""Rows fetched in one call: few enough to stream, many enough that calls do not count."""

HEALING_ATTEMPTS = 5
"""How often to open a SQLite file whose writers are killed again and again."""


@contextmanager
def sqlite_reader(path: Path) -> Iterator[Callable[[str], Iterator[Any]]]:
    """Yield a function that returns the rows of a query; a text that is not UTF-8 is returned as bytes."""
    with closing(read_only_connection(path)) as connection:

        def read(query: str) -> Iterator[Any]:
            count = 0
            try:
                cursor = connection.execute(query)
                while rows := cursor.fetchmany(ROWS_AT_ONCE):
                    yield from rows
                    count += len(rows)
            except sqlite3.OperationalError as error:
                if "decode to UTF-8" not in str(error):
                    raise
                connection.text_factory = _text_or_bytes  # slower, hence not always
                yield from islice(connection.execute(query), count, None)

        yield read


def read_only_connection(path: Path) -> sqlite3.Connection:
    """Open a SQLite file for reading only, in a transaction: all that is read was true at the same moment."""
    for _ in range(HEALING_ATTEMPTS):
        connection = _connection(path, "ro")
        try:
            connection.execute("begin")
            table_names(connection)
            return connection
        except sqlite3.Error as error:
            connection.close()
            if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_READONLY:
                raise
        except UnicodeDecodeError:  # SQLite quotes a damaged schema in its message, which then is not text
            connection.close()
            raise sqlite3.DatabaseError("malformed database schema") from None
        # A process was killed while it was writing. Only a connection that may write can undo what it left behind.
        with closing(_connection(path, "rw")) as writer, suppress(sqlite3.Error):
            table_names(writer)
    raise StorageError(
        f"{path}: a process was killed while it was writing to this file, and undoing that requires permission to "
        "write to the file and its folder: open the memory once with an account that has it"
    )


def table_names(connection: sqlite3.Connection) -> set[str]:
    """Return the names of the tables in a SQLite database."""
    return {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}


def _connection(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=SQLITE_TIMEOUT)


def _text_or_bytes(content: bytes) -> str | bytes:
    """Return a text; if it is damaged, its bytes, which no reader takes for a text."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return content
