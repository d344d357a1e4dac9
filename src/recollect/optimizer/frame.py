"""What stays the same during a run: the space, what the past runs taught, the number of trials planned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from recollect.optimizer.method import Method
from recollect.optimizer.past import PastRun, fit_past
from recollect.space.space import Space
from recollect.surrogate.kernels import KernelShape
from recollect.transfer.joint import Learned
from recollect.transfer.sources import Sources
from recollect.transfer.weighting import Weigher


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """``weigher`` weighs the sources; ``learned`` is what a model of all tasks knows. At least one of them is None."""

    space: Space
    sources: Sources | None
    weigher: Weigher | None
    learned: Learned | None
    horizon: int


def make_frame(
    method: Method, space: Space, past: tuple[PastRun, ...], *, horizon: int, rng: np.random.Generator
) -> Frame:
    """Learn from the past runs what the method wants to know."""
    sources = fit_past(past, space, method)
    weigher = learned = None
    if sources is not None and method.weighting is not None:
        weigher = method.weighting.prepare(sources, rng)
    if sources is not None and method.joint is not None:
        data = [entry.data for entry in past if entry.data is not None]
        shape = KernelShape(np.asarray(space.categorical), space.conditional)
        learned = method.joint.learn(data, shape=shape, sizes=space.sizes, rng=rng)
    return Frame(space, sources, weigher, learned, horizon)
