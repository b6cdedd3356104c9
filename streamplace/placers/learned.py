"""Learned placers: registers every trainable model that allocates operators as a placer."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from streamplace.errors import SettingError
from streamplace.io.extras import importing_torch
from streamplace.learn.registry import MODELS, Allocator, LearnedModel
from streamplace.model.problem import Problem
from streamplace.objectives.registry import Objective
from streamplace.placers.registry import PLACERS, Budget, Found, Placer
from streamplace.placers.result import Improvement
from streamplace.placers.stopwatch import now, starting_up


def placer_of(model: LearnedModel, read: Callable[[Path], Allocator]) -> Placer:
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
            File of trained weights; those that come with streamplace where empty.
        samples
            Placements drawn from the policy besides the greedy one, within the budget's
            evaluations.
        """
        from streamplace.learn.loading import shipped

        if samples < 0:
            raise SettingError(f"samples is {samples}; it must be at least 0")
        with starting_up(), importing_torch():
            allocator = read(Path(weights) if weights else shipped(model.name))
        start = now()
        rows = allocator.place_many([problem])[0].index[None]
        if budget.evaluations is not None:
            samples = min(samples, budget.evaluations - 1)
        if samples:
            rows = np.concatenate([rows, allocator.sampled(problem, samples, seed)])
        values = objective.evaluate(problem, rows)
        best = objective.best(values)
        improvement = Improvement(now() - start, float(values[best]), len(rows))
        return Found(problem.placement(rows[best]), trace=(improvement,))

    return Placer(model.name, model.summary, place, model.objectives)


for _model in map(MODELS.__getitem__, MODELS):
    if _model.allocator is not None:
        PLACERS.add(_model.name, placer_of(_model, _model.allocator))
