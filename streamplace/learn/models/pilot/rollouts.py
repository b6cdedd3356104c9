"""The network of pilot, and rollouts: placements built with it, unit by unit.

Units pass messages along their streams a few times. With h the state of a unit, x_e the pair
features of an entry e from unit u to its peer p, and the mean over u's entries,

    m_u = mean_e relu(A h_p + B x_e),    h_u ← h_u + relu(C [h_u : m_u : mean_v h_v : n_u] + c)

where n_u is the mean over the units that will be placed after u. Then, at every step, the devices
are measured for one unit, and one of them is chosen.

`PilotModule` in `learner` is the same in torch, for training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from streamsim import _core
from streamsim.arrays import WithCoreCopy

from streamplace.learn.algorithms.kernels import DecisionRecord, Row, weights_of
from streamplace.learn.model_weights import LinearMap
from streamplace.learn.models.pilot.features import (
    N_DEVICE,
    N_STEP,
    PAIR_FEATURES,
    UNIT_FEATURES,
    PilotFeatures,
)
from streamplace.model.arrays import Floats, Ints, Longs, Singles


class RoundWeights(NamedTuple):
    """All R rounds of messages, matrices as [in, out]."""

    peer: Singles  # [R, H, H] A
    pair: Singles  # [R, 6, H] B
    update: Singles  # [R, 4 H, H] C
    update_bias: Singles  # [R, H] c


class _NetworkColumns(NamedTuple):
    enter: Singles
    enter_bias: Singles
    rounds: RoundWeights
    unit: Singles  # [3 H, H] of [h_u : mean : max]
    unit_bias: Singles
    content: Singles  # [H, H]
    device: Singles  # [20, H] of `DeviceFeature`
    step: Singles  # [6, H] of `StepFeature`
    own: Singles  # [H, H] second layer, of the device itself
    mean: Singles  # [H, H] second layer, of the mean over the open devices
    own_bias: Singles  # [H]
    out: Row  # [H]


class PilotNetwork(WithCoreCopy, _NetworkColumns):
    """All weights, matrices as [in, out]."""

    @cached_property
    def core(self) -> _core.PilotWeights:
        """The core's copy of the weights, made and checked at the first use."""
        return _core.PilotWeights(self)


class PilotHeads(NamedTuple):
    """Outputs of the network for the units of one problem."""

    unit: Singles  # [U, H] first layer's part of a unit that is to be placed
    content: Singles  # [U, H] added to the first layer of its device for later choices
    network: PilotNetwork


def maps_of(width: int, rounds: int) -> dict[str, LinearMap]:
    """Linear maps of the network."""
    maps = {"enter": LinearMap(width, len(UNIT_FEATURES))}
    for r in range(rounds):
        maps[f"rounds.{r}.peer"] = LinearMap(width, width, bias=False)
        maps[f"rounds.{r}.pair"] = LinearMap(width, len(PAIR_FEATURES), bias=False)
        maps[f"rounds.{r}.update"] = LinearMap(width, 4 * width)
    return maps | {
        "unit": LinearMap(width, 3 * width),
        "content": LinearMap(width, width, bias=False),
        "device": LinearMap(width, N_DEVICE, bias=False),
        "step": LinearMap(width, N_STEP, bias=False),
        "own": LinearMap(width, width),
        "mean": LinearMap(width, width, bias=False),
        "out": LinearMap(1, width, bias=False),
    }


def network_of(tensors: Mapping[str, Singles]) -> PilotNetwork:
    """Network from named tensors, whose rounds are stacked."""
    number = sum(name.startswith("rounds.") and name.endswith("peer.weight") for name in tensors)
    stacked = {"peer.weight": 3, "pair.weight": 3, "update.weight": 3, "update.bias": 2}
    rounds = {
        f"rounds.{name}": np.stack([tensors[f"rounds.{r}.{name}"] for r in range(number)])
        if number
        else np.zeros((0,) * dimensions, np.float32)
        for name, dimensions in stacked.items()
    }
    return weights_of(PilotNetwork, {**tensors, **rounds})


def heads_of(network: PilotNetwork, features: PilotFeatures) -> PilotHeads:
    """Evaluate the network on the units of a problem."""
    return PilotHeads(*network.core.heads(features), network)


def rollouts(features: PilotFeatures, heads: PilotHeads, fixed: Ints, uniform: Singles) -> Ints:
    """Devices [S, T] of all units, once per row of ``fixed`` [S, T].

    T = L · U decisions are L sweeps: after the first sweep every unit in turn is removed from its
    device and placed again, while all others stay. The policy chooses where no
    device is given (-1): with the number ``uniform`` [S, T] in [0, 1), or below 0 the likeliest.
    All devices are -1 if the rules left none at some decision.
    """
    run = heads.network.core.rollouts
    return run(features, heads.unit, heads.content, fixed, uniform, recorded=False)[0]


def recorded_rollouts(
    features: PilotFeatures, heads: PilotHeads, fixed: Ints, uniform: Singles
) -> tuple[Ints, Floats, DecisionRecord]:
    """Devices as by `rollouts`, log-probabilities [S], and the inputs of all decisions."""
    chosen, likelihood, inputs = heads.network.core.rollouts(
        features, heads.unit, heads.content, fixed, uniform, recorded=True
    )
    return chosen, likelihood, DecisionRecord(**inputs)


def places_after(features: PilotFeatures, chosen: Ints, sweep: int) -> Ints:
    """Devices of the operators [S, N] after a number of sweeps of rollouts [S, T]."""
    u = len(features.order)
    place = np.empty((len(chosen), u), np.int32)
    place[:, features.order] = chosen[:, (sweep - 1) * u : sweep * u]
    return place[:, features.unit_of]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Prefixes of rollouts that differ from the sampled ones in their last decision."""

    fixed: Ints  # [K, T] devices up to that decision, -1 after it
    rollout: Longs  # [K] number of the rollout
    step: Longs  # [K] number of the decision in it
    device: Longs  # [K] device that is tried
    shape: tuple[int, int, int]  # numbers of rollouts, steps and devices

    def q_values(self, values: Floats) -> Singles:
        """Table [S, T, D] of the values [K] of the alternatives; NaN where nothing was tried."""
        table = np.full(self.shape, np.nan, np.float32)
        table[self.rollout, self.step, self.device] = values
        return table


def alternatives(
    record: DecisionRecord, chosen: Ints, forks: int, rng: np.random.Generator
) -> Alternatives:
    """Try every open device at up to ``forks`` steps of each of these rollouts [S, T]."""
    s, n_steps = chosen.shape
    forked = np.zeros((s, min(forks, n_steps)), np.int64)
    for row in forked:
        row[:] = rng.permutation(n_steps)[:forks]
    is_open = record.open[np.arange(s)[:, None], forked]
    rollout, fork, device = np.nonzero(is_open & (is_open.sum(axis=2, keepdims=True) > 1))
    step, steps = forked[rollout, fork], np.arange(n_steps)
    fixed = np.where(steps < step[:, None], chosen[rollout], np.int32(-1))
    fixed[np.arange(len(step)), step] = device
    return Alternatives(fixed, rollout, step, device, record.open.shape)
