"""``recollect tune``: what a trial leaves behind, what its program is told, what to try first, when to stop."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recollect import Memory

pytestmark = pytest.mark.usefixtures("warm_path")
PYTHON = (sys.executable, "-S")
PROGRAM = """
import json, os, sys
names = ("CONFIG", "TRIAL", "WORKER", "TASK", "PROBLEM")
told = {name: os.environ["RECOLLECT_" + name] for name in names}
print(json.dumps(told | {"argv": sys.argv[1:], "cwd": os.getcwd()}))
print("about trial", sys.argv[1], file=sys.stderr)
x = json.loads(os.environ["RECOLLECT_CONFIG"])["x"]
if x > 0.9:
    sys.exit("x is too large")
print(x)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("space.json").write_text('{"x": {"low": 0.0, "high": 1.0}}')
    Path("train.py").write_text(PROGRAM)
    Path("first.csv").write_text("x\n0.25\n0.95\n")
    return tmp_path


def recollect(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(["recollect", *map(str, arguments)], capture_output=True, text=True, timeout=100, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == code, done
    return done


def tune(*arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    kept = ("--memory", "m.db", "--problem", "p", "--task", "a/b")
    return recollect("tune", "--space", "space.json", *kept, "--method", "random", *arguments, code=code)


def test_the_life_of_a_trial_can_be_followed(folder: Path) -> None:
    options = ("--logs", "logs", "--folder", "work", "--trials", 3, "--workers", 2, "--first", "first.csv")
    done = tune(*options, "--", *PYTHON, folder / "train.py", "{trial}", "{worker}", "{logs}")
    lines = [line for line in done.stderr.splitlines() if re.match(r"trial \d: ", line)]
    assert sorted(line.split(":")[0] for line in lines) == ["trial 0", "trial 1", "trial 2"]
    logs, work = folder / "logs" / "a%2Fb", folder / "work" / "a%2Fb"
    assert {path.name for path in logs.iterdir()} == {f"{n}.{kind}" for n in range(3) for kind in ("out", "err")}
    workers = set()
    for number in range(3):
        said: dict[str, Any] = json.loads((logs / f"{number}.out").read_text().splitlines()[0])
        assert (said["TRIAL"], said["TASK"], said["PROBLEM"]) == (str(number), "a/b", "p")
        assert said["argv"] == [str(number), said["WORKER"], str(logs)]
        assert said["cwd"] == str(work / str(number))
        assert (logs / f"{number}.err").read_text().startswith(f"about trial {number}")
        workers.add(said["WORKER"])
    assert workers == {"0", "1"}
    where = ("memory", "show", "m.db", "--task", "a/b", "--trial", 1)
    shown = json.loads(recollect(*where, "--json").stdout)
    assert (shown["number"], shown["state"], shown["value"], shown["config"]) == (1, "failed", None, {"x": 0.95})
    assert "first" in shown["suggestion"]["reason"]
    assert shown["seconds"] > 0
    assert "x is too large" in shown["notes"][0]
    assert shown["place"] == {
        "host": os.uname().nodename,
        "output": str(logs / "1.out"),
        "errors": str(logs / "1.err"),
        "folder": str(work / "1"),
    }
    text = recollect(*where).stdout
    for part in ("failed", "0.95", "x is too large", str(logs / "1.err"), "first"):
        assert part in text
    refused = recollect("memory", "show", "m.db", "--task", "a/b", "--trial", 7, code=2)
    assert "no trial 7; its trials are: 0 to 2" in refused.stderr


def test_numbers_are_the_same_in_the_list_of_trials_in_logs_and_in_optuna(folder: Path) -> None:
    import optuna

    tune("--trials", 1, "--", *PYTHON, "train.py", "{trial}")
    storage = optuna.storages.RDBStorage("sqlite:///m.db")
    study = storage.get_study_id_from_name("p/a%2Fb")
    void = optuna.trial.create_trial(state=optuna.trial.TrialState.FAIL, user_attrs={"recollect:void": "interrupted"})
    storage.create_new_trial(study, void)
    tune("--trials", 2, "--logs", "logs", "--", *PYTHON, "train.py", "{trial}")
    assert [trial.number for trial in Memory("m.db").run("a/b", "p").trials] == [0, 2]
    listed = recollect("memory", "show", "m.db", "--task", "a/b", "--trials").stdout
    assert [int(row.split()[0]) for row in listed.split("note\n")[1].splitlines() if row.strip()] == [0, 2]
    assert (folder / "logs" / "a%2Fb" / "2.out").is_file()
    shown = json.loads(recollect("memory", "show", "m.db", "--task", "a/b", "--trial", 1, "--json").stdout)
    assert (shown["state"], shown["notes"]) == ("void", ["does not count: interrupted"])


@pytest.mark.parametrize("task", ["..", "../../up", ".", "a\\b:c"])
def test_no_name_of_a_task_leads_out_of_the_folder_of_logs(folder: Path, task: str) -> None:
    from recollect.tuning.commands import TaskFolders

    logs = TaskFolders.of("p", task, logs=Path("logs"), work=None).logs
    assert logs is not None
    assert logs.resolve().parent == (folder / "logs").resolve()


def test_a_program_that_always_fails_stops_after_five_trials_and_names_the_remedy(folder: Path) -> None:
    program = ("-c", "print('epoch 3 acc=0.93 loss=0.21 done')")
    done = tune("--trials", 50, "--json", "--", *PYTHON, *program, code=1)
    result = json.loads(done.stdout)
    assert result["trials"] == 5
    assert "5 failures in a row" in result["stopped"]
    assert "--key acc" in result["stopped"]
    assert json.loads(tune("--trials", 6, "--key", "acc", "--json", "--", *PYTHON, *program).stdout)["failed"] == 5


def test_patience_ends_a_run_of_a_program(folder: Path) -> None:
    done = tune("--trials", 50, "--patience", 2, "--json", "--", *PYTHON, "-c", "print(1)")
    assert json.loads(done.stdout)["stopped"] == "no improvement in 2 trials"


def test_an_option_after_the_program_gives_a_hint_unless_the_program_is_separated(folder: Path) -> None:
    program = (*PYTHON, "train.py", "{trial}", "--seed", "2")
    assert "--seed comes after the program" in tune("--trials", 1, *program).stderr
    assert "after the program" not in tune("--trials", 2, "--", *program).stderr


def test_a_file_that_is_not_found_from_a_folder_of_its_own_gives_a_hint(folder: Path) -> None:
    done = tune("--trials", 1, "--folder", "work", "--", *PYTHON, "train.py", "{trial}", code=1)
    assert f"does not find train.py; write {folder / 'train.py'}" in done.stderr


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--first", "none.json"), "no such file"),
        (("--first", "space.json"), "first[0]"),
        (("--callback", "nonsense"), "there is no callback 'nonsense'"),
        (("--workers", 0), "workers"),
        (("--logs", "train.py"), "cannot be created"),
    ],
)
def test_wrong_options_are_refused_before_the_first_trial(
    folder: Path, options: tuple[object, ...], words: str
) -> None:
    assert words in tune(*options, "--", *PYTHON, "train.py", "{trial}", code=2).stderr


def test_a_placeholder_for_logs_needs_logs(folder: Path) -> None:
    assert "name one with --logs" in tune("--", *PYTHON, "train.py", "{logs}", code=2).stderr
