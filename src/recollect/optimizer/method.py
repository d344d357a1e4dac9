"""A method is data: an initial design, a model with a weighting, an acquisition function, a target scaling.

`Method` is a frozen value; ``dataclasses.replace`` makes an ablation of it. The `Optimizer` interprets it. The paper's
section 5.3 describes methods by the same building blocks; the rows of its tables are in `catalog`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from recollect.acquisition.improvement import Acquisition
from recollect.acquisition.local import LocalSearch
from recollect.errors import InputError
from recollect.surrogate.prior import TARGET_PRIOR, Prior
from recollect.surrogate.scaling import Scaling
from recollect.transfer.box import BoxRule
from recollect.transfer.joint import JointModel
from recollect.transfer.sources import SourceFit
from recollect.transfer.weighting import Weighting

DesignKind = Literal["latin-hypercube", "random", "portfolio"]
WITHOUT_PAST = 10
"""Points of the Latin hypercube that replaces a portfolio when there are no past runs."""


@dataclass(frozen=True, slots=True)
class Design:
    """The points evaluated before any model is asked: how they are drawn, and how many (None: all of the horizon)."""

    kind: DesignKind = "latin-hypercube"
    points: int | None = 10

    def __post_init__(self) -> None:
        """Check the number of points."""
        if self.points is not None and self.points < 1:
            raise InputError(f"an initial design needs at least 1 point, got {self.points}")


@dataclass(frozen=True, slots=True)
class TargetModel:
    """How the Gaussian process of the new task is fitted: from scratch, and from the previous optimum on."""

    prior: Prior = TARGET_PRIOR
    restarts: int = 10
    warm_restarts: int = 2

    def __post_init__(self) -> None:
        """Check the number of restarts."""
        if self.restarts < 0 or self.warm_restarts < 0:
            raise InputError(f"restarts must be at least 0, got {self.restarts} and {self.warm_restarts}")


@dataclass(frozen=True, slots=True)
class Method:
    """One way to choose the next configuration.

    ``scaling`` brings the values of different tasks together; ``alone`` is used when there is no past run to combine.
    ``cautious`` protects more against past runs that mislead than the weighting does (see `belief`).
    Without an acquisition function the design is followed to its end and then the space is sampled uniformly. Past runs
    take part through a weighting (an ensemble) or through ``joint`` (one model of all tasks), not both; through the
    design, if it is a portfolio; and through ``box``, which limits the search to where past optima lie.
    """

    name: str
    summary: str
    paper: str
    design: Design = field(default_factory=Design)
    acquisition: Acquisition | None = None
    weighting: Weighting | None = None
    joint: JointModel | None = None
    box: BoxRule | None = None
    scaling: Scaling = "meanvar"
    alone: Scaling = "tail"
    cautious: bool = True
    target: TargetModel = field(default_factory=TargetModel)
    sources: SourceFit = field(default_factory=SourceFit)
    search: LocalSearch = field(default_factory=LocalSearch)

    def __post_init__(self) -> None:
        """Check that the blocks fit together."""
        if self.weighting is not None and self.joint is not None:
            raise InputError(f"method {self.name!r}: past runs are weighted or modelled jointly, not both")

    @property
    def models_past(self) -> bool:
        """Whether the method predicts with models of past runs."""
        return self.weighting is not None or self.joint is not None or self.design.kind == "portfolio"

    @property
    def transfers(self) -> bool:
        """Whether the method looks at past runs at all."""
        return self.models_past or self.box is not None
