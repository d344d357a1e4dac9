"""The report of one run: its numbers are those of the run, its sentences say what they show; any run has a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest
from ConfigSpace import Categorical, ConfigurationSpace, EqualsCondition, Float, Integer
from drawings import check_drawable, figures_of
from scipy.stats import kendalltau

from recollect import FAILED, Optimizer, Run
from recollect.history.run import Direction, Trial
from recollect.optimizer.catalog import method
from recollect.report.figure import COLOURS
from recollect.report.page import Page, render
from recollect.report.run import run_report
from recollect.report.run.axes import axes
from recollect.report.run.expectation import expect
from recollect.report.run.importance import importance, importance_figure
from recollect.report.run.lines import AT_FAILED, AT_OFF, lines_figure
from recollect.report.run.past_table import past_table, past_words
from recollect.report.run.progress import ALONE, QUESTION, progress_figure
from recollect.report.run.slices import slices_figures
from recollect.report.run.tables import failure_table, failure_words, settings_table, space_table
from recollect.report.run.teachers import overlap, teachers
from recollect.report.run.values import compact, thinned, value_axis
from recollect.report.run.weights import MOST, THIS, weighed, weight_figure
from recollect.report.run.words import at_a_glance, bound_words
from recollect.report.story import Note, Origin, Paired, Story
from recollect.report.table import Table
from recollect.space.align import align
from recollect.space.space import Space, compile_space
from recollect.transfer.bound import slowdown_factor

pytest.importorskip("plotly.graph_objects", reason="pages embed plotly's script")

SCRIPT, QUOTES = "<script>alert(1)</script>", "\"><img src=x onerror='alert(2)'>"
HEBREW = "\N{HEBREW LETTER ALEF}\N{HEBREW LETTER BET}\N{HEBREW LETTER GIMEL}"
HOSTILE = (SCRIPT, QUOTES, "<a href='https://example.org'>x</a> & <b>y</b> %{x}", HEBREW, "\u202eedisni", "long-" * 400)
SETTINGS = {"method": "rgpe-taf", "trials": 20, "seed": 7, "versions": {"recollect": "0.1.0", "numpy": "2.0"}}
PLAIN = compile_space({"x": (0.0, 1.0), "y": (0.0, 1.0)})
MOST_BYTES = 6_000_000


def learner() -> Space:
    """A space with a scale of each kind, choices, and a hyperparameter that only one choice uses."""
    source = ConfigurationSpace()
    kernel = Categorical("kernel", ["linear", "radial"])
    gamma = Float("gamma", (1e-3, 10.0), log=True)
    source.add(Float("cost", (0.1, 1000.0), log=True), Integer("depth", (1, 9)), kernel, gamma)
    source.add(EqualsCondition(gamma, kernel, "radial"))
    return compile_space(source)


LEARNER = learner()


def value_of(config: dict[str, Any], *, best: float = 10.0) -> float:
    gap = abs(np.log10(config["cost"] / best))
    return float(gap + 0.05 * config["depth"] + (0.5 if config["kernel"] == "linear" else 0.0))


def learned(
    task: str, count: int, *, seed: int = 0, failed: Sequence[int] = (), direction: Direction = "minimize"
) -> Run:
    """A run over the learner's space, drawn at random."""
    rng = np.random.default_rng(seed)
    trials = []
    for number in range(count):
        config: dict[str, Any] = {"cost": float(10 ** rng.uniform(-1, 3)), "depth": int(rng.integers(1, 10))}
        config["kernel"] = ("linear", "radial")[int(rng.integers(2))]
        if config["kernel"] == "radial":
            config["gamma"] = float(10 ** rng.uniform(-3, 1))
        value = value_of(config) if direction == "minimize" else -value_of(config)
        trials.append(replace(Trial.of(config, FAILED if number in failed else value), seconds=1.0))
    return Run(task, trials=trials, space=LEARNER, direction=direction)


def noted(names: Sequence[str], count: int, *, seed: int = 0) -> tuple[Note | None, ...]:
    """Notes of a run: the first trial comes from the portfolio, the others were weighed."""
    rng = np.random.default_rng(seed)
    notes: list[Note | None] = [Note("point 1 of the portfolio learned from past runs")]
    for _ in range(count - 1):
        weights = rng.dirichlet(np.full(len(names) + 1, 0.3)).tolist()
        past = {name: weight for name, weight in zip(names, weights, strict=False) if weight >= 0.005}
        notes.append(Note("highest acquisition value", weights[-1], past, frozenset(set(names) - set(past))))
    return tuple(notes[:count])


