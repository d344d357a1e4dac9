"""Formulas of the documentation as text: every formula of every page becomes readable, nothing is lost."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.helpers.documents import PAGES, ROOT

from recollect.cli.formulas import BLOCK, INLINE, SYMBOLS, plain_formula, plain_formulas

FORMULAS = {page: BLOCK.findall(page.read_text()) + INLINE.findall(page.read_text()) for page in PAGES}
FORMATTING = {"frac", "mathbb", "mathbf", "mathcal", "mathrm", "sqrt", "text"}


@pytest.mark.parametrize("page", [page for page in PAGES if FORMULAS[page]], ids=lambda page: page.relative_to(ROOT))
def test_every_formula_of_a_page_becomes_text_without_markup(page: Path) -> None:
    for formula in FORMULAS[page]:
        assert set(re.findall(r"\\([A-Za-z]+)", formula)) <= SYMBOLS.keys() | FORMATTING, formula
        assert re.search(r"[\\{}$]", plain_formula(formula)) is None, plain_formula(formula)


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\mathrm{EI}(m, s, \eta) = s \, \varphi(z)", "EI(m, s, η) = s φ(z)"),
        (r"\frac{a - b}{\sqrt{v}}", "((a - b) / √(v))"),
        (r"\min_{v \in V} \mu_{i}(v)", "min_(v ∈ V) μ_i(v)"),
        (r"x^{-1}, \qquad y", "x^-1,\ny"),
    ],
)
def test_a_formula_is_written_as_one_would_type_it(latex: str, expected: str) -> None:
    assert plain_formula(latex) == expected


def test_formulas_are_replaced_in_place_and_dollars_elsewhere_stay() -> None:
    page = "The share $`w_i`$ costs $5 and `$HOME`.\n\n```math\n\\mu_t\n```\n"
    assert plain_formulas(page) == "The share `w_i` costs $5 and `$HOME`.\n\n```text\nμ_t\n```\n"
