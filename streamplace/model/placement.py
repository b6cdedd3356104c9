"""Placement: the device of every operator."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from streamplace.errors import PlacementError
from streamplace.model.arrays import Floats, Ints
from streamplace.model.columns import BrokenRule, CountRule, NumberRule, reduced
from streamplace.model.message_text import counted, listed, quoted
from streamplace.model.mixins import Displayed, data_frame, same_fields
from streamplace.model.units import MAX_VALUE

if TYPE_CHECKING:
    from pandas import DataFrame

Discipline = Literal["priority", "order"]
"""Meaning of priorities: which ready operator is first, or a fixed order of each device."""
DISCIPLINES: Final = get_args(Discipline)
RANKS = NumberRule(minimum=-MAX_VALUE)
"""Rule of priorities."""


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Placement(Displayed, Mapping[str, str]):
    """A mapping from operator names to device names, stored as one device row per operator.

    Attributes
    ----------
    priority
        [N] for schedules: on each device, the operator of the highest priority comes first. None
        leaves the order to the device.
    queue
        Meaning of priorities. ``priority``: the ready operator of the highest priority runs first.
        ``order``: the device runs its operators by falling priority, and waits for the next
        operator even if another one is ready.

    Examples
    --------
    >>> placement = Placement(("src", "sink"), ("d0", "d1"), [0, 1])
    >>> placement["sink"], placement.pes()
    ('d1', {'d0': ['src'], 'd1': ['sink']})
    """

    operators: tuple[str, ...]
    devices: tuple[str, ...]
    index: Ints
    priority: Floats | None
    queue: Discipline
    _row: dict[str, int] = field(init=False, repr=False, compare=False)

    def __init__(
        self,
        operators: Sequence[str],
        devices: Sequence[str],
        index: ArrayLike,
        priority: ArrayLike | None = None,
        queue: str = "priority",
    ) -> None:
        put = partial(object.__setattr__, self)
        put("operators", tuple(operators))
        put("devices", tuple(devices))
        n = len(self.operators)
        try:
            put("index", CountRule(0, len(self.devices) - 1).column(index, n))
        except BrokenRule as error:
            raise self._bad("is on device number", error) from None
        try:
            ranks = None if priority is None else RANKS.column(priority, n)
        except BrokenRule as error:
            raise self._bad("has priority", error) from None
        put("priority", ranks)
        if queue not in DISCIPLINES:
            raise PlacementError(f"queue is {quoted(queue)}; it must be priority or order")
        if queue == "order" and ranks is None:
            raise PlacementError("the queue is order, but no operator has a priority; add them")
        put("queue", queue)
        put("_row", {})

    @classmethod
    def of(
        cls,
        operators: Sequence[str],
        devices: Sequence[str],
        assignment: Mapping[str, str],
        priority: Mapping[str, float] | None = None,
        queue: str = "priority",
    ) -> "Placement":
        """Placement from names; every operator needs a device of the list.

        Operators without an entry in ``priority`` have priority 0. Without priorities, the order of
        an ``assignment`` that is a placement is kept.
        """
        if priority is None and isinstance(assignment, Placement):
            priority, queue = assignment.priorities(), assignment.queue
        rows_by_name = {name: d for d, name in enumerate(devices)}
        try:
            rows = [rows_by_name[assignment[name]] for name in operators]
        except KeyError:
            raise _misplaced(operators, devices, assignment) from None
        if len(assignment) > len(rows):
            name = quoted(min(assignment.keys() - set(operators)))
            raise PlacementError(
                f"{name} is placed but is not an operator of the graph; remove it, or give the "
                "placement of this graph"
            )
        if priority and (stray := priority.keys() - set(operators)):
            name = quoted(min(stray))
            raise PlacementError(
                f"{name} has a priority but is not an operator of the graph; remove it"
            )
        order = None if priority is None else [priority.get(name, 0.0) for name in operators]
        return cls(operators, devices, rows, order, queue)

    def __getitem__(self, operator: str) -> str:
        if not self._row:
            self._row.update(zip(self.operators, range(len(self.operators)), strict=True))
        device: int = self.index[self._row[operator]]
        return self.devices[device]

    def __iter__(self) -> Iterator[str]:
        return iter(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    __reduce__ = reduced
    __eq__ = same_fields

    def __hash__(self) -> int:
        return hash(self.index.tobytes())

    @property
    def title(self) -> str:
        """Size in one line."""
        used = counted(len(np.unique(self.index)), "device")
        return f"Placement of {counted(len(self), 'operator')} on {used}"

    def __repr__(self) -> str:
        return f"<{self.title}>"

    def as_dict(self) -> dict[str, str]:
        """Operator name → device name, in operator order."""
        return {
            v: self.devices[d] for v, d in zip(self.operators, self.index.tolist(), strict=True)
        }

    def pes(self) -> dict[str, list[str]]:
        """Processing elements: the operators on each used device, in device order."""
        groups: dict[str, list[str]] = {self.devices[d]: [] for d in np.unique(self.index)}
        for name, d in zip(self.operators, self.index.tolist(), strict=True):
            groups[self.devices[d]].append(name)
        return groups

    def to_pandas(self) -> "DataFrame":
        """Table of the operators with their devices, and priorities if any, one row each."""
        columns = {"operator": self.operators, "device": tuple(self.values())}
        if self.priority is not None:
            columns["priority"] = tuple(self.priority.tolist())
        return data_frame(columns)

    def priorities(self) -> dict[str, float] | None:
        """Operator name → priority; None without an order."""
        if self.priority is None:
            return None
        return dict(zip(self.operators, self.priority.tolist(), strict=True))

    def _bad(self, verb: str, error: BrokenRule) -> PlacementError:
        if error.row < 0:
            return PlacementError(f"a placement of {len(self.operators)} operators {error.rule}")
        return PlacementError(f"operator {quoted(self.operators[error.row])} {verb} {error}")


def _misplaced(
    operators: Sequence[str], devices: Sequence[str], assignment: Mapping[str, str]
) -> PlacementError:
    """Name the operator that has no device, or a device outside the cluster."""
    for name in operators:
        if name not in assignment:
            return PlacementError(f"operator {quoted(name)} is not placed; give it a device")
        if assignment[name] not in devices:
            break
    return PlacementError(
        f"operator {quoted(name)} is on the unknown device {quoted(assignment[name])}; "
        f"the cluster has {listed(tuple(devices))}; give the cluster that the placement is for "
        "(--cluster)"
    )
