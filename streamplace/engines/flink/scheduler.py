"""Flink's scheduler: only the default one puts slots where they are asked for."""

from collections.abc import Mapping
from typing import Any

from streamplace.engines.flink.rest import Rest

SCHEDULER = "Default"
REMEDY = (
    "which ignores placements; set jobmanager.scheduler: default (no reactive mode) and restart "
    "the JobManager"
)


def cluster_fault(rest: Rest) -> str | None:
    """What is wrong with the scheduler that a cluster's configuration asks for."""
    settings = rest.settings()
    if settings.get("scheduler-mode", "").lower() == "reactive":
        return f"the cluster runs in reactive mode, {REMEDY}"
    if settings.get("jobmanager.scheduler", "").lower() == "adaptive":
        return f"the scheduler is Adaptive, {REMEDY}"
    return None


def job_fault(rest: Rest, document: Mapping[str, Any]) -> str | None:
    """What is wrong with the scheduler of a job; versions before 2 do not name it with the job."""
    scheduler = document.get("schedulerType") or ""
    if not scheduler:
        return cluster_fault(rest)
    return None if scheduler == SCHEDULER else f"the scheduler is {scheduler}, {REMEDY}"
