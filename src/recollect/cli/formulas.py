"""Formulas of the documentation as plain text, for ``recollect help``.

Pages write formulas in LaTeX, between `` $` `` and `` `$ `` or in a block named ``math``, as GitHub and the site show
them. Only what the pages use is translated.
"""

from __future__ import annotations

import re

INLINE = re.compile(r"\$`([^`]+)`\$")
BLOCK = re.compile(r"^```math\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
SYMBOLS = {
    "alpha": "α", "beta": "β", "delta": "δ", "Delta": "Δ", "eta": "η", "lambda": "λ", "mu": "μ", "nu": "ν", "phi": "φ",
    "varphi": "φ", "Phi": "Φ", "rho": "ρ", "sigma": "σ", "varepsilon": "ε", "xi": "ξ", "sum": "Σ", "min": "min",
    "max": "max", "arg": "arg ", "exp": "exp", "ln": "ln ", "in": "∈", "le": "≤", "ne": "≠", "approx": "≈", "sim": "~",
    "leftarrow": "←", "top": "T", "mid": "|", "Vert": "‖", "lVert": "‖", "rVert": "‖", "setminus": "without",
    "left": "", "right": "", "quad": "   ", "qquad": "\n",
}  # fmt: skip
GROUP = r"\{((?:[^{}]|\{[^{}]*\})*)\}"  # braces, with at most one level of braces inside
FONT = re.compile(rf"\\(?:mathrm|mathcal|mathbf|mathbb|text){GROUP}")
FRACTION = re.compile(rf"\\frac{GROUP}{GROUP}")
ROOT = re.compile(rf"\\sqrt{GROUP}")
SCRIPT = re.compile(rf"([_^]){GROUP}")


def plain_formulas(markdown: str) -> str:
    """Return a page whose formulas are plain text: blocks named ``text``, and code within sentences."""
    blocks = BLOCK.sub(lambda match: f"```text\n{plain_formula(match[1])}\n```", markdown)
    return INLINE.sub(lambda match: f"`{plain_formula(match[1])}`", blocks)


def plain_formula(latex: str) -> str:
    r"""Return a formula as text; a wide space becomes a new line.

    Examples:
        >>> plain_formula(r"\frac{v}{\sum v} \le \mu_{i}(x)")
        '(v / Σ v) ≤ μ_i(x)'
    """
    text = FONT.sub(r"\1", " ".join(latex.split()))
    previous = None
    while text != previous:  # from the inside out
        previous = text
        text = FRACTION.sub(lambda match: f"({_bracketed(match[1])} / {_bracketed(match[2])})", text)
        text = SCRIPT.sub(lambda match: match[1] + (match[2] if len(match[2]) <= 2 else f"({match[2]})"), text)
        text = ROOT.sub(r"√(\1)", text)
    text = re.sub(r"\s*\\[,;]\s*", " ", text)
    text = re.sub(r"\\([A-Za-z]+)", lambda match: SYMBOLS.get(match[1], match[1]), text)
    return "\n".join(re.sub(r" {4,}", "   ", line.strip()) for line in text.splitlines())


def _bracketed(text: str) -> str:
    return f"({text})" if re.search(r" [+-] ", text) else text
