"""The methods by name: every row of the paper's tables is one entry (paper section 5.3).

Variants are the same entries with suffixes, which may be combined::

    +meanvar +copula +unscaled    how values of different tasks are brought to one scale, with the matching design
    +none +constant +95           rgpe-*: no past run is dropped; dropping without the horizon factor; weights of the
                                  2018 preprint, posterior draws and the 95th percentile
    +s100 ... +s100000            rgpe-*: number of bootstrap resamples
    +wd                           tstr-*: with dropping
    +rho0.1                       tstr-*: bandwidth
    +eta10                        kl: how much divergence is tolerated
    +slack                        *-box: a box that may leave out outlying optima
    +wide                         all that model past runs: length-scale bounds up to e^4 for the sources' models
    +paper                        all with a separate model of the new task: as in the paper. No prior density for
                                  its length scales, no compression of bad values where no past run takes part, no
                                  negative-transfer guard beyond the weighting's own dropping; for `gp`, ten points of
                                  a Latin hypercube and the local search

Suffixes on the same line exclude each other: ``+none+95`` or ``+copula+unscaled`` is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any, cast

from recollect.acquisition.functions import (
    AveragedImprovement,
    ClosedFormNoisyImprovement,
    ExpectedImprovement,
    MixtureImprovement,
    NoisyImprovement,
    TransferImprovement,
)
from recollect.acquisition.gradient_search import GradientSearch
from recollect.acquisition.maximize import LocalSearch
from recollect.errors import InputError
from recollect.optimizer.method import Design, Method, TargetModel
from recollect.surrogate.prior import PAPER_PRIOR
from recollect.surrogate.scaling import Scaling
from recollect.transfer.joint import MultiTaskModel, NeuralModel
from recollect.transfer.screening import Screening
from recollect.transfer.search_box import BoxRule
from recollect.transfer.task_prior import TaskPrior
from recollect.transfer.weighting.base import Weighting
from recollect.transfer.weighting.kl import DivergenceWeighting
from recollect.transfer.weighting.ranking_weights import PercentileWeighting, RankingWeighting, TwoStageWeighting
from recollect.transfer.weighting.stacking import StackingWeighting

# Scoring a point takes longer than with methods that drop past runs, so fewer points are scored.
QUICK_SEARCH = LocalSearch(screen=512, starts=5, rounds=10, survivors=2)
ONE_POINT, TWO_POINTS = Design("portfolio", 1), Design("portfolio", 2)
# A prior is better with more past runs, and they are needed only to estimate it: a suggestion takes no longer.
FOR_PRIOR = Screening(limit=512)
LONG_RUNS = TargetModel(always_fit=100, max_fit_points=200)
RGPE, TSTR = RankingWeighting(), TwoStageWeighting()
WEIGHTING_NAMES: dict[type[Weighting], str] = {
    RankingWeighting: "ranking", PercentileWeighting: "ranking", TwoStageWeighting: "two-stage",
    DivergenceWeighting: "divergence",
}  # fmt: skip

CATALOG: tuple[Method, ...] = (
    Method("random", "uniform random search, without repetition on finite sets", "5.3, Random", Design(points=1)),
    Method("random-box", "uniform random search where past optima lie", "5.3, Random+Box",
           Design(points=1), box=BoxRule()),
    Method("gp", "plain Bayesian optimization: one Gaussian process", "5.3, GP",
           Design("sobol", 5), ExpectedImprovement(), target=LONG_RUNS, search=GradientSearch()),
    Method("gp-box", "plain Bayesian optimization where past optima lie", "5.3, GP(Box)",
           acquisition=ExpectedImprovement(), box=BoxRule()),
    Method("gcp", "plain Bayesian optimization on ranks mapped to normal scores", "5.3, GCP",
           acquisition=ExpectedImprovement(), scaling="copula", target_only_scaling="copula"),
    Method("smfo", "portfolio of past configurations, no feedback", "5.3, SMFO", Design("portfolio", None)),
    Method("wac", "stacking weights: regression on all models", "5.3, WAC",
           TWO_POINTS, ExpectedImprovement("stacked"), StackingWeighting()),
    Method("kl", "weights by divergence of the predicted optima", "5.3, KL weighting",
           TWO_POINTS, ExpectedImprovement("target"), DivergenceWeighting()),
    Method("ablr", "Bayesian linear regression on a shared network", "5.3, ABLR",
           TWO_POINTS, ExpectedImprovement(), joint=NeuralModel("ablr")),
    Method("gcp-prior", "copula process around a network's prediction", "5.3, GCP+Prior", TWO_POINTS,
           ExpectedImprovement(), joint=NeuralModel("gcp-prior"), scaling="copula", target_only_scaling="copula"),
    Method("mtgp", "one Gaussian process over all tasks", "appendix B, scaling study",
           TWO_POINTS, ExpectedImprovement(), joint=MultiTaskModel()),
    Method("tstr-ei", "two-stage weights, ensemble mean, target variance", "3.1, TST-R(EI)",
           TWO_POINTS, ExpectedImprovement("target"), TSTR),
    Method("tstr-taf", "two-stage weights, transfer acquisition function", "3.2, TST-R(TAF)",
           ONE_POINT, TransferImprovement(), TSTR, scaling="unscaled"),
    Method("rgpe-mean", "ranking weights, ensemble mean, target variance", "4.2, RGPE(mean)",
           TWO_POINTS, ExpectedImprovement("target"), RGPE),
    Method("rgpe-ei", "ranking weights, expected improvement of the ensemble", "4.2, RGPE(EI)",
           TWO_POINTS, ExpectedImprovement("weighted"), RGPE),
    Method("rgpe-nei", "ranking weights, noisy expected improvement", "4.2, RGPE(NEI)",
           TWO_POINTS, NoisyImprovement(), RGPE),
    Method("rgpe-cfnei", "ranking weights, closed-form noisy expected improvement", "appendix, RGPE(CFNEI)",
           TWO_POINTS, ClosedFormNoisyImprovement(), RGPE),
    Method("rgpe-mogp", "ranking weights, weighted sum of expected improvements", "4.2, RGPE(MoGP)",
           ONE_POINT, MixtureImprovement(), RGPE, scaling="unscaled"),
    Method("rgpe-taf", "ranking weights, transfer acquisition function", "4.2, RGPE(TAF)",
           ONE_POINT, TransferImprovement(), RGPE, scaling="unscaled"),
    Method("egp", "empirical Gaussian process: prior mean and covariance by EM", "Lin et al., 2026",
           ONE_POINT, AveragedImprovement(), prior=TaskPrior(0.0, 0.0, 0.0, noises=(0.01, 0.1, 0.3),
           fitted_scales=False, levels=False, test_after=None, choice_every=0, needs_agreement=False),
           scaling="unscaled", target=LONG_RUNS, search=QUICK_SEARCH, screening=FOR_PRIOR),
    Method("task-prior", "Gaussian process with mean and covariance from past runs", "not in the paper",
           ONE_POINT, AveragedImprovement(), prior=TaskPrior(), scaling="unscaled", target=LONG_RUNS,
           search=QUICK_SEARCH, screening=FOR_PRIOR),
)  # fmt: skip


def methods() -> tuple[str, ...]:
    """Return the names of all methods.

    Suffixes select variants, for example ``"rgpe-ei+copula"``; see the page Methods.

    Returns:
        The names, in the order of the paper's tables.

    Examples:
        >>> "rgpe-taf" in recollect.methods()
        True
    """
    return tuple(entry.name for entry in CATALOG)


def method(name: str | Method) -> Method:
    """Return the method with this name.

    Args:
        name: A name from `methods`, with or without suffixes; a `Method` is returned unchanged.

    Returns:
        The method as data; ``dataclasses.replace`` creates variants of it.

    Raises:
        InputError: If there is no such method or variant.

    Examples:
        >>> recollect.method("rgpe-ei+copula").scaling
        'copula'
    """
    if isinstance(name, Method):
        return name
    base, *suffixes = str(name).split("+")
    entry = next((entry for entry in CATALOG if entry.name == base), None)
    if entry is not None:
        for pattern, _ in _SUFFIXES:
            matching = [suffix for suffix in suffixes if re.fullmatch(pattern, suffix)]
            if len(matching) > 1:
                raise InputError(f"method {name!r}: use only one of +{' and +'.join(matching)}")
        return replace(reduce(_variant, suffixes, entry), name=str(name))
    if re.fullmatch(r"random-\d+x", str(name)):
        raise InputError(
            f"{name!r} is not run but computed from a longer run of random search: recollect.bench.analysis.statistics."
            "random_multiple"
        )
    raise InputError(f"there is no method {name!r}; the methods are: {', '.join(methods())}")


def without_past(entry: Method) -> Method:
    """Return what a method that models past runs is without any: plain Bayesian optimization, as `gp` does it."""
    if entry.acquisition is None or not entry.models_past:
        return entry
    plain = method("gp+paper" if entry.target.prior == PAPER_PRIOR else "gp")
    return replace(entry, design=plain.design, target=plain.target, search=plain.search)


def _variant(entry: Method, suffix: str) -> Method:
    for pattern, change in _SUFFIXES:
        if match := re.fullmatch(pattern, suffix):
            return change(entry, match)
    raise InputError(f"method {entry.name!r} has no variant +{suffix}; 'recollect help methods' lists all variants")


def _scaled(entry: Method, match: re.Match[str]) -> Method:
    scaling = cast(Scaling, match[0])
    _require(entry.models_past and entry.prior is None, entry, match, "combines no tasks on a scale that can be chosen")
    design = entry.design if entry.design.points is None else (ONE_POINT if scaling == "unscaled" else TWO_POINTS)
    return replace(entry, scaling=scaling, design=design)


def _diluted(entry: Method, match: re.Match[str]) -> Method:
    if match[0] == "95" and isinstance(entry.weighting, RankingWeighting):
        return replace(entry, weighting=PercentileWeighting(entry.weighting.samples))
    return _reweighted(entry, match, RankingWeighting, dilution=match[0])


def _samples(entry: Method, match: re.Match[str]) -> Method:
    kind = PercentileWeighting if isinstance(entry.weighting, PercentileWeighting) else RankingWeighting
    return _reweighted(entry, match, kind, samples=int(match[1]))


def _reweighted(entry: Method, match: re.Match[str], kind: type[Weighting], **changes: object) -> Method:
    """Change settings of the weighting, which must be of this kind."""
    _require(isinstance(entry.weighting, kind), entry, match, f"has no {WEIGHTING_NAMES[kind]} weights")
    return replace(entry, weighting=replace(cast(Any, entry.weighting), **changes))


def _slack(entry: Method, match: re.Match[str]) -> Method:
    _require(entry.box is not None, entry, match, "has no box")
    return replace(entry, box=BoxRule(slack=True))


def _wide(entry: Method, match: re.Match[str]) -> Method:
    _require(entry.models_past, entry, match, "does not model past runs")
    prior = entry.sources.prior
    wide = replace(prior, lengthscale_bounds=(prior.lengthscale_bounds[0], math.exp(4.0)))
    return replace(entry, sources=replace(entry.sources, prior=wide))


def _as_in_paper(entry: Method, match: re.Match[str]) -> Method:
    own = entry.acquisition is not None and entry.joint is None and entry.prior is None
    _require(own, entry, match, "has no separate Gaussian process of the new task")
    scaling: Scaling = "meanvar" if entry.target_only_scaling == "tail" else entry.target_only_scaling
    target = replace(entry.target, prior=PAPER_PRIOR, always_fit=None, max_fit_points=None)
    design = Design() if entry.design.kind == "sobol" else entry.design
    return replace(
        entry, design=design, search=LocalSearch(), target=target, target_only_scaling=scaling,
        negative_transfer_guard=False,
    )  # fmt: skip


def _require(fits: bool, entry: Method, match: re.Match[str], problem: str) -> None:
    if not fits:
        raise InputError(f"method {entry.name!r} {problem}, so it has no variant +{match[0]}")


_SUFFIXES: tuple[tuple[str, Callable[[Method, re.Match[str]], Method]], ...] = (
    (r"meanvar|copula|unscaled", _scaled),
    (r"none|constant|95", _diluted),
    (r"s([1-9]\d*)", _samples),
    (r"wd", lambda entry, match: _reweighted(entry, match, TwoStageWeighting, dilution="probabilistic")),
    (r"rho(\d*\.?\d+)", lambda entry, match: _reweighted(entry, match, TwoStageWeighting, rho=float(match[1]))),
    (r"eta(\d*\.?\d+)", lambda entry, match: _reweighted(entry, match, DivergenceWeighting, eta=float(match[1]))),
    (r"slack", _slack),
    (r"wide", _wide),
    (r"paper", _as_in_paper),
)
