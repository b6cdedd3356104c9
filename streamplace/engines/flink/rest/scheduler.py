"""Flink's scheduler: the default one obeys placements, the adaptive one numbers of subtasks."""

from collections.abc import Mapping
from typing import Any

from streamplace.engines.flink.rest.buffer_settings import shown_settings
from streamplace.engines.flink.rest.client import Rest

DEFAULT, ADAPTIVE = "Default", "Adaptive"
REMEDY = (
    "which ignores placements; set jobmanager.scheduler: default (no reactive mode) and restart "
    "the JobManager"
)


def is_reactive(settings: Mapping[str, str]) -> bool:
    """Whether jobs use all slots that there are, whatever is required."""
    return settings.get("scheduler-mode", "").lower() == "reactive"


def is_adaptive(rest: Rest, document: Mapping[str, Any]) -> bool:
    """Whether the adaptive scheduler runs a job.

    Before version 2 the job does not say so; if the settings are hidden as well, it counts as one
    of the default scheduler.
    """
    if scheduler := document.get("schedulerType"):
        return bool(scheduler == ADAPTIVE)
    return _fault(shown_settings(rest) or {}) is not None


def cluster_fault(rest: Rest) -> str | None:
    """Fault of the scheduler in a cluster's configuration; None if it can be used."""
    return _fault(rest.settings())


def _fault(settings: Mapping[str, str]) -> str | None:
    if is_reactive(settings):
        return f"the cluster runs in reactive mode, {REMEDY}"
    if settings.get("jobmanager.scheduler", "").lower() == ADAPTIVE.lower():
        return f"the scheduler is {ADAPTIVE}, {REMEDY}"
    return None


def job_fault(rest: Rest, document: Mapping[str, Any]) -> str | None:
    """Fault of the scheduler of a job; the job does not name it before version 2."""
    scheduler = document.get("schedulerType") or ""
    if not scheduler:
        return cluster_fault(rest)
    return None if scheduler == DEFAULT else f"the scheduler is {scheduler}, {REMEDY}"
