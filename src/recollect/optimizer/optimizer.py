"""`Optimizer`: suggests configurations and learns from their values. The one stateful class in the numerical path.

Its state is the run so far, what is pending, and the fitted model. Every suggestion draws from its own random stream,
numbered by how many trials are finished or pending: the same seed and the same calls give the same suggestions.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from recollect.errors import ExhaustedError, FailedTrialWarning, InputError, InputTypeError, NumericalError
from recollect.numerics.arrays import BoolArray, FloatArray, row_key
from recollect.numerics.linalg import single_threaded
from recollect.optimizer import catalog
from recollect.optimizer.default_method import DEFAULT_METHOD
from recollect.optimizer.design import design_size, draw_design, planned_design
from recollect.optimizer.explanation import Explanation, WeightSum, explain
from recollect.optimizer.history import History, check_resumed
from recollect.optimizer.method import POINTS_WITHOUT_PAST, Method
from recollect.optimizer.model import FittedModel, TransferContext, fit_model, make_transfer_context
from recollect.optimizer.past_runs import (
    PastRun,
    align_past_runs,
    check_method,
    leave_out_all,
    list_of_runs,
    screen_past_runs,
    source_data,
    warn_about_integers,
)
from recollect.optimizer.search_region import TOO_FAR, make_search_region
from recollect.optimizer.suggestion import Suggestion, Untried, round_trip, suggest_at_random, suggest_by_model
from recollect.runs.copies import copy_run, copy_trial
from recollect.runs.run import Config, Direction, Run, State, Trial
from recollect.space.space import Space, SpaceLike, compile_space
from recollect.transfer.screening import Choice
from recollect.transfer.sources import Sources
from recollect.validation import as_count, as_number

DESIGN, MODEL, SUGGEST, TRANSFER = range(4)  # purposes of the random streams


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    x: FloatArray
    config: Config
    notes: tuple[str, ...]


class Optimizer:
    """Bayesian optimization by ask and tell, with a warm start from past runs.

    Threads may share an optimizer: its methods wait for each other. It can be pickled and copied at any time; the copy
    is independent of the original and, given the same results, makes the same suggestions.

    Examples:
        >>> optimizer = recollect.Optimizer({"lr": (1e-5, 1e-1, "log"), "depth": (1, 8)}, past=memory.past(space))
        >>> for _ in range(12):
        ...     config = optimizer.ask()
        ...     optimizer.tell(config, train(**config))
        >>> optimizer.best.config
    """

    def __init__(
        self,
        space: SpaceLike,
        past: Iterable[Run] = (),
        method: str | Method = DEFAULT_METHOD,
        *,
        horizon: int = 50,
        seed: int | None = 0,
        candidates: Sequence[Mapping[str, Any]] | None = None,
        direction: Direction = "minimize",
        run: Run | None = None,
    ) -> None:
        """Prepare to tune over a search space.

        Args:
            space: The search space, in any notation that `compile_space` understands.
            past: Runs on other tasks. Without them a method with a model is plain Bayesian optimization, and one
                without a model is random search. Runs that cannot be used are left out with a warning. If there
                are more than a few hundred, each suggestion uses a selection of them (`Method.screening`).
            method: Name of a method, see `methods`, or a `Method`.
            horizon: Number of trials planned in all; ranking weights drop past runs more readily towards it.
            seed: Seed of all random numbers; None takes fresh entropy.
            candidates: Limits suggestions to these configurations.
            direction: "minimize" or "maximize".
            run: An earlier run of this task, which is resumed.

        Raises:
            SpaceError: If the search space is not valid.
            InputError: If an argument is out of range, or a run has the other direction.
            InputTypeError: If an argument has the wrong type.
            MissingExtraError: If the method needs a library that is not installed.
        """
        self._lock = threading.RLock()  # held by every method that reads or changes several attributes
        compiled = compile_space(space)
        own = Run(space=compiled, direction=direction)  # which checks the direction
        self._method = catalog.method(method)
        self._horizon = as_count("horizon", horizon, minimum=1)
        self._entropy = np.random.SeedSequence(None if seed is None else as_count("seed", seed, minimum=0)).entropy
        self._past = align_past_runs(runs := list_of_runs(past), compiled, direction, self._method)
        if not isinstance(space, Space):  # as the user wrote it
            warn_about_integers(runs, compiled)
        check_method(self._method, compiled, self._past)
        if not source_data(self._past):
            self._method = catalog.without_past(self._method)
        method, horizon = self._method, self._horizon
        self._region = make_search_region(compiled, method, self._past, candidates=candidates, horizon=horizon)
        self._space = self._region.space
        self._free: BoolArray = np.ones(len(self._region.index), dtype=bool)  # candidates that are not taken
        self._context: TransferContext | None = None  # created by the first ask
        self._screened = screen_past_runs(self._past, self._space, method, rng=self._stream(TRANSFER, 1))
        self._pending: dict[bytes, _Pending] = {}
        self._history = History(own, len(self._space.names))
        self._taken: set[bytes] = set()
        self._design: FloatArray | None = None
        self._exploration: FloatArray | None = None
        self._model: FittedModel | None = None
        self._stale, self._weights = True, WeightSum()  # the weights of all suggestions by models
        self._last: Suggestion | None = None
        if run is not None:
            self._resume(run)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the lock, for `pickle` and `copy`; what is changed in place is copied."""
        with self._lock:
            return {
                name: value.copy() if isinstance(value, dict | set | np.ndarray | History) else value
                for name, value in vars(self).items()
                if name != "_lock"
            }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled or copied state, with a lock of its own."""
        vars(self).update(state, _lock=threading.RLock())

    @property
    def space(self) -> Space:
        """The search space, compiled."""
        return self._region.full_space

    @property
    def method(self) -> Method:
        """The method in use."""
        return self._method

    @property
    def run(self) -> Run:
        """A copy of all finished trials."""
        return copy_run(self._history.run)

    @property
    def best(self) -> Trial | None:
        """A copy of the best trial so far, or None while none has succeeded."""
        return None if (best := self._history.best) is None else copy_trial(best)

    @property
    def pending(self) -> list[Config]:
        """Configurations that were suggested or announced and have no result yet."""
        with self._lock:
            return [dict(entry.config) for entry in self._pending.values()]

    @property
    def past(self) -> tuple[PastRun, ...]:
        """The past runs as they were aligned to the space, and why some are left out."""
        return self._past

    @overload
    def ask(self) -> Config: ...
    @overload
    def ask(self, count: int) -> list[Config]: ...
    def ask(self, count: int | None = None) -> Config | list[Config]:
        """Suggest the next configuration, or several different ones for parallel evaluation.

        Args:
            count: How many configurations to suggest; None suggests one.

        Returns:
            A configuration, or a list of ``count`` configurations.

        Raises:
            ExhaustedError: If fewer configurations are left.
        """
        number = 1 if count is None else as_count("count", count, minimum=1)
        with self._lock, single_threaded():
            if self._region.candidates is not None and number > self._free.sum():
                raise self._region.exhausted(number, self._free)
            configs = self._ask_several(number)
            if self._screened is not None:
                self._screened.fit_behind(*self._history.modelled())
        return configs[0] if count is None else configs

    def tell(self, config: Mapping[str, Any], value: object, *, seconds: float | None = None) -> None:
        """Record the result of a configuration.

        Any configuration of the space may be recorded, whether it was suggested or not, in any order and more than
        once. A value of nan or inf is a failure and gives a warning. A failed configuration is never suggested again.

        Args:
            config: The configuration that was evaluated.
            value: Its value, a number, or `FAILED`.
            seconds: How long the evaluation took.

        Raises:
            ConfigError: If the configuration does not belong to the space.
            InputTypeError: If the configuration is not a dict, or the value is not a number.
        """
        if not isinstance(config, Mapping):
            raise InputTypeError(f"tell: the configuration must be a dict, got {type(config).__name__}")
        if value is None:
            raise InputTypeError("tell: expected a number or recollect.FAILED, got None")
        x = self._region.encode(config)
        trial = replace(Trial.of(config, value, where="tell"), seconds=seconds)
        if not trial.ok and value is not State.FAILED:
            message = f"the value {as_number(value, 'tell')} is not finite: the trial counts as failed"
            warnings.warn(message, FailedTrialWarning, stacklevel=2)
        with self._lock:
            pending = self._pending.pop(self._region.key(x, config), None)
            notes = (() if pending is None else pending.notes) + trial.notes
            self._record(x, replace(trial, notes=notes + ((TOO_FAR,) if np.isnan(x).all() else ())))

    def expect(self, config: Mapping[str, Any]) -> None:
        """Announce that a configuration is being evaluated elsewhere.

        It is pending, and not suggested, until `tell` or `cancel` is called with it.

        Args:
            config: The configuration.

        Raises:
            ConfigError: If the configuration does not belong to the space.
        """
        x = self._region.encode(config)
        key = self._region.key(x, config)
        with self._lock:
            if key not in self._pending:
                self._take(key)
                self._pending[key] = _Pending(x, dict(config), ())

    def cancel(self, config: Mapping[str, Any]) -> None:
        """Withdraw a pending configuration that will not be evaluated; it may be suggested again.

        Args:
            config: The configuration.

        Raises:
            InputError: If the configuration is not pending.
        """
        key = self._region.key(self._region.encode(config), config)
        with self._lock:
            if self._pending.pop(key, None) is None:
                raise InputError(f"cancel: this configuration is not pending: {dict(config)!r}")
            if key not in self._history:
                self._taken.discard(key)
                if key in self._region.index:
                    self._free[self._region.index[key]] = True

    def explain(self) -> Explanation:
        """Explain the last suggestion and what every past run contributes.

        Returns:
            The explanation as data; ``print`` shows it as a short text.
        """
        with self._lock:
            return explain(
                self._method, self._history, self._past, model=self._model, last=self._last, weights=self._weights
            )

    def _ask_several(self, count: int) -> list[Config]:
        configs: list[Config] = []
        try:
            configs.extend(self._ask_one() for _ in range(count))
        except ExhaustedError:  # none is suggested
            for config in configs:
                self.cancel(config)
            raise
        return configs

    def _ask_one(self) -> Config:
        suggestion = self._choose()
        key = row_key(suggestion.x)
        config = self._region.config(suggestion.x, key)
        self._take(key)
        self._pending[key] = _Pending(suggestion.x, config, suggestion.notes)
        self._last = suggestion
        return dict(config)

    def _choose(self) -> Suggestion:
        index = len(self._history) + len(self._pending)
        if (planned := self._from_design(index)) is not None:
            return planned
        rng = self._stream(SUGGEST, index)
        untried = Untried(self._space, self._taken, self._region.choices(self._free), self._history.failed)
        acquisition = self._method.acquisition
        if acquisition is None:
            return suggest_at_random(untried, "uniform random search", rng)
        if not self._history.can_be_modelled():
            return suggest_at_random(untried, "drawn at random: no trial has succeeded yet", rng)
        try:
            model = self._fit_model()
            self._weights = self._weights.plus(model.weights.values)
            if model.no_useful_source and (point := self._explore(index)) is not None:
                return point
            ensemble = model.ensemble(self._pending_rows())
            suggestion = suggest_by_model(acquisition, ensemble, untried, search=self._method.search, rng=rng)
        except NumericalError as error:
            note = f"the model could not be used ({error}); drawn at random instead"
            return replace(suggest_at_random(untried, note, rng), notes=(note,))
        return replace(suggestion, notes=suggestion.notes + model.notes)

    def _from_design(self, index: int) -> Suggestion | None:
        sources = self._transfer_context().sources
        size = design_size(self._method, self._horizon, learned=sources is not None)
        if self._design is None:
            self._design = self._draw_design(size)
        size = min(size, len(self._design))
        learned = self._method.design.kind == "portfolio" and sources is not None
        if index >= size and (not learned or self._history.can_be_modelled()):
            return None
        name = "the portfolio learned from past runs" if learned else "the initial design"
        return self._first_untaken(self._design, "point {} of " + name)

    def _explore(self, index: int) -> Suggestion | None:
        """Return the next of the points of a Latin hypercube that complete the first ten trials."""
        if (missing := POINTS_WITHOUT_PAST - index) <= 0:
            return None
        if self._exploration is None:
            rng = self._stream(DESIGN, 1)
            self._exploration = draw_design(self._method, self._space, self._all_candidates(), size=missing, rng=rng)
        reason = "exploring: past runs do not order the results better than chance"
        return self._first_untaken(self._exploration, reason)

    def _first_untaken(self, rows: FloatArray, reason: str) -> Suggestion | None:
        """Return the first row that is not taken, None if all are; ``{}`` in the reason becomes its number."""
        points = rows if self._region.candidates is not None else (round_trip(self._space, x) for x in rows)
        untaken = ((number, x) for number, x in enumerate(points, start=1) if row_key(x) not in self._taken)
        return next((Suggestion(x, reason.format(number)) for number, x in untaken), None)

    def _draw_design(self, size: int) -> FloatArray:
        context = self._transfer_context()
        if self._screened is not None and context.choice is not (first := self._screened.first)[0]:
            context = self._make_context(first)
        learned, rng = context.prior or context.sources, self._stream(DESIGN)
        return planned_design(self._method, self._space, self._all_candidates(), learned=learned, size=size, rng=rng)

    def _transfer_context(self) -> TransferContext:
        chosen = None if self._screened is None else self._screened.given(*self._history.modelled())
        if self._context is None or (chosen is not None and self._context.choice is not chosen[0]):
            self._context = self._make_context(chosen)
            self._weights = replace(self._weights, choice=self._context.choice)
        return self._context

    def _make_context(self, chosen: tuple[Choice, Sources] | None) -> TransferContext:
        rng, horizon = self._stream(TRANSFER), self._horizon
        context = make_transfer_context(self._method, self._region, self._past, chosen=chosen, horizon=horizon, rng=rng)
        if context.nothing_in_common:
            self._past, self._method = leave_out_all(self._past), catalog.without_past(self._method)
        return context

    def _fit_model(self) -> FittedModel:
        if self._model is None or self._stale:
            rng = self._stream(MODEL, len(self._history))
            context = self._transfer_context()
            model = fit_model(self._method, context, *self._history.modelled(), previous=self._model, rng=rng)
            self._model = replace(model, choice=context.choice)
            self._stale = False
        return self._model

    def _all_candidates(self) -> FloatArray | None:
        return self._region.choices(np.ones_like(self._free))

    def _pending_rows(self) -> FloatArray:
        rows = [entry.x for entry in self._pending.values() if not np.isnan(entry.x).all()]
        return np.array(rows).reshape(-1, len(self._space.names))

    def _record(self, x: FloatArray, trial: Trial) -> None:
        self._history.append(x, trial, key := self._region.key(x, trial.config))
        self._take(key)
        self._stale = self._stale or trial.learned_value is not None

    def _take(self, key: bytes) -> None:
        self._taken.add(key)
        if key in self._region.index:
            self._free[self._region.index[key]] = False

    def _resume(self, run: Run) -> None:
        check_resumed(run, self.space, self._history.direction)
        self._history = History(Run(run.task, space=self.space, direction=run.direction), len(self._space.names))
        for trial in run.trials:
            self._record(self._region.encode_finished(trial), trial)

    def _stream(self, purpose: int, index: int = 0) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(purpose, index)))
