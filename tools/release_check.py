"""Build the package, check it, install it into an empty environment and run the documentation's code there.

    python tools/release_check.py [--publish]

The sdist and the wheel (built from the sdist) are left in ``dist``, with `recipe.yaml` for conda-forge. ``--publish``
also refuses what must not be published: placeholders for addresses and names.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

from site_map import ROOT, is_placeholder, project_urls

DIST = ROOT / "dist"
RECIPE = ROOT / "conda" / "recipe.yaml"
EXTRAS = "bench,report,sklearn"  # what the code of the pages needs
PAGES = ("README.md", "docs/index.md", *sorted(f"docs/tutorials/{p.name}" for p in ROOT.glob("docs/tutorials/*.md")))
IN_SDIST = (
    *("tests/conftest.py", "docs/memory.md", "docs/methods/gp.md", "mkdocs.yml", "examples/README.md", "LICENSE"),
    *("tools/site_map.py", "benchmarks/results/grids.csv.gz", ".github/workflows/tests.yml"),
)
IN_WHEEL = (
    *("recollect/py.typed", "recollect/cli/pages/memory.md", "recollect/cli/pages/methods/gp.md"),
    "recollect/report/assets/page.css",
)


def build() -> tuple[Path, Path]:
    """Build the sdist, and the wheel from it; let twine check both strictly."""
    shutil.rmtree(DIST, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--outdir", str(DIST), str(ROOT))
    (sdist,), (wheel,) = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    _run(sys.executable, "-m", "twine", "check", "--strict", str(sdist), str(wheel))
    return sdist, wheel


def check_contents(sdist: Path, wheel: Path) -> None:
    """The sdist has tests and documentation, the wheel the pages of ``recollect help`` and nothing but the package."""
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    with zipfile.ZipFile(wheel) as file:
        in_wheel = set(file.namelist())
    missing = [*(set(IN_SDIST) - in_sdist), *(set(IN_WHEEL) - in_wheel)]
    strangers = {name for name in in_wheel if not name.startswith("recollect")}
    if missing or strangers:
        sys.exit(f"missing in the archives: {missing}; in the wheel by mistake: {sorted(strangers)}")


def check_installed(wheel: Path) -> None:
    """Install the wheel into an empty environment and run the code of the pages there, each page in its own folder."""
    sys.path.insert(0, str(ROOT))
    from tests.helpers.documents import code_blocks, execute

    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder, "environment")
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        _run(str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", f"{wheel}[{EXTRAS}]")
        _run(str(python.with_name("recollect")), "help", "memory", quiet=True)
        for page in PAGES:
            here = Path(folder, page.replace("/", "-"))
            here.mkdir()
            for language, code in code_blocks((ROOT / page).read_text()):
                execute(language, code, here, python=python)
            print(f"runs in an empty environment: {page}", flush=True)


def write_recipe(sdist: Path) -> str:
    """Write the recipe with the checksum of the sdist."""
    checksum = hashlib.sha256(sdist.read_bytes()).hexdigest()
    text = re.sub(r'sha256: "0{64}"', f'sha256: "{checksum}"', RECIPE.read_text())
    (DIST / "recipe.yaml").write_text(text)
    return text


def placeholders(recipe: str) -> list[str]:
    """Return what has to be decided before the package can be published."""
    unknown = [f"{label} = {url}" for label, url in project_urls().items() if is_placeholder(url)]
    return unknown + (["recipe-maintainers in conda/recipe.yaml"] if "PLACEHOLDER" in recipe else [])


def _run(*command: str, quiet: bool = False) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    output = subprocess.DEVNULL if quiet else None
    if subprocess.run(command, env=environment, stdout=output, check=False).returncode:
        sys.exit(f"failed: {' '.join(command)}")


def main() -> None:
    """Run all checks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--publish", action="store_true", help="refuse placeholders")
    publish = parser.parse_args().publish
    sdist, wheel = build()
    check_contents(sdist, wheel)
    undecided = placeholders(write_recipe(sdist))
    if undecided:
        print("not yet decided:", *undecided, sep="\n  ")
        if publish:
            sys.exit("placeholders must not be published")
    check_installed(wheel)


if __name__ == "__main__":
    main()
