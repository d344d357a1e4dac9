"""Optuna storages, opened by their address.

    tuning.db, some/folder/tuning.db      a SQLite file
    :memory:                              a SQLite database in this process, as in sqlite3
    journal:some/folder/tuning.log        a journal file of Optuna
    redis://host:6379                     a journal in Redis
    postgresql://..., mysql://...         any database that Optuna and SQLAlchemy support

A `Store` is an open storage. SQL databases are read and written in bulk (`storage.sql_read`, `storage.sql_write`).
Every failure of a storage becomes a StorageError that names it, without its password.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from traceback import walk_tb
from typing import TYPE_CHECKING, Any, TypeVar, cast
from weakref import finalize

from recollect._text import name_list
from recollect.errors import (
    InputTypeError,
    MissingExtraError,
    ReadOnlyStorageError,
    RecollectError,
    StorageError,
)
from recollect.storage.journals import journal_file, journal_redis
from recollect.storage.sqlite_file import SQLITE_TIMEOUT, read_only_connection, sqlite_reader, table_names

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from sqlalchemy.engine import Engine

    from recollect.storage.sql_read import Damage

CREATION_PAUSES = (0.1, 0.3, 1.0, 3.0)
"""Seconds to wait before each new attempt while another process creates the tables of a database."""

UNREACHABLE_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0)
"""Seconds to wait before each new attempt while the server of a storage cannot be reached."""

STUDIES_TABLE, VERSION_TABLE = "studies", "alembic_version"
KNOWN_SCHEMA = "v3.2.0.a"
"""The version of Optuna's tables that is accepted without asking Optuna, which takes half a second."""

T = TypeVar("T")
JOURNAL, SQLITE, IN_MEMORY = "journal:", "sqlite:///", ":memory:"
DRIVERS = {"postgresql": "recollect[postgres]", "mysql": "pymysql", "redis": "recollect[redis]"}
URL = re.compile(r"^[A-Za-z][A-Za-z0-9+_]+://")
PASSWORD = re.compile(r"(?<=://)([^/@:?]*:)(.*)(?=@)", re.DOTALL)  # up to the last @: it may contain others
SECRET_OPTION = re.compile(r"([?&;][^=&;]*(?:pass(?!file)|pwd|secret|token)[^=&;]*=)[^&;#]*", re.IGNORECASE)
FILE_PREFIX = re.compile(r"sqlite(\+\w+)?:///(file:)?|journal:(//)?")


class Store:
    """An open storage.

    A SQLite file with a known schema is opened with Optuna only when something is written, and a file that does not
    exist is created only then.

    Attributes:
        name: The storage as messages show it.
        address: What opens the storage again in another process; None if nothing does.
        reported: Damage that a warning has named.
    """

    def __init__(
        self, name: str, address: str | None, connect: Callable[[], BaseStorage], *, file: Path | None = None
    ) -> None:
        """``connect`` returns Optuna's storage; ``file`` is a SQLite file with a known schema."""
        self.name, self.address = name, address
        self.reported: set[Damage] = set()
        self._connect, self._file = connect, file
        if file is None and not self.missing:
            self.optuna  # noqa: B018 - so that errors are raised now

    @property
    def missing(self) -> str:
        """Why there is nothing to read, "" if there may be: a file is created when something is first written."""
        return "" if self.address is None or "optuna" in self.__dict__ else missing_reason(self.address)

    @cached_property
    def optuna(self) -> BaseStorage:
        """Optuna's storage."""
        return self._connect()

    @cached_property
    def engine(self) -> Engine | None:
        """SQLAlchemy's engine of a SQL database, None for other storages."""
        from optuna.storages import RDBStorage

        backend = getattr(self.optuna, "_backend", self.optuna)
        return backend.engine if isinstance(backend, RDBStorage) else None

    @property
    def sql(self) -> bool:
        """Whether it is a SQL database."""
        return self._file is not None or self.engine is not None

    @property
    def sqlite(self) -> bool:
        """Whether it is a SQLite database."""
        return self._file is not None or (self.engine is not None and self.engine.dialect.name == "sqlite")

    @property
    def journal(self) -> Path | None:
        """The journal file that it is, if it is one."""
        return file_of(self.address) if self.address is not None and self.address.startswith(JOURNAL) else None

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], Iterable[Any]]]:
        """Yield a function that fetches the rows of a query from a SQL database."""
        if self._file is not None:
            with sqlite_reader(self._file) as read:
                yield read
            return
        assert self.engine is not None
        with closing(self.engine.raw_connection()) as raw:

            def fetch(query: str) -> Iterable[Any]:
                cursor = raw.cursor()
                cursor.execute(query)
                return cast(Iterable[Any], cursor.fetchall())

            yield fetch

    def close(self) -> None:
        """Close the connections to a database."""
        if "optuna" in self.__dict__ and self.engine is not None:
            self.optuna.remove_session()
            self.engine.dispose()


