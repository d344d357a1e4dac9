"""Programs as objectives: a command with placeholders is run once per configuration and returns a score.

    python train.py --lr {lr} --depth {depth}

Placeholders. ``{name}`` becomes the value of a hyperparameter: text as it is, anything else as in JSON; ``{{`` and
``}}`` are braces. There is no shell: every argument stays one argument, whatever it contains. An argument with a
placeholder of an inactive hyperparameter is left out, together with an option right before it (``--depth {depth}``),
unless the argument is an option itself (``--depth={depth}``). ``{trial}``, ``{worker}``, ``{logs}`` and
``{score_file}`` are the trial's number, the number of the worker that runs it, the folder of the logs, and a new file
for the score.

Environment. RECOLLECT_CONFIG has all values as JSON; RECOLLECT_TRIAL, RECOLLECT_WORKER, RECOLLECT_TASK and
RECOLLECT_PROBLEM say which trial this is. A worker's number is below the number of programs that run at the same time.

Score. A number, a line ``name: number`` or ``name = number``, or a JSON object with a key: in the last non-empty line
of standard output, or in a file. If a key is requested, the last line that has it counts.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import platform
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, TypeAlias
from urllib.parse import quote

from recollect._files import make_folder
from recollect._system import GroupGuard, defer_signals, kill_group
from recollect.errors import InputError
from recollect.processes import describe_exit
from recollect.runs.run import Config
from recollect.space.space import Space
from recollect.tuning.objective import Evaluation, Finished, as_time_limit, reason_of
from recollect.validation import as_count

CONFIG_VARIABLE, DEFAULT_KEY = "RECOLLECT_CONFIG", "value"
SCORE_FILE, TRIAL, WORKER, LOGS = PROVIDED = ("score_file", "trial", "worker", "logs")
"""Placeholders besides the hyperparameters; a hyperparameter with the name of one of the last three takes its place."""
DEFAULT_SCORE_FILE = "score.json"
TOKENS = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]|[^{}]+")
OPTION, LONE_OPTION = re.compile(r"--?[^\W\d_]"), re.compile(r"--?[^\W\d_][^=]*")
NAMED_NUMBER = re.compile(r"(?!.*\b\d{1,2}:\d\d\b)([^:=]*)[:=]\s*(\S+)")  # and no time, such as 12:30
NUMBER_IN_LINE = r"\s*[:=]\s*((?:[^\s,;})\]]|,(?=\d))+)"  # with a comma before a digit: such a number is refused
NAMED_IN_LINE = re.compile(rf"([^\W\d][\w.-]*)[\"']?{NUMBER_IN_LINE}")

OUTPUT_TAIL_BYTES = 1 << 16  # at the end of a program's output, which is searched for the score
MAX_SEARCHED = 500  # characters of a line that are searched for names of numbers
KEPT_NAMES = 6  # of numbers in the output, in the message that it has no score
KEPT_LINES = 20  # of standard error that are stored with a failed trial
MIN_POLL_SECONDS, MAX_POLL_SECONDS = 0.001, 0.02  # between two checks whether a program has ended
Argument: TypeAlias = tuple[tuple[str, bool], ...]
"""One argument: its texts and placeholders in order; placeholders are marked True."""


@dataclass(frozen=True, slots=True)
class CommandTemplate:
    """A command with placeholders, from `parse_command`."""

    arguments: tuple[Argument, ...]  # the program comes first
    unused: tuple[str, ...]  # hyperparameters that vary but have no placeholder
    provided: frozenset[str] = frozenset((SCORE_FILE,))  # placeholders that are not hyperparameters

    @property
    def program(self) -> str:
        """The program to run."""
        return "".join(text for text, _ in self.arguments[0])

    def fill(self, config: Config, **provided: str) -> list[str]:
        """Return the arguments for a configuration, given the values of all placeholders in ``provided``."""
        values = {name: text for name, text in provided.items() if name in self.provided}
        values |= {name: value if isinstance(value, str) else json.dumps(value) for name, value in config.items()}
        filled: list[str] = []
        for before, argument in zip(((), *self.arguments), self.arguments, strict=False):
            if values.keys() >= _placeholders(argument):
                filled.append("".join(values[part] if placed else part for part, placed in argument))
            elif (
                not OPTION.match(_text_before_placeholder(argument))
                and LONE_OPTION.fullmatch(_text_before_placeholder(before))
                and not _placeholders(before)
            ):
                filled.pop()
        return filled


def parse_command(command: Sequence[str], space: Space, *, logs: bool = True) -> CommandTemplate:
    """Return the template of a command; refuse an empty one, and unknown placeholders; ``logs``: there is {logs}."""
    if not command:
        raise InputError("expected a program with its arguments after --, got no command")
    if SCORE_FILE in space.names:
        raise InputError(f"a hyperparameter cannot be named {SCORE_FILE!r}: {{{SCORE_FILE}}} is the file for the score")
    words = tuple(_parse_argument(argument) for argument in command)
    provided = frozenset(PROVIDED).difference(space.names)
    if not logs and LOGS in _placeholders(*words) & provided:
        raise InputError(f"the command has {{{LOGS}}}, but there is no folder for logs; name one with --logs")
    for argument, word in zip(command, words, strict=True):
        if unknown := _placeholders(word).difference(space.names, provided):
            raise InputError(
                f"the argument {argument!r} has the placeholder {{{min(unknown)}}}, but the hyperparameters are "
                f"{', '.join(space.names)}; write {{{{ and }}}} for braces"
            )
    if not words[0] or _placeholders(words[0]):
        hint = "; do not quote the whole command" if " " in command[0] else ""
        raise InputError(f"expected the name of a program, without placeholders, got {command[0]!r}{hint}")
    varying = [name for name, varies in zip(space.names, space.varying, strict=True) if varies]
    return CommandTemplate(words, tuple(name for name in varying if name not in _placeholders(*words)), provided)


def _parse_argument(argument: str) -> Argument:
    parts = []
    for token in TOKENS.findall(argument):
        if token in ("{", "}"):
            raise InputError(f"the argument {argument!r} has a single {token}; write {{{{ and }}}} for braces")
        doubled = token in ("{{", "}}")
        placed = token.startswith("{") and not doubled
        parts.append((token[1:-1], True) if placed else (token[0] if doubled else token, False))
    return tuple(parts)


def _placeholders(*words: Argument) -> set[str]:
    return {part for word in words for part, placed in word if placed}


def _text_before_placeholder(word: Argument) -> str:
    """Return the text before the first placeholder."""
    return "".join(text for text, _ in itertools.takewhile(lambda part: not part[1], word))


def parse_score(text: str, key: str | None = None) -> float:
    """Return the score in a program's output or score file; an InputError if there is none that is finite."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError("expected a score, but the program wrote nothing")
    score = _from_object(text.strip(), key)
    for line in lines[-1:] if key is None else reversed(lines):
        score = _from_line(line, key) if score is None else score
    if score is None:
        expected = "a number" if key is None else f"a number named {key!r}"
        remedy = _remedy(lines, key)
        raise InputError(f"expected {expected} as score, but the last line is {lines[-1][:100]!r}; {remedy}")
    if not math.isfinite(score):
        raise InputError(f"expected a finite score, got {score}")
    return score


