"""Programs as objectives: what is run, how it fails, time limits and score files."""

from __future__ import annotations

import math
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.helpers.command_spaces import space

from recollect import InputError, compile_space
from recollect.tuning.commands import CommandEvaluator, CommandTemplate, parse_command
from recollect.tuning.objective import Evaluation

PYTHON = (sys.executable, "-S", "-c")


def python(code: str, *arguments: str) -> CommandTemplate:
    return parse_command([*PYTHON, code.replace("{", "{{").replace("}", "}}"), *arguments], space())


def outcome(template: CommandTemplate, config: dict[str, Any] | None = None, **how: Any) -> Evaluation:
    commands = CommandEvaluator(template, 1, **how)
    commands.start("it", config or {"lr": 0.25, "name": "a"})
    (name, found) = ended(commands)[0]
    assert name == "it"
    commands.close()
    return found


def ended(commands: CommandEvaluator, count: int = 1) -> list[tuple[Any, Evaluation]]:
    found: list[tuple[Any, Evaluation]] = []
    until = time.monotonic() + 20
    while len(found) < count and time.monotonic() < until:
        found += commands.wait(0.2)
    assert len(found) == count
    return found


def test_the_program_gets_its_arguments_and_the_environment() -> None:
    code = "import json, os, sys; c = json.loads(os.environ['RECOLLECT_CONFIG']); print(c['lr'] + float(sys.argv[1]))"
    found = outcome(python(code, "{lr}"))
    assert (found.value, found.notes) == (0.5, ())
    assert 0 < found.seconds < 20


def test_there_is_no_shell_between() -> None:
    searched = compile_space({"name": ["$(echo 1) '\"; exit 1 #\n*", "b"]})
    code = "import sys; print(len(sys.argv[1]))"
    found = outcome(parse_command([*PYTHON, code, "{name}"], searched), {"name": searched.columns[0].value(0.0)})
    assert found.value == len("$(echo 1) '\"; exit 1 #\n*")


def test_a_program_that_fails_says_why_in_its_last_lines() -> None:
    code = "import sys; print(0.5); print('first\\n  second: bad  \\n', file=sys.stderr); sys.exit(3)"
    found = outcome(python(code))
    assert found.value is None
    assert found.notes == ("the program ended with exit code 3: second: bad", "first\n  second: bad")


def test_a_program_that_fails_without_a_word_is_told_by_what_it_printed_or_its_code() -> None:
    assert outcome(parse_command(["sh", "-c", "echo no memory left; exit 4"], space())).notes == (
        "the program ended with exit code 4: no memory left",
    )
    assert outcome(parse_command(["sh", "-c", "exit 5"], space())).notes == ("the program ended with exit code 5",)


def test_a_program_that_is_killed_has_failed() -> None:
    (note,) = outcome(parse_command(["sh", "-c", "kill -9 $$"], space())).notes
    assert "killed by signal 9 (SIGKILL)" in note
    assert "memory" in note


def test_a_program_without_a_score_has_failed_and_its_warnings_are_kept() -> None:
    found = outcome(parse_command(["sh", "-c", "echo trained; echo careful >&2"], space()))
    reason, warning = found.notes
    assert "'trained'" in reason
    assert warning == "careful"


def test_only_the_end_of_long_outputs_is_looked_at() -> None:
    code = "import sys; [print('x' * 1000) for _ in range(3000)]; sys.stderr.write('y\\n' * 99999); print(0.5)"
    assert outcome(python(code)).value == 0.5
    failed = outcome(python(code + "; sys.exit('the end')"))
    assert failed.notes[0].endswith("exit code 1: the end")
    assert failed.notes[1].count("\n") == 19


def test_outputs_that_are_no_text_do_no_harm() -> None:
    code = "import sys; sys.stdout.buffer.write(b'\\xff\\xfe\\n0.5\\n'); sys.stderr.buffer.write(b'\\xff')"
    assert outcome(python(code)).value == 0.5


def test_a_program_cannot_read_from_the_terminal() -> None:
    assert outcome(python("import sys; print(len(sys.stdin.read()))")).value == 0.0


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_until_gone(pid: int) -> None:
    until = time.monotonic() + 10
    while alive(pid):
        assert time.monotonic() < until, f"process {pid} is still there"
        time.sleep(0.01)


