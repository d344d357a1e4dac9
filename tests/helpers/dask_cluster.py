"""A Dask scheduler and workers on loopback, each a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LIMIT_SECONDS = 60.0


class DaskCluster:
    """A scheduler and its workers."""

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder, self._file = folder, folder / "scheduler.json"
        self.scheduler = self._start("scheduler", "--port", "0")
        self.workers = [self._start("worker", "--nthreads", "1", "--no-nanny") for _ in range(workers)]
        until = time.monotonic() + LIMIT_SECONDS
        while not self._file.exists():
            assert time.monotonic() < until
            time.sleep(0.05)
        self.address = str(json.loads(self._file.read_text())["address"])

    def _start(self, kind: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{kind}", "--host", "127.0.0.1", "--no-dashboard"]
        with (self._folder / "dask.log").open("ab") as log:
            where = ("--scheduler-file", str(self._file))
            return subprocess.Popen([*command, *where, *options], stdout=log, stderr=log, process_group=0)

    def close(self) -> None:
        """Kill all processes."""
        for process in (*self.workers, self.scheduler):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def dask_cluster(folder: Path, workers: int) -> Iterator[DaskCluster]:
    """Run a cluster."""
    cluster = DaskCluster(folder, workers)
    try:
        yield cluster
    finally:
        cluster.close()
