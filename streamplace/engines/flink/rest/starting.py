"""Starts of jobs: which jobs restore their state, and how long a running one took to do so."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from streamplace.engines.flink.rest.client import AT_WORK, FlinkError, NoAnswer, Rest
from streamplace.model.messages import quoted

INITIALIZING = "INITIALIZING"
"""State of a task that has its slots and restores its state."""


class StillStarting(NoAnswer):
    """A job has all its slots, but restores its state for longer than was waited.

    Attributes
    ----------
    job
        The job; it is not cancelled.
    """

    def __init__(self, job: str, seconds: float, task: str) -> None:
        super().__init__(
            f"job {job} is still starting after {seconds:g} s: {quoted(task)} is {INITIALIZING}, "
            "as tasks are while they restore their state"
        )
        self.job = job


def refuse_restoring(document: Mapping[str, Any], job: str, seconds: float) -> None:
    """Raise StillStarting if all that keeps a job from running is that tasks initialize."""
    waiting = [v for v in document["vertices"] if v["status"] not in AT_WORK]
    states = {vertex["status"] for vertex in waiting}
    if document["state"] == "RUNNING" and states == {INITIALIZING}:
        raise StillStarting(job, seconds, waiting[0]["name"])


def restored_seconds(rest: Rest, job: str, document: Mapping[str, Any]) -> float:
    """Longest time for which a subtask of a job initialized before it ran; 0 if unknown."""
    root, longest = f"/jobs/{quote(job, safe='')}/vertices", 0.0
    with suppress(FlinkError):
        for vertex in document["vertices"]:
            path = f"{root}/{quote(vertex['id'], safe='')}/subtasktimes"
            for row in rest.get(path)["subtasks"]:
                began, ran = (row["timestamps"].get(s, 0.0) for s in (INITIALIZING, "RUNNING"))
                if 0 < began <= ran:
                    longest = max(longest, ran - began)
    return longest / 1000
