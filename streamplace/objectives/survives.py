"""Survives: the share of the sources' rate that is carried after the loss of any one device."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from streamplace.display.report import Bar, Names, Report, Sheet, brief_and_detail, percent
from streamplace.display.sheets import with_rest
from streamplace.errors import PlacementError, StreamplaceError
from streamplace.model.arrays import ROUNDING, Bools, Floats, Ints
from streamplace.model.keep_apart import rival_columns
from streamplace.model.least_peak import least_times
from streamplace.model.message_text import quoted
from streamplace.model.mixins import Displayed, data_frame, kept, verdict_of
from streamplace.model.placement import Placement
from streamplace.model.problem import Problem
from streamplace.model.relocation import Relocation
from streamplace.objectives.explanation import Explanation, Picture
from streamplace.objectives.registry import DEFAULT, OBJECTIVES, objective

if TYPE_CHECKING:
    from pandas import DataFrame
    from streamsim._core import Survival

MAX_BOUNDED: Final = 32
"""Unlike devices whose loss the bound considers, the strongest first."""


class Freedom(NamedTuple):
    """Devices to which units may move when their device is lost; pins do not count."""

    unit: Ints  # [N]
    allowed: Bools  # [U, D]
    rival_start: Ints  # [U + 1] the rivals of u are rivals[rival_start[u]:rival_start[u + 1]]
    rivals: Ints
    memory: Floats  # [U] bytes, or [0] if memory is unlimited
    room: Floats  # [D] bytes
    classes: Ints  # [D] class of each device; devices of a class are interchangeable
    kind: Ints  # [N] a slot holds one operator of each kind of a group
    group: Ints  # [K] group of each kind
    slots: Floats  # [D], or [0] if they are unlimited


@kept
def _core(problem: Problem) -> "Survival":
    """Core's evaluation of the problem, made at the first use."""
    from streamsim._core import Survival

    return Survival(problem.instance.core, freedom_of(problem))


def freedom_of(problem: Problem) -> Freedom:
    """Devices to which units may move by the rules of a problem, without a limit of slots."""
    free, nothing = problem.unpinned, np.zeros(0)
    unit, rules = problem.unit, free.rules
    allowed = np.ones((int(unit.max()) + 1, problem.n_devices), np.bool_)
    apart = np.empty((0, 2), np.int32) if rules is None else rules.apart
    rival_start, rivals = rival_columns(apart, len(allowed))
    none = np.empty(0, np.int32)
    return Freedom(
        unit,
        allowed if rules is None else rules.allowed,
        rival_start.astype(np.int32),
        rivals.astype(np.int32),
        nothing if rules is None or rules.memory is None else rules.memory,
        nothing if rules is None or rules.room is None else rules.room,
        free.interchangeable,
        none,
        none,
        nothing,
    )


@dataclass(frozen=True, slots=True)
class Loss:
    """Share that a placement carries after the loss of one device."""

    device: str
    # Share of the sources' rate with the operators of the device on the best other devices found.
    relative_throughput: float
    exact: bool  # whether it is proven that no other devices for them carry more
    # New device of every operator of the lost device; empty if nothing can be carried.
    moved: Mapping[str, str]

    @property
    def carried(self) -> str:
        """Share in words."""
        return f"{'' if self.exact else 'at least '}{percent(self.relative_throughput)}"


def loss_of(problem: Problem, placement: Placement, device: str) -> Loss:
    """Move the operators of a device to the best other devices."""
    return loss_by(_core(problem), problem, placement, device, np.inf)


def loss_by(
    core: "Survival", problem: Problem, placement: Placement, device: str, enough: float
) -> Loss:
    """Loss of a device by a compiled problem; the search ends at a share of ``enough``."""
    d = problem.cluster.devices.index(device)
    share, exact, place = core.without(placement.index, d, enough)
    rows = np.flatnonzero(placement.index == d).tolist()
    names, devices = placement.operators, placement.devices
    moved = {} if place is None else {names[v]: devices[place[v]] for v in rows}
    return Loss(device, share, exact, moved)


def after_loss(
    problem: Problem, placement: Placement, device: str, relocation: Relocation | None = None
) -> tuple[Problem, Placement, Relocation]:
    """Return the problem without a device, the placement there, and the relocation to it.

    The operators of the device move to the best other devices, as in `loss_of`. The relocation
    starts from the placement unless one is given.
    """
    rest = problem.without(device)
    moved = loss_of(problem, placement, device).moved
    if device in placement.values() and not moved:
        raise PlacementError(
            f"without {quoted(device)}, nothing is carried if only its operators move; "
            f"place all operators again: streamplace place --without {device}"
        )
    remaining = Placement.of(
        placement.operators,
        rest.cluster.devices.name,
        {**placement, **moved},
        placement.priorities(),
        placement.queue,
    )
    return rest, remaining, Relocation(placement) if relocation is None else relocation


