"""Types of the extension module, which `core/` is compiled to; by room."""

from collections.abc import Callable
from typing import Any, Protocol, Self, final, type_check_only

from typing_extensions import disjoint_base

from streamsim.arrays import Bools, Floats, Ints, Longs, Singles

SOURCES: str
"""Digest of the sources that the module was compiled from."""

@type_check_only
class Remaining(Protocol):
    """Rest of a budget: it ends a search of the core after so many seconds or evaluations.

    Ctrl-C ends a search, too, and is raised then.
    """

    @property
    def seconds(self) -> float | None: ...
    @property
    def evaluations(self) -> int | None: ...
    @property
    def clock(self) -> Callable[[], float] | None:
        """Clock in place of the usual one."""

# anneal

@final
class Level:
    """The core's copy of a `streamplace.model.coarsening.Level`."""

    def __new__(cls, level: Any) -> Level:
        """Copy the columns of a level; ValueError if they do not fit."""
    def peaks(self, places: Ints) -> Floats:
        """Load of the fullest resource or core under placements of the units [B, U], [B]."""
    def contracted(self, group: Ints, n_groups: int) -> tuple[Level, dict[str, Any]]:
        """The level whose units are groups [U] of units, and its columns that differ."""
    def heavy_groups(
        self, place: Ints, order: Longs, most: float, remaining: Remaining
    ) -> tuple[Ints, int]:
        """Group of every unit and the number of groups, which are numbered by first unit.

        In the given order, every single unit joins the neighbouring group with which it has the
        most traffic, among those on the same device, under the same rules, and of a weight of at
        most ``most``, where the entire graph weighs 2 (CPU load and number of units count equally).
        Units with rivals stay single.
        """

@final
class Walk:
    """An annealing of the placement of units; see `core/src/anneal/walk.rs`."""

    def __new__(
        cls,
        level: Level,
        place: Ints,
        seed: int,
        first_round: int,
        *,
        mix: tuple[float, float, float],
        slack: float,
        tighten: float = 1.0,
        heat: float = 1.0,
        sweep: bool = False,
    ) -> Walk:
        """Begin at a legal placement of the units.

        ``mix`` has the shares of neighbourhood moves, of swaps, and of moves to a neighbour's
        device. The target of the energy is below the best peak by the share ``slack``, which is
        multiplied by ``tighten`` from round to round. ``heat`` multiplies temperatures. A ``sweep``
        moves units in turn, not at random.
        """
    @property
    def best(self) -> Ints:
        """Device of every unit in the best placement so far, a copy."""
    @property
    def best_peak(self) -> float:
        """Load of its fullest resource."""
    def run(self, proposals: int, enough: float, remaining: Remaining) -> None:
        """Propose moves until there were so many, or the peak is ``enough``."""
    def take_notes(self) -> list[tuple[float, float, int]]:
        """Seconds, best peak and proposals of the last run at its improvements and its end."""

@final
class Annealing:
    """An annealing of the schedule of a pass; see `core/src/anneal/schedules.rs`."""

    def __new__(cls, tasks: Tasks, least: Floats, moving: Floats, seed: int) -> Annealing:
        """Begin without a schedule.

        ``least`` [N] are the least seconds after each task with any devices, ``moving`` [N, D]
        additional costs of a task on a device in seconds, or [0, 0].
        """
    @property
    def best(self) -> float:
        """Makespan and moving cost of the best schedule so far; infinite before there is one."""
    @property
    def current(self) -> float:
        """Makespan and moving cost of the current schedule."""
    @property
    def best_plan(self) -> tuple[Ints, Ints]:
        """Order of the tasks in the best schedule, and their devices."""
    def restart(self, order: Ints, place: Ints) -> None:
        """Continue from another schedule."""
    def run(
        self, moves: int, temperature: float, cooling: float, enough: float, remaining: Remaining
    ) -> bool:
        """Try moves, after each of which the temperature falls by the factor ``cooling``.

        Returns whether all were tried before the best was ``enough`` or the budget ended.
        """
    def take_notes(self) -> list[tuple[float, float, int]]:
        """Seconds, best value and moves of the last run at its improvements and its end."""

def start_times(tasks: Tasks, order: Ints, place: Ints) -> Floats:
    """Start of every task on devices that hold an order, [N]."""

def held_and_eager(tasks: Tasks, order: Ints, place: Ints) -> tuple[float, float]:
    """Makespans where devices hold an order, and where no core waits while a task is ready."""

# exact

