"""What is started once per test process: PostgreSQL, Redis, and a Python that starts programs in a moment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.helpers.servers import ServerMissingError, postgres_server, redis_server
from tests.helpers.warm_python import warm_programs


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Run a PostgreSQL server; yields the URL of an empty database."""
    try:
        with postgres_server() as url:
            yield url
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    """Run a Redis server; yields its URL."""
    try:
        with redis_server() as url:
            yield url
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def warm_python() -> Iterator[Path]:
    """Yield a Python, beside a ``recollect``, that starts programs with most libraries imported."""
    with warm_programs() as folder:
        yield folder / "warm-python"


@pytest.fixture
def warm_path(warm_python: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``warm-python`` and its ``recollect`` be found, and ``python`` beside the one that runs the tests."""
    folders = [str(warm_python.parent), str(Path(sys.executable).parent), os.environ["PATH"]]
    monkeypatch.setenv("PATH", os.pathsep.join(folders))