def story(run: Run, past: Sequence[Run] = (), **given: Any) -> Story:
    notes = noted([other.task for other in past], len(run)) if past else (None,) * len(run)
    defaults: dict[str, Any] = {"notes": notes, "settings": SETTINGS, "space": run.space}
    return Story(**{"run": run, "problem": "svm", "past": tuple(past), **defaults, **given})


def usual(direction: Direction = "minimize") -> Story:
    past = [learned(f"past {number}", 20, seed=number + 1, direction=direction) for number in range(9)]
    return story(learned("covertype", 20, failed=(2, 11), direction=direction), past)


def values_only(values: Sequence[object], direction: Direction = "minimize") -> Run:
    """A run with these values."""
    configs = [{"x": (number + 0.5) / len(values), "y": 0.5} for number in range(len(values))]
    return Run("own", configs, values, space=PLAIN, direction=direction)


def hostile() -> Story:
    """Names from outside that would do harm, everywhere where there is a name."""
    space = compile_space({name[:500]: (0.0, 1.0) for name in HOSTILE} | {"choice": list(HOSTILE)})
    rng = np.random.default_rng(0)

    def made(task: str) -> Run:
        trials = []
        for number in range(16):
            config: dict[str, Any] = {name[:500]: float(rng.random()) for name in HOSTILE}
            config["choice"] = HOSTILE[number % len(HOSTILE)]
            trials.append(replace(Trial.of(config, FAILED if number == 3 else rng.random()), notes=HOSTILE))
        return Run(task, trials=trials, space=space)

    past = [made(name) for name in HOSTILE]
    settings = {"method": "rgpe-taf", "trials": 16, "seed": SCRIPT, "versions": {SCRIPT: QUOTES}}
    origins: dict[str, Origin] = dict.fromkeys(HOSTILE, "alone")
    told = story(made(SCRIPT + QUOTES), past, problem=QUOTES, settings=settings, origins=origins, source=SCRIPT)
    return replace(told, notes=(Note(SCRIPT), *told.notes[1:]), paired=None)


def many(trials: int = 1000, past: int = 100) -> Story:
    rng = np.random.default_rng(0)
    space = compile_space({f"hyperparameter {number}": (0.0, 1.0) for number in range(14)})

    def made(task: str, count: int) -> Run:
        X = rng.random((count, 14))
        configs = space.decode(X)
        values = [FAILED if rng.random() < 0.05 else float(value) for value in ((X - 0.4) ** 2).sum(axis=1)]
        return Run(task, configs, values, space=space)

    some = [made("", 12) for _ in range(4)]  # copies of a run are fitted once
    names = [f"task number {number} of a long list with long names" for number in range(past)]
    runs = [Run(name, trials=some[number % 4].trials) for number, name in enumerate(names)]
    return story(made("covertype", trials), runs, settings={**SETTINGS, "trials": trials})


EDGES = {
    "usual": usual,
    "to maximize": lambda: usual("maximize"),
    "no past runs": lambda: story(learned("covertype", 12)),
    "no trials": lambda: story(learned("covertype", 0)),
    "one trial": lambda: story(learned("covertype", 1), [learned("past", 8, seed=1)]),
    "one trial that failed": lambda: story(learned("covertype", 1, failed=(0,)), [learned("past", 8, seed=1)]),
    "two trials": lambda: story(learned("covertype", 2), [learned("past", 2, seed=1)]),
    "all failed": lambda: story(learned("covertype", 6, failed=range(6)), [learned("past", 8, seed=1)]),
    "first ones failed": lambda: story(learned("covertype", 9, failed=range(5)), [learned("past", 8, seed=1)]),
    "equal values": lambda: story(values_only([0.5] * 12), [values_only([0.5] * 12)]),
    "enormous values": lambda: story(values_only([1e308, -1e308, 1.0, 5e-324] * 4)),
    "tiny and huge values": lambda: story(values_only([1e-300, 1e300, 1.0, 2.0] * 3)),
    "no settings": lambda: replace(usual(), settings={}),
    "settings of another kind": lambda: replace(usual(), settings={"method": 3, "trials": "many", "versions": [1]}),
    "no notes": lambda: replace(usual(), notes=(None,) * 20),
    "no space, no trials": lambda: story(Run("bare"), space=None),
    "a method without transfer": lambda: replace(usual(), settings={**SETTINGS, "method": "gp"}),
    "a method without a bound": lambda: replace(usual(), settings={**SETTINGS, "method": "tstr-ei"}),
    "nothing varies": lambda: story(Run("own", [{"x": 3}] * 3, [1.0, 2.0, 3.0], space={"x": 3})),
    "hostile names": hostile,
}


