"""A method is data: an initial design, a model with a weighting, an acquisition function, a scaling of the values.

`Method` is a frozen value; ``dataclasses.replace`` creates a variant of it. The `Optimizer` interprets it. The paper's
section 5.3 describes methods by the same building blocks; the rows of its tables are in `catalog`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from recollect.acquisition.functions import Acquisition
from recollect.acquisition.gradient_search import GradientSearch
from recollect.acquisition.maximize import LocalSearch
from recollect.errors import InputError, InputTypeError
from recollect.surrogate.prior import TARGET_PRIOR, Prior
from recollect.surrogate.scaling import Scaling
from recollect.transfer.joint import JointModel
from recollect.transfer.screening import Screening
from recollect.transfer.search_box import BoxRule
from recollect.transfer.sources import SourceFit
from recollect.transfer.task_prior import TaskPrior
from recollect.transfer.weighting.base import Weighting

POINTS_WITHOUT_PAST = 10  # of the Latin hypercube that replaces a portfolio when there are no past runs


@dataclass(frozen=True, slots=True)
class Design:
    """The points evaluated before any model is used.

    "sobol" is the default configuration followed by points of a scrambled Sobol sequence; a portfolio is learned from
    past runs.
    """

    kind: Literal["latin-hypercube", "sobol", "random", "portfolio"] = "latin-hypercube"
    points: int | None = 10  # None means all of the horizon

    def __post_init__(self) -> None:
        """Check the number of points."""
        if self.points is not None and self.points < 1:
            raise InputError(f"an initial design needs at least 1 point, got {self.points}")


@dataclass(frozen=True, slots=True)
class TargetModel:
    """How the Gaussian process of the new task is fitted."""

    prior: Prior = TARGET_PRIOR
    restarts: int = 10  # random restarts of a fit from scratch
    warm_restarts: int = 2  # random restarts of a fit that starts from the previous optimum
    always_fit: int | None = None  # up to this many observations, each refits the hyperparameters; None: always
    growth: float = 0.05  # beyond that, they are fitted again when the observations have grown by this part
    max_fit_points: int | None = None  # hyperparameters are fitted to at most this many observations; None: to all

    def __post_init__(self) -> None:
        """Check the numbers."""
        limits = [limit for limit in (self.always_fit, self.max_fit_points) if limit is not None]
        if self.growth <= 0 or min(limits, default=2) < 2:
            got = f"{self.growth}, {self.always_fit} and {self.max_fit_points}"
            raise InputError(f"expected growth > 0, and always_fit and max_fit_points >= 2, got {got}")
        if self.restarts < 0 or self.warm_restarts < 0:
            raise InputError(f"restarts must be at least 0, got {self.restarts} and {self.warm_restarts}")

    def needs_fit(self, before: int, now: int) -> bool:
        """Return whether hyperparameters are fitted again after ``now`` observations, given those after ``before``."""
        if self.always_fit is None or now <= self.always_fit:
            return True
        step = math.log1p(self.growth)
        return math.floor(math.log(now) / step) > math.floor(math.log(before) / step)


PROTOCOLS = {
    "acquisition": ("is_mixture", "prepare"),
    "weighting": ("allows_guard", "prepare"),
    "joint": ("check", "prepare"),
}
"""Blocks that may be of any class, each with the members that it must have."""
BLOCKS: dict[str, Any] = {
    "design": Design,
    "prior": TaskPrior | None,
    "box": BoxRule | None,
    "target": TargetModel,
    "sources": SourceFit,
    "screening": Screening,
    "search": LocalSearch | GradientSearch,
}
"""All other blocks, each with its class."""
EXPECTED = {
    "acquisition": "an acquisition function such as recollect.acquisition.functions.ExpectedImprovement()",
    "weighting": "a weighting such as recollect.transfer.weighting.ranking_weights.RankingWeighting()",
    "joint": "a joint model such as recollect.transfer.joint.MultiTaskModel()",
    **{name: f"a {getattr(kind, '__name__', kind)}" for name, kind in BLOCKS.items()},
}


@dataclass(frozen=True, slots=True)
class Method:
    """One way to choose the next configuration.

    Past runs take part through one of a weighting (an ensemble), a joint model of all tasks and a prior; through the
    design, if it is a portfolio; and through a box, which limits the search to where past optima lie.

    Examples:
        >>> few_restarts = dataclasses.replace(recollect.method("rgpe-taf"), target=TargetModel(restarts=2))
        >>> optimizer = recollect.Optimizer(space, past, few_restarts)

    Attributes:
        name: Name of the method, as in `recollect.methods`.
        summary: What it does, in one line.
        paper: Where the paper describes it.
        design: The points evaluated first.
        acquisition: What is maximized after the design; None samples the space uniformly.
        weighting: How past runs are weighed in an ensemble.
        joint: A model of all tasks together.
        prior: A prior of the new task's function that is estimated from past runs.
        box: Limits the search to where past optima lie.
        scaling: How values of different tasks are brought to one scale.
        target_only_scaling: How values are scaled while no past run has a weight.
        negative_transfer_guard: Whether past runs that do not help are dropped beyond what the weighting drops (see
            `recollect.optimizer.model`).
        target: How the model of the new task is fitted.
        sources: How the models of past runs are fitted.
        screening: How many past runs take part in a suggestion (see `recollect.transfer.screening`). A joint model
            always uses all.
        search: How the acquisition function is maximized.
    """

    name: str
    summary: str
    paper: str
    design: Design = field(default_factory=Design)
    acquisition: Acquisition | None = None
    weighting: Weighting | None = None
    joint: JointModel | None = None
    prior: TaskPrior | None = None
    box: BoxRule | None = None
    scaling: Scaling = "meanvar"
    target_only_scaling: Scaling = "tail"
    negative_transfer_guard: bool = True
    target: TargetModel = field(default_factory=TargetModel)
    sources: SourceFit = field(default_factory=SourceFit)
    screening: Screening = field(default_factory=Screening)
    search: LocalSearch | GradientSearch = field(default_factory=LocalSearch)

    def __post_init__(self) -> None:
        """Check that the blocks are what they should be and fit together."""
        for name, members in PROTOCOLS.items():
            block = getattr(self, name)
            if block is not None and (isinstance(block, type) or not all(hasattr(block, member) for member in members)):
                raise InputTypeError(f"method {self.name!r}: {name} must be {EXPECTED[name]} or None, got {block!r}")
        for name, kind in BLOCKS.items():
            if not isinstance(getattr(self, name), kind):
                got = getattr(self, name)
                raise InputTypeError(f"method {self.name!r}: {name} must be {EXPECTED[name]}, got {got!r}")
        for name in ("scaling", "target_only_scaling"):
            if getattr(self, name) not in get_args(Scaling):
                expected = ", ".join(map(repr, get_args(Scaling)))
                raise InputError(f"method {self.name!r}: {name} must be one of {expected}, got {getattr(self, name)!r}")
        if sum(part is not None for part in (self.weighting, self.joint, self.prior)) > 1:
            raise InputError(f"method {self.name!r}: give one of a weighting, a joint model and a prior, not several")

    @property
    def models_past(self) -> bool:
        """Whether the method uses models of past runs."""
        modelled = self.weighting is not None or self.joint is not None or self.prior is not None
        return modelled or self.design.kind == "portfolio"

    @property
    def transfers(self) -> bool:
        """Whether the method uses past runs at all."""
        return self.models_past or self.box is not None
