"""Placements by pilot, greedy and sampled; numpy alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path

import numpy as np

from streamplace.learn.algorithms.kernels import feature_names
from streamplace.learn.model_weights import check_maps, loaded, read_model
from streamplace.learn.models.pilot.features import (
    PAIR_FEATURES,
    UNIT_FEATURES,
    DeviceFeature,
    PilotFeatures,
    StepFeature,
    features_of,
    for_rollout,
)
from streamplace.learn.models.pilot.model import PilotConfig
from streamplace.learn.models.pilot.rollouts import (
    PilotNetwork,
    heads_of,
    maps_of,
    network_of,
    places_after,
    rollouts,
)
from streamplace.model.arrays import Ints, Singles
from streamplace.model.problem import Problem

FEATURES = [
    *(f"unit {name}" for name in UNIT_FEATURES),
    *(f"pair {name}" for name in PAIR_FEATURES),
    *(f"device {name}" for name in feature_names(DeviceFeature)),
    *(f"step {name}" for name in feature_names(StepFeature)),
]
"""Features of pilot; weights only fit the features that they were trained on."""


@dataclass(frozen=True, slots=True)
class TrainedPilot:
    """A network that places."""

    network: PilotNetwork

    def greedy(self, problem: Problem, rollouts: int, sweeps: int) -> Ints:
        """Devices [rollouts · sweeps, N] after every sweep, at every decision the likeliest."""
        return np.concatenate(list(islice(self.rollouts(problem, sweeps), rollouts)))

    def rollouts(self, problem: Problem, sweeps: int) -> Iterator[Ints]:
        """Devices [sweeps, N] of one rollout after the other, at every decision the likeliest."""
        features = features_of(problem)
        for rollout in count():
            begun = for_rollout(features, rollout) if rollout else features
            chosen = self._chosen(begun, np.full((1, sweeps * len(begun.order)), -1, np.float32))
            yield np.concatenate(
                [_legal(problem, places_after(begun, chosen, sweep + 1)) for sweep in range(sweeps)]
            )

    def sampled(self, problem: Problem, samples: int, seed: int) -> Ints:
        """Devices [samples, N] drawn from the policy, with one decision per operator."""
        features, rng = features_of(problem), np.random.default_rng(seed)
        chosen = self._chosen(features, rng.random((samples, len(features.order)), np.float32))
        return _legal(problem, places_after(features, chosen, 1))

    def _chosen(self, features: PilotFeatures, uniform: Singles) -> Ints:
        fixed, heads = np.full(uniform.shape, -1, np.int32), heads_of(self.network, features)
        return rollouts(features, heads, fixed, uniform)


@loaded
def trained(path: Path) -> TrainedPilot:
    """Pilot from a weights file."""
    weights, options, where = read_model(path, "pilot", PilotConfig, FEATURES)
    check_maps(weights.tensors, maps_of(options.width, options.rounds), where)
    return TrainedPilot(network_of(weights.tensors))


def _legal(problem: Problem, places: Ints) -> Ints:
    """Replace rollouts that the rules stopped by the rules' witness, a legal placement."""
    if problem.rules is not None:
        places[places[:, 0] < 0] = problem.rules.witness[problem.rules.unit]
    return places
