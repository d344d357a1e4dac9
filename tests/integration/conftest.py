"""Real servers, started once per test process: PostgreSQL and Redis."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.helpers.servers import ServerMissingError, postgres_server, redis_server


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
