"""A memory, opened for reading only, as far as its storage can be opened so; one that is not there is refused.

SQLite files are opened with ``mode=ro``, sessions of PostgreSQL and MySQL are told to be read-only. Journals have no
such mode; nothing here writes to them.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

from recollect.errors import StorageError
from recollect.history.memory import Memory
from recollect.history.storage import SQLITE, URL, faults, shown

JOURNAL = re.compile("journal:(//)?")
READ_ONLY = {
    "postgresql": ("options", "-c default_transaction_read_only=on"),
    "mysql": ("init_command", "SET SESSION TRANSACTION READ ONLY"),
}


def open_to_read(where: str) -> Memory:
    """Open a memory that is there; StorageError if it is not."""
    name = shown(where)
    if JOURNAL.match(where):
        _check_file(JOURNAL.sub("", where, count=1), name)
        return Memory(where)
    if where.startswith(SQLITE) or not URL.match(where):
        file = where.removeprefix(SQLITE).removeprefix("file:").partition("?")[0] if URL.match(where) else where
        memory = Memory(_sqlite(_check_file(file, name)))
    else:
        memory = _database(where, name)
    memory.store.name = name  # not the address with all that was added to it
    return memory


def _check_file(file: str, name: str) -> Path:
    path = Path(file).expanduser()
    with faults(name):
        if not path.exists() or (path.is_file() and path.stat().st_size == 0):
            raise StorageError(f"{name}: there is no such memory")
    return path.absolute()


def _sqlite(path: Path) -> str:
    """Return the address that opens a SQLite file for reading; a name with signs of a URI in it is left as it is."""
    plain = path.is_file() and not re.search("[%?#]", str(path))
    return f"{SQLITE}file:{path.as_posix()}?mode=ro&uri=true" if plain else str(path)


def _database(address: str, name: str) -> Memory:
    try:
        return Memory(_session(address))
    except StorageError as error:
        if "read-only" not in str(error).lower():
            raise
        raise StorageError(f"{name}: there is no such memory: the database has no studies") from error


def _session(address: str) -> str:
    """Return the address of a database with the wish for read-only sessions, unless it has wishes of that kind."""
    name, wish = READ_ONLY.get(re.split(r"[+:]", address)[0], ("", ""))
    if not name or f"{name}=" in address.partition("?")[2]:
        return address
    return f"{address}{'&' if '?' in address else '?'}{name}={quote(wish)}"
