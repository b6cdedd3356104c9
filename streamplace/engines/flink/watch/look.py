"""Look at a job: its health, and while it runs its rate, backlog, layout and checkpoints."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from streamplace.engines.flink.layout import Layout
from streamplace.engines.flink.measure.sources import LEAST_NOISE, source_flow
from streamplace.engines.flink.move.saving import CheckpointTotals, checkpoint_totals
from streamplace.engines.flink.rest.answers import Job
from streamplace.engines.flink.rest.client import ENDED, FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.tasks import layout_of
from streamplace.model.messages import listed, quoted

FAILED = "FAILED"
LAG_SECONDS = 10.0
"""A job waits for so long for what is no lag: batches and late counts leave as much."""
HEARD_MS = 1000
"""A heartbeat that arrived this long after a failure was sent after it."""


@dataclass(frozen=True, slots=True)
class JobLook:
    """A running job, as it is seen in a round."""

    job: str
    rate: float  # tuples/s that its sources emit
    is_limited: bool  # whether back-pressure holds a source back
    backlog: float | None  # tuples that wait for the sources; None unless all report them
    layout: Layout
    shape: Mapping[str, int]  # task → parallelism
    checkpoints: CheckpointTotals  # numbers of its checkpoints that completed and that failed
    managers: frozenset[str]  # TaskManagers of the cluster
    started: float = 0.0  # time of its last start or restart, in ms since 1970, if Flink reports it

    @property
    def machines(self) -> int:
        """Number of TaskManagers with subtasks of the job."""
        return len({device for devices in self.layout.values() for device in devices})


def look_at(rest: Rest, job: str) -> JobLook:
    """Look at a running job for some seconds.

    Raises FlinkError when it does not run, or its sources report no rate.
    """
    document = rest.running_job(job)
    flow = source_flow(rest, job)
    if flow is None:
        raise FlinkError(f"Flink reports no rate of the sources of job {job}")
    return JobLook(
        job,
        flow.rate,
        flow.is_limited,
        flow.pending,
        layout_of(rest, job, document),
        shape_of(document),
        checkpoint_totals(rest, job),
        frozenset(row["id"] for row in rest.task_managers()),
        float(document.get("timestamps", {}).get("RUNNING", 0.0)),
    )


@dataclass(frozen=True, slots=True)
class Lag:
    """What two looks at a job say about the tuples that wait for its sources."""

    arriving: float  # tuples/s that arrive for the sources, as far as known
    growth: float | None  # tuples/s by which what waits becomes more; None if that is unknown
    falls_behind: bool | None  # whether the job does not keep up with what arrives
    shows_capacity: bool  # whether its rate is what the layout carries, not what it was offered


def lag_of(before: JobLook | None, now: JobLook, seconds: float) -> Lag:
    """Compare a look with the one that many seconds before it.

    What was read meanwhile is taken for the mean of both rates. A job whose sources report what
    waits keeps up if that does not grow, whatever their back-pressure says. While much waits, its
    sources read as fast as they can.

    Nothing is known of growth if another job was looked at, or the job was restarted: it starts
    with a backlog that has to be fetched first, and nothing was read while it did not run.
    """
    if now.backlog is None:
        return Lag(now.rate, None, now.is_limited, now.is_limited)
    is_same = before is not None and (before.job, before.started) == (now.job, now.started)
    if before is None or before.backlog is None or not is_same or not seconds:
        return Lag(now.rate, None, None, False)
    growth, rate = (now.backlog - before.backlog) / seconds, (before.rate + now.rate) / 2
    much = LAG_SECONDS * rate
    falls_behind = growth > LEAST_NOISE * rate and now.backlog > much
    shows_capacity = falls_behind or min(before.backlog, now.backlog) > much
    return Lag(max(0.0, rate + growth), growth, falls_behind, shows_capacity)


def shape_of(document: Job) -> dict[str, int]:
    """Task → parallelism."""
    return {vertex["name"]: vertex["parallelism"] for vertex in document["vertices"]}


def running_layout(rest: Rest, job: str) -> Layout:
    """Layout of a job; empty while not all of it runs.

    Raises NoAnswer when Flink does not answer.
    """
    return _layout_or_none(lambda: layout_of(rest, job, rest.running_job(job)))


def assigned_layout(rest: Rest, job: str) -> Layout:
    """Layout of a job all of whose subtasks are on TaskManagers that are there; empty if not.

    Some of them may be starting. Raises NoAnswer when Flink does not answer.
    """

    def assigned() -> Layout:
        document = rest.job(job)
        is_running = document["state"] == "RUNNING"
        layout = layout_of(rest, job, document) if is_running else Layout()
        there = {row["id"] for row in rest.task_managers()}
        return layout if layout.devices <= there else Layout()

    return _layout_or_none(assigned)


def _layout_or_none(read: Callable[[], Layout]) -> Layout:
    """Layout that Flink tells; empty if it refuses to."""
    try:
        return read()
    except NoAnswer:
        raise
    except FlinkError:
        return Layout()


def still_fail(before: JobLook | None, now: JobLook, failed_before: bool) -> bool:
    """Whether checkpoints fail: some have since the last look, and none has completed."""
    if before is None or before.job != now.job:
        return False
    if now.checkpoints.completed > before.checkpoints.completed:
        return False
    return failed_before or now.checkpoints.failed > before.checkpoints.failed


def changed_shape(before: Mapping[str, int], now: Mapping[str, int]) -> str:
    """Clause on tasks that others have changed; empty if there are none."""
    if before.keys() != now.keys():
        return f"the tasks of the job are {listed([*now])} now"
    changes = [
        f"the parallelism of {quoted(name)} is {now[name]} now, not {number}"
        for name, number in before.items()
        if now[name] != number
    ]
    return "; ".join(changes)


@dataclass(frozen=True, slots=True)
class Health:
    """State of a job, and of the devices that it is placed on."""

    state: str
    lost: tuple[str, ...] = ()  # devices that the cluster lacks
    # Devices without a heartbeat since the job failed; they will send one, or Flink will regard
    # them as lost after its heartbeat.timeout.
    silent: tuple[str, ...] = ()
    # Devices whose TaskManager has been replaced since the job was started.
    renewed: tuple[str, ...] = ()

    @property
    def has_ended(self) -> bool:
        """Whether the job has ended for another reason than a lost device."""
        if self.state == FAILED:
            return not (self.lost or self.silent or self.renewed)
        return self.state in ENDED

    @property
    def is_restartable(self) -> bool:
        """Whether the job failed with a lost device that has returned since."""
        return self.state == FAILED and not (self.lost or self.silent) and bool(self.renewed)


def health_of(
    rest: Rest, job: str, devices: Collection[str], addresses: Mapping[str, str]
) -> Health:
    """Ask Flink about a job and the devices that it is placed on.

    The addresses are those of the devices' TaskManagers when the job was started.
    """
    state = str(rest.job(job)["state"])
    rows = {row["id"]: row for row in rest.task_managers()}
    there = sorted(rows.keys() & set(devices))
    lost = tuple(sorted(set(devices) - rows.keys()))
    renewed = tuple(d for d in there if addresses.get(d) not in (None, rows[d]["path"]))
    silent = _silent(rest, job, {d: rows[d] for d in there}) if state == FAILED else ()
    return Health(state, lost, silent, renewed)


def addresses_of(rest: Rest, devices: Collection[str]) -> dict[str, str]:
    """Device → current address of its TaskManager, for those in the cluster."""
    return {row["id"]: row["path"] for row in rest.task_managers() if row["id"] in devices}


def _silent(rest: Rest, job: str, rows: Mapping[str, Mapping[str, Any]]) -> tuple[str, ...]:
    """Devices without a heartbeat since a job ended."""
    jobs = rest.get("/jobs/overview")["jobs"]
    ended = max((row["end-time"] for row in jobs if row["jid"] == job), default=0)
    return tuple(
        device
        for device, row in rows.items()
        if row.get("timeSinceLastHeartbeat", ended + HEARD_MS) < ended + HEARD_MS
    )
