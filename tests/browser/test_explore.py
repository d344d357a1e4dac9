"""What a reader does with the page of a run: search, filter, sort, copy, save, open a trial, select trials.

The run is a study of Optuna with finished, failed and pruned trials and intermediate values.
"""

from __future__ import annotations

import csv
import json
import shlex
from ast import literal_eval
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.pages import Opened, figure, wait_until_drawn

from recollect import Memory

pytest.importorskip("plotly", reason="pages embed plotly's script")

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

TRIALS, STEPS = 60, 6
COORDINATES = "What do the best trials have in common?"


def tune(path: Path) -> None:
    """A study of Optuna: every tenth trial fails, bad ones are pruned."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)

    def loss(trial: optuna.Trial) -> float:
        rate, width = trial.suggest_float("lr", 1e-4, 1.0, log=True), trial.suggest_int("width", 8, 256)
        value = 0.0
        for step in range(STEPS):
            value = abs(rate - 0.1) + 1.0 / width + 1.0 / (step + 1)
            trial.report(value, step)
            if trial.should_prune():
                raise optuna.TrialPruned
        if trial.number % 10 == 4:
            raise ValueError("out of memory")
        return value

    pruner = optuna.pruners.MedianPruner(n_startup_trials=5)
    sampler = optuna.samplers.RandomSampler(seed=0)
    study = optuna.create_study(study_name="mlp", storage=f"sqlite:///{path}", sampler=sampler, pruner=pruner)
    study.optimize(loss, n_trials=TRIALS, catch=(ValueError,))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from recollect.report.page import render, write_page
    from recollect.report.run.run_page import run_page

    folder = tmp_path_factory.mktemp("explore")
    tune(folder / "tuning.db")
    write_page(render(run_page(Memory(folder / "tuning.db"), None, "mlp")), folder / "run.html")
    return folder / "run.html"


@pytest.fixture(scope="module")
def data(file: Path) -> Any:
    from recollect.analysis.run_data import read_run_data

    return read_run_data(Memory(file.parent / "tuning.db"), None, "mlp")


@pytest.fixture
def page(opened: Opened) -> Iterator[Page]:
    """The page as it was opened."""
    yield opened.page
    assert opened.messages == []
    opened.page.wait_for_url(lambda url: "#" not in url)  # no panel is open
    opened.page.reload()
    wait_until_drawn(opened.page)


def explorer(page: Page) -> Locator:
    return page.locator(".explorer")


def numbers(page: Page) -> list[int]:
    return [int(text) for text in explorer(page).locator("tbody th").all_text_contents()]


def shown(page: Page) -> str:
    return explorer(page).locator(".bar output").text_content() or ""


def clipboard(page: Page) -> str:
    """Return what was copied: pasted into the search field, since a file may not read the clipboard."""
    field = explorer(page).locator("input[type=search]")
    field.fill("")
    field.focus()
    page.keyboard.press("Control+V")
    return field.input_value()


def test_the_head_has_the_best_trial_and_all_states(page: Page, data: Any) -> None:
    from recollect.analysis.headline import headline

    head, hero = headline(data), page.locator(".hero")
    assert hero.locator(".value").text_content() == f"{head.best_value:.4g}"
    pills = hero.locator(".pill").all_text_contents()
    for state in ("finished", "failed", "pruned"):
        assert head.counts[state] > 0
        assert f"{head.counts[state]} {state}" in pills
    hero.get_by_role("link").click()
    assert page.locator("dialog h3").text_content() == f"Trial {head.best_number}"
    page.keyboard.press("Escape")


def test_the_best_configuration_is_copied_in_three_languages(page: Page, data: Any) -> None:
    best, buttons = data.run.best.config, page.locator(".hero button[data-copy]")
    texts = []
    for number in range(3):
        buttons.nth(number).click()
        buttons.nth(number).get_by_text("Copied").wait_for()
        texts.append(clipboard(page))
    assert json.loads(texts[0]) == best
    arguments = dict(word.removeprefix("--").split("=") for word in shlex.split(texts[1]))
    assert {name: float(value) for name, value in arguments.items()} == best
    assert literal_eval(texts[2]) == best


def test_trials_are_searched_filtered_sorted_and_turned(page: Page, data: Any) -> None:
    part = explorer(page)
    assert numbers(page) == list(range(25))
    part.get_by_label("Next page").click()
    assert numbers(page) == list(range(25, 50))
    field = part.locator("input[type=search]")
    field.fill("lr<0.01")
    rates = {record.number: record.config["lr"] for record in data.records}
    small = [number for number, rate in rates.items() if rate < 0.01]
    assert numbers(page) == small[:25]
    assert shown(page) == f"{len(small)} of {TRIALS} trials"
    field.fill("")
    failed = [record.number for record in data.records if record.state == "failed"]
    part.get_by_label("Show failed trials").click()
    assert numbers(page) == failed
    part.get_by_label("Show all trials").click()
    heading = part.locator("thead button", has_text="value")
    heading.click()
    values = {record.number: record.value for record in data.records if record.value is not None}
    assert [values[number] for number in numbers(page)] == sorted(values.values())[:25]
    heading.click()
    assert [values[number] for number in numbers(page)] == sorted(values.values(), reverse=True)[:25]


def test_columns_can_be_taken_away(page: Page) -> None:
    part = explorer(page)
    part.locator("summary", has_text="Columns").click()
    part.locator(".columns label", has_text="duration").locator("input").uncheck()
    visible = part.locator("thead th:visible").all_text_contents()
    assert "duration" not in visible
    assert {"trial", "state", "value", "lr", "width"} <= set(visible)
    assert part.locator("tbody tr").first.locator("td:visible, th:visible").count() == len(visible)


def test_the_shown_trials_are_saved_as_csv_with_all_digits(page: Page, data: Any, tmp_path: Path) -> None:
    explorer(page).get_by_label("Show pruned trials").click()
    with page.expect_download() as download:
        explorer(page).get_by_text("Download CSV").click()
    download.value.save_as(tmp_path / "trials.csv")
    rows = list(csv.DictReader((tmp_path / "trials.csv").read_text().splitlines()))
    pruned = {record.number: record for record in data.records if record.state == "pruned"}
    assert [int(row["trial"]) for row in rows] == list(pruned)
    assert {row["state"] for row in rows} == {"pruned"}
    assert all(float(row["lr"]) == pruned[int(row["trial"])].config["lr"] for row in rows)
    assert all(float(row["value"]) == pruned[int(row["trial"])].value for row in rows)


def test_every_trial_has_a_panel_with_an_address(page: Page, data: Any) -> None:
    record = next(record for record in data.records if record.state == "failed")
    explorer(page).locator("input[type=search]").fill(f"trial={record.number}")
    explorer(page).locator("tbody th a").first.click()
    panel = page.locator("dialog[open]")
    assert page.url.endswith(f"#trial-{record.number}")
    text = panel.text_content() or ""
    assert f"Trial {record.number}" in text
    assert "failed" in text
    assert f"{STEPS} reports" in text
    panel.get_by_label("Next trial").press("Enter")
    panel.locator("h3", has_text=f"Trial {record.number + 1}").wait_for()
    page.keyboard.press("Escape")
    page.wait_for_url(lambda url: "#" not in url)
    page.goto(f"{page.url}#trial-3")
    page.locator("dialog[open] h3", has_text="Trial 3").wait_for()
    page.keyboard.press("Escape")


def test_a_point_of_a_figure_opens_its_trial(page: Page) -> None:
    plot = figure(page, "How soon were good values found?").locator(".plot")
    plot.scroll_into_view_if_needed()
    x, y, number = plot.evaluate(
        """plot => {
            const trace = plot._fullData.find((own) => own.mode === 'markers'), frame = plot.getBoundingClientRect();
            const { xaxis, yaxis } = plot._fullLayout;
            return [frame.left + xaxis._offset + xaxis.d2p(trace.x[0]),
                    frame.top + yaxis._offset + yaxis.d2p(trace.y[0]), trace.customdata[0][0]];
        }"""
    )
    page.mouse.move(x, y)
    plot.locator(".hoverlayer .hovertext").first.wait_for()
    page.mouse.click(x, y)
    page.locator("dialog[open] h3", has_text=f"Trial {number}").wait_for()
    page.keyboard.press("Escape")


def pale(plot: Locator) -> int:
    return int(
        plot.evaluate("plot => plot._fullData[0].x.filter((value) => value === null || value === undefined).length")
    )


def test_dragging_along_a_row_selects_trials_everywhere(page: Page, data: Any) -> None:
    part = figure(page, COORDINATES)
    plot = part.locator(".plot")
    plot.scroll_into_view_if_needed()
    ends = plot.evaluate(
        """plot => {
            const { xaxis, yaxis } = plot._fullLayout, frame = plot.getBoundingClientRect();
            const row = plot._fullLayout.yaxis.ticktext.indexOf('lr'), y = frame.top + yaxis._offset + yaxis.c2p(row);
            return [0.0, 0.5].map((at) => [frame.left + xaxis._offset + xaxis.c2p(at), y]);
        }"""
    )
    page.mouse.move(*ends[0])
    page.mouse.down()
    page.mouse.move(*ends[1], steps=4)
    page.mouse.up()
    part.locator(".brush-state", has_text="selected").wait_for()
    expected = sum(1e-4 < record.config["lr"] < 1e-2 for record in data.records if record.state != "running")
    chosen = int((part.locator(".brush-state").text_content() or "0").split()[0])
    assert abs(chosen - expected) <= 1, "a pixel at the edge"
    page.wait_for_function(
        "n => document.querySelector('.explorer output').textContent.startsWith(n)", arg=f"{chosen} of"
    )
    assert pale(plot) == TRIALS - chosen
    explorer(page).get_by_text("Clear the selection").click()
    assert shown(page) == f"{TRIALS} trials"
    assert pale(plot) == 0


def test_trials_are_selected_with_the_keyboard_as_well(page: Page) -> None:
    part = figure(page, COORDINATES)
    part.locator("summary", has_text="Select ranges").press("Enter")
    slider = part.get_by_label("lr: highest")
    slider.focus()
    for _ in range(10):
        page.keyboard.press("ArrowLeft")
    part.locator(".brush-state", has_text="selected").wait_for()
    assert "of 60 trials" in shown(page)
    part.get_by_text("Select all trials").press("Enter")
    assert shown(page) == f"{TRIALS} trials"


def test_axes_and_views_are_switched(page: Page) -> None:
    part = figure(page, "How soon were good values found?")
    kind = "plot => plot._fullLayout.yaxis.type"
    before = part.locator(".plot").evaluate(kind)
    button = part.get_by_text("Log axis")
    assert button.get_attribute("aria-pressed") == str(before == "log").lower()
    button.press("Enter")
    other = {"log": "linear", "linear": "log"}[before]
    page.wait_for_function(
        "([plot, kind]) => plot._fullLayout.yaxis.type === kind", arg=[part.locator(".plot").element_handle(), other]
    )


@pytest.mark.parametrize("form", ["PNG", "SVG"])
def test_figures_are_saved(page: Page, tmp_path: Path, form: str) -> None:
    part = figure(page, "How soon were good values found?")
    with page.expect_download() as download:
        part.get_by_label(f"Save this figure as {form}").click()
    download.value.save_as(tmp_path / "figure")
    content = (tmp_path / "figure").read_bytes()
    assert content.startswith(b"\x89PNG" if form == "PNG" else b"<svg")
    assert len(content) > 5000


def test_pruned_and_failed_trials_are_marked_in_all_figures(page: Page) -> None:
    for question in (
        "How soon were good values found?",
        COORDINATES,
        "How did trials develop?",
        "Which worker ran what",
    ):
        keys = " ".join(figure(page, question).locator(".keys button").all_text_contents())
        assert "pruned" in keys, question
        assert "failed" in keys, question