def parent_and_child(folder: Path) -> CommandTemplate:
    """Return a program that starts another one and waits for it, and writes down both numbers."""
    code = f"sleep 60 & echo $! $$ > {shlex.quote(str(folder))}/pids.tmp; mv {folder}/pids.tmp {folder}/pids; wait"
    return parse_command(["sh", "-c", code], space())


def pids(folder: Path) -> list[int]:
    until = time.monotonic() + 10
    while not (folder / "pids").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    return [int(pid) for pid in (folder / "pids").read_text().split()]


def test_the_time_limit_ends_the_program_and_what_it_started(tmp_path: Path) -> None:
    found = outcome(parent_and_child(tmp_path), limit=1.0)
    (note,) = found.notes
    assert "time limit of 1 s" in note
    assert 1.0 <= found.seconds < 10
    for pid in pids(tmp_path):
        wait_until_gone(pid)


def test_closing_ends_all_programs_and_what_they_started(tmp_path: Path) -> None:
    commands = CommandEvaluator(parent_and_child(tmp_path), 1)
    commands.start("it", {"lr": 0.1, "name": "a"})
    started = pids(tmp_path)
    assert all(map(alive, started))
    assert commands.wait(0.0) == []
    commands.close()
    for pid in started:
        wait_until_gone(pid)
    assert commands.wait(0.0) == []


def test_a_program_that_interrupts_us_while_it_is_being_started_is_ended_by_closing() -> None:
    commands = CommandEvaluator(parse_command(["sh", "-c", "kill -INT $PPID; sleep 60"], space()), 1)

    def start_and_wait() -> None:
        commands.start("it", {"lr": 0.1, "name": "a"})
        commands.wait(10.0)

    with pytest.raises(KeyboardInterrupt):
        start_and_wait()
    (running,) = commands._running
    commands.close()
    assert running.process.returncode == -signal.SIGKILL


def test_ctrl_c_at_the_terminal_does_not_reach_the_programs() -> None:
    assert outcome(python("import os; print(int(os.getpgid(0) == os.getsid(0) == os.getpid()))")).value == 1.0


def test_several_programs_run_at_the_same_time(tmp_path: Path) -> None:
    code = f"touch {tmp_path}/{{name}}; cd {tmp_path}; until [ -e a -a -e b ]; do sleep 0.01; done; echo {{lr}}"
    commands = CommandEvaluator(parse_command(["sh", "-c", code], space()), 2, limit=20)
    assert commands.capacity == 2
    commands.start(1, {"lr": 0.25, "name": "a"})
    commands.start(2, {"lr": 0.5, "name": "b"})
    assert {name: found.value for name, found in ended(commands, 2)} == {1: 0.25, 2: 0.5}
    commands.close()


def test_waiting_ends_after_the_time_given() -> None:
    commands = CommandEvaluator(parse_command(["sleep", "20"], space()), 1)
    commands.start("it", {"lr": 0.25, "name": "a"})
    start = time.monotonic()
    assert commands.wait(0.15) == []
    assert 0.15 <= time.monotonic() - start < 5
    commands.close()


def test_a_program_that_does_not_start_is_a_failed_trial(tmp_path: Path) -> None:
    program = tmp_path / "prog"
    program.write_text("#!/nowhere/interpreter\n")
    program.chmod(0o755)
    (note,) = outcome(parse_command([str(program)], space())).notes
    assert "could not be started: FileNotFoundError" in note
    searched = compile_space({"name": ["a\0b", "c"]})
    (note,) = outcome(parse_command(["echo", "{name}"], searched), {"name": "a\0b"}).notes
    assert note.endswith("could not be started: ValueError: embedded null byte")


# Score files