@final
class Units:
    """The core's copy of a `streamplace.placers.exact.units.Units`."""

    def __new__(cls, units: Any) -> Units:
        """Copy the columns of units; ValueError if they do not fit."""
    def loads(self, place: Ints) -> tuple[Floats, float]:
        """Load of every resource, and the largest, single cores included."""
    def anneal(
        self,
        start: Ints,
        kind: Ints,
        moves: int,
        enough: float,
        seed: int,
        remaining: Remaining,
    ) -> tuple[Ints, float, int]:
        """Best legal placement found, its peak load, and the moves that the clock allowed.

        The temperature falls over ``moves`` moves, of which the remaining ones are made. Units of
        kind -1 move to any device and swap with any other; units of another kind only swap with
        their own kind, so that every device keeps its number of each kind.
        """
    def place_below(
        self, limits: Any, nodes: int, remaining: Remaining
    ) -> tuple[Ints | None, bool, int]:
        """Placement within `streamplace.placers.exact.peak_bounds.Limits`, by branch and bound.

        Or None, and whether there is none; and the number of nodes.
        """
    def are_few(self, most: int, batch: int, steps: int, remaining: Remaining) -> bool:
        """Whether at most so many placements are listed in slices of ``batch`` and ``steps``."""

@final
class Listing:
    """All legal placements of units, each once up to swaps of equal devices."""

    def __new__(cls, units: Units) -> Listing: ...
    @property
    def is_over(self) -> bool:
        """Whether there are no more placements."""
    def proceed(self, most: int, steps: int, remaining: Remaining) -> Ints:
        """Next placements [B, U], at most so many in at most so many steps."""

def spread(
    hub: Any, limit: float, n_devices: int, steps: int, remaining: Remaining
) -> tuple[bool | None, Longs | None]:
    """Whether units around a `peak_bounds.Hub` can be spread with all loads at most ``limit``.

    None if that is unknown. If so, also the pattern of each device, [D, K].
    """

def pattern_words(
    hub: Any, shift: Longs, least: float, cut: float, remaining: Remaining
) -> tuple[Longs, Floats] | None:
    """Words and work of all patterns of work from ``least`` to the cut; None if too many.

    A word has the count of each kind, shifted by so many bits [K]. The hub is the last kind.
    """

def windows_below(tasks: Tasks, cut: float, remaining: Remaining) -> tuple[Floats, Floats, Floats]:
    """Earliest starts, least seconds after, and work of tasks on devices, [N, D] each.

    Devices are excluded, and their work is infinite, where a pass would not be below the cut.
    """

def packs(sizes: Floats, counts: Longs, room: Floats, remaining: Remaining) -> bool:
    """Whether items of some sizes fit when packed into devices in order.

    Also True if the time ends before that is known.
    """

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
    """Tuples/s on streams and into operators; streams come after all inputs of their source."""

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

# passes

@final
class Pass:
    """The core's copy of a pass, made and checked once."""

    def __new__(cls, one_pass: Any) -> Pass:
        """Copy the columns of a `streamsim.passes.Pass`; ValueError if they do not fit."""

def levels(n: int, source: Ints, target: Ints) -> Ints:
    """Level of each operator: most streams on a path to it from an operator without inputs."""

def longest_to_end(one_pass: Any, work: Floats, latency: float, seconds_per_byte: float) -> Floats:
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

def operator_times(
    one_pass: Pass, placements: Ints, rules: Any, priority: Floats
) -> tuple[Floats, Floats, Ints]:
    """Start, finish and producer of the last input [B, N] under each placement [B, N].

    The producer is -1 without inputs. ValueError if operators wait for ever.
    """

def pass_bounds(one_pass: Pass, may: Bools, total: Floats) -> tuple[float, float]:
    """Lower bounds of the makespan: of the longest path, and of the ``total`` [C] work."""

def pass_costs(problem: Problem, placements: Ints, seconds: float) -> tuple[Floats, Floats, Floats]:
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
        """Copy columns of `streamplace.scheduling.tasks.Tasks`; ValueError if they do not fit."""

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

def start_soonest(tasks: Tasks, rank: Floats, favourite: Ints) -> tuple[Ints, Floats, Floats]:
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

# survival

@final
class Survival:
    """What placements of a problem carry after the loss of a device."""

    def __new__(cls, problem: Problem, freedom: Any) -> Survival:
        """Copy the columns of a `streamplace.objectives.survives.Freedom`."""
    def shares(self, placements: Ints) -> Floats:
        """Share that each placement carries before and after the loss of any one device, at least.

        It is exactly that where branch and bound ends within its limits.
        """
    def without(
        self, placement: Ints, device: int, enough: float
    ) -> tuple[float, bool, Ints | None]:
        """Share after the loss of a device, at least; whether exactly; and the placement.

        There is none if some operator has no other place, or if nothing is carried. The search
        ends at a share that is ``enough``.
        """

# incremental