def tables_of(page: Page) -> Iterator[Table]:
    yield from (part for section in page.sections for part in section.parts if isinstance(part, Table))


def texts(table: Table, column: int) -> list[str]:
    return [str(row[column].shown) for block in table.blocks for row in block]


@pytest.mark.parametrize("edge", EDGES)
def test_any_run_has_a_page_of_figures_that_plotly_can_draw(edge: str) -> None:
    page = run_report(EDGES[edge]())
    for figure in figures_of(page):
        check_drawable(figure)
        assert figure.question.endswith("?")
        assert figure.seen.endswith(".")
        assert "nan" not in figure.seen
        assert figure.numbers.blocks[0]
    assert len(render(page).encode()) < MOST_BYTES
    questions = [figure.question for figure in figures_of(page)]
    assert len(set(questions)) == len(questions)


@pytest.mark.parametrize(
    ("edge", "figures"),
    [("usual", 6), ("no past runs", 5), ("no trials", 0), ("one trial that failed", 1), ("all failed", 2)],
)
def test_a_figure_is_left_out_where_there_is_nothing_to_draw(edge: str, figures: int) -> None:
    assert len(list(figures_of(run_report(EDGES[edge]())))) == figures


def test_hostile_names_are_text() -> None:
    text = render(run_report(hostile()))
    body = text[: text.rindex("<script>")]
    assert "<script>alert" not in body
    assert "<img" not in body
    assert "<a href='https" not in body
    assert "&lt;script&gt;alert(1)" in body


# Progress


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_best_value_is_drawn_as_steps_in_the_users_units(direction: Direction) -> None:
    sign = 1.0 if direction == "minimize" else -1.0
    run = values_only([FAILED, 5 * sign, 3 * sign, 4 * sign, FAILED, 1 * sign, 2 * sign], direction)
    figure = progress_figure(story(run))
    assert figure is not None
    best = figure.traces[-1]
    assert best["line"]["shape"] == "hv"
    assert list(zip(best["x"], best["y"], strict=True)) == [(2, 5 * sign), (3, 3 * sign), (6, sign), (7, sign)]
    assert figure.question == ALONE
    assert figure.seen == f"The best value, {1 * sign:g}, was found in trial 6 of 7."
    failed = next(trace for trace in figure.traces if "failed" in trace["hovertemplate"])
    assert failed["x"] == [1, 5]
    assert all(sign * y > 5 for y in failed["y"]), "failed trials are worse than all others"
    assert [row[1].order for row in figure.numbers.blocks[0]] == [None, 5 * sign, *[3 * sign] * 3, sign, sign]


def test_past_runs_are_brought_to_the_range_of_this_run() -> None:
    """Three runs of four trials: they are at 1, 0.5, 0.5, 0 and 0, 0, 0, 0 and 1, 1, 0.5, 0 of their own ranges."""
    past = [
        values_only([8.0, 6.0, 7.0, 4.0]),
        values_only([1.0, 2.0, 3.0, 5.0]),
        values_only([30.0, FAILED, 20.0, 10.0]),
    ]
    past = [Run(f"past {number}", trials=run.trials) for number, run in enumerate(past)]
    told = story(values_only([20.0, 0.0, 10.0, 5.0]), past)
    found = expect(told)
    assert found is not None
    assert found.middle.tolist() == [20.0, 10.0, 10.0, 0.0]
    assert found.better.tolist() == [10.0, 5.0, 5.0, 0.0]
    assert found.worse.tolist() == [20.0, 15.0, 10.0, 0.0]
    assert found.needed.tolist() == [4, 1, 4]
    assert found.own == 2
    figure = progress_figure(told)
    assert figure is not None
    assert figure.question == QUESTION
    assert "It needed 2 to come within 1 % of that" in figure.seen
    assert "half of 3 past runs needed 4 or more" in figure.seen
    assert "It is not known whether they were made with transfer." in figure.seen


def test_past_runs_of_a_maximized_problem_rise() -> None:
    past = [Run("past", trials=values_only([1.0, 3.0, 2.0], "maximize").trials, direction="maximize")]
    found = expect(story(values_only([10.0, 20.0, 0.0], "maximize"), past))
    assert found is not None
    assert found.middle.tolist() == [0.0, 20.0, 20.0]