def test_every_trial_gets_a_file_of_its_own_for_the_score(tmp_path: Path) -> None:
    code = "import json, sys; json.dump({'value': float(sys.argv[2])}, open(sys.argv[1], 'x')); print(sys.argv[1])"
    commands = CommandEvaluator(python(code, "{score_file}", "{lr}"), 3)
    for lr in (0.25, 0.5, 0.75):
        commands.start(lr, {"lr": lr, "name": "a"})
    assert {name: found.value for name, found in ended(commands, 3)} == {lr: lr for lr in (0.25, 0.5, 0.75)}
    commands.close()


def test_the_file_of_a_trial_is_named_as_asked_and_gone_afterwards(tmp_path: Path) -> None:
    code = "import sys; open(sys.argv[1], 'w').write('0.5'); open(sys.argv[2], 'w').write(sys.argv[1])"
    told = tmp_path / "told"
    assert outcome(python(code, "{score_file}", str(told)), file="out/metrics.txt").value == 0.5
    written = Path(told.read_text())
    assert written.name == "metrics.txt"
    assert not written.parent.exists()


@pytest.mark.parametrize(
    ("content", "score"),
    [
        ("0.5", 0.5),
        ('{"value": 0.5}', 0.5),
        ("loss: 0.5\n", 0.5),
        ('{\n"value":\n0.5}', 0.5),
        ("[0.5]", None),
        ("", None),
    ],
)
def test_a_file_holds_a_number_or_json(tmp_path: Path, content: str, score: float | None) -> None:
    file = tmp_path / "score"
    code = f"open({str(file)!r}, 'w').write({content!r}); print(7)"
    assert outcome(python(code), file=str(file)).value == score


def test_a_file_that_the_program_did_not_write_is_not_taken_for_its_score(tmp_path: Path) -> None:
    file = tmp_path / "score"
    for _ in range(2):
        found = outcome(parse_command(["true"], space()), file=str(file))
        (note,) = found.notes
        assert f"write its score to {file}" in note
        file.write_text("0.5")
    assert file.read_text() == "0.5"


def test_several_programs_must_not_share_one_file() -> None:
    with pytest.raises(InputError, match=r"the same file s\.json; use \{score_file\}"):
        CommandEvaluator(parse_command(["true"], space()), 2, file="s.json")
    CommandEvaluator(parse_command(["true", "{score_file}"], space()), 2, file="s.json")


# Refusals


def test_a_program_that_is_not_there_is_refused_at_once(tmp_path: Path) -> None:
    for name in ("no-such-program", str(tmp_path)):
        with pytest.raises(InputError, match=f"there is no '{name}'$"):
            CommandEvaluator(parse_command([name], space()), 1)
    with pytest.raises(InputError, match="do not quote the whole command"):
        CommandEvaluator(parse_command(["python train.py --lr {{lr}}"], space()), 1)


def test_a_program_that_is_not_executable_is_refused_with_the_command_that_changes_it(tmp_path: Path) -> None:
    plain = tmp_path / "plain file"
    plain.write_text("echo 1")
    with pytest.raises(InputError) as caught:
        CommandEvaluator(parse_command([str(plain)], space()), 1)
    remedy = str(caught.value).rpartition(": ")[2]
    assert subprocess.run(shlex.split(remedy), check=True).args == ["chmod", "+x", str(plain)]
    CommandEvaluator(parse_command([str(plain)], space()), 1).close()


@pytest.mark.parametrize("limit", [0, -1.0, math.nan])
def test_a_time_limit_is_positive(limit: float) -> None:
    with pytest.raises(InputError, match="trial_seconds: expected a positive number"):
        CommandEvaluator(parse_command(["true"], space()), 1, limit=limit)


def test_there_is_at_least_one_place() -> None:
    with pytest.raises(InputError, match="workers"):
        CommandEvaluator(parse_command(["true"], space()), 0)


def test_signals_that_have_no_name_are_told_by_their_number() -> None:
    number = signal.SIGRTMIN + 3
    (note,) = outcome(parse_command(["sh", "-c", f"kill -{int(number)} $$"], space())).notes
    assert note.startswith(f"the program was killed by signal {int(number)} (")


def test_nothing_is_left_open() -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        outcome(parse_command(["sh", "-c", "exit 1"], space()))
        outcome(parse_command(["true", "{score_file}"], space()))
    assert len(os.listdir("/proc/self/fd")) == before
