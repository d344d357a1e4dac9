"""The child process that evaluates configurations for `recollect.tuning.children`; not to be called by hand."""

from __future__ import annotations

import os
import sys
import threading
import time
from multiprocessing.connection import Client, Connection

from recollect.tuning.outcome import Outcome, evaluate, reason_of

ORPHAN = 1.0
"""Seconds between two looks whether the parent still lives."""


def main() -> None:
    """Connect to the parent, receive the objective, evaluate until the connection ends."""
    address, key = sys.stdin.readline().strip(), bytes.fromhex(sys.stdin.readline().strip())
    with Client(address, authkey=key) as connection:
        path, parent = connection.recv()
        sys.path[:] = path
        threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
        _serve(connection)


def _serve(connection: Connection) -> None:
    import cloudpickle

    pickled = connection.recv_bytes()
    try:
        objective = cloudpickle.loads(pickled)
    except Exception as error:  # noqa: BLE001 - said as the reason of every trial
        broken = f"the objective could not be rebuilt in a worker process: {reason_of(error)}"
        objective = None
    while True:
        try:
            config = connection.recv()
        except EOFError:
            return
        outcome = evaluate(objective, config) if objective is not None else Outcome(None, 0.0, (broken,))
        connection.send((outcome.value, outcome.seconds, outcome.notes))


def _end_with(parent: int) -> None:
    """End this process when its parent has ended, however that came about."""
    while os.getppid() == parent:
        time.sleep(ORPHAN)
    os._exit(1)


if __name__ == "__main__":
    main()