def test_runs_without_transfer_are_preferred_and_others_are_named() -> None:
    past = [learned(f"past {number}", 12, seed=number) for number in range(5)]
    alone: dict[str, Origin] = {f"past {number}": "alone" if number < 3 else "taught" for number in range(5)}
    found = expect(story(learned("own", 12, seed=9), past, origins=alone))
    assert found is not None
    assert (found.runs, found.alone, found.made) == ("3 past runs", True, "They were made without transfer.")
    mixed: dict[str, Origin] = {"past 0": "alone", "past 1": "taught", "past 2": "taught"}
    found = expect(story(learned("own", 12, seed=9), past, origins=mixed))
    assert found is not None
    assert (found.runs, found.alone) == ("5 past runs", False)
    assert found.made == (
        "2 were made with transfer, 1 was made without, of 2 it is not known, so that this is no pure expectation "
        "without transfer."
    )


def test_long_runs_are_compared_with_short_past_runs_over_their_first_trials() -> None:
    past = [values_only([2.0, 1.0, 0.0]) for _ in range(4)]
    told = story(values_only([4.0, 2.0, 3.0, 0.0, 1.0, 1.0]), past)
    found = expect(told)
    assert found is not None
    assert found.middle.tolist() == [4.0, 3.0, 2.0], "from the worst to the best of the first three values"
    figure = progress_figure(told)
    assert figure is not None
    assert "Of its first 3 trials it needed 2" in figure.seen


def test_past_runs_that_stop_early_do_not_count_where_they_have_no_value() -> None:
    past = [values_only([3.0, 2.0, 1.0, 0.0]), values_only([9.0, 0.0]), values_only([4.0, 3.0, 2.0, 1.0])]
    found = expect(story(values_only([8.0, 6.0, 4.0, 0.0]), past))
    assert found is not None
    np.testing.assert_allclose(found.middle, [8.0, 8.0 * 2 / 3, 8.0 / 3, 0.0])


def test_a_run_of_the_same_task_without_transfer_is_shown_as_it_is() -> None:
    paired = Paired("svm alone", "gp", values_only([9.0, 7.0, 5.0, 1.0]))
    figure = progress_figure(story(values_only([6.0, 4.0, 3.0]), [values_only([1.0, 0.0])], paired=paired))
    assert figure is not None
    assert figure.question == QUESTION
    assert figure.traces[0]["y"] == [9.0, 7.0, 5.0], "cut to the trials of this run"
    assert "(problem svm alone, method gp) had 5 after 3 trials; this run was there after 2 trials" in figure.seen
    behind = progress_figure(story(values_only([6.0, 5.5]), paired=replace(paired, run=values_only([2.0]))))
    assert behind is not None
    assert "had 2 after 1 trial; this run never was" in behind.seen


def test_values_far_apart_are_drawn_on_a_logarithmic_scale() -> None:
    wide, narrow = (value_axis(values_only(values)) for values in ([0.01, 5.0, FAILED], [1.0, 5.0]))
    assert wide.log
    assert wide.layout()["type"] == "log"
    assert wide.low < 0.01
    assert 5.0 < wide.failed < wide.high
    assert not narrow.log
    assert narrow.low < 1.0
    assert narrow.high > 5.0


# Weights


def test_layers_of_weights_add_up_to_everything() -> None:
    names = [f"past {number}" for number in range(50)]
    told = replace(story(learned("own", 30)), notes=noted(names, 30))
    found = weighed(told)
    assert found is not None
    figure = weight_figure(found)
    assert len(figure.traces) == 1 + len(COLOURS) + 1
    labels = [key.label for key in figure.keys]
    assert labels[0] == THIS
    assert labels[-1] == "the rest (44 past runs)"
    np.testing.assert_allclose(np.array([trace["y"] for trace in figure.traces]).sum(axis=0), 100.0, atol=0.1)
    means = [found.means[label] for label in labels[1:-1]]
    assert means == sorted(found.means.values(), reverse=True)[: len(COLOURS)]
    assert figure.traces[0]["x"][0] == 1.5, "the first trial was not weighed"
    expected = np.mean([note.target for note in told.notes if note is not None and note.target is not None])
    assert f"they had {100 * (1 - expected):.0f} % of the weight on average" in figure.seen
    assert figure.seen.endswith("The first trial was chosen without weights.")


