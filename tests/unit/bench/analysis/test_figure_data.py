"""The data of benchmark figures, which matplotlib and plotly draw."""

from __future__ import annotations

import numpy as np
import pytest
from tests.helpers.figure_runs import FOURTEEN, SHORT, fake_runs, results_of

from recollect.bench.analysis.figure_data import (
    bootstrap_band,
    critical_differences,
    differences_from_reference,
    line_styles,
    mean_regrets,
    method_panels,
    regret_curves,
    regret_limits,
    weight_evolution,
)
from recollect.bench.experiment.experiment_run import CompletedRun, RunKey
from recollect.errors import InputError


def test_no_two_lines_look_alike() -> None:
    styles = line_styles([*FOURTEEN, "random-2x", "random-4x", "random-10x"])
    assert len({(line.colour, line.dash) for line in styles.values()}) == 17
    assert styles["gp"].colour == "black"
    assert {styles[name].colour for name in ("random", "random-2x", "random-4x")} == {"grey"}
    assert styles["random-box"].colour != "grey"


def test_few_methods_share_a_panel_and_many_come_in_families() -> None:
    assert method_panels(SHORT) == [("", list(SHORT))]
    groups = method_panels([*FOURTEEN, "rgpe-cfnei", "rgpe-taf", "gcp-prior"])
    titles = [title for title, _ in groups]
    assert titles == [
        "without models of past runs",
        "other models of past runs",
        "TST-R",
        "RGPE (1 of 2)",
        "RGPE (2 of 2)",
    ]
    assert groups[1][1] == ["gp", "random", "wac", "gcp-prior"]
    own = [name for _, names in groups for name in names[2:]]
    assert sorted(own) == sorted({*FOURTEEN, "rgpe-cfnei", "rgpe-taf", "gcp-prior"} - {"gp", "random"})
    assert all(names[:2] == ["gp", "random"] and len(names) <= 8 for _, names in groups)


def test_the_band_is_that_of_normal_theory_for_many_tasks() -> None:
    regrets = np.random.default_rng(1).normal(0.5, [0.1, 0.02], (400, 2))
    low, high = bootstrap_band(regrets)
    half = 1.96 * regrets.std(axis=0) / 20
    np.testing.assert_allclose((high - low) / 2, half, rtol=0.08)
    np.testing.assert_allclose((high + low) / 2, regrets.mean(axis=0), atol=0.1 * half.max())


def test_the_band_has_no_width_where_all_tasks_agree() -> None:
    low, high = bootstrap_band(np.tile([0.5, 0.25], (7, 1)))
    np.testing.assert_allclose([low, high], [[0.5, 0.25]] * 2)


@pytest.mark.parametrize(
    ("values", "limits"),
    [
        ([0.5, 0.1], (0.0, 0.525)),  # less than a decade
        ([0.5, 0.01, 0.0, np.nan], (0.008, 0.6)),
        ([1.0, 1e-9], (1e-4, 1.2)),  # four decades at most
        ([0.0, 0.0], (0.0, 1.05)),
        ([np.nan], (0.0, 1.05)),
    ],
)
def test_the_axis_is_logarithmic_where_regrets_span_a_decade(values: list[float], limits: tuple[float, float]) -> None:
    np.testing.assert_allclose(regret_limits([np.array(values)]), limits, rtol=1e-12)


def test_weights_of_two_methods_or_of_none_are_refused() -> None:
    for runs in (fake_runs(["rgpe-nei", "rgpe-taf"]), fake_runs(["gp"])):
        with pytest.raises(InputError, match="one method on one benchmark with weights"):
            weight_evolution(runs)


def test_a_panel_has_the_curves_of_its_methods_and_pale_ones_of_the_others() -> None:
    runs = [*fake_runs(FOURTEEN), *fake_runs(["kl"], tasks=1)]
    data = regret_curves(results_of(runs), unit=100.0)
    assert (data.benchmark, data.tasks, data.horizon) == ("toy", 4, 12)
    panel = data.panels[1]
    assert [curve.label for curve in panel.curves] == ["gp", "random", "wac", "kl (1 task)"]
    assert len(panel.pale) == len(FOURTEEN) - 3
    gp, kl = panel.curves[0], panel.curves[-1]
    np.testing.assert_allclose(gp.regret, 100 * gp.result.adtm)
    assert gp.band is not None
    np.testing.assert_allclose(gp.band, 100 * np.array(bootstrap_band(gp.result.regrets)))
    assert (kl.band, kl.complete) == (None, False)
    lowest = panel.lowest(12)
    assert lowest is not None
    assert lowest.regret[-1] == min(curve.regret[-1] for curve in panel.curves[:3])
    assert data.limits == regret_limits([100 * result.adtm for result in results_of(runs).methods.values()])


def test_methods_without_common_tasks_have_no_critical_difference() -> None:
    runs = [run for run in fake_runs(["gp", "wac"]) if (run.key.method == "gp") == (run.key.task < "task 2")]
    assert critical_differences(results_of(runs)) is None
    assert critical_differences(results_of(fake_runs(["gp"]))) is None
    assert critical_differences(results_of(fake_runs(["gp", "wac"], tasks=1))) is None


def test_variants_are_left_out_of_critical_differences_of_many_methods() -> None:
    results = results_of([*fake_runs(["gp", "smfo", "gp+a", "gp+b"]), *fake_runs(["kl"], tasks=2)])
    some, all_methods = critical_differences(results, max_methods=3), critical_differences(results)
    assert some is not None
    assert (set(some.test.methods), some.incomplete, some.variants) == ({"gp", "smfo"}, ("kl",), 2)
    assert all_methods is not None
    assert (len(all_methods.test.methods), all_methods.variants) == (4, 0)


def test_rows_of_methods_are_sorted_with_incomplete_ones_last() -> None:
    results = results_of([*fake_runs(["gp", "smfo", "wac"]), *fake_runs(["kl"], tasks=1)])
    means = mean_regrets(results)
    assert [row.complete for row in means] == [True, True, True, False]
    assert [row.mean for row in means[:3]] == sorted(row.result.area for row in means[:3])
    assert all(row.low <= row.mean <= row.high for row in means)
    rows = differences_from_reference(results, unit=100.0)
    assert [row.complete for row in rows] == [True, True, False]
    assert all(row.worst == max(row.by_task.values()) for row in rows)
    assert [len(row.by_task) for row in rows] == [4, 4, 1]
    assert differences_from_reference(results_of(fake_runs(["wac"]))) == []


def test_the_worst_case_is_over_common_tasks_and_names_the_task() -> None:
    ends = {"gp": {"a": 0.1, "b": 0.4, "c": 0.2}, "smfo": {"d": 0.9}, "wac": {"a": 0.2, "b": 0.3, "d": 0.9}}
    runs = [
        CompletedRun(RunKey("toy", method, task, 0), 0, 0.0, 1.0, np.array([0.9, end]), None, 0.1, "0")
        for method, tasks in ends.items()
        for task, end in tasks.items()
    ]
    (wac,) = differences_from_reference(results_of(runs))
    assert (wac.result.method, wac.worst, wac.worst_task, len(wac.by_task)) == ("wac", pytest.approx(0.1), "a", 2)
