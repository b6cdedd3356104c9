"""Why a TaskManager, or an operator, limits a job: the cause, the number that shows it, a remedy.

An operator limits a job if one of its subtasks is busy nearly all the time. Flink counts a thread
as busy while it waits for a core. So the busy share of its time is divided into

    busy = CPU + run delay + waiting

and the run delay into throttling of the TaskManager by a quota, and waits for cores that other
processes use. `CAUSES` is the table of causes: the first row that holds decides.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, isnan
from types import MappingProxyType
from typing import NamedTuple

from streamplace.errors import StreamplaceError
from streamplace.flink.constants import BUSY_SHARE, CLEAR_GAIN, MIN_CAUSE
from streamplace.flink.cpu.charging import GARBAGE
from streamplace.flink.cpu.limits import FULL, is_starved
from streamplace.flink.decide.candidates import Question, candidates
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.measure.profile import JobProfile
from streamplace.flink.rest.plan import layout_of
from streamplace.io.ledger import MOVE, errors_for
from streamplace.model import StreamGraph
from streamplace.model.message_text import counted, shown
from streamplace.model.prediction_intervals import RateInterval
from streamplace.model.units import digits
from streamplace.placers.registry import Budget

HOT = "hot: "
"""Prefix of attributes of a measured graph about operators that limit the job."""
NOT_HOT = f"{HOT}no operator limits the job, and no TaskManager is hot"
MAX_LINES, EVALUATIONS = 12, 20_000
"""Maximum number of printed causes; evaluations of the search for a layout, about a second."""


class SubtaskTime(NamedTuple):
    """A subtask, and shares of its time."""

    operator: str
    number: int
    device: str
    busy: float = 0.0
    blocked: float = 0.0  # back-pressured
    cpu: float = 0.0  # share for which its thread ran on a core
    delay: float = 0.0  # share for which its thread waited for a core; 0 if unknown


class ManagerTime(NamedTuple):
    """The CPU of a TaskManager, in cores."""

    used: float
    limit: float
    garbage: float = 0.0
    beside: float = 0.0  # cores that other jobs use in it
    throttled: float = 0.0  # share of the time for which its quota has stopped it
    is_full: bool = False  # whether its cores have no free CPU, also because others use them


class HotJob(NamedTuple):
    """A measured job."""

    subtasks: Sequence[SubtaskTime]
    managers: Mapping[str, ManagerTime]
    rate: float  # tuples/s of its sources
    shares: Mapping[str, Sequence[float]]  # operator → uneven shares of its subtasks in its tuples
    # Operator that waits for something other than CPU → maximum rate of a subtask in tuples/s.
    waits: Mapping[str, float]
    sources: frozenset[str] = frozenset()  # sources, and operators that read their splits
    readers: Mapping[str, Sequence[str]] = MappingProxyType({})  # operator → operators that read it
    gain: RateInterval | None = None  # tuples/s of the best predicted layout
    is_limited: bool = True  # whether more may arrive than its sources emit


class HotPlace:
    """An operator that limits a job, on one of its TaskManagers, by its busiest subtask there."""

    def __init__(self, job: HotJob, subtask: SubtaskTime) -> None:
        self.job, self.subtask = job, subtask
        self.name = f"{HOT}{subtask.operator} on {subtask.device}"
        self.manager = manager = job.managers.get(subtask.device, ManagerTime(0.0, inf))
        self.is_full = is_starved(manager.throttled, is_full=manager.is_full)
        shares = job.shares.get(subtask.operator, ())
        self.share, self.even = (shares[subtask.number], 1 / len(shares)) if shares else (0.0, 1.0)
        self.is_skewed = self.share >= (1 + MIN_CAUSE) * self.even
        self.idle = [
            device
            for device, time in job.managers.items()
            if time.used < (1 - 2 * MIN_CAUSE) * time.limit
        ]
        # thread dumps alone do not tell throttling by a quota from waits for other processes
        is_known = subtask.device in job.managers
        self.delay_by_others = subtask.delay - manager.throttled if is_known else 0.0
        self.max_rate = job.waits.get(subtask.operator)
        self.move_pays = job.gain is not None and job.gain.value >= (1 + CLEAR_GAIN) * job.rate
        readers = job.readers.get(subtask.operator, ())
        busy = [reader.busy for reader in job.subtasks if reader.operator in readers]
        self.cannot_send = (
            subtask.blocked >= MIN_CAUSE and len(busy) > 0 and max(busy) < BUSY_SHARE / 2
        )


class CauseRow(NamedTuple):
    """A cause: whether it holds at a place, the number that shows it, and a remedy."""

    cause: str
    holds: Callable[[HotPlace], bool]
    number: str  # formatted with the fields of a place
    remedy: str
    may_move: bool = False  # whether a move is the better remedy, if it should gain clearly


SKEW = "subtask {0.subtask.number} reads {0.share:.0%} of its tuples, {0.even:.0%} are even"
CORES = "{0.manager.used:.2g} of {0.manager.limit:.2g} cores are used"
CAUSES = (
    CauseRow(
        "garbage",
        lambda p: p.manager.garbage >= MIN_CAUSE * max(p.manager.used, MIN_CAUSE * p.manager.limit),
        "garbage collection takes {0.manager.garbage:.2g} cores, and " + CORES,
        "more memory (taskmanager.memory.process.size), or less state on the heap",
    ),
    CauseRow(
        "look-ups",
        lambda p: p.max_rate is not None and not p.is_full,  # otherwise it may wait for CPU
        "a subtask reads at most {0.max_rate:.3g} tuples/s, with {0.subtask.cpu:.0%} of a core",
        "more subtasks, asynchronous requests, or a cache; no other machines",
    ),
    CauseRow(
        "skewed splits",
        lambda p: p.is_skewed and p.subtask.operator in p.job.sources,
        SKEW,
        "more splits or partitions, as many for each subtask",
    ),
    CauseRow(
        "skewed keys",
        lambda p: p.is_skewed,
        SKEW,
        "other keys, or a sum before the keys; a move cannot split a key",
    ),
    CauseRow(
        "another job",
        lambda p: p.manager.beside >= MIN_CAUSE * p.manager.limit and p.is_full,
        "other jobs use {0.manager.beside:.2g} cores, and " + CORES,
        "TaskManagers of its own",
        may_move=True,
    ),
    CauseRow(
        "placement",
        lambda p: p.is_full and bool(p.idle) and p.move_pays,
        CORES + ", and hardly any on {0.idle[0]}",
        "",
        may_move=True,
    ),
    CauseRow(
        "quota",
        lambda p: p.manager.throttled >= MIN_CAUSE,
        "its quota of {0.manager.limit:.2g} cores stops it {0.manager.throttled:.0%} of the time",
        "a higher quota, or more TaskManagers (flink advise)",
    ),
    CauseRow(
        "neighbours",
        lambda p: p.delay_by_others >= MIN_CAUSE and not p.is_full,
        "its thread waits {0.delay_by_others:.0%} of the time for cores that others have",
        "another host, or fewer processes on this one",
        may_move=True,
    ),
    CauseRow(
        "network",
        lambda p: p.cannot_send,
        "it cannot send {0.subtask.blocked:.0%} of the time, and no reader is busy",
        "faster cards, smaller tuples, or operators together",
        may_move=True,
    ),
    CauseRow(
        "work",
        lambda p: True,
        "it is busy {0.subtask.busy:.0%} of the time, {0.subtask.cpu:.0%} on a core",
        "more subtasks, or more CPU (flink advise)",
    ),
)
"""Causes, in order of precedence."""


def hot_causes(job: HotJob) -> dict[str, str]:
    """Return limiting operators → causes and remedies, as attributes of the graph.

    If the sources are held back, at least the busiest operator limits the job.
    """
    min_busy = BUSY_SHARE if job.is_limited else FULL
    busiest: dict[str, HotPlace] = {}
    places = [HotPlace(job, subtask) for subtask in sorted(job.subtasks, key=lambda s: s.busy)]
    for place in places:
        if place.subtask.busy >= min_busy or (job.is_limited and place.cannot_send):
            busiest[place.name] = place
    if job.is_limited and not busiest:
        busiest = {place.name: place for place in places[-1:]}
    facts = {}
    for name, place in sorted(busiest.items()):
        row = next(row for row in CAUSES if row.holds(place))
        remedy = row.remedy
        if row.may_move and place.move_pays:
            remedy = f"a move (flink move): {job.gain} instead of {digits(job.rate)}"
        facts[name] = f"{row.cause}: {row.number.format(place)}; what would help: {remedy}"
    return facts


def why_hot(
    engine: FlinkEngine, job: str, profile: JobProfile, graph: StreamGraph
) -> dict[str, str]:
    """Attributes for the graph of a profiled job: limiting operators → causes and remedies."""
    gain, unused = None, list[str]()
    if profile.flow.is_limited:
        try:
            measured, rest = engine.measurement(profile, graph), engine.rest
            layout = layout_of(rest, job, rest.running_job(job))
            question = Question.of(rest, job, measured, layout, None, errors_for(graph, by=MOVE))
            rates = [c.predicted for c in candidates(question, Budget(evaluations=EVALUATIONS))]
            gain = max(rates, key=lambda rate: rate.value, default=None)
            unused = [d for d in measured.cluster.devices.name if d not in layout.devices]
        except StreamplaceError as error:  # the job may have ended; its profile is still useful
            profile.doubts.append(f"the gain of a move is not known: {error}")
    return hot_causes(hot_job(profile, gain, unused))


def hot_job(profile: JobProfile, gain: RateInterval | None, unused: Sequence[str]) -> HotJob:
    """Derive the facts behind the causes from a profile, and from TaskManagers without the job."""
    names, subtasks = {task.id: task.name for task in profile.tasks}, list[SubtaskTime]()
    sources = frozenset(task.name for task in profile.sources)
    for task, measured in profile.subtasks.items():
        activity, number = profile.activity[task], max(1, len(measured))
        mean = (activity.busy or 0.0) / number, activity.back_pressured / number
        for subtask, cpu in measured:
            if names[task] in sources - profile.flow.held_back:
                continue
            total = subtask.busy + subtask.idle + subtask.blocked
            times = [*mean]
            if total > 0:  # false for NaN, where Flink only reports sums over the subtasks
                times = [subtask.busy / total, subtask.blocked / total]
            times += [0.0, 0.0] if cpu.thread is None else [cpu.thread.cores, cpu.thread.delay]
            place = names[task], subtask.number, subtask.device
            subtasks.append(SubtaskTime(*place, *(0.0 if isnan(t) else t for t in times)))
    managers = {device: ManagerTime(0.0, 1.0) for device in unused}
    managers |= {
        device: ManagerTime(
            sum(usage.kinds.values()),
            usage.share.limit,
            usage.kinds.get(GARBAGE, 0.0),
            profile.present.beside.get(device, 0.0),
            profile.throttled.get(device, 0.0),
            usage.share.is_full,
        )
        for device, usage in profile.present.usage.items()
    }
    readers: dict[str, list[str]] = {}
    shares = dict(profile.shares)
    for edge in profile.edges:
        source, target = names[edge.source], names[edge.target]
        readers.setdefault(source, []).append(target)
        if edge.partitioning == "forward" and source in sources & shares.keys():
            shares[target], sources = shares[source], sources | {target}
    waits = {names[task]: limit.rate for task, limit in profile.waiting.items()}
    rate = sum(profile.tuples[source.id] for source in profile.sources)
    return HotJob(
        subtasks,
        managers,
        rate,
        shares,
        waits,
        sources,
        readers,
        gain,
        is_limited=profile.flow.is_limited,
    )


def hot_lines(facts: Mapping[str, str]) -> list[str]:
    """Lines on limiting operators, at most one screen."""
    lines = [f"{shown(where, 60)}: {why}" for where, why in facts.items()]
    if rest := lines[MAX_LINES:]:
        lines[MAX_LINES:] = [f"and {counted(len(rest), 'other place')} (--json has all)"]
    return lines or [NOT_HOT]
