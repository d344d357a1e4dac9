"""The methods by name: every row of the paper's tables is one entry (paper section 5.3).

Ablations are the same entries with suffixes, which may be combined::

    +meanvar +copula +unscaled    how values of different tasks are brought to one scale, with the matching design
    +none +constant +95           rgpe-*: no past run is dropped; dropping without the horizon factor; weights of the
                                  2018 preprint, posterior draws and the 95th percentile
    +s100 ... +s100000            rgpe-*: number of bootstrap resamples
    +wd                           tstr-*: with dropping
    +rho0.1                       tstr-*: bandwidth
    +eta10                        kl: how much divergence is forgiven
    +slack                        *-box: a box that may leave out outlying optima
    +wide                         all that model past runs: length-scale bounds up to e^4 for the past runs' models
    +paper                        all with a model of the new task alone: as in the paper. It has no density for its
                                  length scales and, where no past run takes part, bad values are not compressed; no
                                  caution beyond the weighting's own

Each line is one question, which may be answered once: ``+none+95`` or ``+copula+unscaled`` is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import cast

from recollect.acquisition.improvement import ExpectedImprovement
from recollect.acquisition.mixture import MixtureImprovement, TransferImprovement
from recollect.acquisition.noisy import ClosedFormNoisyImprovement, NoisyImprovement
from recollect.errors import InputError
from recollect.optimizer.method import Design, Method
from recollect.surrogate.prior import PAPER_PRIOR
from recollect.surrogate.scaling import Scaling
from recollect.transfer.box import BoxRule
from recollect.transfer.dilution import Dilution
from recollect.transfer.multitask import MultiTask
from recollect.transfer.networks import NeuralModel
from recollect.transfer.weighting import (
    DivergenceWeighting,
    PercentileWeighting,
    RankingWeighting,
    StackingWeighting,
    TwoStageWeighting,
)

ONE, TWO = Design("portfolio", 1), Design("portfolio", 2)
RGPE, TSTR = RankingWeighting(), TwoStageWeighting()

CATALOG: tuple[Method, ...] = (
    Method("random", "uniform random search, without repetition on finite sets", "5.3, Random", Design(points=1)),
    Method(
        "random-box", "uniform random search where past optima lie", "5.3, Random+Box", Design(points=1), box=BoxRule(),
    ),
    Method("gp", "plain Bayesian optimization: one Gaussian process", "5.3, GP", acquisition=ExpectedImprovement()),
    Method(
        "gp-box", "plain Bayesian optimization where past optima lie", "5.3, GP(Box)",
        acquisition=ExpectedImprovement(), box=BoxRule(),
    ),
    Method(
        "gcp", "plain Bayesian optimization on ranks made normal", "5.3, GCP",
        acquisition=ExpectedImprovement(), scaling="copula", alone="copula",
    ),
    Method("smfo", "portfolio of past configurations, no feedback", "5.3, SMFO", Design("portfolio", None)),
    Method(
        "wac", "stacking weights: regression on all models", "5.3, WAC",
        TWO, ExpectedImprovement("stacked"), StackingWeighting(),
    ),
    Method(
        "kl", "weights by divergence of the believed optima", "5.3, KL weighting",
        TWO, ExpectedImprovement("target"), DivergenceWeighting(),
    ),
    Method(
        "ablr", "Bayesian linear regression on a shared network", "5.3, ABLR",
        TWO, ExpectedImprovement(), joint=NeuralModel("ablr"),
    ),
    Method(
        "gcp-prior", "copula process around a network's prediction", "5.3, GCP+Prior",
        TWO, ExpectedImprovement(), joint=NeuralModel("gcp-prior"), scaling="copula", alone="copula",
    ),
    Method(
        "mtgp", "one Gaussian process over all tasks", "appendix B, scaling study",
        TWO, ExpectedImprovement(), joint=MultiTask(),
    ),
    Method(
        "tstr-ei", "two-stage weights, ensemble mean, target variance", "3.1, TST-R(EI)",
        TWO, ExpectedImprovement("target"), TSTR,
    ),
    Method(
        "tstr-taf", "two-stage weights, transfer acquisition function", "3.2, TST-R(TAF)",
        ONE, TransferImprovement(), TSTR, scaling="unscaled",
    ),
    Method(
        "rgpe-mean", "ranking weights, ensemble mean, target variance", "4.2, RGPE(mean)",
        TWO, ExpectedImprovement("target"), RGPE,
    ),
    Method(
        "rgpe-ei", "ranking weights, expected improvement of the ensemble", "4.2, RGPE(EI)",
        TWO, ExpectedImprovement("weighted"), RGPE,
    ),
    Method(
        "rgpe-nei", "ranking weights, noisy expected improvement", "4.2, RGPE(NEI)",
        TWO, NoisyImprovement(), RGPE,
    ),
    Method(
        "rgpe-cfnei", "ranking weights, closed-form noisy expected improvement", "appendix, RGPE(CFNEI)",
        TWO, ClosedFormNoisyImprovement(), RGPE,
    ),
    Method(
        "rgpe-mogp", "ranking weights, weighted sum of expected improvements", "4.2, RGPE(MoGP)",
        ONE, MixtureImprovement(), RGPE, scaling="unscaled",
    ),
    Method(
        "rgpe-taf", "ranking weights, transfer acquisition function", "4.2, RGPE(TAF)",
        ONE, TransferImprovement(), RGPE, scaling="unscaled",
    ),
)  # fmt: skip


def methods() -> tuple[str, ...]:
    """Return the names of all methods; suffixes make ablations of them."""
    return tuple(entry.name for entry in CATALOG)


def method(name: str | Method) -> Method:
    """Return the method of that name, suffixes included; a `Method` is returned as it is."""
    if isinstance(name, Method):
        return name
    base, *suffixes = str(name).split("+")
    for entry in CATALOG:
        if entry.name == base:
            _refuse_contradictions(str(name), suffixes)
            return replace(reduce(_ablation, suffixes, entry), name=str(name))
    if re.fullmatch(r"random-\d+x", str(name)):
        raise InputError(
            f"{name!r} is not run but computed from a longer run of random search: recollect.bench.statistics."
            "random_multiple"
        )
    raise InputError(f"no method is called {name!r}; there are: {', '.join(methods())}")


def _refuse_contradictions(name: str, suffixes: list[str]) -> None:
    for pattern, _ in _SUFFIXES:
        answers = [suffix for suffix in suffixes if re.fullmatch(pattern, suffix)]
        if len(answers) > 1:
            raise InputError(f"method {name!r}: only one of +{' and +'.join(answers)} can hold")


def _ablation(entry: Method, suffix: str) -> Method:
    for pattern, change in _SUFFIXES:
        if found := re.fullmatch(pattern, suffix):
            return change(entry, found)
    raise InputError(f"method {entry.name!r} has no variant +{suffix}; docs/methods.md lists those there are")


def _scaled(entry: Method, found: re.Match[str]) -> Method:
    scaling = cast(Scaling, found[0])
    if not entry.models_past:
        raise InputError(f"method {entry.name!r} does not combine tasks, so it has no variant +{scaling}")
    design = entry.design if entry.design.points is None else (ONE if scaling == "unscaled" else TWO)
    return replace(entry, scaling=scaling, design=design)


def _ranking(entry: Method, suffix: str) -> RankingWeighting:
    if not isinstance(entry.weighting, RankingWeighting):
        raise InputError(f"method {entry.name!r} has no ranking weights, so it has no variant +{suffix}")
    return entry.weighting


def _two_stage(entry: Method, suffix: str) -> TwoStageWeighting:
    if not isinstance(entry.weighting, TwoStageWeighting):
        raise InputError(f"method {entry.name!r} has no two-stage weights, so it has no variant +{suffix}")
    return entry.weighting


def _dilution(entry: Method, found: re.Match[str]) -> Method:
    ranking = _ranking(entry, found[0])
    if found[0] == "95":
        return replace(entry, weighting=PercentileWeighting(ranking.samples))
    return replace(entry, weighting=replace(ranking, dilution=cast(Dilution, found[0])))


def _samples(entry: Method, found: re.Match[str]) -> Method:
    by_percentile = isinstance(entry.weighting, PercentileWeighting)
    weighting = PercentileWeighting() if by_percentile else _ranking(entry, found[0])
    return replace(entry, weighting=replace(weighting, samples=int(found[1])))


def _dropping(entry: Method, found: re.Match[str]) -> Method:
    return replace(entry, weighting=replace(_two_stage(entry, found[0]), dilution="probabilistic"))


def _bandwidth(entry: Method, found: re.Match[str]) -> Method:
    return replace(entry, weighting=replace(_two_stage(entry, found[0]), rho=float(found[1])))


def _forgiveness(entry: Method, found: re.Match[str]) -> Method:
    if not isinstance(entry.weighting, DivergenceWeighting):
        raise InputError(f"method {entry.name!r} has no divergence weights, so it has no variant +{found[0]}")
    return replace(entry, weighting=replace(entry.weighting, eta=float(found[1])))


def _slack(entry: Method, found: re.Match[str]) -> Method:
    if entry.box is None:
        raise InputError(f"method {entry.name!r} has no box, so it has no variant +{found[0]}")
    return replace(entry, box=replace(entry.box, slack=True))


def _wide(entry: Method, found: re.Match[str]) -> Method:
    if not entry.models_past:
        raise InputError(f"method {entry.name!r} does not model past runs, so it has no variant +{found[0]}")
    prior = entry.sources.prior
    wide = replace(prior, lengthscale_bounds=(prior.lengthscale_bounds[0], math.exp(4.0)))
    return replace(entry, sources=replace(entry.sources, prior=wide))


def _as_in_paper(entry: Method, found: re.Match[str]) -> Method:
    if entry.acquisition is None or entry.joint is not None:
        raise InputError(f"method {entry.name!r} has no model of its own task, so it has no variant +{found[0]}")
    alone: Scaling = "meanvar" if entry.alone == "tail" else entry.alone
    return replace(entry, target=replace(entry.target, prior=PAPER_PRIOR), alone=alone, cautious=False)


_SUFFIXES: tuple[tuple[str, Callable[[Method, re.Match[str]], Method]], ...] = (
    (r"meanvar|copula|unscaled", _scaled),
    (r"none|constant|95", _dilution),
    (r"s([1-9]\d*)", _samples),
    (r"wd", _dropping),
    (r"rho(\d*\.?\d+)", _bandwidth),
    (r"eta(\d*\.?\d+)", _forgiveness),
    (r"slack", _slack),
    (r"wide", _wide),
    (r"paper", _as_in_paper),
)
