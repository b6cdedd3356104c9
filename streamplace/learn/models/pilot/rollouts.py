"""The network of pilot in numba, and rollouts: placements built with it, unit by unit.

Units pass messages along their streams a few times. With h the state of a unit, x_e the pair
features of an entry e from unit u to its peer p, and the mean over u's entries,

    m_u = mean_e relu(A h_p + B x_e),    h_u ← h_u + relu(C [h_u : m_u : mean_v h_v : n_u] + c)

where n_u is the mean over the units that will be placed after u. Then, at every step, the devices
are measured for one unit, and one of them is chosen.

`PilotModule` in `learner` is the same in torch, for training.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from streamsim.array_copies import copy_row, copy_rows
from streamsim.jit import kernel

from streamplace.learn.algorithms.kernels import (
    DecisionRecord,
    Row,
    add_multiple,
    drawn,
    empty_record,
    likeliest,
    plus_product,
    product,
    rectify,
    weights_of,
)
from streamplace.learn.model_weights import LinearMap
from streamplace.learn.models.pilot.features import (
    N_DEVICE,
    N_STEP,
    PAIR_FEATURES,
    UNIT_FEATURES,
    PilotFeatures,
    begin,
    measure,
    put,
)
from streamplace.model.arrays import Bools, Floats, Ints, Longs, Singles


class RoundWeights(NamedTuple):
    """All R rounds of messages, matrices as [in, out]."""

    peer: Singles  # [R, H, H] A
    pair: Singles  # [R, 6, H] B
    update: Singles  # [R, 4 H, H] C
    update_bias: Singles  # [R, H] c


class PilotNetwork(NamedTuple):
    """All weights, matrices as [in, out]."""

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


@kernel
def heads_of(network: PilotNetwork, features: PilotFeatures) -> PilotHeads:
    """Evaluate the network on the units of a problem."""
    h, level, turns = product(features.units, network.enter), features.level, network.rounds
    width = h.shape[1]
    _add_and_rectify(h, network.enter_bias)
    for r in range(len(turns.update_bias)):
        of_peer, of_pair = product(h, turns.peer[r]), product(features.pairs, turns.pair[r])
        joined = np.empty((len(h), 4 * width), np.float32)
        joined[:, :width] = h
        joined[:, width : 2 * width] = _mean_messages(of_peer, of_pair, level.start, level.peer)
        joined[:, 2 * width : 3 * width] = _pooled(h)[:width]
        joined[:, 3 * width :] = _mean_of_unplaced(h, features.order)
        update = product(joined, turns.update[r])
        _add_and_rectify(update, turns.update_bias[r])
        h += update
    both = np.empty((len(h), 3 * width), np.float32)
    both[:, :width] = h
    both[:, width:] = _pooled(h)
    unit = product(both, network.unit)
    for u in range(len(unit)):
        add_multiple(unit[u], network.unit_bias, np.float32(1))
    return PilotHeads(unit, product(h, network.content), network)


@kernel
def _add_and_rectify(x: Singles, bias: Singles) -> None:
    for i in range(len(x)):
        for k in range(len(bias)):
            x[i, k] = max(x[i, k] + bias[k], np.float32(0))


@kernel
def _pooled(h: Singles) -> Singles:
    """Mean and largest state [2 H] of all units."""
    width = h.shape[1]
    pooled = np.zeros(2 * width, np.float32)
    pooled[width:] = -np.inf
    for row in h:
        for k in range(width):
            pooled[k] += row[k]
            pooled[width + k] = max(pooled[width + k], row[k])
    for k in range(width):
        pooled[k] /= np.float32(len(h))
    return pooled


@kernel
def _mean_messages(of_peer: Singles, of_pair: Singles, start: Longs, peer: Ints) -> Singles:
    """Mean over the entries of every unit of relu(of_peer + of_pair)."""
    mean = np.zeros_like(of_peer)
    for u in range(len(mean)):
        for e in range(start[u], start[u + 1]):
            for k in range(mean.shape[1]):
                mean[u, k] += max(of_peer[peer[e], k] + of_pair[e, k], np.float32(0))
        for k in range(mean.shape[1]):
            mean[u, k] /= np.float32(max(1, start[u + 1] - start[u]))
    return mean


@kernel
def _mean_of_unplaced(h: Singles, order: Ints) -> Singles:
    """Mean state of the units that are placed after each unit."""
    mean, total = np.zeros_like(h), np.zeros(h.shape[1], np.float32)
    for t in range(len(order) - 1, -1, -1):
        u, later = order[t], np.float32(max(1, len(order) - 1 - t))
        for k in range(h.shape[1]):
            mean[u, k] = total[k] / later
            total[k] += h[u, k]
    return mean


def new_record(rollouts: int, features: PilotFeatures) -> DecisionRecord:
    """Empty record of so many rollouts of one sweep."""
    shape = (rollouts, features.level.n_units, len(features.group))
    return empty_record(shape, N_DEVICE, N_STEP)


@kernel
def rollouts(
    features: PilotFeatures,
    heads: PilotHeads,
    fixed: Ints,
    uniform: Singles,
    record: DecisionRecord,
) -> tuple[Ints, Floats]:
    """Devices [S, T] of all units, once per row of ``fixed`` [S, T], and log-probabilities [S].

    T = L · U decisions are L sweeps: after the first sweep every unit in turn is removed from its
    device and placed again, while all others stay where they are. The policy chooses where no
    device is given (-1): with the number ``uniform`` [S, T] in [0, 1), or below 0 the likeliest.
    All devices are -1 if the rules left none at some decision. Without a record, given decisions
    are not evaluated and add no probability.
    """
    s, n_steps = fixed.shape
    u, d, h = len(features.order), len(features.group), len(heads.network.out)
    keep = len(record.open) > 0
    devices, steps = np.zeros((d, N_DEVICE), np.float32), np.zeros(N_STEP, np.float32)
    is_open = np.zeros(d, np.bool_)
    chosen, likelihood = np.empty((s, n_steps), np.int32), np.zeros(s)
    first, second = np.zeros((d, h), np.float32), np.zeros(h, np.float32)
    for i in range(s):
        state = begin(features)
        contents = np.zeros((d, h), np.float32)
        for t in range(n_steps):
            unit = features.order[t % u]
            was = state.place[unit]
            if was >= 0:
                put(features, state, unit, was, -1)
                add_multiple(contents[was], heads.content[unit], np.float32(-1))
            to = fixed[i, t]
            if to < 0 or keep:
                if not measure(features, state, unit, t, devices, steps, is_open):
                    chosen[i] = -1
                    break
                if keep:
                    copy_rows(record.devices[i, t], devices)
                    copy_row(record.steps[i, t], steps)
                    copy_row(record.open[i, t], is_open)
                logits = _logits(heads, unit, devices, steps, is_open, contents, first, second)
                if to < 0:
                    to = drawn(logits, uniform[i, t])
                likelihood[i] += _log_probability(logits, to)
            put(features, state, unit, to, 1)
            add_multiple(contents[to], heads.content[unit], np.float32(1))
            chosen[i, t] = to
    return chosen, likelihood


def places_after(features: PilotFeatures, chosen: Ints, sweep: int) -> Ints:
    """Devices of the operators [S, N] after so many sweeps of rollouts [S, T]."""
    u = len(features.order)
    place = np.empty((len(chosen), u), np.int32)
    place[:, features.order] = chosen[:, (sweep - 1) * u : sweep * u]
    return place[:, features.unit_of]


@kernel
def _logits(
    heads: PilotHeads,
    u: int,
    devices: Singles,
    steps: Singles,
    is_open: Bools,
    contents: Singles,
    first: Singles,
    second: Singles,
) -> Floats:
    """Preference for every device, -inf where it is not open.

    ``first`` [D, H] and ``second`` [H] are buffers.
    """
    net = heads.network
    base, common, n = heads.unit[u].copy(), net.own_bias.copy(), np.float32(is_open.sum())
    for f in range(N_STEP):
        add_multiple(base, net.step[f], steps[f])
    mean = np.zeros_like(base)
    for a in range(len(first)):
        if is_open[a]:
            for k in range(len(base)):
                first[a, k] = base[k] + contents[a, k]
            for f in range(N_DEVICE):
                add_multiple(first[a], net.device[f], devices[a, f])
            rectify(first[a])
            add_multiple(mean, first[a], np.float32(1))
    for j in range(len(mean)):
        add_multiple(common, net.mean[j], mean[j] / n)
    logits = np.full(len(first), -np.inf)
    for a in range(len(first)):
        if is_open[a]:
            copy_row(second, common)
            for j in range(len(mean)):
                add_multiple(second, net.own[j], first[a, j])
            rectify(second)
            logits[a] = plus_product(np.float32(0), second, net.out)
    return logits


@kernel
def _log_probability(logits: Floats, a: int) -> float:
    top = logits[likeliest(logits)]
    return logits[a] - top - np.log(np.exp(logits - top).sum())


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
