"""The catalog: names, defaults as in the paper's tables, suffixes, and what is refused."""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise
from typing import Any

import pytest

import recollect
from recollect import InputError, InputTypeError, method, methods
from recollect.acquisition.functions import (
    ClosedFormNoisyImprovement,
    ExpectedImprovement,
    MixtureImprovement,
    NoisyImprovement,
    TransferImprovement,
)
from recollect.acquisition.maximize import LocalSearch
from recollect.optimizer.catalog import without_past
from recollect.optimizer.method import Design, TargetModel
from recollect.surrogate.prior import PAPER_PRIOR, TARGET_PRIOR
from recollect.transfer.weighting.kl import DivergenceWeighting
from recollect.transfer.weighting.ranking_weights import PercentileWeighting, RankingWeighting, TwoStageWeighting
from recollect.transfer.weighting.stacking import StackingWeighting

RGPE = RankingWeighting(samples=1000, dilution="probabilistic")
TSTR = TwoStageWeighting(dilution="none")
LHS, ALL = Design("latin-hypercube", 10), Design("portfolio", None)
ONE, TWO = Design("portfolio", 1), Design("portfolio", 2)
TABLE: dict[str, tuple[Any, ...]] = {  # weighting, scaling, design, acquisition
    "random": (None, None, Design("latin-hypercube", 1), None),
    "random-box": (None, None, Design("latin-hypercube", 1), None),
    "gp": (None, None, Design("sobol", 5), ExpectedImprovement()),
    "gp-box": (None, None, LHS, ExpectedImprovement()),
    "gcp": (None, "copula", LHS, ExpectedImprovement()),
    "smfo": (None, "meanvar", ALL, None),
    "wac": (StackingWeighting(), "meanvar", TWO, ExpectedImprovement("stacked")),
    "kl": (DivergenceWeighting(eta=10.0, draws=100), "meanvar", TWO, ExpectedImprovement("target")),
    "ablr": (None, "meanvar", TWO, ExpectedImprovement()),
    "gcp-prior": (None, "copula", TWO, ExpectedImprovement()),
    "mtgp": (None, "meanvar", TWO, ExpectedImprovement()),
    "tstr-ei": (TSTR, "meanvar", TWO, ExpectedImprovement("target")),
    "tstr-taf": (TSTR, "unscaled", ONE, TransferImprovement()),
    "rgpe-mean": (RGPE, "meanvar", TWO, ExpectedImprovement("target")),
    "rgpe-ei": (RGPE, "meanvar", TWO, ExpectedImprovement("weighted")),
    "rgpe-nei": (RGPE, "meanvar", TWO, NoisyImprovement(draws=30)),
    "rgpe-cfnei": (RGPE, "meanvar", TWO, ClosedFormNoisyImprovement()),
    "rgpe-mogp": (RGPE, "unscaled", ONE, MixtureImprovement()),
    "rgpe-taf": (RGPE, "unscaled", ONE, TransferImprovement()),
}
RANKED = [name for name in TABLE if name.startswith("rgpe")]
TWO_STAGE = [name for name in TABLE if name.startswith("tstr")]


def test_the_names_of_the_paper_are_there_each_once() -> None:
    assert set(TABLE) | {"egp", "task-prior"} == set(methods())
    assert len(set(methods())) == len(methods())


@pytest.mark.parametrize("name", TABLE)
def test_defaults_are_those_of_the_papers_tables(name: str) -> None:
    weighting, scaling, design, acquisition = TABLE[name]
    entry = method(name)
    assert entry.name == name
    assert entry.weighting == weighting
    assert entry.design == design
    assert entry.acquisition == acquisition
    if scaling is not None:
        assert entry.scaling == scaling
    assert entry.transfers == (name not in ("random", "gp", "gcp"))
    assert (entry.box is not None) == name.endswith("-box")
    assert (entry.joint is not None) == (name in ("ablr", "gcp-prior", "mtgp"))
    assert dataclasses.replace(entry.sources.prior, shortest_start=0.0) == PAPER_PRIOR
    assert (entry.sources.prior.shortest_start, entry.sources.restarts) == (0.15, 4)  # docs/performance.md
    assert dataclasses.replace(entry.target.prior, lengthscale_gamma=None) == PAPER_PRIOR
    assert entry.target_only_scaling == ("copula" if name.startswith("gcp") else "tail")
    assert entry.target.restarts == 10
    assert entry.summary
    assert entry.paper


@pytest.mark.parametrize("name", RANKED)
def test_suffixes_of_ranking_weights(name: str) -> None:
    assert method(f"{name}+none").weighting == RankingWeighting(1000, "none")
    assert method(f"{name}+constant").weighting == RankingWeighting(1000, "constant")
    assert method(f"{name}+95").weighting == PercentileWeighting(1000)
    for samples in (1, 100, 10_000, 100_000):
        assert method(f"{name}+s{samples}").weighting == RankingWeighting(samples, "probabilistic")


