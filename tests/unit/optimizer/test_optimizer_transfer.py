"""Transfer through the optimizer: reductions to plain Bayesian optimization, invariances, useless past runs."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

import numpy as np
import pytest

from recollect import FAILED, InputError, InputTypeError, Method, Optimizer, RecollectWarning, Run, methods
from recollect.runs.usability import Unusable
from recollect.transfer.ensemble import Ensemble

Config = dict[str, Any]
FLAT = {"a": (0.0, 1.0), "b": (0.0, 1.0)}
GRID = [{"a": a / 9, "b": b / 5} for a, b in itertools.product(range(10), range(6))]
MODELS = [name for name in methods() if name.startswith(("tstr", "rgpe"))]
RANKED = [name for name in MODELS if name.startswith("rgpe")]


def wave(config: Config, shift: float = 0.0) -> float:
    return float(np.sin(5 * (config["a"] + shift)) + (config["b"] - 0.4 + shift) ** 2)


def past_run(task: str, shift: float, *, size: int = 15, scale: float = 1.0, offset: float = 0.0) -> Run:
    rng = np.random.default_rng(int(1000 * shift) + size)
    configs = [GRID[i] for i in rng.permutation(len(GRID))[:size]]
    return Run(task, configs, [offset + scale * wave(config, shift) for config in configs])


PAST = [past_run("near", 0.02), past_run("shifted", 0.3), past_run("opposite", 0.0, scale=-1.0, size=14)]


def drive(optimizer: Optimizer, trials: int, value: Any = wave) -> list[Config]:
    configs = []
    for _ in range(trials):
        configs.append(optimizer.ask())
        optimizer.tell(configs[-1], value(configs[-1]))
    return configs


def suggested_after(
    method: str | Method, configs: list[Config], *, past: Any = PAST, value: Any = wave, **options: Any
) -> Optimizer:
    """Return an optimizer with the values of some configurations and one suggestion."""
    optimizer = Optimizer(FLAT, past, method, candidates=GRID, **options)
    for config in configs:
        optimizer.tell(config, value(config))
    optimizer.ask()
    return optimizer


def ensemble_of(optimizer: Optimizer) -> Ensemble:
    assert optimizer._model is not None
    return optimizer._model.ensemble(np.empty((0, 2)))


@pytest.mark.parametrize("method", MODELS)
def test_without_past_runs_every_method_suggests_what_plain_bayesian_optimization_does(method: str) -> None:
    plain, other = (Optimizer(FLAT, (), name, seed=4, candidates=GRID) for name in ("gp", method))
    assert drive(plain, 16) == drive(other, 16)


@pytest.mark.parametrize("method", [*RANKED, "tstr-ei+wd", "tstr-taf+wd"])
def test_at_the_horizon_all_past_runs_are_dropped_and_plain_bayesian_optimization_is_left(method: str) -> None:
    configs = GRID[::6]
    optimizer = suggested_after(method, configs, horizon=len(configs))
    plain = suggested_after("gp", configs, horizon=len(configs))
    assert optimizer.pending == plain.pending
    influences = optimizer.explain().past
    assert [entry.dropped for entry in influences] == [True] * 3
    assert [entry.weight for entry in influences] == [0.0] * 3
    assert optimizer.explain().target.weight == 1.0
    ours, theirs = (ensemble_of(o) for o in (optimizer, plain))
    assert ours.target_only
    X = optimizer.space.encode([config for config in GRID if config not in configs])
    scores = [
        o._method.acquisition.prepare(e, np.random.default_rng(0)).score(X)  # type: ignore[union-attr]
        for o, e in ((optimizer, ours), (plain, theirs))
    ]
    np.testing.assert_allclose(scores[0], scores[1], atol=1e-5)


def test_before_the_horizon_the_same_past_runs_change_the_suggestion() -> None:
    configs = GRID[::6]
    far, plain = suggested_after("rgpe-mean+none", configs), suggested_after("gp", configs)
    assert far.pending != plain.pending


@pytest.mark.parametrize(
    ("method", "trials"),
    [*itertools.product(MODELS, (2, 6)), ("rgpe-taf", 1), ("rgpe-mogp", 1), ("tstr-taf", 1)],
)
def test_the_weights_shown_are_the_weights_used(method: str, trials: int) -> None:
    optimizer = suggested_after(method, GRID[:: 60 // trials][:trials])
    shown = optimizer.explain()
    weights = [entry.weight for entry in (*shown.past, shown.target)]
    model = optimizer._model
    assert model is not None
    assert weights == model.weights.values.tolist()
    assert sum(w for w in weights if w is not None) == pytest.approx(1.0)
    if trials < 2 or (trials < 3 and method.startswith("rgpe")):
        assert weights == [0.25] * 4
    shares = [entry.share for entry in (*shown.past, shown.target)]
    assert sum(share for share in shares if share is not None) == pytest.approx(1.0)
    assert all(share == 0 for share, weight in zip(shares, weights, strict=True) if weight == 0)


@pytest.mark.parametrize("method", ["rgpe-taf", "rgpe-nei", "tstr-ei", "rgpe-ei+none"])
def test_weights_do_not_change_with_the_units_of_any_task(method: str) -> None:
    configs = GRID[3::6]
    plain = suggested_after(method, configs).explain()
    past = [
        past_run("near", 0.02, scale=1e4, offset=-7.0),
        past_run("shifted", 0.3, scale=1e-3, offset=1.0),
        PAST[2],
    ]
    other = suggested_after(method, configs, past=past, value=lambda c: 3.0 + 0.02 * wave(c)).explain()
    weights = [[entry.weight for entry in (*e.past, e.target)] for e in (plain, other)]
    assert weights[0] == pytest.approx(weights[1])
    assert 0 < weights[0][0] < 1  # type: ignore[operator]
    assert plain.past[0].misranked == other.past[0].misranked


def test_a_past_run_that_ranks_well_gets_more_weight_than_one_that_ranks_badly() -> None:
    shown = suggested_after("rgpe-mean+none", GRID[1::7]).explain()
    near, _, opposite = shown.past
    assert near.misranked < opposite.misranked  # type: ignore[operator]
    assert near.weight > 0.5 > opposite.weight == 0.0  # type: ignore[operator]


@pytest.mark.parametrize("method", ["rgpe-taf", "rgpe-mogp", "tstr-ei", "rgpe-nei"])
def test_a_good_past_run_finds_a_good_configuration_within_the_first_trials(method: str) -> None:
    optimizer = Optimizer(FLAT, PAST[:1], method, candidates=GRID, horizon=20)
    values = sorted(wave(config) for config in GRID)
    assert min(wave(config) for config in drive(optimizer, 4)) <= values[2]


def test_the_first_point_is_the_best_of_the_only_past_run() -> None:
    only = PAST[0]
    optimizer = Optimizer(FLAT, [only], "rgpe-taf")
    assert only.best is not None
    assert optimizer.ask() == only.best.config
    assert optimizer.explain().reason == "point 1 of the portfolio learned from past runs"


def test_the_portfolio_continues_while_its_points_fail() -> None:
    optimizer = Optimizer(FLAT, PAST, "rgpe-taf", horizon=20)
    tried = [config for run in PAST for config in run.configs]
    for number in (1, 2, 3, 4):
        config = optimizer.ask()
        assert config in tried
        assert optimizer.explain().reason == f"point {number} of the portfolio learned from past runs"
        optimizer.tell(config, FAILED if number < 4 else 1.0)
    optimizer.ask()
    assert optimizer.explain().reason == "highest acquisition value"


def test_portfolio_configurations_outside_the_new_space_are_never_suggested() -> None:
    narrow = {"a": (0.0, 0.3), "b": (0.0, 1.0)}
    optimizer = Optimizer(narrow, [past_run("wide", 0.0, size=40)], "smfo", horizon=12)
    configs = drive(optimizer, 12)
    assert all(0.0 <= config["a"] <= 0.3 for config in configs)
    optimizer = Optimizer({"a": (1.2, 3.2), "b": (0.0, 1.0)}, [past_run("elsewhere", 0.0)], "rgpe-taf")
    assert 1.2 <= optimizer.ask()["a"] <= 3.2
    assert "drawn at random" in optimizer.explain().reason


def test_the_same_seed_repeats_a_run_and_another_seed_does_not() -> None:
    def play(seed: int) -> list[Config]:
        return drive(Optimizer(FLAT, PAST, "rgpe-taf", seed=seed, horizon=12), 6)

    runs = {seed: play(seed) for seed in (1, 2, 3)}
    assert all(play(seed) == run for seed, run in runs.items())
    assert runs[1] != runs[2] != runs[3]


def test_the_order_in_which_other_optimizers_work_changes_nothing() -> None:
    alone = drive(Optimizer(FLAT, PAST, "rgpe-nei", seed=1, candidates=GRID), 6)
    one, other = (Optimizer(FLAT, PAST, "rgpe-nei", seed=seed, candidates=GRID) for seed in (1, 2))
    together = []
    for _ in range(6):
        drive(other, 1)
        together += drive(one, 1)
    assert together == alone


def test_past_runs_may_come_from_a_generator() -> None:
    listed = drive(Optimizer(FLAT, PAST, "rgpe-taf", candidates=GRID), 4)
    assert drive(Optimizer(FLAT, (run for run in PAST), "rgpe-taf", candidates=GRID), 4) == listed


@pytest.mark.parametrize("wrong", [PAST[0].configs, ["runs"], [None], [PAST[0], {"a": 1.0}]])
def test_a_past_run_that_is_no_run_is_refused(wrong: Any) -> None:
    with pytest.raises(
        InputTypeError, match=r"past must be a list of recollect\.Run.*past\[[01]\] is of type (dict|str|NoneType)"
    ):
        Optimizer(FLAT, wrong)


@pytest.mark.parametrize("wrong", [PAST[0], None, 3, "runs.db", {"a": PAST[0]}])
def test_past_runs_that_are_no_collection_are_refused(wrong: Any) -> None:
    with pytest.raises(InputTypeError, match=r"past must be a list of recollect\.Run.*read_runs.*, got "):
        Optimizer(FLAT, wrong)


def test_a_past_run_of_the_other_direction_is_refused() -> None:
    up = Run("up", PAST[0].configs, PAST[0].values, direction="maximize")
    with pytest.raises(InputError, match=r"past\[1\] \('up'\).*'maximize'.*'minimize'"):
        Optimizer(FLAT, [PAST[0], up])
    with pytest.raises(InputError, match=r"past\[0\] \('near'\).*'minimize'.*'maximize'"):
        Optimizer(FLAT, PAST, direction="maximize")


@pytest.mark.parametrize("wrong", ["down", "", None, 3])
def test_an_invalid_direction_is_refused_with_past_runs_as_without(wrong: Any) -> None:
    refused = []
    for past in ((), PAST):
        with pytest.raises(InputError) as caught:
            Optimizer(FLAT, past, direction=wrong)
        refused.append(str(caught.value))
    assert refused[0] == refused[1]


@pytest.mark.parametrize(
    ("useless", "usable"),
    [
        (Run("empty"), "0 of its 0"),
        (Run("single", [{"a": 0.5, "b": 0.5}], [1.0]), "1 of its 1"),
        (Run("failed", GRID[:4], [1.0, None, None, None]), "1 of its 4"),
        (Run("other", [{"a": "x", "b": 0.5}] * 3, [1.0, 2.0, 3.0]), "0 of its 3"),
    ],
)
def test_a_past_run_without_two_usable_observations_is_left_out_and_the_rest_is_used(useless: Run, usable: str) -> None:
    message = f"past run '{useless.task}' is left out: {usable} trials can be used"
    with pytest.warns(RecollectWarning, match=message) as caught:
        optimizer = Optimizer(FLAT, [PAST[0], useless, PAST[1]], "rgpe-mean+none", candidates=GRID)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    drive(optimizer, 6)
    shown = optimizer.explain()
    assert [entry.used for entry in shown.past] == [True, False, True]
    assert optimizer.past[1].unusable is Unusable.TOO_FEW_TRIALS
    assert (shown.past[1].weight, shown.past[1].share) == (None, None)
    rest = Optimizer(FLAT, [PAST[0], PAST[1]], "rgpe-mean+none", candidates=GRID)
    drive(rest, 6)
    assert rest.run.configs == optimizer.run.configs
    assert [entry.weight for entry in rest.explain().past] == [shown.past[0].weight, shown.past[2].weight]


def test_past_runs_without_a_hyperparameter_in_common_are_left_out_as_a_memory_leaves_them_out() -> None:
    strange = [Run(f"strange {number}", [{"z": z / 5} for z in range(5)], range(5)) for number in range(7)]
    message = (
        r"not used as past runs because they have no hyperparameter in common: 'strange 0', .* 'strange 4' and 2 more$"
    )
    with pytest.warns(RecollectWarning, match=message) as caught:
        optimizer = Optimizer(FLAT, [PAST[0], *strange], candidates=GRID)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert [entry.unusable for entry in optimizer.past] == [None] + [Unusable.NO_SHARED_PARAMETER] * 7
    assert drive(optimizer, 6) == drive(Optimizer(FLAT, [PAST[0]], candidates=GRID), 6)
    one_in_common = Run("kin", [{"a": a / 5, "z": 1.0} for a in range(5)], range(5))
    assert Optimizer(FLAT, [one_in_common]).past[0].used


@pytest.mark.parametrize("method", ["rgpe-taf", "rgpe-mogp", "tstr-ei", "wac", "kl", "mtgp", "smfo", "gp-box"])
def test_with_nothing_but_foreign_past_runs_a_method_does_what_it_does_without_any(method: str) -> None:
    with pytest.warns(RecollectWarning, match="no hyperparameter in common: 'strange'"):
        optimizer = Optimizer(FLAT, [Run("strange", [{"z": z / 5} for z in range(5)], range(5))], method, horizon=12)
    alone = Optimizer(FLAT, (), method, horizon=12)
    assert drive(optimizer, 5) == drive(alone, 5)
    assert optimizer.explain().reason == alone.explain().reason


@pytest.mark.parametrize("method", ["rgpe-taf", "rgpe-mogp", "rgpe-nei", "tstr-taf", "wac", "mtgp", "smfo", "gp-box"])
def test_past_values_close_to_the_largest_number_overflow_nowhere(method: str) -> None:
    far = [Run(f"far {k}", PAST[k].configs, [(-1) ** i * 1.7e308 for i in range(len(PAST[k]))]) for k in range(2)]
    optimizer = Optimizer(FLAT, far, method, candidates=GRID)
    drive(optimizer, 5)  # any warning is an error
    assert all(entry.used for entry in optimizer.explain().past)


def test_values_stay_with_their_configurations_when_some_of_a_run_cannot_be_used() -> None:
    configs = [{"a": 9.0, "b": 0.5}, GRID[0], GRID[7], {"a": "x", "b": 0.5}, GRID[20], GRID[30]]
    optimizer = Optimizer(FLAT, [Run("mixed", configs, [9.0, 1.0, None, 8.0, 3.0, 2.0])], "rgpe-taf")
    data = optimizer.past[0].data
    assert data is not None
    assert data.y.tolist() == [1.0, 3.0, 2.0]
    np.testing.assert_array_equal(data.X, optimizer.space.encode([GRID[0], GRID[20], GRID[30]]))
    assert optimizer.ask() == GRID[0]


def test_when_no_past_run_is_of_use_plain_bayesian_optimization_is_left() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RecollectWarning)
        useless = Optimizer(FLAT, [Run("empty"), Run("empty too")], "rgpe-taf", seed=4, candidates=GRID)
    assert drive(useless, 12) == drive(Optimizer(FLAT, (), "gp", seed=4, candidates=GRID), 12)


@pytest.mark.parametrize("method", ["gp", "random"])
def test_methods_that_do_not_transfer_never_look_at_past_runs(method: str) -> None:
    runs = [drive(Optimizer(FLAT, past, method, candidates=GRID), 12) for past in ((), PAST)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("method", MODELS)
def test_four_suggestions_at_once_lie_apart_in_a_continuous_space(method: str) -> None:
    optimizer = Optimizer(FLAT, PAST, method, horizon=20)
    drive(optimizer, 4)
    batch = np.array([[config["a"], config["b"]] for config in optimizer.ask(4)])
    gaps = np.linalg.norm(batch[:, None] - batch[None], axis=2)[np.triu_indices(4, 1)]
    assert gaps.min() > 1e-3


def test_past_runs_that_order_results_no_better_than_chance_lead_to_exploration() -> None:
    related = PAST[:1]
    negated = [Run(run.task, run.configs, [-float(v) for v in run.values if v is not None]) for run in related]
    reasons = {}
    for kind, past in (("true", related), ("negated", negated)):
        optimizer = Optimizer(FLAT, past, "rgpe-taf", candidates=GRID, horizon=40)
        reasons[kind] = []
        for _ in range(16):
            config = optimizer.ask()
            reasons[kind].append(optimizer.explain().reason)
            optimizer.tell(config, wave(config))
    explored = {kind: [reason.startswith("exploring") for reason in given] for kind, given in reasons.items()}
    assert not any(explored["true"])
    begun = explored["negated"].index(True)
    assert 5 <= begun <= 6
    ended = begun + sum(explored["negated"])
    assert 9 <= ended <= 10  # the size of a design, of which one point may have been evaluated before
    assert explored["negated"] == [begun <= number < ended for number in range(16)]


def test_ties_and_few_observations_do_not_count_against_past_runs() -> None:
    optimizer = suggested_after("rgpe-taf", GRID[:8], value=lambda _: 1.0)
    assert optimizer._model is not None
    assert not optimizer._model.no_useful_source


@pytest.mark.parametrize(
    ("name", "protected"), [("rgpe-taf", True), ("tstr-ei+wd", True), ("rgpe-taf+none", False), ("tstr-taf", False)]
)
def test_the_guard_keeps_past_runs_above_chance_and_acts_only_in_methods_that_drop(name: str, protected: bool) -> None:
    negated = [Run(run.task, run.configs, [-float(v) for v in run.values if v is not None]) for run in PAST]
    model = suggested_after(name, GRID[::6], past=negated, horizon=1000)._model
    assert model is not None
    assert not model.no_useful_source
    assert model.weights.misranked[:-1].tolist() == [90.0, 50.0, 2.0]  # of 90 pairs
    assert (model.weights.dropped[:2].all() and not model.weights.keep_probability[:2].any()) == protected
    assert model.weights.keep_probability[2] > 0.3
    alone = suggested_after(name, GRID[::6], past=negated[:2], horizon=1000)._model
    assert alone is not None
    assert alone.no_useful_source is protected
    assert alone.weights.dropped.all() or not protected


def test_integers_written_for_a_hyperparameter_that_had_floats_are_warned_about() -> None:
    past = [Run("old", [{"C": 0.5}, {"C": 20.0}, {"C": 3.0}, {"C": 4.0}], [1.0, 2.0, 3.0, 4.0])]
    with pytest.warns(RecollectWarning, match=r"'C' is a range of integers.* past runs have 0.5; write 1.0 and 1000.0"):
        Optimizer({"C": (1, 1000)}, past)
    whole = [Run("old", [{"C": 1.0}, {"C": 20.0}], [1.0, 2.0])]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Optimizer({"C": (1, 1000)}, whole)
        Optimizer({"C": (1.0, 1000.0)}, past)
