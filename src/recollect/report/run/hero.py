"""The head of a run's page: the best value, what past runs brought, and the best configuration, to copy."""

from __future__ import annotations

from collections.abc import Mapping

from recollect.analysis.config_text import config_arguments, config_json, config_python
from recollect.analysis.headline import Headline, PastUse, TransferGain
from recollect.analysis.trial_records import STATES, RecordState
from recollect.report.formatting import number_text, param_text, printable
from recollect.report.html import Html, tag
from recollect.runs.run import Config

WITHOUT_PAST: Mapping[PastUse, tuple[str, str]] = {
    "unknown": ("Not recorded", "This study does not say whether it learned from past runs."),
    "ignored": ("Not used", "The method of this run does not use past runs."),
    "none": ("No past runs yet", "The next run of this problem can learn from this one."),
    "used": ("Too early to say", "There are no values yet that can be compared with those of past runs."),
}
MAX_VERDICT = 400  # characters


def hero(head: Headline, details: Html) -> Html:
    """Return the answer at once; details: what stands behind "More about this run"."""
    cards = [_best_card(head, details), _gain_card(head)]
    if head.best_config is not None:
        cards.append(config_card("Best configuration", head.best_config))
    return tag("div", {"class": "hero"}, *cards)


def _best_card(head: Headline, details: Html) -> Html:
    value = tag("p", {"class": "value"}, "none yet" if head.best_value is None else number_text(head.best_value))
    label = "Best value" if head.best_number is None else "Best value, found in "
    link = () if head.best_number is None else (_trial_link(head.best_number),)
    several = sum(map(bool, head.counts.values())) > 1  # otherwise the state says it all
    pills = [tag("li", {"class": "pill"}, head.status), *(_state_pills(head.counts) if several else ())]
    title = tag("p", {"class": "label"}, label, *link)
    return tag("div", {"class": "card"}, title, value, tag("ul", {"class": "pills"}, *pills), details)


def number_card(label: str, number: str, counts: Mapping[RecordState, int]) -> Html:
    """Return a card with a large number; counts: of trials by state."""
    pills = tag("ul", {"class": "pills"}, *_state_pills(counts)) if counts else ""
    return tag(
        "div", {"class": "card"}, tag("p", {"class": "label"}, label), tag("p", {"class": "value"}, number), pills
    )


def _state_pills(counts: Mapping[RecordState, int]) -> list[Html]:
    dot = tag("span", {"class": "dot"})
    states = [(state, counts[state]) for state in STATES if counts.get(state)]
    return [tag("li", {"class": f"pill state-{state}"}, dot, f"{count:,} {state}") for state, count in states]


def _trial_link(number: int) -> Html:
    return tag("a", {"href": f"#trial-{number}"}, f"trial {number}")


def _gain_card(head: Headline) -> Html:
    title, gain = tag("p", {"class": "label"}, "Did past runs help?"), head.gain
    verdict = tag("p", {"class": "verdict"}, printable(head.verdict, MAX_VERDICT)) if head.verdict else ""
    if gain is None:
        answer, reason = WITHOUT_PAST[head.past_use]
        said, aside = tag("p", {"class": "said"}, answer), tag("p", {"class": "aside"}, reason)
        return tag("div", {"class": "card"}, title, said, aside, verdict)
    summary = tag("summary", {}, "How this was computed")
    more = tag("details", {}, summary, tag("p", {"class": "aside"}, gain.explanation))
    sure = tag("p", {"class": "aside"}, f"{gain.uncertainty[0].upper()}{gain.uncertainty[1:]}.")
    said = tag("p", {"class": "said"}, *_emphasized(gain))
    return tag("div", {"class": "card"}, title, said, sure, verdict, more)


def _emphasized(gain: TransferGain) -> list[Html | str]:
    """Return the sentence with its numbers set off."""
    words: list[Html | str] = []
    for word in f"{gain.sentence}.".split(" "):
        digits = word.rstrip(".")
        number = tag("b", {}, digits)
        words += [number, word[len(digits) :], " "] if digits.isdigit() else [f"{word} "]
    return words


def config_card(label: str, config: Config) -> Html:
    """Return a card with a configuration, to copy."""
    pairs = [
        part
        for name, value in config.items()
        for part in (tag("dt", {}, printable(name)), tag("dd", {}, param_text(value)))
    ]
    settings = tag("dl", {"class": "settings", "tabindex": "0", "aria-label": label}, *pairs)
    return tag("div", {"class": "card"}, tag("p", {"class": "label"}, label), settings, copy_buttons(config))


def copy_buttons(config: Config) -> Html:
    """Return buttons that copy a configuration with all its digits."""
    texts = {"JSON": config_json(config), "Command line": config_arguments(config), "Python": config_python(config)}
    buttons = [
        tag("button", {"type": "button", "class": "button", "data-copy": text}, label) for label, text in texts.items()
    ]
    return tag("div", {"class": "copies"}, "Copy as", *buttons)
