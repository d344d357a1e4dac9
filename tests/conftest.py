"""Fixtures of all tests: a separate cache of fitted models, quick commits, a working Ctrl-C, and the toy ensemble."""

from __future__ import annotations

import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine
from tests.helpers.toy_ensemble import Array, Toy, build_toy


@pytest.fixture(autouse=True, scope="session")
def _separate_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RECOLLECT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(autouse=True, scope="session")
def _quick_commits() -> None:
    """Do not wait for the disk at every commit to a SQLite file: only a crash of the whole computer would show it."""

    @event.listens_for(Engine, "connect")
    def relax(connection: Any, _: object) -> None:
        if isinstance(connection, sqlite3.Connection):
            connection.execute("PRAGMA synchronous = OFF")


@pytest.fixture(autouse=True, scope="session")
def _working_ctrl_c() -> None:
    """Handle Ctrl-C as in a terminal: a shell's background jobs ignore it, and so would the processes of the tests."""
    if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def toy() -> Callable[..., Toy]:
    """Return the function that builds toy ensembles: ``toy(weights, pending=0, seed=0, n=5)``, target last."""
    return build_toy


@pytest.fixture
def query() -> Array:
    return np.random.default_rng(99).random((12, 2))
