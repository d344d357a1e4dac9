"""What the model predicted beside what was seen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tests.helpers.example_runs import run_data, values_only

from recollect import FAILED
from recollect.analysis.predictions import predictions
from recollect.tuning.suggestion_notes import SuggestionNote


def test_predictions_of_trials_with_a_value_are_compared_with_it() -> None:
    notes = [SuggestionNote("why", expected=pair) for pair in ((1.0, 0.5), (2.0, 0.1), (3.0, 1.0), (0.0, 1.0))]
    data = replace(
        run_data(values_only([2.0, 2.3, FAILED, 1.0, 5.0]), stored_numbers=(0, 3, 4, 7, 8)), notes=(*notes, None)
    )
    found = predictions(data)
    assert found is not None
    np.testing.assert_array_equal(found.trials, [0, 3, 7])
    np.testing.assert_array_equal(found.means, [1.0, 2.0, 0.0])
    np.testing.assert_array_equal(found.values, [2.0, 2.3, 1.0])
    assert found.within == 2, "the second one is three standard deviations away"


def test_two_predictions_say_nothing() -> None:
    notes = (SuggestionNote("why", expected=(1.0, 0.5)),) * 2
    assert predictions(replace(run_data(values_only([1.0, 2.0, 3.0])), notes=(*notes, None))) is None