def _remedy(lines: Sequence[str], key: str | None) -> str:
    """Return what to do about an output without a score, with the names that it has numbers for."""
    numbers = (match for line in lines[: -KEPT_LINES - 1 : -1] for match in NAMED_IN_LINE.findall(line[:MAX_SEARCHED]))
    names = list(dict.fromkeys(name for name, text in numbers if _number(text) is not None))[:KEPT_NAMES]
    if key is None and names:
        return f"name the number to use, as in --key {names[0]}"
    others = f"; there are numbers named {', '.join(names)}" if names else ""
    return f"print it last, as in 'loss: 0.12', or write it to {{{SCORE_FILE}}}{others}"


def _from_object(text: str, key: str | None) -> float | None:
    """Return the number under the key of a JSON object; None if this is not an object or lacks the key."""
    try:
        content = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    name = DEFAULT_KEY if key is None else key
    if not isinstance(content, dict) or name not in content:
        return None
    if isinstance(content[name], bool) or not isinstance(content[name], int | float):
        raise InputError(f"expected a number as score, but {name!r} is {json.dumps(content[name])[:200]}")
    return float(str(content[name]))  # through text: an int may be too large for a float


def _from_line(line: str, key: str | None) -> float | None:
    if (score := _from_object(line, key)) is not None:
        return score
    if key is None:
        named = NAMED_NUMBER.fullmatch(line)
        text = named[2] if named and any(map(str.isalpha, named[1])) else line
    else:
        texts = re.findall(rf"(?<![\w.-]){re.escape(key)}[\"']?{NUMBER_IN_LINE}", line)
        text = texts[-1] if texts else ""
    if "," in text and _number(text.replace(",", "")) is not None:
        found = f"the last line is {line[:100]!r}" if key is None else f"{key!r} is {text[:100]!r}"
        raise InputError(f"expected a number without a comma as score, as in 1234.5, but {found}")
    return _number(text)


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return None if "_" in text else float(text)
    return None


