"""What the pages on methods say is true: each method has its page, defaults and numbers are those of the code."""

from __future__ import annotations

import dataclasses
import importlib.util
import re
from fnmatch import fnmatch
from pathlib import Path

import numpy as np
import pytest

import recollect
from recollect.optimizer.catalog import _SUFFIXES
from recollect.transfer.weighting.kl import DivergenceWeighting
from recollect.transfer.weighting.ranking_weights import RankingWeighting, TwoStageWeighting
from recollect.transfer.weighting.stacking import StackingWeighting

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "methods.md").read_text()
METHOD_PAGES = {path.stem: path.read_text() for path in (ROOT / "docs" / "methods").glob("*.md")}


def table(head: str) -> list[list[str]]:
    """Rows of the table whose head begins so, as cells without quotes."""
    lines = PAGE[PAGE.index(f"| {head} |") :].split("\n\n")[0].splitlines()[2:]
    plain = [re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", line).replace("`", "") for line in lines]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in plain]


MODELLING = ("wac", "kl", "ablr", "gcp-prior", "mtgp", "tstr", "rgpe")
SUFFIXES = {row[0].removeprefix("+"): row[1].split() for row in table("suffix")}


def test_every_method_has_a_page_of_its_own_that_the_overview_and_the_navigation_name() -> None:
    assert METHOD_PAGES.keys() == set(recollect.methods())
    linked = re.findall(r"^\| \[(\S+)\]\(methods/(\S+)\.md\)", PAGE, flags=re.M)
    assert linked == [(name, name) for name in recollect.methods()]


@pytest.mark.parametrize("name", recollect.methods())
def test_the_page_of_a_method_has_formula_advice_code_and_measurements(name: str) -> None:
    page = METHOD_PAGES[name]
    assert page.startswith(f"# {name}\n")
    assert re.findall(r"^## (.+)$", page, flags=re.M) == ["When to use", "Details", "Measured"]
    assert "```math\n" in page
    assert re.search(r"\]\(\.\./\.\./src/recollect/[\w/]+\.py\)", page)
    assert re.search(r"`python tools/method_pages\.py`|python benchmarks/quality/\w+\.py", page)
    assert len(re.findall(r"^\| \S+.*\| *\d", page.partition("## Measured")[2], flags=re.M)) >= 2


def test_the_measurements_on_the_pages_are_those_of_the_packed_results() -> None:
    spec = importlib.util.spec_from_file_location("method_pages", ROOT / "tools" / "method_pages.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    stale = [name for name, page in METHOD_PAGES.items() if tool.with_measurements(name, page) != page]
    assert stale == [], "run: python tools/method_pages.py"


@pytest.mark.parametrize("name", recollect.methods())
def test_the_overview_shows_design_weighting_and_scaling_of_the_catalog(name: str) -> None:
    method = recollect.method(name)
    _, design, weighting, acquisition, scaling = next(row for row in table("name") if row[0] == name)
    points = "all" if method.design.points is None else str(method.design.points)
    where = ", in the box" if method.box is not None else ""
    kind = {"latin-hypercube": "Latin hypercube", "sobol": "default + Sobol"}.get(
        method.design.kind, method.design.kind
    )
    assert design == f"{kind}, {points}{where}"
    kinds = {
        RankingWeighting: "ranking",
        TwoStageWeighting: "two-stage",
        StackingWeighting: "stacking",
        DivergenceWeighting: "divergence",
        type(None): "joint" if method.joint is not None else "prior" if method.prior is not None else "-",
    }
    assert weighting.partition(":")[0] == kinds[type(method.weighting)]
    assert (acquisition == "-") == (method.acquisition is None)
    assert scaling == (method.scaling if method.models_past or method.target_only_scaling == "copula" else "-")


def test_the_overview_lists_the_catalog_in_its_order() -> None:
    assert tuple(row[0] for row in table("name")) == recollect.methods()


@pytest.mark.parametrize("name", [name for name in recollect.methods() if name.startswith(MODELLING)])
def test_entries_state_the_defaults(name: str) -> None:
    method, entry = recollect.method(name), " ".join(METHOD_PAGES[name].split())
    if isinstance(method.weighting, RankingWeighting):
        assert f"{method.weighting.samples} resamples, dropping;" in entry
        assert method.weighting.dilution == "probabilistic"
    elif isinstance(method.weighting, DivergenceWeighting):
        assert f"`eta = {method.weighting.eta:g}`" in entry
        assert f"{method.weighting.draws} functions are drawn" in entry
    elif isinstance(method.weighting, TwoStageWeighting):
        assert f"`rho = {method.weighting.rho:g}`" in entry
        assert re.search("(no|without) dropping", entry)
        assert method.weighting.dilution == "none"
    points = method.design.points
    assert f"; {method.scaling}; {points} first point{'s' if points != 1 else ''}" in entry


def test_every_suffix_of_the_catalog_is_in_the_table() -> None:
    for pattern, _ in _SUFFIXES:
        for alternative in pattern.split("|"):
            assert any(re.fullmatch(alternative, suffix) for suffix in SUFFIXES), alternative


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("name", recollect.methods())
def test_suffixes_are_accepted_by_the_methods_named_and_refused_by_all_others(name: str, suffix: str) -> None:
    if any(fnmatch(name, pattern) for pattern in SUFFIXES[suffix]):
        base = recollect.method(name)
        variant = dataclasses.replace(recollect.method(f"{name}+{suffix}"), name=name)
        assert (variant == base) == (suffix in (base.scaling, "eta10"))
    else:
        with pytest.raises(recollect.InputError, match="no variant"):
            recollect.method(f"{name}+{suffix}")


@pytest.mark.parametrize(("page", "up"), [(PAGE, ".."), *((page, "../..") for page in METHOD_PAGES.values())])
def test_source_files_are_named_by_links_that_show_their_path(page: str, up: str) -> None:
    prose = re.sub(r"```.*?```|`python tools/\S+`", "", page, flags=re.S)
    for shown, target in re.findall(r"\[([\w/]+\.py)\]\(([^)]+)\)", prose):
        assert target == f"{up}/src/recollect/{shown}"
        assert (ROOT / "src" / "recollect" / shown).is_file(), target
    assert ".py" not in re.sub(r"\[[^]]+\]\([^)]+\)", "", prose), "a file is named without a link"


def test_the_example_runs() -> None:
    names: dict[str, object] = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE, flags=re.S)
    for code in blocks:
        exec(code, names)
    assert names["mine"] == recollect.method(names["mine"])  # type: ignore[arg-type]
    shown = [line.partition("#") for line in blocks[1].splitlines() if line.startswith("rho_from")]
    assert [float(comment.split(":")[0]) for _, _, comment in shown] == [eval(call, names) for call, _, _ in shown]


def test_the_numbers_of_the_worst_case_are_those_of_the_bound() -> None:
    rows = re.search(r"^\| past runs k \|(.*)\|\n.*\n\| factor for H = 50 \|(.*)\|", PAGE, flags=re.M)
    assert rows
    past, factors = ([float(cell) for cell in row.split("|")] for row in rows.groups())
    assert past == [34, 37, 49]
    assert factors == [round(recollect.transfer.slowdown_factor(50, int(k)), 1) for k in past]
    within = [1.0 / np.mean((np.arange(50) / 50) ** k) for k in past]  # suggestions are made at n = 0..49
    text = " ".join(PAGE.split())
    assert "the factors are {:.1f}, {:.1f} and {:.1f}".format(*within) in text