def test_many_trials_are_averaged_to_steps_that_keep_the_mean() -> None:
    told = replace(story(learned("own", 400)), notes=noted(["a", "b", "c"], 400))
    found = weighed(told)
    assert found is not None
    figure = weight_figure(found)
    assert len(figure.traces[0]["x"]) == MOST + 2
    assert f"there are {MOST} steps" in figure.seen
    sizes = [len(part) for part in np.array_split(np.arange(399), MOST)]
    drawn = np.average(figure.traces[0]["y"][1:-1], weights=sizes)
    assert drawn == pytest.approx(100 * found.target.mean(), rel=1e-3)


def test_how_often_a_past_run_was_dropped_is_counted_from_its_first_mention() -> None:
    notes = (
        Note("portfolio"),
        Note("", 0.4, {"early": 0.6}),
        Note("", 1.0, {}, frozenset({"early"})),
        Note("", 0.5, {"late": 0.5}, frozenset({"early"})),
        Note("", 1.0, {}, frozenset({"early", "late"})),
    )
    found = weighed(story(values_only([1.0] * 5), notes=notes))
    assert found is not None
    assert found.times_dropped("early") == (3, 4)
    assert found.times_dropped("late") == (1, 2)
    assert found.times_dropped("never named") == (0, 4)
    assert found.alone == 2
    assert weighed(story(values_only([1.0]), notes=(Note("random"),))) is None


# Past runs


def test_rank_agreement_is_that_of_the_models_behind_the_suggestions() -> None:
    told = usual()
    found = {teacher.task: teacher for teacher in teachers(told, method("rgpe-taf"), weighed(told))}
    opt = Optimizer(LEARNER, told.past, "rgpe-taf", horizon=40, run=told.run)
    opt.ask()
    n = len(told.run.succeeded)
    for entry in opt.explain().past:
        assert entry.misranked is not None
        assert found[entry.task].agreement == pytest.approx(1 - entry.misranked / (n * (n - 1)))


def test_rank_agreement_with_equal_values_is_that_of_kendall_over_pairs_that_differ() -> None:
    X = np.linspace(0.05, 0.95, 10)
    configs = [{"x": float(x), "y": 0.5} for x in X]
    values = [float(int(8 * (x - 0.5) ** 2)) for x in X]
    own = Run("own", configs, values, space=PLAIN)
    past = Run("past", configs, [float(x) for x in X])
    (teacher,) = teachers(story(own, [past]), method("rgpe-taf"), None)
    ranks = np.arange(10)
    tau = kendalltau(ranks, values).statistic
    pairs = [(a, b) for a in range(10) for b in range(a) if values[a] != values[b]]
    right = [(ranks[a] > ranks[b]) == (values[a] > values[b]) for a, b in pairs]
    assert teacher.agreement == pytest.approx(np.mean(right))
    assert (teacher.agreement > 0.5) == (tau > 0)


def test_a_past_run_with_the_same_order_agrees_and_one_with_the_opposite_order_does_not() -> None:
    configs = [{"x": x, "y": 0.5} for x in np.linspace(0, 1, 12).tolist()]
    own = Run("own", configs, [config["x"] for config in configs], space=PLAIN)
    same = Run("same", configs, [3 + 10 * config["x"] for config in configs])
    opposite = Run("opposite", configs, [-config["x"] for config in configs])
    agreement = {
        entry.task: entry.agreement for entry in teachers(story(own, [same, opposite]), method("rgpe-taf"), None)
    }
    assert agreement == {"same": 1.0, "opposite": 0.0}
    words = past_words(teachers(story(own, [same, opposite]), method("rgpe-taf"), None), 12)
    assert "same orders its trials best, with 100 % of the pairs in the right order; opposite worst, with 0 %." in words


def test_overlap_is_the_share_of_values_that_fit_as_they_are() -> None:
    space = compile_space({"x": (0.0, 1.0), "y": (0.0, 1.0)})
    assert overlap(align(space, [{"x": 0.1, "y": 0.2}] * 4), 2) == 1.0
    assert overlap(align(space, [{"x": 0.1}] * 4), 2) == 0.5
    assert overlap(align(space, [{"x": 0.1, "y": 0.2}] * 3 + [{"x": 9.0, "y": 0.2}]), 2) == 0.75
    assert overlap(align(space, [{"x": 0.1, "y": 0.2, "z": 1}] * 4), 2) == 0.5
    assert overlap(align(space, []), 2) == 0.0


