"""`Optimizer`: asks for configurations, is told values. The one stateful class in the numerical path.

State is the run so far, what is pending, and what is believed: models and weights. Every suggestion draws from its own
random stream, numbered by how many trials were told or are pending: same seed and same history, same suggestions.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np

from recollect.errors import FailedTrialWarning, InputError, InputTypeError, NumericalError
from recollect.history.run import Config, Direction, Run, State, Trial, as_number
from recollect.numerics.arrays import BoolArray, FloatArray
from recollect.numerics.threads import single_threaded
from recollect.optimizer.arena import TOO_FAR, make_arena
from recollect.optimizer.belief import Belief, believe
from recollect.optimizer.catalog import method as method_named
from recollect.optimizer.design import design_size, draw_design, learned_design
from recollect.optimizer.explain import Explanation, explain
from recollect.optimizer.frame import Frame, make_frame
from recollect.optimizer.method import WITHOUT_PAST, Method
from recollect.optimizer.past import PastRun, check_resumable, check_usable, gather
from recollect.optimizer.suggest import Choice, Suggestion, first_free, settle, suggest_at_random, suggest_by_model
from recollect.space.identity import row_key
from recollect.space.space import Space, SpaceLike, compile_space
from recollect.transfer.weights import as_count

DESIGN, BELIEF, SUGGEST, LEARN = range(4)
"""Purposes of the random streams."""


@dataclass(frozen=True, slots=True, eq=False)
class _Pending:
    x: FloatArray
    config: Config
    notes: tuple[str, ...]


class Optimizer:
    """Bayesian optimization by ask and tell, starting from what past runs know."""

    def __init__(
        self,
        space: SpaceLike,
        past: Iterable[Run] = (),
        method: str | Method = "rgpe-taf",
        *,
        horizon: int = 50,
        seed: int | None = 0,
        candidates: Sequence[Mapping[str, Any]] | None = None,
        direction: Direction = "minimize",
        run: Run | None = None,
    ) -> None:
        """Prepare to tune over ``space``.

        ``past`` are finished runs on other tasks; without them a method with a model is plain Bayesian optimization,
        one without is random search. ``horizon`` trials are planned in all: until then the influence of past runs
        fades. ``candidates`` limits suggestions to a list. ``run`` is continued. ``seed=None`` takes fresh entropy.
        """
        given = compile_space(space)
        self._method = method_named(method)
        self._horizon = as_count("horizon", horizon, least=1)
        self._entropy = np.random.SeedSequence(None if seed is None else as_count("seed", seed, least=0)).entropy
        self._run = Run(space=given, direction=direction)
        self._past = gather(past, given, direction, self._method)
        check_usable(self._method, given, self._past)
        arena = make_arena(given, self._method, self._past, candidates=candidates, horizon=self._horizon)
        self._arena, self._space = arena, arena.space
        self._open: BoolArray = np.ones(len(arena.where), dtype=bool)
        self._frame: Frame | None = None  # made at the first ask
        self._pending: dict[bytes, _Pending] = {}
        self._rows: list[FloatArray] = []
        self._taken: set[bytes] = set()
        self._design: FloatArray | None = None
        self._spare: FloatArray | None = None
        self._belief: Belief | None = None
        self._stale = True
        self._last: Suggestion | None = None
        self._weighed, self._suggested = np.zeros(1), 0  # sum of weights (k + 1,) over so many suggestions by models
        if run is not None:
            self._resume(run)

    @property
    def space(self) -> Space:
        """The search space given, compiled."""
        return self._arena.given

    @property
    def method(self) -> Method:
        """The method that chooses."""
        return self._method

    @property
    def run(self) -> Run:
        """All trials told so far, as an immutable value."""
        return self._run

    @property
    def best(self) -> Trial | None:
        """The best trial so far, or None while none has succeeded."""
        return self._run.best

    @property
    def pending(self) -> list[Config]:
        """Configurations that were asked for and not told yet."""
        return [dict(entry.config) for entry in self._pending.values()]

    @property
    def past(self) -> tuple[PastRun, ...]:
        """The past runs as they were aligned to the space: what was filled, mapped, dropped, left out."""
        return self._past

    @overload
    def ask(self) -> Config: ...
    @overload
    def ask(self, count: int) -> list[Config]: ...
    def ask(self, count: int | None = None) -> Config | list[Config]:
        """Suggest the next configuration, or a list of ``count`` different ones for parallel evaluation."""
        if count is None:
            with single_threaded():
                return self._ask_one()
        count = as_count("count", count, least=1)
        if self._arena.rows is not None and count > self._open.sum():
            raise self._arena.exhausted(count, self._open)
        with single_threaded():
            return [self._ask_one() for _ in range(count)]

    def tell(self, config: Mapping[str, Any], value: object, *, seconds: float | None = None) -> None:
        """Record what came of a configuration: a number, or FAILED.

        Any configuration of the space may be told, whether asked for or not, in any order, and more than once. A value
        of nan or inf is a failure and gives a warning; a failed configuration is kept and never suggested again.
        """
        if not isinstance(config, Mapping):
            raise InputTypeError(f"tell: the configuration must be a dict, got {type(config).__name__}")
        if value is None:
            raise InputTypeError("tell: expected a number or recollect.FAILED, got None")
        x = self._arena.place(config)
        trial = Trial.of(config, value, where="tell")
        if not trial.ok and value is not State.FAILED:
            message = f"the value {as_number(value, 'tell')} is not finite: the trial is counted as failed"
            warnings.warn(message, FailedTrialWarning, stacklevel=2)
        asked = self._pending.pop(row_key(x), None)
        notes = (() if asked is None else asked.notes) + trial.notes
        if np.isnan(x).all():
            notes = (*notes, TOO_FAR)
        self._record(x, replace(trial, seconds=seconds, notes=notes))

    def expect(self, config: Mapping[str, Any]) -> None:
        """Take note that somebody evaluates a configuration now: it is pending until it is told or cancelled."""
        x = self._arena.place(config)
        key = row_key(x)
        if key not in self._pending:
            self._take(key)
            self._pending[key] = _Pending(x, dict(config), ())

    def cancel(self, config: Mapping[str, Any]) -> None:
        """Take note that a pending configuration will not be evaluated after all: it may be suggested again."""
        key = row_key(self._arena.place(config))
        if self._pending.pop(key, None) is None:
            raise InputError(f"cancel: this configuration is not pending: {dict(config)!r}")
        if key not in {row_key(x) for x in self._rows}:
            self._taken.discard(key)
            if key in self._arena.where:
                self._open[self._arena.where[key]] = True

    def explain(self) -> Explanation:
        """Say what every past run contributes and what drove the last suggestion."""
        mean = self._weighed / self._suggested if self._suggested else None
        return explain(self._method, self._run, self._past, belief=self._belief, last=self._last, mean_weights=mean)

    def _ask_one(self) -> Config:
        if self._arena.rows is not None and not self._open.any():
            raise self._arena.exhausted(1, self._open)
        suggestion = self._choose()
        key = row_key(suggestion.x)
        config = self._arena.config(suggestion.x, key)
        self._take(key)
        self._pending[key] = _Pending(suggestion.x, config, suggestion.notes)
        self._last = suggestion
        return dict(config)

    def _choose(self) -> Suggestion:
        index = len(self._run) + len(self._pending)
        planned = self._from_design(index)
        if planned is not None:
            return planned
        rng = self._stream(SUGGEST, index)
        choice = Choice(self._space, frozenset(self._taken), self._arena.free(self._open), self._failed())
        acquisition = self._method.acquisition
        if acquisition is None:
            return suggest_at_random(choice, "uniform random search", rng)
        if not self._known().any():
            return suggest_at_random(choice, "drawn at random: no trial has succeeded yet", rng)
        try:
            belief = self._believe()
            self._weighed, self._suggested = self._weighed + belief.weights.values, self._suggested + 1
            if belief.misled and (spread := self._spread_out(index)) is not None:
                return spread
            ensemble = belief.ensemble(self._waiting())
            suggestion = suggest_by_model(acquisition, ensemble, choice, search=self._method.search, rng=rng)
        except NumericalError as error:
            note = f"the model could not be used ({error}); drawn at random instead"
            return replace(suggest_at_random(choice, note, rng), notes=(note,))
        return replace(suggestion, notes=suggestion.notes + belief.notes)

    def _from_design(self, index: int) -> Suggestion | None:
        sources = self._learn().sources
        size = design_size(self._method, self._horizon, learned=sources is not None)
        if self._design is None:
            self._design = self._draw_design(size)
        size = min(size, len(self._design))
        learned = self._method.design.kind == "portfolio" and sources is not None
        if index >= size and (not learned or self._known().any()):
            return None
        name = "the portfolio learned from past runs" if learned else "the initial design"
        return self._first_free(self._design, "point {} of " + name)

    def _spread_out(self, index: int) -> Suggestion | None:
        """Return the next of the points that are missing to a design as plain Bayesian optimization starts with."""
        missing = WITHOUT_PAST - index
        if missing <= 0:
            return None
        if self._spare is None:
            rng = self._stream(DESIGN, 1)
            self._spare = draw_design(self._method, self._space, self._candidates(), size=missing, rng=rng)
        return self._first_free(self._spare, "past runs do not order the results clearly better than a coin: exploring")

    def _first_free(self, rows: FloatArray, reason: str) -> Suggestion | None:
        points = rows if self._arena.rows is not None else (settle(self._space, x) for x in rows)
        return first_free(points, self._taken, reason)

    def _draw_design(self, size: int) -> FloatArray:
        """Return the design; a learned one goes on beyond its size, for the case that its first points all fail."""
        rng = self._stream(DESIGN)
        sources = self._learn().sources
        if self._method.design.kind != "portfolio" or sources is None:
            return draw_design(self._method, self._space, self._candidates(), size=size, rng=rng)
        longer = max(size, WITHOUT_PAST)
        return learned_design(self._method, self._space, self._candidates(), sources=sources, size=longer, rng=rng)

    def _learn(self) -> Frame:
        if self._frame is None:
            rng = self._stream(LEARN)
            self._frame = make_frame(self._method, self._space, self._past, horizon=self._horizon, rng=rng)
        return self._frame

    def _believe(self) -> Belief:
        if self._belief is None or self._stale:
            rng = self._stream(BELIEF, len(self._run))
            known = self._known()
            X, y = np.array(self._rows)[known], self._run.y[known[self._succeeded()]]
            self._belief = believe(self._method, self._learn(), X, y, before=self._belief, rng=rng)
            self._stale = False
        return self._belief

    def _succeeded(self) -> BoolArray:
        return np.array([trial.ok for trial in self._run.trials], dtype=bool)

    def _known(self) -> BoolArray:
        """Which trials (t,) a model can use: those that succeeded and lie in the space searched, or close to it."""
        placed = np.array([not np.isnan(x).all() for x in self._rows], dtype=bool)
        return np.asarray(self._succeeded() & placed)

    def _candidates(self) -> FloatArray | None:
        return self._arena.free(np.ones_like(self._open))

    def _waiting(self) -> FloatArray:
        rows = [entry.x for entry in self._pending.values() if not np.isnan(entry.x).all()]
        return np.array(rows).reshape(-1, len(self._space.names))

    def _failed(self) -> FloatArray:
        rows = [x for x, trial in zip(self._rows, self._run.trials, strict=True) if not trial.ok]
        return np.array(rows).reshape(-1, len(self._space.names))

    def _record(self, x: FloatArray, trial: Trial) -> None:
        self._run = self._run.with_trial(trial)
        self._rows.append(x)
        self._take(row_key(x))
        self._stale = self._stale or trial.ok

    def _take(self, key: bytes) -> None:
        self._taken.add(key)
        if key in self._arena.where:
            self._open[self._arena.where[key]] = False

    def _resume(self, run: Run) -> None:
        check_resumable(run, self._run.direction)
        self._run = Run(run.task, space=self._arena.given, direction=run.direction)
        self._arena.given.encode(run.configs)  # all are checked before any is taken
        for trial in run.trials:
            self._record(self._arena.place(trial.config), trial)

    def _stream(self, purpose: int, index: int = 0) -> np.random.Generator:
        return np.random.default_rng(np.random.SeedSequence(self._entropy, spawn_key=(purpose, index)))
