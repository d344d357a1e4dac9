"""The recipes of the page "On many machines", taken from the page."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from tests.helpers.dask_cluster import dask_cluster
from tests.helpers.documents import ROOT, code_blocks, execute

from recollect import Memory

PAGE = (ROOT / "docs" / "worker-recipes.md").read_text()
DATABASE = "postgresql://tuning@db.example.com/tuning"
SCHEDULER = "tcp://scheduler.example.com:8786"
pytestmark = pytest.mark.usefixtures("warm_path")


def block(language: str) -> str:
    (text,) = re.findall(rf"```{language}\n(.*?)```", PAGE, flags=re.DOTALL)
    return str(text)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "space.json").write_text('{"x": {"low": -1.0, "high": 1.0}}')
    assert execute(*code_blocks(PAGE)[0], tmp_path) == ""
    assert (tmp_path / "train.py").exists()
    return tmp_path


def test_elements_of_a_slurm_array_share_the_budget_of_a_task(folder: Path, postgres: str) -> None:
    script = block("bash").replace(DATABASE, postgres)
    assert postgres in script
    (folder / "array.sh").write_text(script)
    elements = [
        subprocess.Popen(
            ["bash", "array.sh"],
            cwd=folder,
            env=os.environ | {"SLURM_ARRAY_TASK_ID": str(number)},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    errors = [element.communicate(timeout=300)[1] for element in elements]
    assert [element.returncode for element in elements] == [0, 0, 0], errors
    run = Memory(postgres).run("slurm", "demo")
    assert len(run.succeeded) == len(run) == 12
    assert len({trial.number for trial in run.trials}) == 12
    assert len(list((folder / "logs" / "slurm").glob("*.out"))) >= 12


def test_the_command_of_the_kubernetes_job_tunes(folder: Path, postgres: str) -> None:
    job = yaml.safe_load(block("yaml").replace(DATABASE, postgres))
    assert (job["kind"], job["spec"]["completionMode"]) == ("Job", "Indexed")
    (container,) = job["spec"]["template"]["spec"]["containers"]
    subprocess.run(container["command"], cwd=folder, capture_output=True, check=True, timeout=300)
    assert len(Memory(postgres).run("kubernetes", "demo").succeeded) == 12


def test_the_recipe_for_dask_runs_on_a_cluster(folder: Path) -> None:
    pytest.importorskip("distributed", reason="part of the extra dask")
    language, code = code_blocks(PAGE)[1]
    assert SCHEDULER in code
    with dask_cluster(folder, 2) as cluster:
        out = execute(language, code.replace(SCHEDULER, cluster.address), folder)
    assert out == "8 of 8 trials finished\n"
    assert len(Memory(folder / "tuning.db").run("dask", "demo").succeeded) == 8
