"""Episodes of a problem, S of them at once: a task is chosen, its device, and again until the end.

Times as by a list scheduler that appends: each core runs one task after the other, and
transfers do not wait for one another.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding, pad

from streamplace.model.arrays import ROUNDING
from streamplace.papers.doppler.model import DopplerConfig
from streamplace.papers.doppler.network import Heads
from streamplace.papers.doppler.tensors import TaskTensors

LIKELIEST = -1.0
SHARP = 1e15
"""Factor of scores in single precision, between which then only equal ones share a draw."""


class EpisodeStep(NamedTuple):
    """Labelled choices of a step, or of T steps in the second dimension."""

    ready: Tensor  # [S, N] tasks that could come next
    task: Tensor  # [S, 1] the task to choose
    open: Tensor  # [S, D] devices that this task could go to
    device: Tensor  # [S, 1] the device to choose
    devices: Tensor  # [S, D, 5] features of the devices
    done_task: Tensor  # [S, 1] the task that was placed
    done_device: Tensor  # [S, 1]


class DeviceTimes(NamedTuple):
    """Devices at the decision about a task."""

    open: Tensor  # [S, D]
    seconds: Tensor  # [S, D, 5] `DEVICE_FEATURES`
    core: Tensor  # [S, D] core that is free first, of [D, C]
    unit: Tensor  # [S, 1] of the task

    @property
    def start(self) -> Tensor:
        """Earliest start [S, D]."""
        return self.seconds[..., -1]

    @property
    def soonest(self) -> Tensor:
        """Open device [S, 1] with the earliest start."""
        return self.start.masked_fill(~self.open, torch.inf).argmin(1, keepdim=True)

    def scaled(self, unit_s: Tensor | None) -> Tensor:
        """Differences of the devices from their mean, in units or deviations."""
        spread, mean = torch.std_mean(self.seconds, 1, correction=0, keepdim=True)
        alike = spread <= ROUNDING * self.seconds.amax(1, keepdim=True)
        scaled = (self.seconds - mean) / (spread if unit_s is None else unit_s)
        return scaled.masked_fill(alike, 0.0).float()


class Schedules:
    """Decisions so far in S episodes; tasks and devices are columns [S, 1]."""

    def __init__(self, problem: TaskTensors, episodes: int) -> None:
        n, d = problem.work.shape
        self.problem = problem
        self.episode = torch.arange(episodes, device=problem.work.device)
        self.devices = torch.arange(d, device=problem.work.device)
        # [S, N + 1] tasks not yet placed of a task's inputs and itself
        outputs = problem.outputs.flatten()
        waiting = outputs.new_zeros(n + 1).index_add(0, outputs, torch.ones_like(outputs))
        self.waiting = waiting.repeat(episodes, 1)
        self.placed = outputs.new_full((episodes, problem.outputs.shape[1]), -1)
        # of every task and device [S, N + 1, D] the work of its inputs there, their first start,
        # last end, and the last arrival of all inputs
        inputs = problem.work.new_zeros(4, episodes, n + 1, d)
        inputs[1] = torch.inf
        self.inputs = inputs.flatten(1, 2)  # [4, S (N + 1), D]
        self.of_inputs_there, self.arrival = inputs[:3].flatten(2).unbind(), inputs[3]
        self.first_task = self.episode * (n + 1)
        self.free = problem.free.repeat(episodes, 1, 1)  # [S, D, C] when each core is free
        self.free_cores, self.first_core = self.free.flatten(1), self.devices * self.free.shape[2]
        self.load = problem.work.new_zeros(episodes, d)  # seconds of all tasks there
        # [S, D + 1] devices in use, and of interchangeable empty ones the first
        shown = problem.allowed.new_ones(d + 1).scatter(0, problem.twins[:, 1], False)
        self.shown = shown.repeat(episodes, 1)
        self.shown_devices = self.shown[:, :-1]
        # [S, U + 1, D] allowed devices without a rival of the unit, or its home if it has one
        self.open = pad(problem.allowed, (0, 0, 0, 1)).repeat(episodes, 1, 1)
        self.open_rows = self.open.flatten(0, 1)
        self.first_unit = self.episode * self.open.shape[1]
        self.memory = problem.memory.repeat(episodes, 1)  # [S, U] bytes that units will yet take
        self.used = self.load.clone()  # bytes

    @property
    def ready(self) -> Tensor:
        """Tasks [S, N] whose inputs are placed."""
        return self.waiting[:, :-1] == 1

    def of(self, task: Tensor) -> DeviceTimes:
        """Devices at the decision about tasks, open by the rules; all allowed ones if none is."""
        problem, unit = self.problem, self.problem.unit.take(task)
        row = self.first_task + task[:, 0]
        work, first, last, arrival = self.inputs.index_select(1, row).unbind()
        free, core = self.free.min(2)
        start = torch.maximum(free, arrival)
        seconds = self.load, work, first.nan_to_num(posinf=0.0), last, start
        row = self.first_unit + unit[:, 0]
        may = self.open_rows.index_select(0, row) & self.shown_devices
        if len(problem.room):
            may &= self.used + self.memory.gather(1, unit) <= problem.room
        allowed = problem.allowed.index_select(0, unit[:, 0])
        may = torch.where(may.any(1, keepdim=True), may, allowed)
        return DeviceTimes(may, torch.stack(seconds, 2), self.first_core + core, unit)

    def put(self, task: Tensor, device: Tensor, times: DeviceTimes) -> None:
        """Place tasks on devices, whose times are those that `of` returned."""
        problem, v, a = self.problem, task[:, 0], device[:, 0]
        here, start = device == self.devices, times.start.gather(1, device)
        seconds = problem.work.index_select(0, v).gather(1, device)
        finish = start + seconds
        self.load.scatter_add_(1, device, seconds)
        self.shown.scatter_(1, problem.twins.index_select(0, a), True)
        self.free_cores.scatter_(1, times.core.gather(1, device), finish)

        outputs = problem.outputs.index_select(0, v)  # [S, Q]
        self.waiting.scatter_add_(1, outputs, self.placed)
        there = outputs * len(self.devices) + device
        work, first, last = self.of_inputs_there
        work.scatter_add_(1, there, seconds.expand_as(there))
        first.scatter_reduce_(1, there, start.expand_as(there), "amin")
        last.scatter_reduce_(1, there, finish.expand_as(there), "amax")
        latency, wire = problem.links.index_select(1, a).unsqueeze(2).unbind()  # [S, 1, D]
        size, fixed_s = problem.sent.index_select(1, v).unsqueeze(3).unbind()  # [S, Q, 1]
        sent = latency + size * wire + fixed_s  # [S, Q, D]
        arrival = finish[..., None] + sent.masked_fill(here[:, None], 0.0)
        self.arrival.scatter_reduce_(1, outputs[..., None].expand_as(sent), arrival, "amax")

        unit = times.unit
        self.open.scatter_(1, unit[..., None].expand(-1, -1, here.shape[1]), here[:, None])
        if problem.rivals.shape[1]:
            self.open[self.episode[:, None], problem.rivals[unit[:, 0]], device] = False
        if len(problem.room):
            self.used.scatter_add_(1, device, self.memory.gather(1, unit))
            self.memory.scatter_(1, unit, 0.0)


@torch.inference_mode()
def episodes(
    problem: TaskTensors, heads: Heads, config: DopplerConfig, numbers: Tensor, *, taught: bool
) -> Iterator[EpisodeStep]:
    """Steps of S episodes, labelled by the critical path's choices if taught, or the actual ones.

    Of the ``numbers`` [S, N, 2] for the task and the device of every step, one in [0, 1) draws the
    policy's choice, one in [1, 2) any choice, and below 0 the likeliest is taken.
    """
    schedules = Schedules(problem, len(numbers))
    unit_s = problem.unit_s if config.device_unit == "seconds" else None
    carried = heads.start.new_zeros(*schedules.load.shape, len(heads.out))  # [S, D, H]
    sharpness = (numbers < 1.0).double().masked_fill(numbers < 0.0, SHARP)
    uniform = numbers.clamp(min=0.0) % 1.0
    columns = (table[..., i, None].unbind(1) for i in (0, 1) for table in (uniform, sharpness))
    for u_task, sharp_task, u_device, sharp_device in zip(*columns, strict=True):
        ready = schedules.ready
        if config.select == "learned":
            task = decided(heads.score, ready, u_task, sharp_task)
        else:
            task = critical(problem, ready)
        times = schedules.of(task)
        features = times.scaled(unit_s)
        if config.place == "learned":
            scores = heads.of_devices(task, carried, features)
            device = decided(scores, times.open, u_device, sharp_device)
        else:
            device = times.soonest
        label = task, times.open, device, features
        if taught:
            first = critical(problem, ready)
            asked = schedules.of(first)
            label = first, asked.open, asked.soonest, asked.scaled(unit_s)
        yield EpisodeStep(ready, *label, task, device)
        schedules.put(task, device, times)
        row = device[..., None].expand(-1, -1, carried.shape[2])
        carried.scatter_add_(1, row, embedding(task, heads.carried))


def decided(score: Tensor, is_open: Tensor, uniform: Tensor, sharpness: Tensor) -> Tensor:
    """Choices [S, 1] among the open ones [S, X], drawn by the softmax of sharpened scores."""
    chances = torch.where(is_open, score * sharpness, -torch.inf).softmax(1).cumsum(1)
    return torch.searchsorted(chances, uniform * chances[:, -1:], right=True)


def critical(problem: TaskTensors, ready: Tensor) -> Tensor:
    """Ready task [S, 1] with the longest path to an exit."""
    return problem.to_exit.masked_fill(~ready, -torch.inf).argmax(1, keepdim=True)