def open_store(where: str | os.PathLike[str] | BaseStorage) -> Store:
    """Open a storage; a file that does not exist is created by the first write, a database on a server at once."""
    if not isinstance(where, str | os.PathLike):
        return _store_of(where)
    address = os.fspath(where)
    if not isinstance(address, str) or not address.strip():
        raise InputTypeError(f"memory: expected a file name or a storage URL, got {where!r}")
    name = without_password(address)
    with storage_errors(name):
        if address.startswith(JOURNAL):
            path = cast(Path, file_of(address)).absolute()
            _is_file(path, "a journal file")
            return Store(name, f"{JOURNAL}{path}", lambda: journal_file(path))
        if address.startswith(("redis://", "rediss://", "unix://")):
            return Store(name, address, lambda: journal_redis(address, name))
        if not URL.match(address):
            address = SQLITE + IN_MEMORY if address == IN_MEMORY else sqlite_address(Path(address).expanduser())
        file = _known_file(address) if address.startswith(SQLITE) else None
        return Store(name, address, lambda: _database(name, address, known=file is not None), file=file)


def sqlite_address(path: Path) -> str:
    """Return the URL of a SQLite file, in which SQLAlchemy reads some characters of a name as its own."""
    plain = str(path.absolute())
    if not re.search(r"[%?]", plain):
        return f"{SQLITE}{plain}"
    from sqlalchemy.engine import URL as SQLAlchemyURL
    from sqlalchemy.engine import make_url

    address = SQLAlchemyURL.create("sqlite", database=plain).render_as_string(hide_password=False)
    if make_url(address).database != plain:  # before SQLAlchemy 2.1
        raise StorageError(f"{path}: SQLAlchemy cannot open a file with a ? in its name: rename it")
    return address


def file_of(address: str) -> Path | None:
    """Return the file of a SQLite or journal address; None for a server and for a database in memory."""
    prefix = FILE_PREFIX.match(address)
    if prefix is None:
        return None if URL.match(address) or address == IN_MEMORY else Path(address).expanduser()
    file = address[prefix.end() :]
    if address.startswith(JOURNAL):
        return Path(file).expanduser()
    file = file.partition("?")[0]
    if "%" in file:
        from sqlalchemy.engine import make_url

        file = make_url(f"{SQLITE}{file}").database or ""
    return None if file in ("", IN_MEMORY) else Path(file)


def missing_reason(address: str) -> str:
    """Say why there is no memory at an address, "" if there may be one: only opening it shows what a server has."""
    path = file_of(address)
    with storage_errors(without_password(address)):
        if path is not None and not path.exists():
            return "there is no such memory"
        return "the file is empty" if path is not None and path.is_file() and path.stat().st_size == 0 else ""


def without_password(address: str) -> str:
    """Return an address as messages show it."""
    return PASSWORD.sub(r"\1***", SECRET_OPTION.sub(r"\1***", address))