@pytest.mark.parametrize("name", TWO_STAGE)
def test_suffixes_of_two_stage_weights(name: str) -> None:
    rho = TSTR.rho
    assert method(f"{name}+wd").weighting == TwoStageWeighting(rho, "probabilistic")
    for text in ("0.01", "0.1", "1.0", "1", ".5"):
        assert method(f"{name}+rho{text}").weighting == TwoStageWeighting(float(text), "none")
    assert method(f"{name}+wd+rho0.1").weighting == TwoStageWeighting(0.1, "probabilistic")
    assert method(f"{name}+rho0.1+wd").weighting == TwoStageWeighting(0.1, "probabilistic")


@pytest.mark.parametrize("scaling", ["meanvar", "copula", "unscaled"])
@pytest.mark.parametrize("name", [*RANKED, *TWO_STAGE, "smfo"])
def test_a_scaling_brings_its_own_design(name: str, scaling: str) -> None:
    plain, entry = method(name), method(f"{name}+{scaling}")
    assert entry.scaling == scaling
    assert entry.design == (ALL if name == "smfo" else ONE if scaling == "unscaled" else TWO)
    assert (entry.acquisition, entry.weighting) == (plain.acquisition, plain.weighting)


@pytest.mark.parametrize("name", ["smfo", *RANKED, *TWO_STAGE])
def test_wide_lets_the_past_runs_have_longer_length_scales(name: str) -> None:
    entry = method(f"{name}+wide")
    low, high = PAPER_PRIOR.lengthscale_bounds
    assert high < entry.sources.prior.lengthscale_bounds[1] == math.exp(4.0)
    assert entry.sources.prior.lengthscale_bounds[0] == low
    assert entry.target.prior == TARGET_PRIOR


@pytest.mark.parametrize("name", ["gp", "rgpe-taf", "tstr-ei+wd"])
def test_paper_takes_the_new_tasks_model_back_to_the_papers(name: str) -> None:
    entry = method(f"{name}+paper")
    assert entry.target.prior == PAPER_PRIOR
    assert entry.target_only_scaling == "meanvar"
    assert not entry.negative_transfer_guard
    own = method(name)
    undone = {"target": own.target, "target_only_scaling": "tail", "negative_transfer_guard": True}
    back = dataclasses.replace(entry, name=name, **undone, design=own.design, search=own.search)
    assert back == own


def test_gp_as_in_the_paper_has_its_design_and_its_search() -> None:
    entry = method("gp+paper")
    assert entry.design == LHS
    assert entry.search == LocalSearch()


@pytest.mark.parametrize("name", ["rgpe-taf", "tstr-ei+wd", "gcp-prior", "wac"])
def test_a_method_without_past_runs_has_the_settings_of_gp(name: str) -> None:
    for own, plain in ((name, "gp"), *([(f"{name}+paper", "gp+paper")] if name != "gcp-prior" else [])):
        got, expected = without_past(method(own)), method(plain)
        assert (got.design, got.target, got.search) == (expected.design, expected.target, expected.search)
        assert got.target_only_scaling == method(own).target_only_scaling


@pytest.mark.parametrize("name", ["random", "gp", "gcp", "gp-box", "smfo"])
def test_methods_that_model_no_past_run_or_nothing_are_the_same_without_past_runs(name: str) -> None:
    assert without_past(method(name)) == method(name)


@pytest.mark.parametrize("name", ["random", "smfo"])
def test_methods_without_a_model_have_no_paper_variant(name: str) -> None:
    with pytest.raises(InputError, match="no variant"):
        method(f"{name}+paper")


@pytest.mark.parametrize(
    "names",
    [
        ("rgpe-nei+none+copula+s100", "rgpe-nei+s100+none+copula", "rgpe-nei+copula+s100+none"),
        ("rgpe-nei+95+s100", "rgpe-nei+s100+95"),
        ("rgpe-mogp+wide+constant+meanvar", "rgpe-mogp+meanvar+wide+constant"),
        ("tstr-taf+rho0.2+wd+copula+wide", "tstr-taf+wide+copula+wd+rho0.2"),
        ("smfo+wide+copula", "smfo+copula+wide"),
    ],
)
def test_the_order_of_suffixes_does_not_matter(names: tuple[str, ...]) -> None:
    entries = [dataclasses.replace(method(name), name="") for name in names]
    assert all(entry == entries[0] for entry in entries)
    assert entries[0] != dataclasses.replace(method(names[0].split("+")[0]), name="")


def test_the_name_of_a_variant_is_the_requested_name() -> None:
    assert method("rgpe-nei+none+copula").name == "rgpe-nei+none+copula"


@pytest.mark.parametrize("name", ["", "gpp", "GP", "rgpe", "rgpe-taf ", "+none", "rgpe_taf"])
def test_an_unknown_name_is_refused_with_a_list_of_names(name: str) -> None:
    with pytest.raises(InputError, match=r"no method .*: random, random-box, gp, "):
        method(name)


