"""The rules of the house: imports go one way, files and functions stay short, start-up stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import recollect

SOURCE = Path(recollect.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))
LAYERS = (
    *("errors", "lazy", "system", "files", "numerics", "space", "history", "surrogate", "transfer", "acquisition"),
    *("optimizer", "tuning", "bench", "report", "cli"),
)
ONLY = {
    "surrogate": {"errors", "numerics", "surrogate"},
    "neural": {"errors", "numerics", "surrogate", "transfer", "neural"},
    "integrations": {*LAYERS[: LAYERS.index("tuning") + 1], "integrations"},
}
HEAVY = (
    *("scipy", "ConfigSpace", "optuna", "sqlalchemy", "cloudpickle", "sklearn", "pandas", "matplotlib"),
    *("threadpoolctl", "jax", "optax", "plotly", "starlette", "mlflow"),
)
MOST_LINES, MOST_FUNCTION_LINES, MOST_ARGUMENTS = 300, 40, 6
FIXED = {"rgpe_weights", "minimize", "tune"}  # signatures that are part of the public interface or the command line


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


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_files_and_functions_are_short_and_documented(path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module starts with its docstring"
    assert text.count("\n") <= MOST_LINES
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            assert length <= MOST_FUNCTION_LINES, f"{node.name} has {length} lines"
            arguments = [a for a in [*node.args.posonlyargs, *node.args.args] if a.arg not in ("self", "cls")]
            if node.name not in {"__init__", *FIXED}:
                assert len(arguments) + len(node.args.kwonlyargs) <= MOST_ARGUMENTS, f"{node.name} takes too many"


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, recollect; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {name.split(".")[0] for name in loaded} & {*HEAVY, "numpy"}


def test_importing_every_module_of_the_core_loads_no_heavy_library() -> None:
    modules = [
        ".".join(("recollect", *path.relative_to(SOURCE).with_suffix("").parts)).removesuffix(".__init__")
        for path in FILES
        if layer_of(path) not in ("cli", "neural", "integrations")
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


@pytest.mark.parametrize(
    ("file", "start"), [("pyproject.toml", "version = "), ("CITATION.cff", "version: "), ("CHANGELOG.md", "## ")]
)
def test_every_file_names_the_same_version(file: str, start: str) -> None:
    lines = (SOURCE.parents[1] / file).read_text(encoding="utf-8").splitlines()
    said = next(line for line in lines if line.startswith(start)).removeprefix(start).split()[0]
    assert said.strip('"') == recollect.__version__
