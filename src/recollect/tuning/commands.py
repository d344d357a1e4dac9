"""Programs as objectives: a command with placeholders is run once for each configuration and gives a score.

    python train.py --lr {lr} --depth {depth}

Placeholders. ``{name}`` becomes the value of a hyperparameter: text as it is, anything else as in JSON; ``{{`` and
``}}`` are braces. There is no shell: every argument stays one argument, whatever is in it. An argument with a
placeholder of an inactive hyperparameter is left out, and an option right before it (``--depth {depth}``) with it,
unless the argument is an option itself (``--depth={depth}``). All values are in the environment as well, as JSON.

Score. A number, a line ``name: number`` or ``name = number``, or a JSON object with a key: in the last line of standard
output that is not empty, or in a file. Where a key is asked for, the last line that has it counts.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Hashable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, TypeAlias

from recollect.errors import InputError
from recollect.history.run import Config
from recollect.space.space import Space
from recollect.system import signals_wait
from recollect.transfer.weights import as_count
from recollect.tuning.evaluators import Ended
from recollect.tuning.outcome import Outcome, reason_of

CONFIG_VARIABLE, SCORE_FILE, KEY = "RECOLLECT_CONFIG", "score_file", "value"
FRESH = "score.json"
TOKENS = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]|[^{}]+")
OPTION, LONE_OPTION = re.compile(r"--?[^\W\d_]"), re.compile(r"--?[^\W\d_][^=]*")
NAMED = re.compile(r"([^:=]*)[:=]\s*(\S+)")

TAIL, KEPT = 1 << 16, 20
"""So many bytes at the end of a program's output are looked at, and so many lines kept as the reason of a failure."""
SHORTEST, LONGEST = 0.001, 0.02
"""Seconds between two looks whether a program has ended."""
Word: TypeAlias = tuple[tuple[str, bool], ...]
"""One argument: its texts and placeholders in turn, the latter marked True."""


@dataclass(frozen=True, slots=True)
class Template:
    """A command with placeholders, made by `parse_command`. unused: hyperparameters that vary but have no place."""

    words: tuple[Word, ...]
    unused: tuple[str, ...]

    @property
    def program(self) -> str:
        """The program that is run."""
        return "".join(text for text, _ in self.words[0])

    def filled(self, config: Config, *, score_file: str) -> list[str]:
        """Return the arguments for a configuration."""
        values = {SCORE_FILE: score_file}
        values |= {name: value if isinstance(value, str) else json.dumps(value) for name, value in config.items()}
        arguments: list[str] = []
        for before, word in zip(((), *self.words), self.words, strict=False):
            if values.keys() >= _names(word):
                arguments.append("".join(values[part] if placed else part for part, placed in word))
            elif not OPTION.match(_opening(word)) and LONE_OPTION.fullmatch(_opening(before)) and not _names(before):
                arguments.pop()
        return arguments


def parse_command(command: Sequence[str], space: Space) -> Template:
    """Return the template of a command; InputError for a placeholder that is no hyperparameter of the space."""
    if not command:
        raise InputError("the command is missing: expected -- and a program with its arguments")
    if SCORE_FILE in space.names:
        raise InputError(f"a hyperparameter cannot be called {SCORE_FILE!r}: {{{SCORE_FILE}}} is where the score goes")
    words = tuple(_word(argument) for argument in command)
    for argument, word in zip(command, words, strict=True):
        if unknown := _names(word).difference(space.names, [SCORE_FILE]):
            raise InputError(
                f"the argument {argument!r} has the placeholder {{{min(unknown)}}}, but the hyperparameters are "
                f"{', '.join(space.names)}; {{{{ and }}}} stand for braces"
            )
    if not words[0] or _names(words[0]):
        raise InputError(f"expected the name of a program, without placeholders, got {command[0]!r}")
    varying = [name for name, varies in zip(space.names, space.varying, strict=True) if varies]
    return Template(words, tuple(name for name in varying if name not in _names(*words)))


def _word(argument: str) -> Word:
    parts = []
    for token in TOKENS.findall(argument):
        if token in ("{", "}"):
            raise InputError(f"the argument {argument!r} has a single {token}; {{{{ and }}}} stand for braces")
        doubled = token in ("{{", "}}")
        placed = token.startswith("{") and not doubled
        parts.append((token[1:-1], True) if placed else (token[0] if doubled else token, False))
    return tuple(parts)


def _names(*words: Word) -> set[str]:
    return {part for word in words for part, placed in word if placed}


def _opening(word: Word) -> str:
    """Return the text before the first placeholder."""
    return "".join(text for text, _ in itertools.takewhile(lambda part: not part[1], word))


def score_in(text: str, key: str | None = None) -> float:
    """Return the score that a program's output or file gives; InputError says why there is none."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise InputError("expected a score, but there is none: nothing was written")
    found = _from_object(text.strip(), key)
    for line in lines[-1:] if key is None else reversed(lines):
        found = _from_line(line, key) if found is None else found
    if found is None:
        what = "a number" if key is None else f"a number called {key!r}"
        raise InputError(f"expected {what} as score, but the last line is {lines[-1][:200]!r}")
    if not math.isfinite(found):
        raise InputError(f"the score is {found}")
    return found


def _from_object(text: str, key: str | None) -> float | None:
    """Return the number under the key of a JSON object; None if this is no object or has no such key."""
    try:
        content = json.loads(text) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return None
    name = KEY if key is None else key
    if not isinstance(content, dict) or name not in content:
        return None
    if isinstance(content[name], bool) or not isinstance(content[name], int | float):
        raise InputError(f"expected a number as score, but {name!r} is {json.dumps(content[name])[:200]}")
    return float(str(content[name]))  # through text: an int may be too large for a float


def _from_line(line: str, key: str | None) -> float | None:
    if (found := _from_object(line, key)) is not None:
        return found
    if key is None:
        named = NAMED.fullmatch(line)
        return _number(named[2] if named and any(map(str.isalpha, named[1])) else line)
    given = re.findall(rf"(?<![\w.-]){re.escape(key)}[\"']?\s*[:=]\s*([^\s,;}})\]]+)", line)
    return _number(given[-1]) if given else None


def _number(text: str) -> float | None:
    with suppress(ValueError):
        return None if "_" in text else float(text)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class _Running:
    """A program that runs. before: the state of the score's file when it began."""

    name: Hashable
    process: subprocess.Popen[bytes]
    outputs: tuple[IO[bytes], IO[bytes]]
    file: Path | None
    before: object
    begun: float
    resources: ExitStack


