"""Real servers on loopback, PostgreSQL and Redis, for the tests that need one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest


def programs() -> Path | None:
    """Return the folder with initdb and pg_ctl, None if no server is installed."""
    found = shutil.which("initdb")
    places = [Path(found).parent] if found else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((place for place in places if (place / "pg_ctl").exists()), None)


def install(package: str, found: Callable[[], object]) -> None:
    """Install a server where that is possible: on Debian, as root. Parallel test processes take turns."""
    import fcntl

    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return
    with (Path(tempfile.gettempdir()) / "recollect-install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found():
            environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
            for command in (["apt-get", "update"], ["apt-get", "install", "-y", package]):
                subprocess.run(command, env=environment, capture_output=True, check=False)


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Start a server of our own; yields the URL of an empty database."""
    if programs() is None:
        install("postgresql", programs)
    place = programs()
    if place is None:
        pytest.skip("PostgreSQL is not installed, and can be installed here only by root on Debian")
    with tempfile.TemporaryDirectory() as folder:
        root = os.geteuid() == 0
        if root:  # the server refuses to be run by root
            shutil.chown(folder, "postgres", "postgres")
        become = ["runuser", "-u", "postgres", "--"] if root else []
        data = str(Path(folder) / "data")
        port = free_port()

        def run(*command: str) -> None:
            subprocess.run([*become, *command], check=True, cwd=folder, stdout=subprocess.DEVNULL)

        run(str(place / "initdb"), "-D", data, "-U", "tester", "-A", "trust", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
        run(str(place / "pg_ctl"), "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            run(str(place / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
            time.sleep(0.1)


@pytest.fixture(scope="session")
def redis() -> Iterator[str]:
    """Start a server of our own; yields its URL."""
    if shutil.which("redis-server") is None:
        install("redis-server", lambda: shutil.which("redis-server"))
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("Redis is not installed, and can be installed here only by root on Debian")
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            for _ in range(200):
                with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                time.sleep(0.05)
            yield f"redis://127.0.0.1:{port}"
        finally:
            server.terminate()
            server.wait()