@kept
def bound(problem: Problem) -> float:
    """Least of the bounds of the throughput on the cluster without one device.

    A placement that uses the device carries no more than the best one on the other devices after
    its loss, and any other placement is one on the other devices.
    """
    names = problem.cluster.devices.name
    _, rows = np.unique(problem.interchangeable, return_index=True)
    strongest = np.argsort(problem.load.sum(axis=0)[rows], kind="stable")[:MAX_BOUNDED]
    least = 1.0
    for d in rows[strongest].tolist():
        try:
            least = min(least, 1 / least_times(problem.without(names[d])))
        except StreamplaceError:  # the last device, or the only one for some operator
            return 0.0
    return least


@dataclass(frozen=True, slots=True)
class Survived(Displayed):
    """Share that a placement carries before and after the loss of any one device."""

    value: float  # least share of the sources' rate
    exact: bool  # whether the value is exact, or a lower bound
    losses: tuple[Loss, ...]  # of each device in use, the one that costs most first
    beside: Explanation  # of the throughput before any loss

    @property
    def words(self) -> str:
        """Share in words, and the throughput before any loss."""
        return f"{self._least} survives the loss of any device; {self.beside.words}"

    @property
    def _least(self) -> str:
        return f"{'' if self.exact else 'at least '}{percent(self.value)}"

    @property
    def verdict(self) -> str:
        """Verdict in one sentence: the share, and the device whose loss costs most."""
        worst, survives = self.losses[0], f"{self._least} of the sources' rate"
        if not worst.moved:
            return (
                f"nothing survives the loss of {worst.device}: no other devices carry its operators"
            )
        if worst.relative_throughput >= self.beside.value * (1 - ROUNDING):
            return f"{survives} before and after the loss of any device"
        costs = f"{worst.device} is the one whose loss costs most"
        return f"{survives} survives the loss of any device; {costs}"

    __repr__ = verdict_of

    def headline(self) -> dict[str, Any]:
        """Share, the device whose loss costs most, and the throughput before any loss."""
        worst = self.losses[0].device
        return {
            "survives": self.value,
            "exact": self.exact,
            "worst_loss": worst,
            **self.beside.headline(),
        }

    def document(self) -> dict[str, Any]:
        """All facts."""
        losses = [asdict(loss) for loss in self.losses]
        facts = {**self.beside.document(), **self.headline()}
        return {**facts, "losses": losses, "verdict": self.verdict}

    def to_pandas(self) -> "DataFrame":
        """Table of the losses, one row each."""
        columns = ("device", "relative_throughput", "exact", "moved")
        return data_frame({name: [getattr(loss, name) for loss in self.losses] for name in columns})

    def brief(self) -> Report:
        """Shares after the loss of each device, and the devices with their operators."""
        return Report((*brief_and_detail(self._sheet), *self.beside.brief().parts))

    def report(self) -> Report:
        """Shares after the loss of each device, and the throughput before."""
        report = self.beside.report()
        verdict = f"{self.verdict[0].upper()}{self.verdict[1:]}"
        return Report((*brief_and_detail(self._sheet), verdict, *report.parts), self.words)

    def _sheet(self, is_brief: bool) -> Sheet:
        return loss_sheet(self.losses, is_brief=is_brief)


def loss_sheet(losses: Iterable[Loss], *, is_brief: bool) -> Sheet:
    """Lost devices with the share carried then, and the new devices of their operators."""
    rows = [
        (
            loss.device,
            loss.carried,
            Bar(loss.relative_throughput),
            Names.of([f"{v} → {d}" for v, d in loss.moved.items()], lines=1 if is_brief else 2),
        )
        for loss in losses
    ]
    return with_rest(Sheet(("lost device", "carried", "", "its operators go to"), tuple(rows)))


def explain(problem: Problem, placement: Placement) -> Survived:
    """Explain the share that a placement carries after the loss of each device in use."""
    beside = OBJECTIVES[DEFAULT].explained(problem, placement)
    losses = [loss_of(problem, placement, device) for device in placement.pes()]
    losses.sort(key=lambda loss: loss.relative_throughput)
    least = min(beside.value, losses[0].relative_throughput)
    exact = least == beside.value or any(
        loss.exact for loss in losses if loss.relative_throughput == least
    )
    return Survived(least, exact, tuple(losses), beside)


def picture(problem: Problem, placement: Placement) -> Picture:
    """Mark the operators of the device whose loss costs most."""
    explained = explain(problem, placement)
    worst = explained.losses[0].device
    operators = placement.index == problem.cluster.devices.index(worst)
    streams = np.zeros(problem.graph.n_streams, np.bool_)
    return Picture(
        f"survives {percent(explained.value)}", f"worst loss: {worst}", operators, streams
    )


@objective(
    "survives",
    sense="max",
    explain=explain,
    picture=picture,
    bound=bound,
    limit=1.0,
    kind="rate",
    usual=False,
    guide=DEFAULT,
    ties=DEFAULT,
)
def survives(problem: Problem, placements: Ints) -> Floats:
    """Least share of the sources' rate that is carried before and after any one device is lost.

    The operators of a lost device go to the best other devices; pins to the lost device do not
    count. All other operators stay. If they have too many places to try them all, the value is a
    lower bound, and the explanation says so.
    """
    return _core(problem).shares(np.atleast_2d(np.asarray(placements, np.int32)))