@pytest.mark.parametrize(
    "name", ["rgpe-taf+", "rgpe-taf+nonsense", "rgpe-taf+s0", "rgpe-taf+s", "rgpe-taf+s-5", "rgpe-taf+s1.5",
             "rgpe-taf+NONE", "tstr-ei+rho", "tstr-ei+rho-1", "tstr-ei+rhox", "rgpe-taf++none", "rgpe-taf+96"],
)  # fmt: skip
def test_an_unknown_suffix_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"has no variant \+"):
        method(name)


@pytest.mark.parametrize(
    "name",
    ["tstr-ei+none", "tstr-ei+95", "tstr-ei+s100", "tstr-taf+constant", "rgpe-taf+wd", "rgpe-taf+rho0.1", "gp+none",
     "random+s100", "gp+copula", "random+unscaled", "gp+wd", "smfo+none", "smfo+rho0.1", "smfo+95",
     "gp+wide", "random+wide"],
)  # fmt: skip
def test_a_suffix_that_does_not_fit_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"so it has no variant \+"):
        method(name)


@pytest.mark.parametrize(
    "name",
    ["rgpe-nei+95+none", "rgpe-nei+none+95", "rgpe-nei+none+constant", "rgpe-taf+copula+unscaled", "smfo+copula+copula",
     "rgpe-taf+s100+none+s1000", "tstr-taf+rho0.1+rho0.2", "tstr-ei+wd+wd"],
)  # fmt: skip
def test_suffixes_that_contradict_or_repeat_each_other_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=r"only one of \+.* and \+"):
        method(name)


@pytest.mark.parametrize("name", ["tstr-ei+rho0", "tstr-ei+rho0.0"])
def test_a_bandwidth_of_zero_is_refused_at_once(name: str) -> None:
    with pytest.raises(InputError, match="rho"):
        method(name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: RankingWeighting(samples=0), "samples must be at least 1, got 0"),
        (lambda: RankingWeighting(dilution="never"), "dilution must be one of"),  # type: ignore[arg-type]
        (lambda: TwoStageWeighting(rho=-1.0), "rho must be a finite number above 0, got -1"),
        (lambda: TwoStageWeighting(rho=math.nan), "rho must be a finite number above 0, got nan"),
        (lambda: TwoStageWeighting(dilution="never"), "dilution must be one of"),  # type: ignore[arg-type]
        (lambda: PercentileWeighting(samples=0), "samples must be at least 1, got 0"),
        (lambda: NoisyImprovement(draws=0), "at least 1 draw, got 0"),
        (lambda: Design("portfolio", 0), "at least 1 point, got 0"),
    ],
)
def test_settings_without_meaning_are_refused_before_anything_is_tuned_with_them(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_a_method_is_a_frozen_value_that_can_be_varied() -> None:
    entry = recollect.method("rgpe-taf")
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.scaling = "copula"  # type: ignore[misc]
    own = dataclasses.replace(entry, name="mine", acquisition=MixtureImprovement())
    assert recollect.method(own) is own
    assert recollect.method("rgpe-taf") == entry


def test_hyperparameters_are_fitted_to_each_observation_first_and_then_as_observations_grow() -> None:
    target = method("gp").target
    assert all(target.needs_fit(n - 1, n) for n in range(2, 101))
    later = [n for n in range(101, 500) if target.needs_fit(n - 1, n)]
    assert all(1.04 < after / before < 1.06 for before, after in pairwise(later[1:]))
    assert target.needs_fit(150, 300)
    assert all(method("gp+paper").target.needs_fit(n - 1, n) for n in range(2, 500))


@pytest.mark.parametrize("wrong", [{"growth": 0.0}, {"always_fit": 1}, {"max_fit_points": 0}, {"restarts": -1}])
def test_a_target_model_that_cannot_be_fitted_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        TargetModel(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        {"acquisition": "ucb"},
        {"acquisition": ExpectedImprovement},
        {"weighting": "rgpe"},
        {"joint": 3},
        {"design": "sobol"},
        {"target": None},
        {"sources": {}},
        {"search": "local"},
        {"box": (0, 1)},
    ],
)
def test_a_block_of_the_wrong_type_is_refused_when_the_method_is_created(wrong: dict[str, Any]) -> None:
    ((name, value),) = wrong.items()
    with pytest.raises(InputTypeError, match=f"method 'mine': {name} must be") as caught:
        dataclasses.replace(method("gp"), name="mine", **wrong)
    assert repr(value) in str(caught.value)


def test_an_unknown_scaling_is_refused_when_the_method_is_created() -> None:
    for name in ("scaling", "target_only_scaling"):
        with pytest.raises(InputError, match=f"{name} must be one of 'meanvar'"):
            dataclasses.replace(method("gp"), **{name: "log"})
