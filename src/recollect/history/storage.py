"""Where a memory is kept: Optuna storages, opened by name.

    tuning.db, some/folder/tuning.db      a SQLite file
    journal:some/folder/tuning.log        a journal file of Optuna
    redis://host:6379                     a journal in Redis
    postgresql://..., mysql://...         any database that Optuna and SQLAlchemy know

A `Store` is an open storage. SQL databases are read and written in bulk (`recollect.history.reading`, `tables`).
Whatever goes wrong with a storage becomes a StorageError that names it, without its password.
"""

from __future__ import annotations

import os
import re
import sqlite3
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from recollect.errors import InputTypeError, MissingExtraError, StorageError

if TYPE_CHECKING:
    from optuna.storages import BaseStorage
    from sqlalchemy.engine import Engine

PATIENCE = 60.0
"""Seconds to wait for another process that is writing to the same SQLite file."""

OWN_TABLE, STAMP_TABLE = "studies", "alembic_version"
KNOWN_LAYOUT = "v3.2.0.a"
"""The layout of Optuna's tables that is taken for current without asking Optuna, which takes half a second."""

DRIVERS = {"postgresql": "recollect[postgres]", "mysql": "pymysql", "redis": "recollect[redis]"}
SQLITE = "sqlite:///"
URL = re.compile(r"^[A-Za-z][A-Za-z0-9+_]+://")


class Store:
    """An open storage. name: what messages call it; address: what opens it again in another process, if anything does.

    A SQLite file of known layout is opened by Optuna only when something is to be written.
    """

    def __init__(
        self, name: str, address: str | None, opened: Callable[[], BaseStorage], *, file: Path | None = None
    ) -> None:
        """``opened`` gives Optuna's storage; ``file`` is a SQLite file of known layout."""
        self.name, self.address = name, address
        self._opened, self._file = opened, file
        if file is None:
            self.optuna  # noqa: B018 - whatever is wrong is to be found out now

    @cached_property
    def optuna(self) -> BaseStorage:
        """Optuna's storage."""
        return self._opened()

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

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], Iterable[Any]]]:
        """Yield a function that fetches the rows of a query from a SQL database."""
        if self._file is not None:
            with closing(_read_only(self._file)) as connection:
                yield connection.execute
            return
        assert self.engine is not None
        with closing(self.engine.raw_connection()) as raw:

            def fetch(query: str) -> Iterable[Any]:
                cursor = raw.cursor()
                cursor.execute(query)
                return cast(Iterable[Any], cursor.fetchall())

            yield fetch

    def close(self) -> None:
        """Close its connections to a database."""
        if "optuna" in self.__dict__ and self.engine is not None:
            self.optuna.remove_session()
            self.engine.dispose()


def open_store(where: str | os.PathLike[str] | BaseStorage) -> Store:
    """Open a storage, made if it is not there yet."""
    if not isinstance(where, str | os.PathLike):
        return _given(where)
    address = os.fspath(where)
    if not isinstance(address, str) or not address.strip():
        raise InputTypeError(f"memory: expected a file name or a storage URL, got {where!r}")
    name = shown(address)
    with faults(name):
        if address.startswith("journal:"):
            return Store(name, _absolute(address, "journal:"), lambda: _journal_file(address))
        if address.startswith(("redis://", "rediss://", "unix://")):
            return Store(name, address, lambda: _journal_redis(address))
        if not URL.match(address):
            address = SQLITE + str(Path(address).expanduser().absolute())
        file = _known_file(address) if address.startswith(SQLITE) else None
        return Store(name, address, lambda: _database(name, address, known=file is not None), file=file)


def shown(address: str) -> str:
    """Return an address as messages show it: without a password."""
    return re.sub(r"(?<=://)([^/@:]*):[^@]*@", r"\1:***@", address)


@contextmanager
def faults(name: str) -> Iterator[None]:
    """Turn what a storage raises into a StorageError that names it; errors of ours pass."""
    try:
        yield
    except OSError as error:
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{name}: {error.strerror or error}") from error
    except ImportError as error:
        if isinstance(error, MissingExtraError):
            raise
        raise _missing_driver(name) from error
    except Exception as error:
        if not _of_storages(error):
            raise
        raise StorageError(f"{name}: {_cause(error)}") from error


def _of_storages(error: Exception) -> bool:
    """Whether an error comes from Optuna, SQLAlchemy, a database's driver or Redis, and not from a mistake of ours."""
    outside = {"optuna", "sqlalchemy", "sqlite3", "psycopg", "psycopg2", "pymysql", "MySQLdb", "redis", "alembic"}
    home = type(error).__module__.split(".")[0]
    return home in outside or (isinstance(error, RuntimeError) and "table schema" in str(error))


