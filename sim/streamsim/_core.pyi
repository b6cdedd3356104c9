"""Types of the extension module, which `core/` is compiled to; by room."""

from typing import Any, Self, final

from streamsim.arrays import Bools, Floats, Ints, Longs

SOURCES: str
"""Digest of the sources that the module was compiled from."""

# instance

@final
class Problem:
    """The core's copy of a problem, made and checked once."""

    def __new__(cls, instance: Any) -> Problem:
        """Copy the columns of a `streamsim.instance.Instance`; ValueError if they do not fit."""

# flow

def canonical(placements: Ints, order: Ints, classes: Ints) -> Ints:
    """Placements with equal devices renumbered by first appearance along an order."""

def flow(
    rate: Floats,
    source: Ints,
    target: Ints,
    selectivity: Floats,
    windows: Floats,
    joins: Bools,
    inputs: Longs,
) -> dict[str, Any]:
    """Columns of `streamsim.flow.Flow` that follow from a graph; in a cycle, part of its order."""

def flow_at(problem: Problem, shares: Floats) -> Floats:
    """Fraction of its full input that every operator has with sources at shares [S]."""

def group_by(keys: Ints, n: int) -> tuple[Ints, Ints]:
    """Positions by key: those of k are ``positions[start[k]:start[k + 1]]``, ascending."""

def latencies(problem: Problem, placements: Ints) -> Floats:
    """Seconds of the longest path of one tuple, for each placement."""

def leading_to(problem: Problem, marked: Bools) -> Bools:
    """Whether tuples of each source reach one of the marked operators, [S]."""

def overloaded_shares(problem: Problem, placement: Ints, room: Floats, most: Floats) -> Floats:
    """Share of its rate that each source gets if all sources offer theirs, [S]."""

def rates_in_order(
    rate: Floats, source: Ints, target: Ints, selectivity: Floats
) -> tuple[Floats, Floats]:
    """Tuples/s on streams and into operators, of streams that visit operators after their inputs."""

def topological_order(n: int, source: Ints, target: Ints) -> Ints:
    """Operators in breadth-first topological order; fewer than n if there is a cycle."""

def undirected(source: Ints, target: Ints, weight: Longs, n: int) -> tuple[Longs, Longs, Longs]:
    """Start, neighbours in ascending order and their weights, of every vertex."""
# engine

CAPACITY_TICKS: float
"""Capacity of a stream in ticks of full rate without latency, unless it is given."""

def drifts(problem: Problem, admitted: Floats, taken: Floats, emitted: Floats) -> Floats:
    """Imbalance of each operator's input, as a share of its full rate, [B, N].

    ``admitted`` [B, S], ``taken`` [B, N] and ``emitted`` [B, K] are tuples/s of B runs.
    """

def simulate(problem: Problem, wiring: Any, placements: Ints, jump: bool) -> tuple[Floats, ...]:
    """Columns of `streamsim.engine.runs.Sums`; without ticks that repeat, if ``jump``."""

def simulate_logged(problem: Problem, wiring: Any, placement: Ints) -> tuple[Floats, ...]:
    """Columns of `streamsim.engine.observations.Log`."""

def source_equivalents(problem: Problem) -> Floats:
    """Number of source tuples that an input tuple of each sink represents, [N]."""

def tuple_times(
    problem: Problem,
    wiring: Any,
    placement: Ints,
    weights: Floats,
    *,
    random: int,
    seed: int,
    horizon: float,
    tuples: int,
) -> tuple[Floats, int]:
    """Seconds since generation and since admission, and weights, of tuples at sinks.

    The first of the columns of [3, more than ``tuples``], and their number; 0 if too many wait.
    ``random`` is an index in `streamsim.engine.settings.RANDOMNESS`.
    """

# steady

def full_rate_loads(problem: Problem, placement: Ints) -> Floats:
    """Load of every resource at full rate, in the order of the load equation."""

def throughput(problem: Problem, placements: Ints) -> Floats:
    """Relative throughput of each placement, in [0, 1]."""

def throughput_of(problem: Problem, placement: Ints) -> float:
    """Relative throughput of one placement, in [0, 1]."""

# incremental

class Incremental:
    """A placement whose throughput follows every move."""

    def __new__(cls, problem: Problem, placement: Ints) -> Self:
        """Compute the loads of a placement from scratch."""
    @property
    def placement(self) -> Ints:
        """Device of every operator, a copy."""
    @property
    def loads(self) -> Floats:
        """Load of every resource; without network cards that cannot limit."""
    @property
    def throughput(self) -> float:
        """Relative throughput of the current placement."""
    @property
    def peak(self) -> float:
        """Load of the fullest resource."""
    def move(self, operator: int, device: int) -> None:
        """Move one operator to a device."""
    def undo(self) -> None:
        """Take back the last move that was not taken back before."""
