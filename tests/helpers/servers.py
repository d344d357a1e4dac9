"""Real PostgreSQL and Redis servers on the loopback interface, for the tests that need one."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

NOT_INSTALLED = "{} is not installed, and can be installed here only by root on Debian"


class ServerMissingError(RuntimeError):
    """The server is not installed and could not be installed."""


def postgres_programs() -> Path | None:
    """Return the folder with initdb and pg_ctl, None if no server is installed."""
    initdb = shutil.which("initdb")
    folders = [Path(initdb).parent] if initdb else sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "pg_ctl").exists()), None)


def redis_program() -> Path | None:
    """Return the path of redis-server, None if it is not installed."""
    program = shutil.which("redis-server")
    return Path(program) if program else None


def installed(name: str, package: str, find: Callable[[], Path | None]) -> Path:
    """Return what ``find`` finds, after installing the package where possible: on Debian, as root."""
    place = find()
    if place is None and os.geteuid() == 0 and shutil.which("apt-get") is not None:
        install(package, find)
        place = find()
    if place is None:
        raise ServerMissingError(NOT_INSTALLED.format(name))
    return place


def install(package: str, find: Callable[[], Path | None]) -> None:
    """Install a Debian package, first with the package lists at hand. Parallel test processes take turns."""
    import fcntl

    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    with (Path(tempfile.gettempdir()) / "recollect-install.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for command in (["install", "-y", package], ["update"], ["install", "-y", package]):
            if find() is None:
                subprocess.run(["apt-get", *command], env=environment, capture_output=True, check=False)


def free_port() -> int:
    """Return a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a PostgreSQL server; yields the URL of an empty database."""
    programs = installed("PostgreSQL", "postgresql", postgres_programs)
    with tempfile.TemporaryDirectory() as folder:
        root = os.geteuid() == 0
        if root:  # the server refuses to run as root
            shutil.chown(folder, "postgres", "postgres")
        become = ["runuser", "-u", "postgres", "--"] if root else []
        data = str(Path(folder) / "data")
        port = free_port()

        def run(*command: str) -> None:
            subprocess.run([*become, *command], check=True, cwd=folder, stdout=subprocess.DEVNULL)

        run(str(programs / "initdb"), "-D", data, "-U", "tester", "-A", "trust", "--no-sync")
        options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
        run(str(programs / "pg_ctl"), "-D", data, "-w", "-l", f"{folder}/log", "-o", options, "start")
        try:
            yield f"postgresql://tester@127.0.0.1:{port}/postgres"
        finally:
            run(str(programs / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
            time.sleep(0.1)


@contextmanager
def redis_server() -> Iterator[str]:
    """Run a Redis server; yields its URL."""
    program = installed("Redis", "redis-server", redis_program)
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