@contextmanager
def reading_from(store: Store) -> Iterator[None]:
    """Read from a storage; StorageError if it fails or if there is no such storage."""
    if reason := store.missing:
        raise StorageError(f"{store.name}: {reason}")
    with storage_errors(store.name):
        yield


@contextmanager
def storage_errors(name: str) -> Iterator[None]:
    """Turn what a storage raises into a StorageError that names the storage; recollect's own errors pass."""
    try:
        yield
    except (RecollectError, Warning):
        raise
    except OSError as error:
        raise StorageError(f"{name}: {error.strerror or error}") from error
    except ImportError as error:
        scheme = re.split(r"[+:]", name)[0]
        package = DRIVERS.get(scheme, f"the driver of {scheme}")
        raise MissingExtraError(f"{name}: needs a driver that is not installed: pip install {package!r}") from error
    except Exception as error:
        if not _is_of_library(error):  # a mistake in recollect
            raise
        cause = _root_cause(error)
        kind = ReadOnlyStorageError if _is_read_only(cause) else StorageError
        raise kind(f"{name}: {_one_line(cause)}") from error


def patiently(action: Callable[[], T]) -> T:
    """Do something with a storage; while its server cannot be reached, try again for a while."""
    for seconds in UNREACHABLE_PAUSES:
        try:
            return action()
        except StorageError as error:
            if not _is_unreachable(_root_cause(error)):
                raise
        time.sleep(seconds)
    return action()


def _is_unreachable(error: BaseException) -> bool:
    """Whether a server is down or starting, as far as errors of drivers tell; a wrong password is none of these."""
    library, kind = type(error).__module__.partition(".")[0], type(error).__name__
    if library in ("psycopg", "psycopg2"):
        return kind in ("OperationalError", "ConnectionTimeout", "CannotConnectNow") and not re.search(
            "authentication|does not exist|pg_hba", str(error)
        )
    if library in ("pymysql", "MySQLdb"):
        return kind == "OperationalError" and error.args[:1] in ((1040,), (2002,), (2003,), (2006,), (2013,))
    redis = library == "redis" and kind in ("ConnectionError", "TimeoutError", "BusyLoadingError")
    return redis or isinstance(error, ConnectionError | TimeoutError)


STORAGE_LIBRARIES = {
    *("optuna", "sqlalchemy", "sqlite3", "psycopg", "psycopg2", "pymysql", "MySQLdb", "redis", "alembic")
}


def _is_of_library(error: BaseException) -> bool:
    """Whether an error is of a class of a storage library, or was raised while one was at work."""
    frames = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    return any(module.split(".")[0] in STORAGE_LIBRARIES for module in (type(error).__module__, *frames))


def _root_cause(error: BaseException) -> BaseException:
    """Return the innermost error: drivers wrap it several times."""
    while (inner := error.__cause__ or getattr(error, "orig", None)) is not None and inner is not error:
        error = inner
    return error


def _one_line(error: BaseException) -> str:
    return (" ".join(str(error).split()) or type(error).__name__)[:300]


def _is_read_only(error: BaseException) -> bool:
    """Whether a database refused to write, by the error codes of SQLite, PostgreSQL and MySQL."""
    sqlite = getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_READONLY
    postgres = "25006" in (getattr(error, "sqlstate", None), getattr(error, "pgcode", None))
    return sqlite or postgres or (type(error).__module__[:5] in ("pymys", "MySQL") and error.args[:1] == (1792,))


def _store_of(storage: Any) -> Store:
    """Return the store of an Optuna storage that the user has opened."""
    from optuna.storages import BaseStorage, RDBStorage, get_storage

    if not isinstance(storage, BaseStorage):
        raise InputTypeError(
            f"memory: expected a file name, a storage URL or an Optuna storage, got {type(storage).__name__}"
        )
    backend = getattr(storage, "_backend", storage)
    if isinstance(backend, RDBStorage):
        return Store(without_password(backend.url), backend.url, lambda: get_storage(storage))
    return Store(type(storage).__name__, None, lambda: storage)