def test_the_table_says_what_became_of_each_past_run() -> None:
    own = Run(
        "own", [{"x": 0.1, "y": 0.5}, {"x": 0.9, "y": 0.5}, {"x": 0.5, "y": 0.5}], [2.0, FAILED, 1.0], space=PLAIN
    )
    past = [
        Run("tried", [{"x": 0.1, "y": 0.5}, {"x": 0.7, "y": 0.1}], [0.0, 1.0]),
        Run("failed here", [{"x": 0.9, "y": 0.5}, {"x": 0.7, "y": 0.1}], [0.0, 1.0]),
        Run("not tried", [{"x": 0.45, "y": 0.5}, {"x": 0.7, "y": 0.1}], [0.0, 1.0]),
        Run("elsewhere", [{"x": 99.0, "y": 0.5}, {"x": 0.2, "y": 0.2}, {"x": 0.7, "y": 0.1}], [0.0, 1.0, 2.0]),
    ]
    notes = (
        Note("portfolio"),
        Note("", 0.5, {"tried": 0.3, "not tried": 0.2}, frozenset({"failed here"})),
        Note("", 0.2, {"tried": 0.7, "given": 0.1}, frozenset({"failed here", "not tried"})),
    )
    told = story(own, past, notes=notes)
    found = teachers(told, method("rgpe-taf"), weighed(told))
    table = past_table(found, 2)
    rows = {str(row[0].shown): [cell.shown for cell in row] for row in table.blocks[0]}
    assert list(rows) == ["tried", "given", "not tried", "elsewhere", "failed here"], "by weight"
    assert rows["tried"][1:4] == ["2", "70.0", "50.0"]
    assert [rows[name][5] for name in ("tried", "not tried", "elsewhere")] == ["kept", "dropped", "kept"]
    assert [rows[name][6] for name in ("tried", "failed here", "not tried")] == ["0 of 2", "2 of 2", "1 of 2"]
    assert rows["tried"][7] == "2 of 2"
    assert rows["failed here"][7] == "tried, failed"
    assert rows["not tried"][7] == "\N{ALMOST EQUAL TO} 2 of 3", "a little worse than the best, which is close by"
    assert rows["elsewhere"][7] == "\N{EN DASH}", "its best configuration has no place in this space"
    assert rows["elsewhere"][8] == "67"
    assert "too far outside the range" in str(rows["elsewhere"][9])
    assert rows["given"][9] == "it is not in this memory"
    assert "In the last suggestion 3 took part, 2 had been dropped." in past_words(found, 2)


# Hyperparameters


def test_the_hyperparameter_that_matters_comes_first() -> None:
    rng = np.random.default_rng(3)
    configs = [{"x": float(x), "y": float(y)} for x, y in rng.random((60, 2))]
    for name in ("x", "y"):
        run = Run("own", configs, [abs(config[name] - 0.3) for config in configs], space=PLAIN)
        found = importance(story(run))
        assert found is not None
        assert next(iter(found.parts)) == name
        assert found.parts[name] > 0.8
        assert sum(found.parts.values()) == pytest.approx(1.0)
        assert (found.best, found.trials) == (6, 60)
        figure = importance_figure(found, story(run))
        assert figure.seen.startswith(f"{name} sets the best 6 of 60 trials apart most")
        assert "PED-ANOVA" in figure.seen


def test_importance_takes_conditions_and_maximizing() -> None:
    for direction in ("minimize", "maximize"):
        found = importance(story(learned("own", 80, direction=direction)))
        assert found is not None
        assert next(iter(found.parts)) == "cost"
        assert set(found.parts) <= set(LEARNER.names)


def test_importance_is_not_computed_from_too_little() -> None:
    assert importance(story(learned("own", 9))) is None
    assert importance(story(values_only([1.0] * 30))) is None
    assert importance(story(learned("own", 30, failed=range(25)))) is None


def test_lines_go_through_all_hyperparameters_and_end_at_the_rank() -> None:
    configs: list[dict[str, Any]] = [
        {"cost": 0.1, "depth": 1, "kernel": "linear"},
        {"cost": 1000.0, "depth": 9, "kernel": "radial", "gamma": 0.1},
        {"cost": 10.0, "depth": 5, "kernel": "radial", "gamma": 10.0},
    ]
    told = story(Run("own", configs, [3.0, 1.0, FAILED], space=LEARNER))
    drawn = axes(told)
    assert [axis.name for axis in drawn] == ["cost", "depth", "kernel", "gamma"]
    figure = lines_figure(told, drawn)
    assert figure is not None
    others, failed, best = (trace["x"][:5] for trace in figure.traces)
    assert others == [0.0, pytest.approx(0.056, abs=1e-3), 0.25, AT_OFF, 1.0]
    assert best == [1.0, pytest.approx(0.944, abs=1e-3), 0.75, 0.5, 0.0]
    assert failed[-1] == AT_FAILED
    assert [key.label for key in figure.keys] == ["the best 1", "failed (1)", "the other 1"]
    hover = figure.traces[0]["customdata"]
    assert hover[:4] == [[1, "cost: 0.1"], [1, "depth: 1"], [1, "kernel: linear"], [1, "gamma: inactive"]]
    labels = {(entry["y"], entry["text"]) for entry in figure.layout["annotations"]}
    assert {(0, "0.1"), (0, "10"), (0, "1000"), (2, "linear"), (3, "off"), (4, "1 (best)"), (4, "failed")} <= labels


