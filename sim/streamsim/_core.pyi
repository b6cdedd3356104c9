"""Types of the extension module, which `core/` is compiled to; by room."""

from typing import Any, final

from streamsim.arrays import Floats, Ints

# instance

@final
class Problem:
    """The core's copy of a problem, made and checked once."""

    def __new__(cls, instance: Any) -> Problem:
        """Copy the columns of a `streamsim.instance.Instance`; ValueError if they do not fit."""

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

@final
class Incremental:
    """A placement whose throughput follows every move."""

    def __new__(cls, problem: Problem, placement: Ints) -> Incremental:
        """Compute the loads of a placement from scratch."""
    @property
    def placement(self) -> Ints:
        """Device of every operator, a copy."""
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
