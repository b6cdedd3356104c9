"""The network of the policy, a logit for every device; and rollouts with it.

With x_a the features of device a, s the features of the step, the mean over the open devices, and
all weights learned,

    h_a = relu(A x_a + B s + b)
    g_a = relu(C h_a + D mean_b h_b + c)
    logit_a = o · g_a + k · x_a

At every step of a rollout the devices are measured for one task, and one of them is chosen.
`PilotMakespanModule` in `learner` is the same network in torch, for training.
"""

from functools import cached_property
from typing import NamedTuple

from streamsim import _core
from streamsim.arrays import WithCoreCopy

from streamplace.learn.algorithms.kernels import DecisionRecord, Row
from streamplace.learn.model_weights import LinearMap
from streamplace.learn.models.pilot_makespan.features import (
    N_DEVICE,
    N_STEP,
    PilotMakespanFeatures,
    PreviousSchedule,
)
from streamplace.model.arrays import Ints, Singles
from streamplace.scheduling.insertion import ListSchedule


class _MakespanColumns(NamedTuple):
    device: Singles  # A [F, H]
    step: Singles  # B [S, H]
    device_bias: Singles  # b
    own: Singles  # C
    mean: Singles  # D
    own_bias: Singles  # c
    out: Row  # o
    skip: Row  # k [F]


class PilotMakespanNetwork(WithCoreCopy, _MakespanColumns):
    """All weights, matrices as [in, out]."""

    @cached_property
    def core(self) -> _core.PilotMakespanWeights:
        """The core's copy of the weights, made and checked at the first use."""
        return _core.PilotMakespanWeights(self)


def maps_of(width: int) -> dict[str, LinearMap]:
    """Linear maps of the network."""
    return {
        "device": LinearMap(width, N_DEVICE),
        "step": LinearMap(width, N_STEP, bias=False),
        "own": LinearMap(width, width),
        "mean": LinearMap(width, width, bias=False),
        "out": LinearMap(1, width, bias=False),
        "skip": LinearMap(1, N_DEVICE, bias=False),
    }


def rollouts(
    features: PilotMakespanFeatures,
    before: PreviousSchedule,
    net: PilotMakespanNetwork,
    fixed: Ints,
    uniform: Singles,
) -> ListSchedule:
    """Schedules [S, N], one per row of ``fixed`` [S, N].

    The policy chooses where no device is given (-1): with the number ``uniform`` [S, N] in [0, 1),
    or below 0 the likeliest. Devices are -1 from the step at which the rules left none.
    """
    run = net.core.rollouts
    columns = run(features.tasks.core, features, before, fixed, uniform, recorded=False)[1]
    return ListSchedule(*columns)


def recorded_rollouts(
    features: PilotMakespanFeatures,
    before: PreviousSchedule,
    net: PilotMakespanNetwork,
    fixed: Ints,
    uniform: Singles,
) -> tuple[Ints, ListSchedule, DecisionRecord]:
    """Devices [S, N] by step, schedules as by `rollouts`, and the inputs of all decisions."""
    chosen, columns, inputs = net.core.rollouts(
        features.tasks.core, features, before, fixed, uniform, recorded=True
    )
    return chosen, ListSchedule(*columns), DecisionRecord(**inputs)
