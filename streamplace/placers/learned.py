"""Learned placers: registers every trainable model as a placer.

Models that allocate operators place at once; models that improve placements do so step by step.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from streamplace.errors import OptionError
from streamplace.io.extras import importing
from streamplace.learn.model_weights import shipped
from streamplace.learn.registry import CHUNK, MODELS, Allocator, Improver, LearnedModel
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem, random_placements
from streamplace.objectives.registry import Objective
from streamplace.placers.incumbent import Incumbent, best_row
from streamplace.placers.meter import Meter
from streamplace.placers.registry import PLACERS, Budget, Found, Placer
from streamplace.placers.stopwatch import now, starting_up

RANDOM = "random"
BEGINNING = 0.5
"""Share of the budget for the placer whose placement an episode starts from."""
LEAST = 100_000
"""Pairs of tasks and devices to examine even if the clock is over: some tenths of a second."""


def placer_that_allocates(model: LearnedModel, read: Callable[[Path], Allocator]) -> Placer:
    """Return the placer of a model, for the model's objectives."""

    def place(
        problem: Problem,
        objective: Objective,
        *,
        seed: int,
        budget: Budget,
        weights: str = "",
        samples: int = 0,
    ) -> Found:
        """Place greedily, then sample; the best by the objective wins, of equals the first.

        Parameters
        ----------
        weights
            File of trained weights; by default the weights that come with streamplace.
        samples
            Placements drawn from the policy besides the greedy one, within the budget's
            evaluations.
        """
        if samples < 0:
            raise OptionError(f"samples is {samples}; it must be at least 0")
        with starting_up(), importing("learn"):
            allocator = read(Path(weights) if weights else shipped(model.name))
        start = now()
        rows = allocator.place_many([problem])[0].index[None]
        if budget.evaluations is not None:
            samples = min(samples, budget.evaluations - 1)
        if samples:
            rows = np.concatenate([rows, allocator.sampled(problem, samples, seed)])
        return best_row(problem, objective, rows, start)

    return Placer(model.name, model.summary, place, model.objectives)


def placer_that_improves(model: LearnedModel, read: Callable[[Path], Improver]) -> Placer:
    """Return the placer that improves placements by a model."""

    def place(
        problem: Problem,
        objective: Objective,
        *,
        seed: int,
        budget: Budget,
        weights: str = "",
        start: str | tuple[Placement, ...] = RANDOM,
    ) -> Found:
        """Improve a placement; the best of all steps counts, of equals the first.

        One whole episode, or where evaluations are counted as many as they allow, each from the
        best placement before.

        Parameters
        ----------
        weights
            File of trained weights; by default the weights that come with streamplace.
        start
            Placer whose answer the first episode begins with, such as ``heft``, within half of the
            budget; by default a random placement.
        """
        with starting_up(), importing("learn"):
            improve = read(Path(weights) if weights else shipped(model.name))
        rng, meter = np.random.default_rng(seed), Meter(budget, _least_steps(problem))
        best = Incumbent[Placement](objective.better, meter)

        def take(placement: Placement, value: float) -> None:
            meter.spend(1)
            best.offer(placement, value)

        for placement in _beginnings(problem, objective, start, rng, meter):
            if best.empty or meter.chunk(1):
                take(placement, objective.value(problem, placement))
        chunk = min(CHUNK, _least_steps(problem))
        while meter.chunk(1):
            for steps in improve(problem, best.solution.index, rng, chunk):
                rows = steps[: meter.chunk(len(steps))]
                values = objective.evaluate(problem, rows) if len(rows) else np.empty(0)
                for row, value in zip(rows, values, strict=True):
                    take(problem.placement(row), float(value))
                if not meter.chunk(1):
                    break
            if budget.evaluations is None:
                break
        return best.answer(best.solution)

    return Placer(model.name, model.summary, place, model.objectives)


def _least_steps(problem: Problem) -> int:
    """Number of steps that take little time."""
    return max(1, LEAST // (problem.n_operators * problem.n_devices))


def _beginnings(
    problem: Problem,
    objective: Objective,
    start: str | tuple[Placement, ...],
    rng: np.random.Generator,
    meter: Meter,
) -> tuple[Placement, ...]:
    """Placements to start from; the episode begins with the best."""
    if start == RANDOM or not start:
        return (problem.placement(random_placements(problem, 1, rng)[0]),)
    if isinstance(start, str):
        first, part = PLACERS[start], meter.some(BEGINNING)
        result = first.attempt(problem, objective, seed=int(rng.integers(2**31)), budget=part)
        meter.spend(max((step.evaluations for step in result.trace), default=0))
        return (result.placement,)
    for placement in start:
        problem.check(placement)
    return start


for _model in map(MODELS.__getitem__, MODELS):
    if _model.allocator is not None:
        _placer = placer_that_allocates(_model, _model.allocator)
    elif _model.improver is not None:
        _placer = placer_that_improves(_model, _model.improver)
    else:
        continue
    PLACERS.add(_model.name, _placer, _placer.function)
