"""Layout: the TaskManager of every subtask of a job."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, core_schema

from streamplace.errors import PlacementError
from streamplace.flink.program.operator_names import operators_in
from streamplace.io.files import located, read_bytes, spot
from streamplace.io.placements import parse_document
from streamplace.model import StreamGraph
from streamplace.model.message_text import quoted
from streamplace.model.subtasks import operators_by_subtask


class Layout(Mapping[str, tuple[str, ...]]):
    """Immutable mapping: operator → device (TaskManager) of each of its subtasks, in order.

    An operator whose number of subtasks a placement does not contain is ``uncounted``: it has one
    device here, and all of its subtasks are on that.

    Examples
    --------
    >>> layout = Layout({"src": ["a"], "map": ["a", "b", "b"]})
    >>> layout["map"], layout.counts("map"), sorted(layout.devices)
    (('a', 'b', 'b'), {'a': 1, 'b': 2}, ['a', 'b'])
    """

    __slots__ = ("_subtasks", "uncounted")
    uncounted: frozenset[str]

    def __init__(
        self, subtasks: Mapping[str, Iterable[str]] | None = None, uncounted: Iterable[str] = ()
    ) -> None:
        self._subtasks = {name: tuple(devices) for name, devices in (subtasks or {}).items()}
        self.uncounted = frozenset(uncounted)

    @classmethod
    def of(
        cls,
        placement: Mapping[str, Sequence[str] | str],
        parallelism: Mapping[str, int] | None = None,
    ) -> "Layout":
        """Layout of a placement of operators or of subtasks; fused operators become separate.

        Subtasks are ordered by number, because the entries of a file may be sorted by name.

        ``placement``: operator, or subtask, → device; or operator → device of each of its subtasks.
        ``parallelism``: number of subtasks of operators with more than one; None if unknown.

        >>> layout = Layout.of({"src -> trim": "a", "map#1": "b", "map#0": "a"})
        >>> layout.to_json()
        {'src': 'a', 'trim': 'a', 'map': ['a', 'b']}
        >>> Layout.of({"src#0": "a", "map": "b"}, {"map": 2}).to_json()
        {'src#0': ['a'], 'map': ['b', 'b']}
        """
        if isinstance(placement, Layout):
            return placement
        whole: dict[str, Sequence[str]] = {}
        numbered: dict[str, list[tuple[int, str]]] = {}
        uncounted = set[str]()
        operators = operators_by_subtask(placement)
        for name, devices in placement.items():
            if not devices:
                raise PlacementError(
                    f"operator {quoted(name)} has no devices; give one for each of its subtasks"
                )
            if not isinstance(devices, str):
                whole[name] = devices
                continue
            owner = operators[name]
            is_subtask = owner != name and name not in (parallelism or ())
            if is_subtask and (parallelism is None or owner in parallelism):
                numbered.setdefault(owner, []).append((int(name.rpartition("#")[2]), devices))
            elif parallelism is None:
                whole[name] = [devices]
                uncounted.add(name)
            else:
                whole[name] = [devices] * parallelism.get(name, 1)
        split = {owner: [device for _, device in sorted(rows)] for owner, rows in numbered.items()}
        for name, number in (parallelism or {}).items():
            if name not in whole and len(split.get(name, ())) != number:
                raise PlacementError(
                    f"operator {quoted(name)} has {len(split.get(name, ()))} placed subtasks, but "
                    f"the placement sets its parallelism to {number}; place the job again"
                )
        return cls({**whole, **split}, uncounted).by_operator()

    @classmethod
    def read(cls, path: Path) -> "Layout":
        """Layout from a placement file."""
        document = parse_document(read_bytes(path), spot(path))
        with located(spot(path)):
            return cls.of(document["assignment"], document.get("parallelism"))

    def __getitem__(self, operator: str) -> tuple[str, ...]:
        return self._subtasks[operator]

    def __iter__(self) -> Iterator[str]:
        return iter(self._subtasks)

    def __len__(self) -> int:
        return len(self._subtasks)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self._subtasks == other._subtasks and self.uncounted == other.uncounted

    def __hash__(self) -> int:
        return hash(frozenset(self._subtasks.items()))

    def __repr__(self) -> str:
        more = f", uncounted={sorted(self.uncounted)}" if self.uncounted else ""
        return f"Layout({self.to_json()}{more})"

    @property
    def devices(self) -> set[str]:
        """Devices with at least one subtask."""
        return {device for devices in self.values() for device in devices}

    @property
    def spread_devices(self) -> set[str]:
        """Devices of operators with subtasks on several devices."""
        return {d for devices in self.values() if len(set(devices)) > 1 for d in devices}

    @property
    def groups(self) -> dict[frozenset[tuple[str, int]], int]:
        """Numbers of subtasks by operator on one device → number of such devices.

        >>> Layout({"src": "a", "map": "ab"}).groups == Layout({"src": "c", "map": "bc"}).groups
        True
        """
        on_device = (
            frozenset((name, self[name].count(device)) for name in self if device in self[name])
            for device in self.devices
        )
        return dict(Counter(on_device))

    def counts(self, operator: str) -> dict[str, int]:
        """Number of an operator's subtasks on each device; empty for an unknown operator."""
        return dict(Counter(self._subtasks.get(operator, ())))

    def moved_from(self, before: "Layout") -> dict[str, tuple[dict[str, int], dict[str, int]]]:
        """Operators with moved subtasks, and their numbers by device before and now.

        Subtasks of one operator are interchangeable.

        >>> Layout({"map": ["b", "b"]}).moved_from(Layout({"map": ["a", "b"]}))
        {'map': ({'a': 1, 'b': 1}, {'b': 2})}
        >>> Layout({"map": ["b", "a"]}).moved_from(Layout({"map": ["a", "b"]}))
        {}
        """
        pairs = {name: (_sorted(before.counts(name)), _sorted(self.counts(name))) for name in self}
        return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}

    def number_moved_from(self, before: "Layout") -> int:
        """Number of subtasks that are on another device than before."""
        pairs = self.moved_from(before).values()
        return sum((Counter(now) - Counter(then)).total() for then, now in pairs)

    def without(self, lost: Collection[str]) -> "Layout":
        """Layout with the subtasks of lost devices on the others, evenly.

        At least one device must remain. Operators that were on one device stay on one device,
        because TaskManagers may be configured for whole operators only.
        """
        numbers = Counter(device for devices in self.values() for device in devices)
        others = sorted(self.devices.difference(lost))

        def elsewhere(device: str, number: int = 1) -> str:
            if device not in lost:
                return device
            emptiest = min(others, key=numbers.__getitem__)
            numbers[emptiest] += number
            return emptiest

        moved: dict[str, Iterable[str]] = {}
        for name, devices in self.items():
            if len(set(devices)) == 1:
                moved[name] = [elsewhere(devices[0], len(devices))] * len(devices)
            else:
                moved[name] = [elsewhere(device) for device in devices]
        return Layout(moved, self.uncounted)

    def with_spares(self, spares: Mapping[str, str]) -> "Layout":
        """Layout with spare devices in place of others; ``spares``: device → spare."""
        moved = {name: [spares.get(d, d) for d in devices] for name, devices in self.items()}
        return Layout(moved, self.uncounted)

    def counted(self, running: "Layout") -> "Layout":
        """Layout whose uncounted operators have the numbers of subtasks of a running job."""
        numbers = {name: max(1, len(running.get(name, ()))) for name in self.uncounted}
        return Layout({name: devices * numbers.get(name, 1) for name, devices in self.items()})

    def by_operator(self) -> "Layout":
        """Layout with separate entries for operators that are fused in the measured job.

        >>> Layout({"src -> trim": ["a"], "out": ["a", "b"]}).by_operator()
        Layout({'src': ['a'], 'trim': ['a'], 'out': ['a', 'b']})
        """
        pairs = [(name, operator) for name in self for operator in operators_in(name)]
        return Layout(
            {operator: self[name] for name, operator in pairs},
            (operator for name, operator in pairs if name in self.uncounted),
        )

    def by_task(self, graph: StreamGraph) -> "Layout":
        """Layout by the operators of a graph, which may be fused ones."""
        layout = {}
        numbers = zip(graph.operators.name, graph.operators.parallelism.tolist(), strict=True)
        for name, number in numbers:
            entry = next(key for key in (name, *operators_in(name)) if key in self)
            layout[name] = self[entry] * (number if entry in self.uncounted else 1)
        return Layout(layout)

    def to_json(self) -> dict[str, list[str] | str]:
        """Devices as JSON: a list per operator, a single name for an uncounted operator."""
        return {n: devices[0] if n in self.uncounted else [*devices] for n, devices in self.items()}

    @classmethod
    def from_json(cls, document: Mapping[str, Sequence[str] | str]) -> "Layout":
        """Layout from the JSON of `to_json`."""
        uncounted = [name for name, devices in document.items() if isinstance(devices, str)]
        return cls({n: [v] if isinstance(v, str) else v for n, v in document.items()}, uncounted)

    def assignment(self) -> dict[str, str]:
        """Operator, or subtask, → device, as in placement files.

        >>> Layout({"src": ["a"], "map": ["a", "b"]}).assignment()
        {'src': 'a', 'map#0': 'a', 'map#1': 'b'}
        """
        return {
            name if len(devices) == 1 else f"{name}#{i}": device
            for name, devices in self.items()
            for i, device in enumerate(devices)
        }

    @classmethod
    def __get_pydantic_core_schema__(cls, _: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Schema of fields of pydantic models: the JSON of a layout of counted operators."""
        return core_schema.no_info_after_validator_function(
            cls,
            handler(dict[str, list[str]]),
            serialization=core_schema.plain_serializer_function_ser_schema(cls.to_json),
        )


def _sorted(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items()))