def test_the_sentence_names_what_the_best_trials_share() -> None:
    rng = np.random.default_rng(0)
    X = rng.random((60, 2))
    configs = [{"x": float(x), "y": float(y)} for x, y in X]
    told = story(Run("own", configs, [abs(x - 0.5) for x in X[:, 0]], space=PLAIN))
    figure = lines_figure(told, axes(told))
    assert figure is not None
    best = np.sort(X[np.argsort(np.abs(X[:, 0] - 0.5))[:6], 0])
    assert f"The best 6 of 60 trials lie close together in x ({best[0]:.4g} to {best[-1]:.4g})" in figure.seen


def test_slices_separate_numbers_from_choices_and_mark_failed_and_inactive_trials() -> None:
    told = usual()
    numeric, choices = slices_figures(told, axes(told))
    assert [numeric.layout[name]["title"]["text"] for name in ("xaxis", "xaxis2", "xaxis3")] == [
        "cost",
        "depth",
        "gamma",
    ]
    assert choices.layout["xaxis"]["ticktext"] == ["linear", "radial"]
    failed = [trace for trace in numeric.traces if trace["marker"].get("symbol") == "x-thin-open"]
    assert len(failed) == 3
    assert all(len(trace["x"]) == 2 for trace in failed)
    highest = max(value for value in told.run.values if value is not None)
    assert min(failed[0]["y"]) > highest
    gamma = [x for trace in numeric.traces if trace["xaxis"] == "x3" for x in trace["x"]]
    assert sum(x < 0 for x in gamma) == sum("gamma" not in config for config in told.run.configs)
    assert "off" in numeric.layout["xaxis3"]["ticktext"]
    assert "off" not in numeric.layout["xaxis"]["ticktext"]
    assert "Crosses above all values failed." in numeric.seen
    medians = {
        kernel: np.median([t.value for t in told.run.succeeded if t.config["kernel"] == kernel])  # type: ignore[type-var]
        for kernel in ("linear", "radial")
    }
    best = min(medians, key=lambda kernel: medians[kernel])
    assert choices.seen.startswith(f"Of kernel, {best} has the best median value, {medians[best]:.4g}")


def test_the_strongest_trend_is_named() -> None:
    told = story(values_only([float(number) for number in range(12)]))
    (figure,) = slices_figures(told, axes(told))
    assert figure.seen.startswith("Values rise most clearly with growing x (rank correlation +1.00).")
    few = story(values_only([1.0, 2.0, 3.0]))
    assert slices_figures(few, axes(few))[0].seen.startswith("There are too few trials")


def test_of_many_hyperparameters_the_most_important_are_drawn() -> None:
    space = compile_space({f"h{number:02}": (0.0, 1.0) for number in range(20)})
    rng = np.random.default_rng(0)
    X = rng.random((50, 20))
    run = Run("own", space.decode(X), [abs(float(x[19]) - 0.2) for x in X], space=space)
    found = importance(story(run))
    assert found is not None
    drawn = [axis.name for axis in axes(story(run), tuple(found.parts))]
    assert len(drawn) == 12
    assert drawn == sorted(drawn)
    assert "h19" in drawn


def test_labels_are_short() -> None:
    assert [compact(value) for value in (0.0, 1.0, -0.25, 1024.0, 0.001, 0.00098, 1e-10, 123456.0, 1 / 3)] == [
        *("0", "1", "-0.25", "1024", "0.001", "9.8e-4", "1e-10", "1.2e5", "0.333")
    ]


def test_thinning_keeps_what_is_to_be_kept_in_order() -> None:
    assert thinned(5, 9) == [0, 1, 2, 3, 4]
    found = thinned(1000, 50, keep=[7, 501])
    assert {7, 501} <= set(found)
    assert found == sorted(set(found))
    assert len(found) <= 50


# Words and tables


