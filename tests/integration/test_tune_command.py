"""``recollect tune``: programs tuned as a user does it, what is printed and kept, what is refused in one sentence."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import typer
from ConfigSpace import Float
from tests.helpers.command_line import Done, Recollect, command_line

from recollect import Memory, Run, compile_space
from recollect.cli.main import app
from recollect.cli.tune import EXAMPLES
from recollect.storage.studies import space_difference

COMMAND = Path(sys.executable).parent / "recollect"
PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
SPACE = {"x": {"low": 0.0, "high": 1.0}, "kind": ["good", "fine", "fail", "slow"]}

TRAIN = """
import sys, time
x, kind, log = float(sys.argv[1]), sys.argv[2], sys.argv[3]
open(log, "a").write(kind + "\\n")
print("training", kind)
if kind == "fail":
    sys.exit("out of luck")
if kind == "slow":
    time.sleep(60)
print("loss:", x)
"""


@pytest.fixture
def recollect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Recollect:
    return command_line(monkeypatch, capsys)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an empty memory once; tests take copies of it."""
    path = tmp_path_factory.mktemp("model") / "empty.db"
    memory = Memory(path)
    memory.store.optuna.get_all_studies()
    memory.close()
    return path


@pytest.fixture
def folder(tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in a folder with a space, a program and an empty memory."""
    monkeypatch.chdir(tmp_path)
    Path("space.json").write_text(json.dumps(SPACE))
    Path("line.json").write_text('{"x": {"low": 0.0, "high": 1.0}}')
    Path("train.py").write_text(TRAIN)
    shutil.copy(model, "tuning.db")
    return tmp_path


def tuned(*options: object, trials: int = 4, task: str = "t", space: str = "line.json") -> list[object]:
    """Return the beginning of a command line that tunes into the memory of the folder."""
    kept = ["--memory", "tuning.db", "--problem", "p", "--task", task]
    return ["tune", "--space", space, *kept, "--trials", trials, "--method", "random", *options, "--"]


def one_run(task: str = "t") -> Run:
    return Memory("tuning.db").run(task, "p")


def refused(done: Done, *words: str) -> None:
    """Check that there was one sentence and nothing else."""
    assert done.code == 2, done
    assert done.out == ""
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err


# As a user runs it


def executed(*arguments: object) -> Done:
    command = ["recollect", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert "Traceback" not in done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.usefixtures("warm_path")
def test_a_program_that_fails_and_hangs_now_and_then_is_tuned_by_two_workers_and_resumed(folder: Path) -> None:
    program = [sys.executable, "-S", "train.py", "{x}", "{kind}", "log"]
    options = ("--workers", 2, "--trial-seconds", 3, "--json", "--seed", 3)
    done = executed(*tuned(*options, trials=7, space="space.json"), *program)
    assert done.code == 0, done
    result, run = json.loads(done.out), one_run()
    kinds = [trial.config["kind"] for trial in run.trials]
    assert set(kinds) == {"good", "fine", "fail", "slow"}
    for trial in run.trials:
        if trial.config["kind"] == "fail":
            assert trial.notes == ("the program ended with exit code 1: out of luck", "out of luck")
        elif trial.config["kind"] == "slow":
            assert "time limit of 3 s" in trial.notes[0]
        else:
            assert trial.value == trial.config["x"]
    assert sorted(Path("log").read_text().split()) == sorted(kinds)
    failed = kinds.count("fail") + kinds.count("slow")
    assert len([line for line in done.err.splitlines() if line.startswith("recollect: trial ")]) == failed
    assert done.err.count("exit code 1: out of luck") == kinds.count("fail")
    assert run.best is not None
    expected = {"task": "t", "problem": "p", "memory": "tuning.db", "direction": "minimize", "trials": 7}
    expected |= {"failed": failed, "best_value": run.best.value, "best_config": run.best.config}
    assert {key: result[key] for key in expected} == expected
    assert result["command"] == [*program[:3], str(run.best.config["x"]), run.best.config["kind"], "log"]
    assert result["explanation"]["method"] == "random"

    again = executed(*tuned(*options, trials=8, space="space.json"), *program)
    assert json.loads(again.out)["trials"] == 8
    assert one_run().trials[:7] == run.trials
    assert len(Path("log").read_text().split()) == 8


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


HANGS_AT_THE_THIRD = 'echo $$ >> log; [ "$(wc -l < log)" -eq 3 ] && sleep 60; echo {x}'


def wait_for_the_third() -> None:
    until = time.monotonic() + 60
    while not Path("log").exists() or len(Path("log").read_text().split()) < 3:
        assert time.monotonic() < until
        time.sleep(0.02)


def check_interrupted(err: str) -> None:
    message = "recollect: interrupted; 2 trials of task 't' stored in tuning.db; the same command resumes the task"
    assert err.splitlines()[-1] == message
    assert not any(alive(int(pid)) for pid in Path("log").read_text().split())
    assert len(one_run()) == 2


def test_ctrl_c_keeps_finished_trials_and_says_how_to_resume(folder: Path, recollect: Recollect) -> None:
    arguments = [*tuned(trials=5), "sh", "-c", HANGS_AT_THE_THIRD]
    command = [str(COMMAND), *map(str, arguments)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    wait_for_the_third()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (130, "")
    check_interrupted(err)
    assert recollect(*arguments).code == 0
    assert len(one_run()) == 5
    assert len(Path("log").read_text().split()) == 6


def test_a_polite_kill_does_the_same(folder: Path, recollect: Recollect) -> None:
    def kill() -> None:
        wait_for_the_third()
        if signal.getsignal(signal.SIGTERM) != signal.SIG_DFL:
            os.kill(os.getpid(), signal.SIGTERM)

    killer = threading.Thread(target=kill)
    killer.start()
    done = recollect(*tuned("--trial-seconds", 30, trials=5), "sh", "-c", HANGS_AT_THE_THIRD)
    killer.join()
    assert (done.code, done.out) == (143, "")
    check_interrupted(done.err)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_program_that_kills_the_command_at_once_ends_with_it(folder: Path) -> None:
    arguments = [*tuned(), "sh", "-c", "echo $$ >> log; kill -9 $PPID; sleep 300; echo {x}"]
    subprocess.run([str(COMMAND), *map(str, arguments)], check=False)
    until = time.monotonic() + 30
    while any(alive(int(pid)) for pid in Path("log").read_text().split()):
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGQUIT])
def test_programs_and_what_they_started_end_with_a_command_that_is_killed(folder: Path, number: signal.Signals) -> None:
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)  # shells ignore it in the background, and children inherit that
    arguments = [*tuned("--workers", 2), "sh", "-c", "sleep 300 & echo $$ $! >> log; wait; echo {x}"]
    with subprocess.Popen([str(COMMAND), *map(str, arguments)], cwd=folder) as process:
        until = time.monotonic() + 60
        while not Path("log").exists() or len(Path("log").read_text().split()) < 4:
            assert time.monotonic() < until
            time.sleep(0.02)
        process.send_signal(number)
    pids = [int(pid) for pid in Path("log").read_text().split()]
    while any(map(alive, pids)):
        assert time.monotonic() < until
        time.sleep(0.02)


# What is printed


def test_the_result_is_printed_with_a_command_that_can_be_copied(recollect: Recollect, folder: Path) -> None:
    Path("line.json").write_text('{"x": {"low": 0.0, "high": 1.0}, "text": ["it\'s $HOME; a", "[red] \\"b\\""]}')
    done = recollect(*tuned(), "sh", "-c", """echo "$1"; echo '{{"value": {x}}}'""", "name", "{text}")
    assert (done.code, done.err.count("trial "), done.err.count("\n")) == (0, 4, 4)
    run = one_run()
    assert run.best is not None
    lines = done.out.splitlines()
    assert lines[0] == "t: 4 trials, 0 failed; 4 of 4 trials finished"
    assert lines[1] == f"best value {run.best.value!r}"
    assert ["x", str(run.best.config["x"])] in [line.split() for line in lines]
    assert any(line.split(maxsplit=1) == ["text", run.best.config["text"]] for line in map(str.strip, lines))
    assert "method random: 4 trials" in done.out
    copied = subprocess.run(["sh", "-c", lines[-1]], capture_output=True, text=True, check=True).stdout
    assert copied == f'{run.best.config["text"]}\n{{"value": {run.best.config["x"]}}}\n'
    pointer = lines[lines.index("all trials:") + 1]
    assert pointer == "  recollect memory show tuning.db --problem p --task t --trials"
    assert recollect(*shlex.split(pointer)[1:]).code == 0
    assert recollect(*shlex.split(lines[lines.index("everything about one trial:") + 1])[1:]).code == 0


def test_what_past_runs_contribute_and_how_their_spaces_differ_is_shown(recollect: Recollect, folder: Path) -> None:
    x = [i / 12 for i in range(13)]
    past = Run("before", [{"x": v, "gone": 1} for v in x], [abs(v - 0.5) for v in x])
    Memory("tuning.db").add(past, "p")
    done = recollect(*tuned("--method", "rgpe-taf", "--json"), "sh", "-c", "echo {x}")
    (entry,) = json.loads(done.out)["explanation"]["past"]
    assert (entry["task"], entry["observations"]) == ("before", 13)
    assert entry["weight"] is not None
    assert entry["alignment"] == "In the 13 configurations kept, values were ignored for 'gone' (13)."
    text = recollect(*tuned("--method", "rgpe-taf", trials=5), "sh", "-c", "echo {x}").out
    assert "past run " in text
    assert "before: In the 13 configurations kept, values were ignored for 'gone' (13)." in text


def test_past_runs_are_learned_from_under_old_names(recollect: Recollect, folder: Path) -> None:
    x = [i / 12 for i in range(13)]
    Memory("tuning.db").add(Run("before", [{"old": v} for v in x], [abs(v - 0.5) for v in x]), "p")
    done = recollect(*tuned("--method", "rgpe-taf", "--json", "--rename", "old=x"), "sh", "-c", "echo {x}")
    (entry,) = json.loads(done.out)["explanation"]["past"]
    assert (entry["task"], entry["observations"]) == ("before", 13)
    for wrong in ("old", "=x", "old="):
        refused(recollect(*tuned("--rename", wrong), "echo", "{x}"), "--rename", "OLD=NEW", repr(wrong))


def test_tags_and_a_note_are_stored_and_a_range_of_integers_for_floats_is_warned_about(
    recollect: Recollect, folder: Path
) -> None:
    program = (sys.executable, "-c", "print({x})")
    recollect(*tuned("--tag", "gpu", "--tag", "new", "--note", "second data", task="old"), *program)
    (stored,) = Memory("tuning.db").stored_runs("p", tags="gpu")
    assert (stored.tags, stored.note) == (("gpu", "new"), "second data")
    Path("whole.json").write_text('{"x": {"low": 0, "high": 9}}')
    done = recollect(*tuned(space="whole.json", task="new"), *program)
    assert "'x' is a range of integers" in done.err


def test_higher_is_better_when_asked_for_and_a_key_names_the_score(recollect: Recollect, folder: Path) -> None:
    command = ["sh", "-c", "echo 'acc: {x}'; echo seconds: 3"]
    done = recollect(*tuned("--maximize", "--key", "acc", "--json"), *command)
    run = one_run()
    assert run.direction == "maximize"
    assert json.loads(done.out)["best_value"] == max(value for value in run.values if value is not None)
    assert run.values == [config["x"] for config in run.configs]


def test_a_score_is_read_from_a_file(recollect: Recollect, folder: Path) -> None:
    assert recollect(*tuned("--workers", 2), "sh", "-c", "echo {x} > {score_file}; echo bye").code == 0
    done = recollect(*tuned("--score-file", "score.txt", task="u"), "sh", "-c", "echo {x} > score.txt; echo bye")
    assert done.code == 0
    for task in ("t", "u"):
        assert one_run(task).values == [config["x"] for config in one_run(task).configs]
    refused(
        recollect(*tuned("--score-file", "s", "--workers", 2), "sh", "-c", "echo {x}"), "same file s", "{score_file}"
    )


def test_it_stops_at_the_target_or_after_so_many_seconds(recollect: Recollect, folder: Path) -> None:
    done = recollect(*tuned("--target", 5, "--json"), "sh", "-c", "echo {x}")
    assert json.loads(done.out)["stopped"] == "target 5 reached"
    assert len(one_run()) == 1
    done = recollect(*tuned("--seconds", 0.3, "--json", task="u"), "sh", "-c", "sleep 0.4; echo {x}")
    assert json.loads(done.out)["stopped"] == "time budget of 0.3 s spent"
    assert len(one_run("u")) == 1


def test_without_a_success_the_exit_code_is_1(recollect: Recollect, folder: Path) -> None:
    done = recollect(*tuned(trials=2), "sh", "-c", "echo {x} >&2; exit 3")
    assert done.code == 1
    assert done.err.count("ended with exit code 3: 0.") == 2
    assert done.err.splitlines()[-1] == "recollect: no trial succeeded"
    assert "best" not in done.out.splitlines()[1]
    done = recollect(*tuned("--json", "--quiet", task="u", trials=2), "sh", "-c", "echo {x} >&2; exit 3")
    assert (done.code, done.err) == (1, "")
    result = json.loads(done.out)
    assert (result["failed"], result["best_value"], result["best_config"], result["command"]) == (2, None, None, None)


def test_without_a_trial_the_exit_code_is_1_too(recollect: Recollect, folder: Path) -> None:
    done = recollect(*tuned("--seconds", 1e-9), "sh", "-c", "echo {x}")
    assert (done.code, done.err.splitlines()[-1]) == (1, "recollect: no trial succeeded")
    assert len(one_run()) == 0


def test_nothing_needs_to_be_kept(recollect: Recollect, folder: Path) -> None:
    done = recollect("tune", "--space", "line.json", "--trials", 2, "--json", "sh", "-c", "echo {x}")
    result = json.loads(done.out)
    assert (result["memory"], result["trials"], result["problem"]) == (None, 2, "default")
    assert result["task"].startswith("run of ")


def test_a_hyperparameter_without_a_place_is_warned_of(recollect: Recollect, folder: Path) -> None:
    code = "import json, os; print(json.loads(os.environ['RECOLLECT_CONFIG'])['x'])"
    done = recollect(*tuned(trials=2), sys.executable, "-S", "-c", code)
    assert "the command has no {x}" in done.err
    assert "RECOLLECT_CONFIG" in done.err
    assert one_run().values == [config["x"] for config in one_run().configs]
    assert recollect(*tuned("--quiet", trials=3), sys.executable, "-S", "-c", code).err == ""


# What is refused


def test_what_cannot_be_run_is_said_before_anything_is_kept(recollect: Recollect, folder: Path) -> None:
    refused(recollect(*tuned(), "no-such-program", "{x}"), "there is no 'no-such-program'")
    refused(recollect(*tuned(), "sh {x}"), "without placeholders")
    refused(recollect(*tuned(), "echo", "{y}"), "placeholder {y}", "hyperparameters are x")
    refused(recollect(*tuned(space="nowhere.json"), "echo", "{x}"), "nowhere.json", "No such file")
    refused(recollect(*tuned("--method", "magic"), "echo", "{x}"), "magic")
    assert Memory("tuning.db").runs() == []
    missing = recollect(*tuned())
    assert (missing.code, missing.out) == (2, "")
    assert "PROGRAM" in missing.err


def test_a_memory_needs_the_name_of_the_task(recollect: Recollect, folder: Path) -> None:
    refused(recollect("tune", "--space", "line.json", "--memory", "new.db", "--", "echo", "{x}"), "--task")
    refused(recollect("tune", "--space", "line.json", "--memory", "new.db", "--task", "", "--", "echo", "{x}"), "task")
    assert not Path("new.db").exists()


def test_a_task_with_another_space_or_direction_is_refused(recollect: Recollect, folder: Path) -> None:
    assert recollect(*tuned(trials=1), "sh", "-c", "echo {x}").code == 0
    refused(recollect(*tuned(space="space.json"), "echo", "{x}", "{kind}"), "another search space", "'kind' is new")
    refused(recollect(*tuned("--maximize"), "echo", "{x}"), "to minimize, not to maximize")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ((0.0, 1.0), (0.0, 0.5), "'a' was a number in [0.0, 1.0], is a number in [0.0, 0.5]"),
        ((1, 8), (1, 8, "log"), "'a' was an integer in [1, 8], is an integer in [1, 8] on a log scale"),
        (["x", "y"], ["x", "z"], "'a' was one of ['x', 'y'], is one of ['x', 'z']"),
        (3, [3, 4], "'a' was the constant 3, is one of [3, 4]"),
        (list(range(99)), [*range(98), 100], "'a' has other choices or another default"),
        (Float("a", (0.0, 1.0), default=0.1), (0.0, 1.0), "'a' has other choices or another default"),
    ],
)
def test_how_a_search_space_differs_is_said_in_words(old: Any, new: Any, said: str) -> None:
    assert space_difference(compile_space({"a": old}), compile_space({"a": new})) == said


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--trial-seconds", 0, "expected a positive number, got 0"),
        ("--trial-seconds", "nan", "expected a positive number, got nan"),
        ("--seconds", -1.5, "expected a positive number, got -1.5"),
        ("--target", "nan", "expected a number, got nan"),
    ],
)
def test_a_number_that_makes_no_sense_is_told_by_the_name_of_its_option(
    recollect: Recollect, folder: Path, option: str, value: Any, said: str
) -> None:
    done = recollect(*tuned(option, value), "echo", "{x}")
    assert done == Done(2, "", f"recollect: {option}: {said}\n")


@pytest.mark.parametrize("option", ["--trials=0", "--workers=0", "--trials=x", "--seed=-1", "--nonsense"])
def test_options_that_make_no_sense_are_refused(recollect: Recollect, folder: Path, option: str) -> None:
    done = recollect(*tuned(option), "echo", "{x}")
    assert (done.code, done.out) == (2, "")
    assert option.partition("=")[0] in done.err


# Space files


def commands(group: Any, path: tuple[str, ...] = ("recollect",)) -> list[tuple[str, Any]]:
    """Return all commands with their full names."""
    if "commands" not in vars(group):
        return [(" ".join(path), group)]
    return [found for name, inner in group.commands.items() for found in commands(inner, (*path, name))]


def test_the_examples_in_the_help_are_understood(recollect: Recollect, folder: Path) -> None:
    assert EXAMPLES.strip("\b\n").splitlines()[0] in recollect("tune", "--help").out
    Path("space.json").write_text('{"lr": {"low": 0.1, "high": 1.0}, "depth": {"low": 1, "high": 3}}')
    Path("train.sh").write_text("#!/bin/sh\necho accuracy: $1")
    Path("train.sh").chmod(0o755)
    Path("train.py").write_text(
        "import json, sys; json.dump({'value': 1}, open(sys.argv[-1], 'w')); print(sys.argv[2])"
    )
    examples = EXAMPLES.partition("Examples:\n")[2].partition("\n\n")[0].replace("\\\n", "")
    for example in examples.strip().splitlines():
        arguments = shlex.split(example.replace("python", shlex.quote(sys.executable)).replace("--trials 50", ""))
        assert arguments.pop(0) == "recollect"
        done = recollect(arguments[0], "--trials", 2, "--method", "random", *arguments[1:])
        assert done.code == 0, done


def test_every_command_and_every_option_is_in_the_documentation() -> None:
    head, *parts = PAGE.read_text().split("\n## ")
    sections = {part.partition("\n")[0].strip("`"): part for part in parts}
    root = typer.main.get_command(app)
    assert all(f"`recollect {option}`" in head for parameter in root.params for option in parameter.opts)
    found = dict(commands(root))
    assert {"recollect tune", "recollect memory list", "recollect bench run"} <= found.keys()
    for name, command in found.items():
        assert name in sections, f"{name} has no section in {PAGE.name}"
        assert f"    {name}" in sections[name], f"{name} has no example"
        for option in (option for parameter in command.params for option in parameter.opts if option[:2] == "--"):
            assert option == "--help" or f"`{option}" in sections[name], f"{name}: {option} is not documented"
    assert {name for name in sections if name.startswith("recollect ")} == found.keys()