@dataclass(frozen=True, slots=True)
class TaskFolders:
    """The task that programs work on, and where their traces are kept.

    ``logs/7.out`` and ``logs/7.err`` are the output of trial 7, ``work/7`` is its working folder.
    """

    problem: str = ""
    task: str = ""
    logs: Path | None = None
    work: Path | None = None

    @classmethod
    def of(cls, problem: str, task: str, *, logs: Path | None, work: Path | None) -> TaskFolders:
        """Create the folders of a task in those for logs and for work, as far as there are any."""
        name = quote(task, safe=" ,()@+=~")  # a task may be named ../x; a dot does not name a folder
        name = name.replace(".", "%2E") if not name.strip(".") else name
        logs, work = (None if folder is None else folder.absolute() / name for folder in (logs, work))
        for folder in (logs, work):
            if folder is not None:
                make_folder(folder)
        return cls(problem, task, logs, work)

    @property
    def place(self) -> dict[str, str]:
        """What is stored with each trial about where it ran and where its traces are; empty if there are none."""
        folders = {"logs": self.logs, "folder": self.work}
        named = {name: str(folder) for name, folder in folders.items() if folder is not None}
        return {"host": platform.node(), **named} if named else {}


@dataclass(frozen=True, slots=True, eq=False)
class _Program:
    """A running program. before: the state of the score file when it started."""

    number: int
    worker: int
    process: subprocess.Popen[bytes]
    outputs: tuple[IO[bytes], IO[bytes]]
    file: Path | None
    before: object
    start: float
    resources: ExitStack