class Commands:
    """Evaluates by running a program, up to so many at once."""

    def __init__(
        self, template: Template, places: int, *, limit: float | None = None, key: str | None = None, file: str = ""
    ) -> None:
        """Run this command, each time for at most ``limit`` seconds; ``key`` and ``file`` say where its score is."""
        self._template, self._places, self._limit = template, as_count("workers", places, least=1), limit
        self._key, self._file, self._fresh = key, file, SCORE_FILE in _names(*template.words)
        if limit is not None and not limit > 0:
            raise InputError(f"trial_seconds: expected a positive number or None, got {limit!r}")
        if places > 1 and file and not self._fresh:
            raise InputError(
                f"{places} programs at once would write the same file {file}; {{{SCORE_FILE}}} in the command gives "
                "each a file of its own"
            )
        if shutil.which(template.program) is None:
            hint = "; there must be no quotes around the whole command" if " " in template.program else ""
            raise InputError(f"there is no program {template.program!r} that can be run{hint}")
        self._running: list[_Running] = []
        self._refused: Ended = []

    @property
    def places(self) -> int:
        """How many configurations can be evaluated at the same time."""
        return self._places

    def begin(self, name: Hashable, config: Config) -> None:
        """Start the program for a configuration."""
        try:
            with signals_wait():
                self._running.append(self._start(name, config))
        except (OSError, ValueError) as error:
            self._refused.append((name, Outcome(None, 0.0, (f"the program did not start: {reason_of(error)}",))))

    def wait(self, seconds: float) -> Ended:
        """Wait until a program ends or exceeds its time."""
        ended, self._refused = self._refused, []
        until, pause = time.monotonic() + seconds, SHORTEST
        while True:
            for one in tuple(self._running):
                over = one.process.poll() is not None
                if over or (self._limit is not None and time.monotonic() - one.begun >= self._limit):
                    ended.append((one.name, self._end(one, late=not over)))
            if ended or not self._running or time.monotonic() >= until:
                return ended
            time.sleep(min(pause, max(0.0, until - time.monotonic())))
            pause = min(2 * pause, LONGEST)

    def close(self) -> None:
        """Kill all programs that run, with what they started."""
        while self._running:
            _kill(self._running[-1].process)
            self._running.pop().resources.close()

    def _start(self, name: Hashable, config: Config) -> _Running:
        with ExitStack() as stack:
            file = Path(self._file) if self._file else None
            if self._fresh:
                folder = TemporaryDirectory(prefix="recollect-", ignore_cleanup_errors=True)
                file = Path(stack.enter_context(folder), Path(self._file or FRESH).name)
            before = None if file is None else _state(file)
            out, err = stack.enter_context(TemporaryFile()), stack.enter_context(TemporaryFile())
            process = subprocess.Popen(
                self._template.filled(config, score_file=str(file)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env={**os.environ, CONFIG_VARIABLE: json.dumps(config)},
                start_new_session=True,
            )
            return _Running(name, process, (out, err), file, before, time.monotonic(), stack.pop_all())

    def _end(self, one: _Running, *, late: bool) -> Outcome:
        seconds = time.monotonic() - one.begun
        if late:
            _kill(one.process)
        self._running.remove(one)
        with one.resources:
            out, err = map(_tail, one.outputs)
            try:
                if late:
                    raise InputError(f"stopped after {self._limit:g} s, the time limit of a trial")
                _check(one.process.returncode, said=err or out)
                return Outcome(score_in(out if one.file is None else _content(one), self._key), seconds)
            except (InputError, OSError) as error:
                last = "\n".join(err.splitlines()[-KEPT:])
                return Outcome(None, seconds, (str(error), last) if last else (str(error),))


def _check(code: int, *, said: str) -> None:
    """Refuse an exit code that is not 0."""
    if code < 0:
        hint = ", perhaps for want of memory" if code == -signal.SIGKILL else ""
        raise InputError(f"the program was killed by signal {-code} ({signal.strsignal(-code)}){hint}")
    if code > 0:
        raise InputError(f"exit code {code}" + (f": {said.splitlines()[-1].strip()[:300]}" if said else ""))


def _content(one: _Running) -> str:
    assert one.file is not None
    if _state(one.file) in (None, one.before):
        raise InputError(f"the program did not write its score to {one.file}")
    return one.file.read_text(encoding="utf-8", errors="replace")


def _tail(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, os.SEEK_END) - TAIL))
    return file.read().decode("utf-8", "replace").strip()


def _state(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is written; None if there is none."""
    with suppress(OSError):
        found = path.stat()
        return found.st_ino, found.st_mtime_ns, found.st_size
    return None


def _kill(process: subprocess.Popen[bytes]) -> None:
    with suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