def _database(name: str, address: str, *, known: bool) -> BaseStorage:
    from optuna.storages import RDBStorage, get_storage
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    try:
        url = make_url(PASSWORD.sub(lambda match: match[1] + match[2].replace("@", "%40"), address))
        if driver := _driver(url.drivername):
            url = url.set(drivername=driver)
        url.get_dialect()
    except (ArgumentError, NoSuchModuleError) as error:
        raise StorageError(
            f"{name}: not a storage that can be opened: expected a file name or a URL such as sqlite:///tuning.db, "
            "postgresql://user@host/name, mysql://..., redis://... or journal:tuning.log"
        ) from error
    address = url.render_as_string(hide_password=False)
    sqlite = url.get_backend_name() == "sqlite"
    options: dict[str, Any] = {"connect_args": {"timeout": SQLITE_TIMEOUT}} if sqlite else {"pool_pre_ping": True}
    persistent = url.database not in (None, "", IN_MEMORY) or not sqlite
    if persistent and not known:
        _create_tables(name, address, options)
    storage = RDBStorage(
        address, engine_kwargs=options, skip_compatibility_check=persistent, skip_table_creation=persistent
    )
    finalize(storage, storage.engine.dispose)  # a memory that nobody closed leaves no open connection behind
    return get_storage(storage)


def _create_tables(name: str, address: str, options: dict[str, Any]) -> None:
    """Create Optuna's tables if there are none, and let Optuna check them. Leaves no connection open."""
    from optuna.storages import RDBStorage
    from sqlalchemy import create_engine, inspect
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    options = options | {"poolclass": NullPool}
    for pause in (*CREATION_PAUSES, None):
        try:
            RDBStorage(address, engine_kwargs=options)
            return
        except SQLAlchemyError as error:
            # Where there are tables by now, another process may be creating them at this very moment.
            code = getattr(getattr(error, "orig", None), "sqlite_errorcode", 0) & 0xFF
            damaged = code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
            if damaged or pause is None or not inspect(create_engine(address, **options)).get_table_names():
                raise
            time.sleep(pause)
        except RuntimeError as error:  # tables of another version of Optuna
            url = without_password(address)
            raise StorageError(f"{name}: {_one_line(error).replace('$STORAGE_URL', url)}") from error


def _driver(name: str) -> str | None:
    """Return SQLAlchemy's name of an installed driver for a URL that names none; None to leave it as it is."""
    from importlib.util import find_spec

    drivers = {"postgresql": ("psycopg", "psycopg2"), "mysql": ("MySQLdb", "pymysql")}
    return next((f"{name}+{module.lower()}" for module in drivers.get(name, ()) if find_spec(module)), None)


def _known_file(address: str) -> Path | None:
    """Return a SQLite file that has Optuna's tables in the known schema; refuse a database of another program."""
    path = file_of(address)
    if path is None or not _is_file(path, "a SQLite file") or path.stat().st_size == 0:
        return None
    with closing(read_only_connection(path)) as connection:
        tables = table_names(connection)
        if tables and STUDIES_TABLE not in tables:
            raise StorageError(
                f"{path}: expected the file of a memory or of Optuna studies, but this is the database of another "
                f"program, with the tables {name_list(sorted(tables))}"
            )
        if VERSION_TABLE not in tables:
            return None
        version = connection.execute(f"select version_num from {VERSION_TABLE}").fetchone()
        return path if version == (KNOWN_SCHEMA,) else None


def _is_file(path: Path, expected: str) -> bool:
    """Whether a file exists; StorageError if it cannot be created or is a folder."""
    if path.is_dir():
        raise StorageError(f"{path}: expected {expected}, but this is a folder")
    if not path.parent.is_dir():
        raise StorageError(f"{path}: there is no folder {path.parent}")
    return path.exists()
