"""Notes on trials: what is written is what is read, and what all of them say together."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recollect import Explanation, Influence
from recollect.optimizer.explanation import PriorInfluence
from recollect.tuning.suggestion_notes import influence_note, read_note, with_recorded_weights


def explained(weights: dict[str, float], *, prior: PriorInfluence | None = None) -> Explanation:
    past = tuple(
        Influence(task, 9, used=True, weight=weight, dropped=False, share=weight, mean_weight=0.1, coefficient=-weight)
        for task, weight in weights.items()
    )
    own = 1.0 - sum(weights.values())
    target = Influence("(this task)", 5, used=True, weight=own, mean_weight=0.7)
    return Explanation("m", 5, 0, 1.0, "why", 2.0, 0.5, target, past, (), prior=prior)


def test_what_is_noted_is_read() -> None:
    prior = PriorInfluence(0.6, 0.1, 0.3, 4, 20)
    note = read_note(json.loads(json.dumps(influence_note(explained({"a": 0.6, "b": 0.1}, prior=prior)))))
    assert note is not None
    assert (note.reason, note.expected) == ("why", (2.0, 0.5))
    assert note.target_weight == pytest.approx(0.3)
    assert note.source_weights == note.shares == {"a": 0.6, "b": 0.1}
    assert note.coefficients == {"a": -0.6, "b": -0.1}
    assert note.prior is not None
    assert (note.prior.alike, note.prior.reversed, note.prior.misranked, note.prior.pairs) == (0.6, 0.1, 4, 20)
    assert note.prior.own_model == pytest.approx(0.3)
    plain = read_note(influence_note(explained({"a": 0.6})))
    assert plain is not None
    assert plain.prior is None


@pytest.mark.parametrize(
    "stored",
    [
        None, 3, [], {"alike": 0.5}, {"alike": "x", "reversed": 0.1, "misranked": 1, "pairs": 2},
        {"alike": 0.9, "reversed": 0.9, "misranked": 1, "pairs": 2}, {"alike": 0.5, "reversed": 0.1, "misranked": 1},
    ],
)  # fmt: skip
def test_anything_else_is_no_prior(stored: Any) -> None:
    note = read_note({"reason": "why", "target": 0.5, "past": {"a": 0.5}, "prior": stored, "coefficients": stored})
    assert note is not None
    assert note.prior is None


def test_mean_weights_are_those_of_the_notes_and_the_prior_is_the_last_one() -> None:
    priors = [PriorInfluence(0.5, 0.0, 0.5, 1, 6), PriorInfluence(0.8, 0.1, 0.1, 2, 12)]
    notes = [
        read_note(influence_note(explained(weights, prior=prior)))
        for weights, prior in zip(({"a": 0.4, "b": 0.0}, {"a": 0.8, "b": 0.1}), priors, strict=True)
    ]
    found = with_recorded_weights(explained({"a": 0.0, "b": 0.0}, prior=priors[0]), [None, *notes])
    assert [entry.mean_weight for entry in found.past] == pytest.approx([0.6, 0.05])
    assert found.target.mean_weight == pytest.approx(0.35)
    assert found.prior is not None
    assert (found.prior.alike, found.prior.pairs) == (0.8, 12)


def test_without_notes_or_with_equal_names_an_explanation_stays_as_it_is() -> None:
    given = explained({"a": 0.4})
    assert with_recorded_weights(given, [None, read_note({"reason": "design"})]) is given
    twins = Explanation("m", 5, 0, 1.0, "why", None, None, given.target, (*given.past, *given.past), ())
    assert with_recorded_weights(twins, [read_note(influence_note(given))]) is twins


def test_past_runs_with_the_same_name_count_together() -> None:
    given = explained({"a": 0.25})
    twins = Explanation("m", 5, 0, 1.0, "why", None, None, given.target, (*given.past, *given.past), ())
    note = read_note(influence_note(twins))
    assert note is not None
    assert note.source_weights == note.shares == {"a": 0.5}