def _cause(error: BaseException) -> str:
    """Return the innermost reason, on one line: drivers wrap it several times."""
    while (inner := error.__cause__ or getattr(error, "orig", None)) is not None and inner is not error:
        error = inner
    text = " ".join(str(error).split()) or type(error).__name__
    return text[:300]


def _missing_driver(name: str) -> MissingExtraError:
    scheme = re.split(r"[+:]", name)[0]
    package = DRIVERS.get(scheme, f"the driver of {scheme}")
    return MissingExtraError(f"{name}: needs a driver that is not installed: pip install {package!r}")


def _given(storage: Any) -> Store:
    from optuna.storages import BaseStorage, RDBStorage, get_storage

    if not isinstance(storage, BaseStorage):
        raise InputTypeError(
            f"memory: expected a file name, a storage URL or an Optuna storage, got {type(storage).__name__}"
        )
    backend = getattr(storage, "_backend", storage)
    if isinstance(backend, RDBStorage):
        return Store(shown(backend.url), backend.url, lambda: get_storage(storage))
    return Store(type(storage).__name__, None, lambda: storage)


def _database(name: str, address: str, *, known: bool) -> BaseStorage:
    from optuna.storages import RDBStorage, get_storage
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError

    try:
        url = make_url(address)
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
    options: dict[str, Any] = {"connect_args": {"timeout": PATIENCE}} if sqlite else {"pool_pre_ping": True}
    lasting = url.database not in (None, "", ":memory:") or not sqlite
    if lasting and not known:
        _prepare(address, options)
    return get_storage(
        RDBStorage(address, engine_kwargs=options, skip_compatibility_check=lasting, skip_table_creation=lasting)
    )


def _prepare(address: str, options: dict[str, Any]) -> None:
    """Make Optuna's tables if they are not there, and let Optuna check them. Keeps no connection, come what may."""
    from optuna.storages import RDBStorage
    from sqlalchemy.exc import SQLAlchemyError
    from sqlalchemy.pool import NullPool

    for pause in (0.1, 0.3, 1.0, 3.0, None):
        try:
            RDBStorage(address, engine_kwargs=options | {"poolclass": NullPool})
            return
        except SQLAlchemyError as error:
            if pause is None or not re.search("exist|duplicate|UNIQUE", str(error)):
                raise
            time.sleep(pause)  # another process is making the tables at this very moment


def _driver(name: str) -> str | None:
    """Return SQLAlchemy's name of a driver that is installed, for a URL that names none; None to leave it as it is."""
    from importlib.util import find_spec

    drivers = {"postgresql": ("psycopg", "psycopg2"), "mysql": ("MySQLdb", "pymysql")}
    names = {"MySQLdb": "mysqldb"}
    found = (module for module in drivers.get(name, ()) if find_spec(module))
    return next((f"{name}+{names.get(module, module)}" for module in found), None)


def _known_file(address: str) -> Path | None:
    """Return a SQLite file that has Optuna's tables in the layout that is known; refuse one that is something else."""
    path = Path(address.removeprefix(SQLITE).removeprefix("file:").split("?")[0])
    if str(path) in (".", ":memory:"):
        return None
    if not path.exists():
        if not path.parent.is_dir():
            raise StorageError(f"{path}: there is no folder {path.parent}")
        return None
    if path.is_dir():
        raise StorageError(f"{path}: expected a SQLite file, this is a folder")
    if path.stat().st_size == 0:
        return None
    with closing(_read_only(path)) as connection:
        tables = {row[0] for row in connection.execute("select name from sqlite_master where type = 'table'")}
        if tables and OWN_TABLE not in tables:
            raise StorageError(
                f"{path}: a database of something else, with the tables {', '.join(sorted(tables)[:5])}: "
                "expected the file of a memory or of Optuna studies"
            )
        if STAMP_TABLE not in tables:
            return None
        stamp = connection.execute(f"select version_num from {STAMP_TABLE}").fetchone()
        return path if stamp == (KNOWN_LAYOUT,) else None


def _read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=PATIENCE)


def _journal_file(address: str) -> BaseStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend

    path = Path(address.removeprefix("journal:").removeprefix("//")).expanduser()
    if not path.parent.is_dir():
        raise StorageError(f"{path}: there is no folder {path.parent}")
    if path.is_dir():
        raise StorageError(f"{path}: expected a journal file, this is a folder")
    try:
        return JournalStorage(JournalFileBackend(str(path.absolute())))
    except (ValueError, KeyError, UnicodeDecodeError) as error:
        raise StorageError(f"{path}: not a journal of Optuna: {error}") from error


def _journal_redis(address: str) -> BaseStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalRedisBackend

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Optuna calls it experimental
        return JournalStorage(JournalRedisBackend(address))


def _absolute(address: str, prefix: str) -> str:
    return prefix + str(Path(address.removeprefix(prefix).removeprefix("//")).expanduser().absolute())


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Optuna from printing a line for every study that is made: the library never prints."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(max(before, optuna.logging.WARNING))
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
