"""Problem: a graph to place on a cluster, under constraints; compiled once to arrays."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from streamplace.errors import PlacementError, ProblemError
from streamplace.model.arrays import Bools, Floats, Ints
from streamplace.model.cluster import Cluster
from streamplace.model.columns import checked_kind, frozen, reduced
from streamplace.model.constraints import Constraints
from streamplace.model.graph import StreamGraph
from streamplace.model.message_text import counted, listed, quoted
from streamplace.model.mixins import Caching, Pictured, kept, same_fields
from streamplace.model.placement import Placement
from streamplace.model.streams import CHAINED
from streamplace.model.units import MAX_VALUE, Quantity, format_bytes

if TYPE_CHECKING:
    from streamsim import Instance
    from streamsim.passes import Pass

    from streamplace.model.placement_rules import PlacementRules


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Moving:
    """The costs of moving operators.

    Examples
    --------
    >>> Moving([1e6, 0], [[2, 0.5], [0, 0]]).startup.shape
    (2, 2)
    """

    state: Floats  # [N] bytes of state that move with every operator
    startup: Floats  # [N, D] seconds that every operator takes to start on every device

    def __init__(self, state: ArrayLike, startup: ArrayLike) -> None:
        put = partial(object.__setattr__, self)
        put("state", _checked("state", state))
        put("startup", _checked("startup", startup))

    __reduce__ = reduced
    __eq__ = same_fields

    def __hash__(self) -> int:
        return hash(self.state.tobytes())

    def fitting(self, n_operators: int, n_devices: int) -> "Moving":
        """Return the costs themselves if their shapes fit, else raise ProblemError."""
        expected = {"state": (n_operators,), "startup": (n_operators, n_devices)}
        for name, shape in expected.items():
            actual = getattr(self, name).shape
            if actual != shape:
                raise ProblemError(f"moving: {name} is {actual}; it must be {shape}")
        return self


def _checked(name: str, values: ArrayLike) -> Floats:
    try:
        array = np.array(values, np.float64) + 0.0  # -0.0 becomes 0.0
    except (TypeError, ValueError, OverflowError):
        raise ProblemError(f"moving: {name} must be numbers, a row for every operator") from None
    good = (array >= 0) & (array <= MAX_VALUE)
    if not good.all():
        cell = tuple(np.argwhere(~good)[0].tolist())
        where = "".join(f"[{i}]" for i in cell)
        raise ProblemError(
            f"moving: {name}{where} is {array[cell]:g}; it must be between 0 and {MAX_VALUE:g}"
        )
    return frozen(array)


@dataclass(frozen=True, slots=True, eq=False, init=False)
class Problem(Caching, Pictured):
    """The input of a placer: a graph, a cluster, constraints and costs.

    If memory is short, the constructor searches for a legal placement, unless one is ``known``. If
    the search ends without an answer, or only subtasks may fit, the problem is accepted, and
    functions that need a legal placement raise ProblemError.

    Attributes
    ----------
    seconds
        Core seconds per input tuple, operator × device, where instructions / MIPS is inaccurate
        (an operator that is much faster on a GPU); None otherwise.
    moving
        Costs of moving operators; None if the problem does not state them.
    rules
        The constraints as arrays, None where every placement is legal.

    Examples
    --------
    >>> from streamplace.model import Operator, Stream
    >>> graph = StreamGraph.of("pipe", [Operator("a", ipt=1e5, rate=1e4), Operator("b", ipt=1e5)],
    ...                        [Stream("a", "b")])
    >>> problem = Problem(graph, Cluster.uniform(2))
    >>> problem.instance.load.ravel().tolist()
    [0.4, 0.4]
    """

    graph: StreamGraph
    cluster: Cluster
    constraints: Constraints
    seconds: Floats | None
    moving: Moving | None
    rules: "PlacementRules | None" = field(init=False, repr=False)

    def __init__(
        self,
        graph: StreamGraph,
        cluster: Cluster,
        constraints: Constraints | None = None,
        seconds: ArrayLike | None = None,
        moving: Moving | None = None,
        known: Placement | None = None,
    ) -> None:
        put = partial(object.__setattr__, self)
        put("graph", checked_kind(graph, StreamGraph, ProblemError))
        put("cluster", checked_kind(cluster, Cluster, ProblemError))
        rules = Constraints() if constraints is None else constraints
        rules = checked_kind(rules, Constraints, ProblemError)
        put("constraints", rules.on(cluster.devices))
        put("seconds", None if seconds is None else self._checked_seconds(seconds))
        size = self.n_operators, self.n_devices
        costs = None if moving is None else checked_kind(moving, Moving, ProblemError)
        put("moving", None if costs is None else costs.fitting(*size))
        compiled = None
        if self._has_rules():
            from streamplace.model.placement_rules import compile_rules

            index = None if known is None else known.index
            compiled = compile_rules(graph, cluster, self.constraints, index)
        put("rules", compiled)

    def _has_rules(self) -> bool:
        """Whether constraints, tags, chains or memory forbid any placement."""
        c, operators = self.constraints, self.graph.operators
        if c.pin or c.colocate or c.exlocate or c.allowed or any(operators.requires):
            return True
        any_fits = operators.memory.sum() <= self.cluster.devices.memory.min()
        return CHAINED in self.graph.streams.partitioning or not any_fits

    @property
    @kept
    def instance(self) -> "Instance":
        """The problem as arrays, compiled on first use."""
        from streamsim.instance import instance_of

        per_tuple, device_type = self._costs()
        operators = self.graph.operators
        return instance_of(
            self.graph.flow,
            self.cluster.platform,
            seconds=per_tuple,
            device_type=device_type,
            constant=self._constants(),
            subtasks=operators.parallelism * operators.cores,
            max_rate=operators.largest_rates() / operators.cores,
        )

    @property
    @kept
    def load(self) -> Floats:
        """Share of a device that an operator uses at the full rate of the sources, [N, D].

        Row v is operator v, and column d is device d. Constant loads are included, CPU for sending
        is not. A device is full at 1.

        >>> from streamplace.model import Operator
        >>> graph = StreamGraph.of("one", [Operator("a", ipt=1e5, rate=1e4)])
        >>> Problem(graph, Cluster.uniform(2)).load.tolist()
        [[0.4, 0.4]]
        """
        return frozen(self.instance.full_load[:, self.instance.device_type])

    @property
    @kept
    def one_pass(self) -> "Pass":
        """The costs of one pass as arrays, compiled on first use.

        A pass is one tuple of the fastest source. Streams that inherit the payload of their
        operator and send equally many tuples carry the same output, which some networks send
        once; a stream with a payload of its own is a message of its own.
        """
        from streamsim.passes import compile_pass, link_records, stream_records

        links = self.cluster.cached("links", lambda cluster: link_records(cluster.platform))
        streams = self.graph.cached(
            "streams of a pass",
            lambda graph: stream_records(self.instance, message=graph.streams.messages()),
        )
        return compile_pass(self.instance, streams=streams, links=links)

    @property
    @kept
    def interchangeable(self) -> Ints:
        """Class of every device; swapping two of one class changes neither value nor legality.

        The classes of the cluster are split by the rules and by costs for single devices.
        """
        numbers: dict[tuple[int, bytes, bytes], int] = {}
        allowed = None if self.rules is None else self.rules.allowed
        of_cluster = self.cluster.interchangeable
        if self.constraints.pin and self.constraints.allowed:  # they matter if a pin is dropped
            of_cluster = self.unpinned.interchangeable
        classes = [
            numbers.setdefault((known, _cells(allowed, d), _cells(self.seconds, d)), len(numbers))
            for d, known in enumerate(of_cluster.tolist())
        ]
        return frozen(np.array(classes, np.int32))

    @property
    def n_operators(self) -> int:
        """Number of operators, N."""
        return self.graph.n_operators

    @property
    def n_devices(self) -> int:
        """Number of devices, D."""
        return self.cluster.n_devices

    @property
    def unit(self) -> Ints:
        """Unit of every operator: colocated operators share one, all others have their own."""
        if self.rules is None:
            return np.arange(self.n_operators, dtype=np.int32)
        return self.rules.unit

    @property
    def first_operator(self) -> NDArray[np.intp]:
        """First operator of every unit."""
        return np.arange(self.n_operators) if self.rules is None else self.rules.first_operator

    def __repr__(self) -> str:
        return f"<Problem {self.graph.title}; {counted(self.n_devices, 'device')}>"

    def at_rate(self, total: Quantity | None) -> "Problem":
        """Return the problem at another total rate of the sources, if any; see `StreamGraph`."""
        return self if total is None else replace(self, graph=self.graph.at_rate(total))

    def without(self, device: str) -> "Problem":
        """Return the problem on the other devices, without pins to this one.

        >>> from streamplace.model import Operator
        >>> graph = StreamGraph.of("one", [Operator("a", rate=1.0)])
        >>> problem = Problem(graph, Cluster.uniform(2), Constraints(pin={"a": "d1"}))
        >>> problem.without("d1").constraints.pin
        {}
        """
        cluster, rules = self.cluster.without(device), self.constraints
        d = self.cluster.devices.index(device)
        pin = {name: home for name, home in rules.pin.items() if home != device}
        dropped = rules.pin.items() - pin.items() | rules.dropped.items()
        allowed = {name: devices - {device} for name, devices in rules.allowed.items()}
        seconds = None if self.seconds is None else np.delete(self.seconds, d, axis=1)
        moving = self.moving
        if moving is not None:
            moving = Moving(moving.state, np.delete(moving.startup, d, axis=1))
        constraints = Constraints(pin, rules.colocate, rules.exlocate, allowed, dict(dropped))
        try:
            return Problem(self.graph, cluster, constraints, seconds, moving)
        except ProblemError as error:
            raise ProblemError(f"without {quoted(device)}: {error}") from None

    @property
    def unpinned(self) -> "Problem":
        """The problem without pins."""
        return self.cached("unpinned", Problem._without_pins) if self.constraints.pin else self

    def placement(
        self, devices: ArrayLike, priority: ArrayLike | None = None, queue: str = "priority"
    ) -> Placement:
        """Placement from one device row, and optionally one priority, per operator."""
        names = self.graph.operators.name, self.cluster.devices.name
        return Placement(*names, devices, priority, queue)

    def legal(self, placements: ArrayLike) -> Bools:
        """Whether each placement of a batch [B, N] respects the constraints; shape [B]."""
        batch = np.atleast_2d(np.asarray(placements, np.int32))
        return np.ones(len(batch), bool) if self.rules is None else self.rules.legal(batch)

    def repaired(self, placements: ArrayLike) -> Ints:
        """Legal placements close to the given placements, [N] or [B, N].

        Colocated operators follow the first of their group. An operator on a device that it may not
        use or share moves to the next legal device.
        """
        array = np.asarray(placements, np.int32)
        if self.rules is None:
            return array
        batch = np.atleast_2d(array)
        return np.stack([self.rules.repaired(row) for row in batch]).reshape(array.shape)

    def check(self, placement: Placement) -> None:
        """Raise PlacementError unless the placement fits this problem."""
        if placement.operators != self.graph.operators.name:
            raise PlacementError("the placement is for another graph; its operators differ")
        if placement.devices != self.cluster.devices.name:
            raise PlacementError("the placement is for another cluster; its devices differ")
        if placement.queue == "order":
            check_lines(self.one_pass, placement)
        if self.rules is None or self.rules.is_legal(placement.index):
            return
        if (overfull := self.rules.overfull(placement.index)) is not None:
            raise PlacementError(self._too_much(placement, *overfull))
        broken = self.rules.broken(placement.index)
        a, b = (quoted(placement.operators[v]) for v in broken[1:])
        on = f"{a} on {quoted(placement[placement.operators[broken[1]]])}"
        raise PlacementError(
            {
                "together": f"{a} and {b} must share a device; put them on the same one",
                "allowed": f"the constraints forbid {on}; use a device that they allow",
                "apart": f"{a} and {b} must not share a device; move one of them",
            }[broken[0]]
        )

    def _too_much(self, placement: Placement, device: int, excess: float) -> str:
        """Name the operators on a device that has too little memory."""
        sizes = self.graph.operators.memory
        rows = np.flatnonzero((placement.index == device) & (sizes > 0))
        largest_first = rows[np.argsort(-sizes[rows], kind="stable")].tolist()
        names = [placement.operators[v] for v in largest_first]
        return (
            f"device {quoted(placement.devices[device])} has "
            f"{format_bytes(float(self.cluster.devices.memory[device]))} of memory, "
            f"{format_bytes(excess)} too little for {listed(names)}; move some of them elsewhere"
        )

    def canonical(self, placements: ArrayLike) -> Ints:
        """Renumber interchangeable devices by first appearance; shape [N] or [B, N].

        Placements that differ only by swapped equal devices become equal.
        """
        from streamsim import _core

        array = np.ascontiguousarray(placements, np.int32)
        batch = _core.canonical(np.atleast_2d(array), self.graph.order, self.interchangeable)
        return batch.reshape(array.shape)

    def _checked_seconds(self, seconds: ArrayLike) -> Floats:
        shape = (self.n_operators, self.n_devices)
        try:
            matrix = np.array(seconds, np.float64) + 0.0  # -0.0 becomes 0.0
        except (TypeError, ValueError, OverflowError):
            raise ProblemError("the cost matrix must be numbers, operators × devices") from None
        if matrix.shape != shape:
            raise ProblemError(
                f"the cost matrix is {matrix.shape}; it must be operators × devices, {shape}"
            )
        good = (matrix >= 0) & (matrix <= MAX_VALUE)
        if not good.all():
            v, d = np.argwhere(~good)[0]
            operator, device = self.graph.operators.name[v], self.cluster.devices.name[d]
            raise ProblemError(
                f"operator {quoted(operator)} costs {matrix[v, d]:g} s per tuple on device "
                f"{quoted(device)}; it must be between 0 and {MAX_VALUE:g}"
            )
        return frozen(matrix)

    def __reduce__(self) -> tuple[object, ...]:
        return Problem, (self.graph, self.cluster, self.constraints, self.seconds, self.moving)

    def _without_pins(self) -> "Problem":
        rules, known = self.constraints, None
        if self.rules is not None and self.rules.known_devices is not None:
            known = self.placement(self.rules.known_devices[self.rules.unit])
        free = Constraints(None, rules.colocate, rules.exlocate, rules.allowed)
        return Problem(self.graph, self.cluster, free, self.seconds, self.moving, known)

    def _costs(self) -> tuple[Floats, Ints]:
        """Core seconds per tuple, operators × device types, and the type of each device."""
        devices, ipt = self.cluster.devices, self.graph.charged_ipt
        if self.seconds is not None:
            more = (ipt - self.graph.operators.ipt)[:, None] / (devices.speed * 1e6)
            return self.seconds + more, np.arange(self.n_devices, dtype=np.int32)
        return ipt[:, None] / (devices.speed[devices.example] * 1e6), devices.kind

    def _constants(self) -> Floats | None:
        """Cores that operators use at any rate, operators × device types, or None."""
        constant, devices = self.graph.charged_constant, self.cluster.devices
        if not constant.any():
            return None
        speed = devices.speed if self.seconds is not None else devices.speed[devices.example]
        return np.asarray(constant[:, None] / speed, np.float64)


def check_lines(one_pass: "Pass", placement: Placement) -> None:
    """Raise PlacementError if the order of a device would make it wait for ever."""
    from streamsim.passes import conflict

    if placement.priority is None:
        return
    pair = conflict(one_pass, placement.index, placement.priority)
    if pair is None:
        return
    first, second = (quoted(placement.operators[v]) for v in pair)
    device = quoted(placement.devices[placement.index[pair.first]])
    raise PlacementError(
        f"the order of device {device} puts {first} before {second}, but {first} waits for "
        f"{second}; correct their priorities, or set the queue to priority"
    )


def _cells(matrix: NDArray[Any] | None, column: int) -> bytes:
    return b"" if matrix is None else matrix[:, column].tobytes()


def random_placements(problem: Problem, size: int, rng: "np.random.Generator") -> Ints:
    """Legal placements [size, N]: uniform over k random devices, k uniform."""
    n, d = problem.n_operators, problem.n_devices
    k = rng.integers(1, d, size=(size, 1), endpoint=True)
    drawn = np.floor(rng.random((size, n)) * k).astype(np.int32)
    shuffled = rng.permuted(np.tile(np.arange(d, dtype=np.int32), (size, 1)), axis=1)
    return problem.repaired(np.take_along_axis(shuffled, drawn, axis=1))


def one_moved(problem: Problem, place: Ints) -> Ints:
    """Devices of units after each move of one unit to one device, [U · D, U]."""
    at, devices = place[problem.first_operator], np.arange(problem.n_devices, dtype=np.int32)
    neighbours = np.tile(at, (len(at) * len(devices), 1))
    moved = np.repeat(np.arange(len(at)), len(devices))
    neighbours[np.arange(len(neighbours)), moved] = np.tile(devices, len(at))
    return neighbours
