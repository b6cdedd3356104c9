"""Placement: which device every operator runs on."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from streamplace.errors import PlacementError
from streamplace.model.columns import Ints, frozen, same_fields


@dataclass(frozen=True, slots=True, eq=False)
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

    def __post_init__(self) -> None:
        index = np.array(self.index, np.int32)
        if index.shape != (len(self.operators),):
            raise PlacementError(
                f"a placement of {len(self.operators)} operators needs that many devices, "
                f"not {index.shape}"
            )
        if ((index < 0) | (index >= len(self.devices))).any():
            raise PlacementError(f"a placement's devices must be rows 0 to {len(self.devices) - 1}")
        object.__setattr__(self, "index", frozen(index))

    @classmethod
    def of(
        cls, operators: Sequence[str], devices: Sequence[str], assignment: Mapping[str, str]
    ) -> "Placement":
        """Placement from names; every operator must be given a known device."""
        known = {name: d for d, name in enumerate(devices)}
        for name in operators:
            if name not in assignment:
                raise PlacementError(f"operator {name!r} is not placed; give it a device")
            if assignment[name] not in known:
                listed = ", ".join(devices[:8]) + (", …" if len(devices) > 8 else "")
                raise PlacementError(
                    f"operator {name!r} is on the unknown device {assignment[name]!r}; "
                    f"the cluster has {listed}"
                )
        if len(assignment) > len(operators):
            stray = next(name for name in assignment if name not in set(operators))
            raise PlacementError(
                f"the placement names {stray!r}, which is no operator of the graph"
            )
        return cls(
            tuple(operators), tuple(devices), np.array([known[assignment[v]] for v in operators])
        )

    def __getitem__(self, operator: str) -> str:
        try:
            return self.devices[self.index[self.operators.index(operator)]]
        except ValueError:
            raise KeyError(operator) from None

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
        return {v: self.devices[d] for v, d in zip(self.operators, self.index, strict=True)}

    def pes(self) -> dict[str, list[str]]:
        """Processing elements: the operators on each used device, in device order."""
        groups: dict[str, list[str]] = {self.devices[d]: [] for d in np.unique(self.index)}
        for name, d in zip(self.operators, self.index, strict=True):
            groups[self.devices[d]].append(name)
        return groups