def test_the_worst_case_is_the_bound_of_the_paper_in_words() -> None:
    told = usual()
    assert f"the 9 past runs, this search needs at most {slowdown_factor(20, 9):.3g} times" in bound_words(told)
    assert "no bound is known" in bound_words(replace(told, settings={**SETTINGS, "method": "rgpe-taf+none"}))
    assert "no past run was used" in bound_words(replace(told, settings={**SETTINGS, "method": "gp"}))
    assert "no past run was used" in bound_words(replace(told, past=()))
    assert "nothing can be said" in bound_words(replace(told, settings={}))


def test_the_overview_says_what_was_done_and_found() -> None:
    told = usual()
    sentences = at_a_glance(told, weighed(told))
    best = told.run.best
    assert best is not None
    assert sentences[0].startswith("20 trials, 2 of them failed, tuned by rgpe-taf")
    assert sentences[0].endswith("Lower values are better.")
    assert sentences[1] == f"The best value is {best.value:.4g}, found in trial {told.run.trials.index(best) + 1}."
    assert "9 past runs" in sentences[2]
    assert "It began with point 1 of the portfolio learned from past runs." in sentences[2]
    alone = at_a_glance(story(learned("own", 3)), None)
    assert "3 trials of 20 planned, none of them failed" in alone[0]
    assert alone[2].startswith("There were no past runs")
    assert "Higher values" in at_a_glance(usual("maximize"), None)[0]


def test_reasons_of_failures_are_counted_and_shown() -> None:
    trials = [
        replace(
            Trial.of({"x": number / 10, "y": 0.5}, FAILED),
            notes=(("time limit",) if number < 3 else ("out of\nmemory",)),
        )
        for number in range(4)
    ]
    run = Run("own", trials=[*trials, Trial({"x": 0.9, "y": 0.5}, 1.0)], space=PLAIN)
    assert failure_words(run).startswith("4 of 5 trials failed: time limit (3) and out of memory (1).")
    table = failure_table(run)
    assert table is not None
    assert texts(table, 0) == ["1", "2", "3", "4"]
    assert texts(table, 1)[-1] == "out of memory"
    assert texts(table, 2)[1] == "x = 0.1, y = 0.5"
    assert failure_table(values_only([1.0])) is None
    long = failure_table(values_only([FAILED] * 500))
    assert long is not None
    assert len(long.blocks[0]) == 100
    assert long.notes == ("100 of 500 failed trials are shown.",)


def test_settings_and_space_are_shown_as_far_as_they_are_known() -> None:
    begun = datetime(2026, 1, 2, 3, 4, 5)
    told = replace(usual(), times=(begun, begun + timedelta(hours=2)))
    facts = dict(zip(texts(settings_table(told), 0), texts(settings_table(told), 1), strict=True))
    assert facts["method"].startswith("rgpe-taf: ranking weights")
    assert (facts["trials planned"], facts["seed"], facts["trials made"]) == ("20", "7", "20, of which 2 failed")
    assert facts["versions"] == "recollect 0.1.0 and numpy 2.0"
    assert (facts["first trial begun"], facts["time in all trials"]) == ("2026-01-02 03:04:05", "20 s")
    assert (
        dict(
            zip(
                *(texts(settings_table(story(values_only([1.0]), settings={"seed": None})), c) for c in (0, 1)),
                strict=True,
            )
        )["seed"]
        == "none: fresh entropy"
    )
    unknown = settings_table(replace(told, settings={}))
    assert "not known" in texts(unknown, 1)
    assert "not known" in unknown.notes[0]
    space = space_table(told)
    assert space is not None
    rows = {str(row[0].shown): [str(cell.shown) for cell in row[1:]] for row in space.blocks[0]}
    assert rows["cost"] == ["number, log scale", "0.1 to 1000", "always used"]
    assert rows["depth"] == ["integer", "1 to 9", "always used"]
    assert rows["kernel"] == ["choice", "linear and radial", "always used"]
    assert rows["gamma"][2] == "kernel == 'radial'"


def test_a_page_of_a_thousand_trials_and_a_hundred_past_runs_stays_small() -> None:
    assert len(render(run_report(many())).encode()) < MOST_BYTES


def test_of_a_long_run_not_every_trial_is_drawn_and_the_sentence_says_so() -> None:
    run = values_only([FAILED if number % 5 == 0 else float(number) for number in range(1000)])
    figure = progress_figure(story(run))
    assert figure is not None
    crosses, dots, best = (figure.traces[place] for place in (1, 0, 2))
    assert (len(dots["x"]), len(crosses["x"])) == (300, 100)
    assert best["x"] == [2, 1000]
    assert "600 single trials are not drawn." in figure.seen