class CommandEvaluator:
    """Evaluates configurations by running a program, several at the same time."""

    def __init__(
        self,
        template: CommandTemplate,
        capacity: int,
        *,
        limit: float | None = None,
        key: str | None = None,
        file: str = "",
        folders: TaskFolders | None = None,
    ) -> None:
        """Run ``capacity`` programs at once, each at most ``limit`` seconds; the score has a ``key`` or is in ``file``.

        A program that cannot be run and several programs that would write the same score file are refused.
        """
        self._folders = folders or TaskFolders()
        self._template, self._capacity = template, as_count("workers", capacity, minimum=1)
        self._limit = as_time_limit(limit)
        self._key, self._file, self._fresh = key, file, SCORE_FILE in _placeholders(*template.arguments)
        if capacity > 1 and file and not self._fresh and self._folders.work is None:
            raise InputError(
                f"{capacity} programs at the same time would write the same file {file}; use {{{SCORE_FILE}}} in the "
                "command to give each its own file"
            )
        if shutil.which(program := template.program) is None:
            hint = "; do not quote the whole command" if " " in program else ""
            reason = f"there is no {program!r}{hint}"
            if os.sep in program and os.path.isfile(program):
                reason = f"{program!r} is not executable: chmod +x {program!r}"
            raise InputError(f"expected a program that can be run, but {reason}")
        self._guard = GroupGuard()
        self._running: list[_Program] = []
        self._refused: Finished = []

    @property
    def capacity(self) -> int:
        """How many configurations can be evaluated at the same time."""
        return self._capacity

    def start(self, number: int, config: Config) -> None:
        """Start the program for the configuration of a trial."""
        try:
            with defer_signals():
                self._running.append(self._start(number, config))
        except (OSError, ValueError) as error:
            reason = f"the program could not be started: {reason_of(error)}"
            self._refused.append((number, Evaluation(None, 0.0, (reason,))))

    def wait(self, seconds: float) -> Finished:
        """Wait until a program ends or exceeds the time limit."""
        ended, self._refused = self._refused, []
        until, pause = time.monotonic() + seconds, MIN_POLL_SECONDS
        while True:
            for program in tuple(self._running):
                over = program.process.poll() is not None
                if over or (self._limit is not None and time.monotonic() - program.start >= self._limit):
                    ended.append((program.number, self._end(program, late=not over)))
            if ended or not self._running or time.monotonic() >= until:
                return ended
            time.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(2 * pause, MAX_POLL_SECONDS)

    def close(self) -> None:
        """Kill all running programs and everything they started."""
        while self._running:
            _kill_and_wait(self._running[-1].process)
            self._running.pop().resources.close()
        self._guard.close()

    def _start(self, number: int, config: Config) -> _Program:
        busy = {program.worker for program in self._running}
        worker = next(slot for slot in itertools.count() if slot not in busy)
        with ExitStack() as stack:
            cwd = None if self._folders.work is None else self._folders.work / str(number)
            if cwd is not None:
                cwd.mkdir(exist_ok=True)
            file = Path(cwd or "", self._file) if self._file else None
            if self._fresh:
                folder = TemporaryDirectory(prefix="recollect-", ignore_cleanup_errors=True)
                file = Path(stack.enter_context(folder), Path(self._file or DEFAULT_SCORE_FILE).name)
            before = None if file is None else _state(file)
            out, err = (stack.enter_context(self._open_output(number, kind)) for kind in ("out", "err"))
            provided = {SCORE_FILE: str(file), TRIAL: str(number), WORKER: str(worker), LOGS: str(self._folders.logs)}
            command = self._template.fill(config, **provided)
            if os.sep in command[0]:
                command[0] = os.path.abspath(command[0])  # the working folder of the trial may be another one
            process = self._guard.start(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, cwd=cwd,
                env=self._environment(config, number, worker), start_new_session=True,
            )  # fmt: skip
            return _Program(number, worker, process, (out, err), file, before, time.monotonic(), stack.pop_all())

    def _open_output(self, number: int, kind: str) -> IO[bytes]:
        logs = self._folders.logs
        return TemporaryFile() if logs is None else (logs / f"{number}.{kind}").open("w+b")

    def _environment(self, config: Config, number: int, worker: int) -> dict[str, str]:
        """Return the environment of a program."""
        names = {"TRIAL": number, "WORKER": worker, "TASK": self._folders.task, "PROBLEM": self._folders.problem}
        described = {f"RECOLLECT_{name}": str(value) for name, value in names.items()}
        return {**os.environ, CONFIG_VARIABLE: json.dumps(config), **described}

    def _end(self, program: _Program, *, late: bool) -> Evaluation:
        seconds = time.monotonic() - program.start
        if late:
            _kill_and_wait(program.process)
        self._running.remove(program)
        self._guard.remove(program.process)
        with program.resources:
            out, err = map(_tail, program.outputs)
            try:
                if late:
                    raise InputError(f"stopped after the time limit of {self._limit:g} s")
                _check_exit(program.process.returncode, output=err or out)
                return Evaluation(parse_score(out if program.file is None else _content(program), self._key), seconds)
            except (InputError, OSError) as error:
                last = "\n".join(err.splitlines()[-KEPT_LINES:])
                return Evaluation(None, seconds, (str(error), last) if last else (str(error),))


def _check_exit(code: int, *, output: str) -> None:
    """Refuse an exit code other than 0."""
    if code:
        last = f": {output.splitlines()[-1].strip()[:300]}" if output and code > 0 else ""
        raise InputError(f"the program {describe_exit(code)}{last}")


def _content(program: _Program) -> str:
    assert program.file is not None
    if _state(program.file) in (None, program.before):
        raise InputError(f"expected the program to write its score to {program.file}, but it did not")
    return program.file.read_text(encoding="utf-8", errors="replace")


def _tail(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - OUTPUT_TAIL_BYTES))
    return file.read().decode("utf-8", "replace").strip()


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is written; None if it does not exist."""
    with suppress(OSError):
        status = path.stat()
        return status.st_ino, status.st_mtime_ns, status.st_size
    return None


def _kill_and_wait(process: subprocess.Popen[bytes]) -> None:
    kill_group(process)
    process.wait()
