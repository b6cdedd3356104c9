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

# passes

@final
class Pass:
    """The core's copy of a pass, made and checked once."""

    def __new__(cls, one_pass: Any) -> Pass:
        """Copy the columns of a `streamsim.passes.Pass`; ValueError if they do not fit."""

def levels(problem: Problem) -> Ints:
    """Level of each operator: most streams on a path to it from an operator without inputs."""

def longest_to_end(
    one_pass: Pass, work: Floats, latency: float, seconds_per_byte: float
) -> Floats:
    """Longest way from each operator to an end, by work [N] and transfers over one link."""

def makespans(
    one_pass: Pass,
    placements: Ints,
    rules: Any,
    priorities: Floats,
    work_factors: Floats,
    send_factors: Floats,
) -> Floats:
    """Makespan of one pass under each placement [B, N]; other arrays have 1 or B rows."""

def pass_bounds(one_pass: Pass, may: Bools, total: Floats) -> tuple[float, float]:
    """Lower bounds of the makespan: of the longest path, and of the ``total`` [C] work."""

def pass_costs(
    problem: Problem, placements: Ints, seconds: float
) -> tuple[Floats, Floats, Floats]:
    """Core seconds [B, D], link seconds [B] and remote bytes [B] of a pass of such a length."""

def pass_times(
    one_pass: Pass,
    placement: Ints,
    rules: Any,
    priority: Floats,
    work_factor: Floats,
    send_factor: Floats,
) -> tuple[float, Floats, Floats]:
    """Makespan; ready, start, finish and work [N, 4]; departure and arrival [M, 2]."""

# scheduling

@final
class Tasks:
    """The core's copy of tasks, made and checked once."""

    def __new__(cls, tasks: Any) -> Tasks:
        """Copy the columns of `streamplace.scheduling.tasks.Tasks`; ValueError if they do not fit."""

def by_batches(tasks: Tasks, rule: int, rank: Floats) -> tuple[Ints, Floats, Floats]:
    """Device, start and finish of every task, batch after batch."""

def by_rank(tasks: Tasks, rank: Floats) -> Ints:
    """Topological order by highest rank, then lowest index."""

def by_upward_rank(tasks: Tasks, insertion: bool) -> tuple[Ints, Floats, Floats]:
    """Device, start and finish of every task by HEFT."""

def downward(tasks: Tasks) -> Floats:
    """Mean seconds from the begin of the pass to every task, [N]."""

def earliest_device(tasks: Tasks, schedule: Any, task: int) -> int:
    """Device on which a task finishes earliest while all others keep their devices and times."""

def insert_all(tasks: Tasks, order: Ints, choice: Any) -> tuple[Ints, Floats, Floats]:
    """Device, start and finish of every task, by insertion in an order."""

def latest_starts(tasks: Tasks, schedule: Any) -> Floats:
    """Latest start of every task with the same makespan and devices."""

def least_after(tasks: Tasks) -> Floats:
    """Least seconds from the end of every task, on each device, to the end of the pass, [N, D]."""

def mean_transfer(tasks: Tasks) -> tuple[float, float]:
    """Latency and seconds per byte of the mean ordered pair of different devices."""

def mean_work(tasks: Tasks) -> Floats:
    """Mean seconds of every task over the devices that may run it, [N]."""

def optimistic_costs(tasks: Tasks) -> Floats:
    """Optimistic cost table of PEFT, [N, D]."""

def shorter(
    tasks: Tasks, rank: Floats, choice: Any, draws: Floats, least: float
) -> tuple[Ints, Floats, Floats] | None:
    """Shortest complete schedule with random ties, by ``draws`` [T, N], that is below ``least``."""

def start_soonest(
    tasks: Tasks, rank: Floats, favourite: Ints
) -> tuple[Ints, Floats, Floats]:
    """Device, start and finish of every task, by earliest start."""

def upward(tasks: Tasks) -> Floats:
    """Mean seconds from the start of every task to the end of the pass, [N]."""

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
