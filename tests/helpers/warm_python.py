"""Python programs that start in a moment: forked from a process that has imported the libraries recollect needs.

Importing them takes most of the time of a short program. ``warm_programs`` starts such a process and writes two
commands, ``warm-python`` and ``recollect``, which hand it their arguments, environment, folder and standard streams.
It forks, and the fork imports recollect and runs the program. Where the imports themselves matter, or signals, or
which process is whose parent, a test needs a process of its own.
"""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NoReturn

LIBRARIES = (
    *("scipy.linalg", "scipy.optimize", "scipy.stats", "ConfigSpace", "alembic.context", "joblib", "pandas"),
    *("optuna.storages.journal", "rich.progress", "rich.table", "typer", "yaml", "sklearn.datasets"),
    *("sklearn.ensemble", "sklearn.linear_model", "sklearn.model_selection", "sklearn.pipeline", "sklearn.svm"),
)


@contextmanager
def warm_programs() -> Iterator[Path]:
    """Yield a folder with the commands ``warm-python`` and ``recollect``."""
    import shutil
    import subprocess
    import tempfile

    folder = Path(tempfile.mkdtemp())  # short: the address of a socket has at most 100 characters or so
    address = folder / "socket"
    installed = Path(sys.executable).parent / "recollect"
    for name, script in (("warm-python", ""), ("recollect", f'"{installed}"')):
        command = folder / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -IS "{__file__}" "{address}" {script} "$@"\n')
        command.chmod(0o755)
    server = subprocess.Popen(
        [sys.executable, __file__, address], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=folder
    )
    assert server.stdin is not None
    assert server.stdout is not None
    assert server.stdout.readline() == b"ready\n"
    yield folder
    server.stdin.close()  # which ends it
    server.stdout.close()
    server.wait()
    shutil.rmtree(folder)


def ask(address: str, arguments: list[str]) -> int:
    """Have a program run with the streams, folder and environment of this process; return its exit code."""
    request = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(address)
        content = json.dumps(request).encode()
        sent = socket.send_fds(connection, [content], [0, 1, 2])
        connection.sendall(content[sent:])
        connection.shutdown(socket.SHUT_WR)
        code = int(connection.recv(20))
    return code if code >= 0 else 128 - code  # as a shell states a signal


def serve(address: str) -> None:
    """Import the libraries, then run each program that is asked for in a fork, until the standard input is closed."""
    import gc
    import importlib

    for name in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the processes that wait for programs are not waited for
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        os.write(1, b"ready\n")
        while sys.stdin not in select.select([listener, sys.stdin], [], [])[0]:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _answer(connection)
            connection.close()


def _answer(connection: socket.socket) -> NoReturn:
    """Run one program in a fork, and report its exit code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    content, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while part := connection.recv(1 << 16):
        content += part
    child = os.fork()
    if child:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        connection.sendall(str(code).encode())
        os._exit(0)
    connection.close()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    request = json.loads(content)
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(request["environment"])
    _end(_run(request["arguments"]))


def _run(arguments: list[str]) -> int:
    """Run ``[-W error] -c CODE`` or ``[-W error] FILE`` with arguments as the main program; return its exit code."""
    import traceback
    import warnings

    sys.warnoptions = ["error"] if os.environ.get("PYTHONWARNINGS") == "error" else []
    if arguments[:2] == ["-W", "error"]:
        sys.warnoptions, arguments = ["error"], arguments[2:]
    if sys.warnoptions:
        warnings.simplefilter("error")
    main = sys.modules["__main__"] = type(sys)("__main__")
    try:
        if arguments[0] == "-c":
            sys.argv, sys.path[0] = ["-c", *arguments[2:]], ""
            code = compile(arguments[1], "<string>", "exec")
        else:
            sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).absolute().parent)
            main.__file__ = arguments[0]
            code = compile(Path(arguments[0]).read_bytes(), arguments[0], "exec")
        exec(code, vars(main))
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        sys.stderr.write(f"{end.code}\n")
        return 1
    except BaseException:  # noqa: BLE001  (as the interpreter does)
        traceback.print_exc()
        return 1
    return 0


def _end(code: int) -> NoReturn:
    """End as an interpreter does, but without taking the imported libraries apart, which takes longer than a fork."""
    import atexit
    import threading

    for thread in threading.enumerate():
        if thread is not threading.current_thread() and not thread.daemon:
            thread.join()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    address, *arguments = sys.argv[1:]
    if sys.flags.isolated:
        sys.exit(ask(address, arguments))
    serve(address)
