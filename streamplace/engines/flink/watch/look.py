"""Look at a running job: its rate, its backlog, its layout, and its checkpoints."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import quote

from streamplace.engines.flink.decide.layouts import Layout
from streamplace.engines.flink.measure.sampling import pending_of
from streamplace.engines.flink.move.settling import source_flow
from streamplace.engines.flink.move.state import CheckpointTotals, checkpoint_totals
from streamplace.engines.flink.rest.answer_shapes import Job, Metric
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer, Rest
from streamplace.engines.flink.rest.tasks import layout_of, source_names
from streamplace.model.messages import listed, quoted


@dataclass(frozen=True, slots=True)
class JobLook:
    """A running job, as it is seen in a round."""

    job: str
    rate: float  # tuples/s that its sources emit
    is_limited: bool  # whether back-pressure holds a source back
    backlog: float | None  # tuples that wait for the sources; None if no connector reports them
    layout: Layout  # operator → device of each of its subtasks
    shape: Mapping[str, int]  # task → parallelism
    checkpoints: CheckpointTotals  # numbers of its checkpoints that completed and that failed
    managers: frozenset[str]  # TaskManagers of the cluster
    knows_backlog: bool = False  # whether all sources report what waits for them

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
        _backlog(rest, job, document),
        layout_of(rest, job, document),
        shape_of(document),
        checkpoint_totals(rest, job),
        frozenset(row["id"] for row in rest.task_managers()),
        flow.knows_backlog,
    )


def arrived_since(before: JobLook | None, now: JobLook, seconds: float) -> float | None:
    """Tuples/s that have arrived since an earlier look: those that were read, and those that wait.

    What was read is taken for the mean of both rates. None if no backlog was reported, or if
    another job was looked at: it starts with a backlog that has to be fetched first, and nothing
    was read while none of them ran.
    """
    if before is None or before.job != now.job or seconds <= 0:
        return None
    if before.backlog is None or now.backlog is None:
        return None
    return max(0.0, (before.rate + now.rate) / 2 + (now.backlog - before.backlog) / seconds)


def shape_of(document: Job) -> dict[str, int]:
    """Task → parallelism."""
    return {vertex["name"]: vertex["parallelism"] for vertex in document["vertices"]}


def running_layout(rest: Rest, job: str) -> Layout:
    """Layout of a job; empty while not all of it runs.

    Raises NoAnswer when Flink does not answer.
    """
    try:
        return layout_of(rest, job, rest.running_job(job))
    except NoAnswer:
        raise
    except FlinkError:
        return {}


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


def _backlog(rest: Rest, job: str, document: Job) -> float | None:
    """Unread records of all sources, as far as their connectors report them."""
    waiting: list[float] = []
    for vertex, source in source_names(document).items():
        metric = pending_of(source)
        path = f"/jobs/{quote(job, safe='')}/vertices/{quote(vertex, safe='')}"
        rows: list[Metric] = rest.get(f"{path}/subtasks/metrics?get={quote(metric, safe='')}")
        for row in rows:
            with suppress(KeyError, TypeError, ValueError):
                waiting.append(float(row["sum"]))
    return sum(waiting) if waiting else None
