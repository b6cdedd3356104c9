"""Check Flink's scheduler, because only the default one obeys the placement of slots."""

from collections.abc import Mapping
from typing import Any

from streamplace.engines.flink.rest.client import Rest

SCHEDULER = "Default"
REMEDY = (
    "which ignores placements; set jobmanager.scheduler: default (no reactive mode) and restart "
    "the JobManager"
)


def cluster_fault(rest: Rest) -> str | None:
    """Fault of the scheduler in a cluster's configuration; None if it can be used."""
    settings = rest.settings()
    if settings.get("scheduler-mode", "").lower() == "reactive":
        return f"the cluster runs in reactive mode, {REMEDY}"
    if settings.get("jobmanager.scheduler", "").lower() == "adaptive":
        return f"the scheduler is Adaptive, {REMEDY}"
    return None


def job_fault(rest: Rest, document: Mapping[str, Any]) -> str | None:
    """Fault of the scheduler of a job; the job does not name it before version 2."""
    scheduler = document.get("schedulerType") or ""
    if not scheduler:
        return cluster_fault(rest)
    return None if scheduler == SCHEDULER else f"the scheduler is {scheduler}, {REMEDY}"