@disjoint_base
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

# coarsening and partition

def exchanged_parts(traffic: Floats, wire: Floats, kind: Ints) -> Ints:
    """Device of every part [K] after exchanges that lower the strain on links.

    ``traffic`` [K, K] is between parts, ``wire`` [K, K] the seconds per byte between devices. Two
    parts exchange devices of one ``kind`` [K] while that lowers Σ load⁸ over the links of both.
    """

def level_entries(
    n: int, source: Ints, target: Ints, traffic: Floats, tuples: Floats
) -> dict[str, Any]:
    """Columns ``start`` to ``taken_tuples`` of a `Level` whose units are the n operators."""

# packing

def anneal_machines(
    packing: Any, kinds: Ints, rows: Ints, seed: int, steps: int, remaining: Remaining
) -> tuple[Ints, float]:
    """Contents [D, N] with the least excess found in so many steps, and their excess."""

def deal_subtasks(packing: Any, kinds: Ints) -> Ints:
    """Contents in proportion to the speed of machines, even if resources are exceeded, [D, N]."""

def first_fit_machines(packing: Any, kinds: Ints, remaining: Remaining) -> tuple[Ints, Ints] | None:
    """Fill machines in turn; contents [D, N] and unplaced subtasks [N], or None without time."""

def force_subtasks(
    packing: Any, kinds: Ints, rows: Ints, left: Ints, remaining: Remaining
) -> tuple[Ints, Ints]:
    """Place the remaining subtasks where they exceed resources least, while there is time."""

def machine_uses(packing: Any, kinds: Ints, rows: Ints) -> Floats:
    """Use of every resource of every machine, as shares of capacity, [D, 6]."""

def make_room(
    place: Ints,
    allowed: Bools,
    start: Longs,
    rivals: Longs,
    memory: Floats,
    capacity: Floats,
    order: Longs,
) -> Ints:
    """Place units in order: on their device if they fit, else on the next one, else at -1."""

def pack_units(
    allowed: Bools,
    start: Longs,
    rivals: Longs,
    memory: Floats,
    capacity: Floats,
    order: Longs,
    alike: bool,
    steps: int,
) -> Ints | None:
    """Search depth first; if devices are ``alike``, one of those with equal free memory is tried.

    The result is None if no packing exists; units at -1 mean that the step limit was reached.
    """

# pilot

@final
class PilotState:
    """A partial placement of the units of `PilotFeatures`, and what pilot sees of it."""

    def __new__(cls, features: Any) -> PilotState:
        """No unit has a device."""
    @property
    def place(self) -> Ints:
        """Device of every unit, -1 while it has none."""
    @property
    def peak(self) -> float:
        """Load of the fullest resource, in yardsticks."""
    def put(self, unit: int, device: int) -> None:
        """Place a unit on a device, from where it is."""
    def measure(self, unit: int, t: int) -> tuple[Singles, Singles, Bools]:
        """Features of devices [D, 20] for a unit, of decision t [6], and which devices are open."""

@final
class PilotWeights:
    """The weights of pilot's network, checked."""

    def __new__(cls, network: Any) -> PilotWeights:
        """Copy the weights of a `PilotNetwork`; ValueError if their sizes do not fit."""
    def heads(self, features: Any) -> tuple[Singles, Singles]:
        """Parts of the first layer, and contents, of the units of a problem; [U, H] each."""
    def rollouts(
        self,
        features: Any,
        unit: Singles,
        content: Singles,
        fixed: Ints,
        uniform: Singles,
        recorded: bool,
    ) -> tuple[Ints, Floats, dict[str, Any]]:
        """Devices [S, T], log-probabilities [S], and inputs by column, if they are recorded."""

def grown(start: Longs, peer: Ints, flow: Floats, first: int | None) -> Ints:
    """Nodes from ``first`` on, always the one to which most flow leads from those before.

    The neighbours of node u are the entries ``start[u]`` to ``start[u + 1]``. This is a maximum
    adjacency order; ties go to the node of the heavier entry, then to the first, and so does the
    beginning if it is None.
    """

# pilot_makespan

@final
class PilotMakespanWeights:
    """The weights of the network of pilot for the makespan, checked."""

    def __new__(cls, network: Any) -> PilotMakespanWeights:
        """Copy the weights of a `PilotMakespanNetwork`; ValueError if their sizes do not fit."""
    def rollouts(
        self,
        tasks: Tasks,
        features: Any,
        before: Any,
        fixed: Ints,
        uniform: Singles,
        recorded: bool,
    ) -> tuple[Ints, tuple[Ints, Floats, Floats], dict[str, Any]]:
        """Devices [S, N] by step, schedules [S, N], and inputs by column, if they are recorded."""
