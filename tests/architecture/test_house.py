"""The rules of the house: imports go one way, files and functions stay short, start-up stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import recollect

SOURCE = Path(recollect.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LAYERS = (
    *("errors", "_text", "_warnings", "_lazy", "_system", "_files", "disk_cache", "progress", "processes"),
    *("numerics", "validation"),
    *("space", "runs", "storage", "surrogate", "transfer", "acquisition", "optimizer", "tuning", "analysis", "bench"),
    *("report", "cli"),
)
ONLY = {
    "surrogate": {"errors", "numerics", "validation", "surrogate"},
    "neural": {"errors", "numerics", "validation", "surrogate", "transfer", "neural"},
    "integrations": {*LAYERS[: LAYERS.index("tuning") + 1], "integrations"},
    "optuna": {"integrations"},
    "sklearn": {"integrations"},
    "trackers": {"integrations"},
}
HEAVY = (
    *("scipy", "ConfigSpace", "optuna", "sqlalchemy", "cloudpickle", "sklearn", "pandas", "matplotlib"),
    *("threadpoolctl", "jax", "optax", "plotly", "starlette", "mlflow"),
)
MOST_LINES, MOST_FUNCTION_LINES, MOST_ARGUMENTS = 400, 40, 6
# Signatures that are part of the public interface or the command line.
FIXED = {"rgpe_weights", "minimize", "maximize", "tune", "past", "import_"}


SHARED_MODULE_NAMES = {
    "optuna": "recollect in Optuna, and Optuna's studies as a source: the same library",
    "memory": "`Memory`, and the commands about it",
}
"""Names of several modules, each with the one meaning they share."""


def layer_of(path: Path) -> str:
    first = path.relative_to(SOURCE).parts[0]
    return first.removesuffix(".py")


def imported(tree: ast.AST) -> list[tuple[str, int]]:
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append((node.module, node.lineno))
            found += [(f"{node.module}.{alias.name}", node.lineno) for alias in node.names]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_imports_go_one_way(path: Path) -> None:
    layer = layer_of(path)
    if layer in ("__init__", "__main__"):
        return
    assert layer in (*LAYERS, *ONLY), f"{layer} is not a layer of the house"
    allowed = ONLY[layer] if layer in ONLY else set(LAYERS[: LAYERS.index(layer) + 1])
    for name, line in imported(ast.parse(path.read_text())):
        parts = name.split(".")
        if parts[0] == "recollect" and len(parts) > 1 and parts[1] != "__version__":
            assert parts[1] in allowed, f"{path.name}:{line} imports {name} from above its layer"


def docstring_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    if ast.get_docstring(function) is None:
        return 0
    first = function.body[0]
    return (first.end_lineno or first.lineno) - first.lineno + 1


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_are_short_and_documented(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module starts with its docstring"
    assert text.count("\n") <= MOST_LINES
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1 - docstring_lines(node)
            assert length <= MOST_FUNCTION_LINES, f"{node.name} has {length} lines"
            arguments = [a for a in [*node.args.posonlyargs, *node.args.args] if a.arg not in ("self", "cls")]
            if node.name not in {"__init__", *FIXED}:
                assert len(arguments) + len(node.args.kwonlyargs) <= MOST_ARGUMENTS, f"{node.name} takes too many"


def test_a_class_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name.lstrip("_"), []).append(str(path.relative_to(SOURCE)))
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


def test_a_module_name_means_one_thing() -> None:
    places: dict[str, list[str]] = {}
    for path in FILES:
        if not path.stem.startswith("__"):
            places.setdefault(path.stem, []).append(str(path.relative_to(SOURCE)))
    assert {name for name, files in places.items() if len(files) > 1} <= set(SHARED_MODULE_NAMES)


def test_the_tree_in_the_architecture_names_every_module_and_no_other() -> None:
    text = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    tree = text.split("```")[1].split("src/recollect/", 1)[1]
    named, package = set(), ""
    for line in tree.splitlines():
        if match := re.match(r"  ( *)([\w/]+)/  ", line):  # a package; those inside another one are indented
            package = match[2] if not match[1] else f"{package.split('/', maxsplit=1)[0]}/{match[2]}"
        elif match := re.match(r"  (\w+)\.py  ", line):
            package = ""
            named.add(f"{match[1]}.py")
        named |= {f"{package}/{name}.py" for name in re.findall(r"`(\w+)`", line)} if package else set()
    modules = {path.relative_to(SOURCE).as_posix() for path in FILES if not path.stem.startswith("__")}
    assert named == modules


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, recollect; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {name.split(".")[0] for name in loaded} & {*HEAVY, "numpy"}


def test_importing_every_module_of_the_core_loads_no_heavy_library() -> None:
    modules = [
        ".".join(("recollect", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for path in FILES
        if layer_of(path) not in ("cli", "neural", "integrations", "optuna", "sklearn", "trackers")
    ]
    code = f"import sys, importlib; [importlib.import_module(m) for m in {modules!r}]; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {name.split(".")[0] for name in loaded} & set(HEAVY)


def test_every_public_name_can_be_loaded_and_no_other_is_promised() -> None:
    for name in recollect.__all__:
        assert getattr(recollect, name) is not None
    assert set(dir(recollect)) == set(recollect.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = recollect.nonsense


@pytest.mark.parametrize(("file", "heading"), [("CITATION.cff", "version: "), ("CHANGELOG.md", "## ")])
def test_every_file_names_the_same_version(file: str, heading: str) -> None:
    text = (SOURCE.parents[1] / file).read_text(encoding="utf-8")
    version = re.search(rf"^{heading}(\d\S*)", text, flags=re.MULTILINE)
    assert version is not None
    assert version[1] == recollect.__version__


def test_the_package_takes_its_version_from_the_source() -> None:
    project = tomllib.loads((SOURCE.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "recollect.__version__"}
