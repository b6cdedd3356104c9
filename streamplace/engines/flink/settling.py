"""Settling: whether a job that was just started keeps running as well as before."""

import math
import time
from dataclasses import dataclass

from streamplace.engines.flink.answer_shapes import Job
from streamplace.engines.flink.carried import PERIODIC_LIMIT_MS
from streamplace.engines.flink.rest import FINISHED, FlinkError, Refusal, Rest
from streamplace.engines.flink.sampling import sample, sent_by
from streamplace.engines.flink.state import checkpoint_counts

LOOK_SECONDS = 0.5
RATE_SECONDS = 5.0
"""How long the rate is watched, before a job is stopped and when it has settled."""


@dataclass(frozen=True, slots=True)
class Settling:
    """What a job must show after its start, or else it goes back.

    Attributes
    ----------
    seconds
        For how long it is watched; 0 trusts the start.
    least_rate
        Share of the rate before that its sources must reach; 0 compares no rates.
    """

    seconds: float = 30.0
    least_rate: float = 0.8

    @property
    def compares_rates(self) -> bool:
        """Whether the rates before and after are compared."""
        return self.seconds > 0 and self.least_rate > 0


def source_rate(rest: Rest, job: str) -> float | None:
    """Tuples/s that the sources of a job emit; None where Flink does not tell."""
    document = rest.running_job(job)
    names = _sources(document)
    try:
        counters = {vertex: (metric,) for vertex, metric in names.items()}
        activities = sample(rest, job, [*names], RATE_SECONDS, counters)
    except FlinkError:  # it came to its end
        return None
    rates = [activities[vertex].rates.get(metric) for vertex, metric in names.items()]
    return None if None in rates or not rates else math.fsum(rate for rate in rates if rate)


def settle(rest: Rest, job: str, settling: Settling, rate_before: float | None) -> None:
    """Watch a job that runs.

    Raises
    ------
    FlinkError
        When it does not keep running, completes no checkpoint, or is slower than before.
    """
    deadline = time.monotonic() + settling.seconds
    while True:
        document = rest.job(job)
        if document["state"] == FINISHED:
            return
        if document["state"] != "RUNNING" or document.get("timestamps", {}).get("RESTARTING"):
            raise FlinkError(
                f"job {job} is {document['state']} after its start: {rest.failure(job)}"
            )
        left = deadline - time.monotonic()
        if left <= 0:
            break
        time.sleep(min(LOOK_SECONDS, left))
    _check_checkpoint(rest, job, settling.seconds)
    if settling.compares_rates and rate_before:
        rate = source_rate(rest, job)
        if rate is not None and rate < settling.least_rate * rate_before:
            raise FlinkError(
                f"job {job} reads {rate:.4g} tuples/s, {rate / rate_before:.0%} of the "
                f"{rate_before:.4g} before it was moved (at least {settling.least_rate:.0%} "
                "required)"
            )


def _check_checkpoint(rest: Rest, job: str, seconds: float) -> None:
    """Raise FlinkError where a checkpoint was due and none has completed."""
    try:
        settings = rest.get(f"/jobs/{job}/checkpoints/config")
        interval = settings.get("interval", PERIODIC_LIMIT_MS) / 1000
        counts = checkpoint_counts(rest, job)
    except Refusal:  # it takes none, or has come to its end
        return
    if 2 * interval <= seconds and not counts.completed:
        raise FlinkError(
            f"job {job} has completed no checkpoint {seconds:g} s after its start, though one was "
            f"due every {interval:g} s ({counts.failed} failed)"
        )


def _sources(document: Job) -> dict[str, str]:
    """Vertices without inputs, and the metric that counts what their sources emit."""
    plan = document.get("plan") or {"nodes": []}
    fed = {node["id"] for node in plan["nodes"] if node.get("inputs")}
    return {
        vertex["id"]: sent_by(vertex["name"].partition(" -> ")[0])
        for vertex in document["vertices"]
        if vertex["id"] not in fed
    }
