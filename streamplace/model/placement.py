"""Placement: which device every operator runs on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from streamplace.errors import PlacementError
from streamplace.model.columns import Ints, int_column, same_fields
from streamplace.model.messages import listed, quoted


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Placement(Mapping[str, str]):
    """A mapping from operator names to device names, stored as one device row per operator.

    Examples
    --------
    >>> placement = Placement(("src", "sink"), ("d0", "d1"), [0, 1])
    >>> placement["sink"], placement.pes()
    ('d1', {'d0': ['src'], 'd1': ['sink']})
    """

    operators: tuple[str, ...]
    devices: tuple[str, ...]
    index: Ints
    _row: dict[str, int] = field(init=False, repr=False, compare=False)

    def __init__(self, operators: Sequence[str], devices: Sequence[str], index: ArrayLike) -> None:
        put = partial(object.__setattr__, self)
        put("operators", tuple(operators))
        put("devices", tuple(devices))
        size, last = len(self.operators), len(self.devices) - 1
        put("index", int_column(index, size, 0, self._bad, least=0, most=last))
        put("_row", {})

    @classmethod
    def of(
        cls, operators: Sequence[str], devices: Sequence[str], assignment: Mapping[str, str]
    ) -> "Placement":
        """Placement from names; every operator must be given a known device."""
        known = {name: d for d, name in enumerate(devices)}
        try:
            rows = [known[assignment[name]] for name in operators]
        except KeyError:
            raise _misplaced(operators, devices, assignment) from None
        if len(assignment) > len(rows):
            name = quoted(min(assignment.keys() - set(operators)))
            raise PlacementError(f"{name} is placed but is no operator of the graph; remove it")
        return cls(operators, devices, rows)

    def __getitem__(self, operator: str) -> str:
        if not self._row:
            self._row.update(zip(self.operators, range(len(self.operators)), strict=True))
        device: int = self.index[self._row[operator]]
        return self.devices[device]

    def __iter__(self) -> Iterator[str]:
        return iter(self.operators)

    def __len__(self) -> int:
        return len(self.operators)

    def __eq__(self, other: object) -> bool:
        return same_fields(self, other)

    def __hash__(self) -> int:
        return hash(self.index.tobytes())

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

    def _bad(self, i: int, value: str, rule: str) -> PlacementError:
        if i < 0:
            return PlacementError(f"a placement of {len(self.operators)} operators {rule}")
        name = quoted(self.operators[i])
        return PlacementError(f"operator {name} is on device number {value}; {rule}")


def _misplaced(
    operators: Sequence[str], devices: Sequence[str], assignment: Mapping[str, str]
) -> PlacementError:
    """Say which operator has no device, or one that the cluster does not have."""
    for name in operators:
        if name not in assignment:
            return PlacementError(f"operator {quoted(name)} is not placed; give it a device")
        if assignment[name] not in devices:
            break
    return PlacementError(
        f"operator {quoted(name)} is on the unknown device {quoted(assignment[name])}; "
        f"the cluster has {listed(tuple(devices))}"
    )
