"""Public names that are imported when they are first used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import recollect
from recollect._lazy import lazily


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of a package with the modules ``home`` and ``wing``, neither imported yet."""
    (tmp_path / "lazy_house").mkdir()
    (tmp_path / "lazy_house" / "__init__.py").write_text("")
    (tmp_path / "lazy_house" / "home.py").write_text("thing = object()\n")
    (tmp_path / "lazy_house" / "wing.py").write_text("thing = 'of the wing'\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("lazy_house", "lazy_house.home", "lazy_house.wing"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return "lazy_house"


def test_a_name_comes_from_its_home_which_is_imported_only_then(package: str) -> None:
    find = lazily(package, {"thing": "home"})
    assert "lazy_house.home" not in sys.modules
    found = find("thing")
    assert found is sys.modules["lazy_house.home"].thing
    assert find("thing") is found


def test_a_module_can_be_a_public_name_itself(package: str) -> None:
    find = lazily(package, {"thing": "home"}, ("wing",))
    found = find("wing")
    assert isinstance(found, ModuleType)
    assert found.thing == "of the wing"


@pytest.mark.parametrize("name", ["nonsense", "home", "__path__"])
def test_no_other_name_is_found_and_the_message_names_the_package(package: str, name: str) -> None:
    with pytest.raises(AttributeError, match=f"^module 'lazy_house' has no attribute '{name}'$"):
        lazily(package, {"thing": "home"}, ("wing",))(name)


@pytest.mark.parametrize("module", ["recollect", "recollect.bench", "recollect.transfer"])
def test_every_package_finds_all_its_public_names_in_a_fresh_process(module: str) -> None:
    code = (
        f"import importlib; package = importlib.import_module({module!r})\n"
        "print(all(getattr(package, name) is not None for name in package.__all__))\n"
        "try: package.nonsense\n"
        "except AttributeError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"True\nmodule {module!r} has no attribute 'nonsense'\n"


def test_a_name_is_the_same_however_it_is_reached() -> None:
    from recollect.optimizer.optimizer import Optimizer

    assert recollect.Optimizer is Optimizer
    assert recollect.bench is sys.modules["recollect.bench"]
