"""Settings of the JobManager on the scheduler and on network buffers."""

import re
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter

from streamplace.flink.rest.client import Refusal, Rest

REMEDY = (
    "which ignores placements; set jobmanager.scheduler: default (no reactive mode) and restart "
    "the JobManager"
)
USUAL, REACTIVE = "Default", "Reactive"
"""Usable scheduler of Flink, and the mode of the other one in which jobs take all slots."""
AUTOSCALER = ("job.autoscaler.", "kubernetes.operator.job.autoscaler.")
"""Prefixes of the autoscaler's settings; the second is the older one."""
OVERRIDES = "pipeline.jobvertex-parallelism-overrides"
"""Setting of the autoscaler; whoever sets it, it overrides the parallelism of the job."""
BUFFER_TIMEOUTS = ("execution.buffer-timeout.interval", "execution.buffer-timeout")
"""Setting of the timeout, and its name before Flink 1.19."""
TIMEOUT_ENABLED = "execution.buffer-timeout.enabled"
BUFFER_SIZE = "taskmanager.memory.segment-size"
_DURATION = re.compile(r"(-?\d{1,18})\s*(?:(n|µ|mic|mil|ms|s|m|h|d)[a-z]*)?")
_SECONDS = {"n": 1e-9, "µ": 1e-6, "mic": 1e-6, "mil": 1e-3, "ms": 1e-3, None: 1e-3}
_SECONDS |= {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
"""Beginnings of the units of Flink's durations, which may be written out: ``2 minutes``."""
_MEMORY = re.compile(r"(\d{1,18})\s*([kmgt]?)(?:b|[a-z]*bytes)?")

DEFAULT_BUFFER_TIMEOUT = 0.1
"""Flink's default, in seconds."""


def buffer_timeout(settings: Mapping[str, str]) -> float | None:
    """Seconds after which Flink sends a partly filled buffer, by the settings of a JobManager.

    0 if it sends every tuple at once, None if it sends only full buffers. A missing or malformed
    setting is the default. A job may set another timeout for itself, which Flink does not report.

    >>> buffer_timeout({BUFFER_TIMEOUTS[0]: "5 ms"}), buffer_timeout({BUFFER_TIMEOUTS[1]: "-1"})
    (0.005, None)
    >>> buffer_timeout({BUFFER_TIMEOUTS[0]: "PT0.02S"})
    0.02
    """
    timeout = _seconds(next((settings[key] for key in BUFFER_TIMEOUTS if key in settings), ""))
    is_disabled = settings.get(TIMEOUT_ENABLED, "").strip().lower() == "false"
    if is_disabled or (timeout is not None and timeout < 0):
        return None
    return DEFAULT_BUFFER_TIMEOUT if timeout is None else timeout


def shown_settings(rest: Rest) -> Mapping[str, str] | None:
    """Settings of the JobManager; None if it, or a gateway, does not show them."""
    with suppress(Refusal):
        return rest.settings()
    return None


def memory_bytes(text: str) -> float | None:
    """Bytes of an amount of memory as Flink reads it; None if malformed or not positive.

    >>> memory_bytes("32kb"), memory_bytes("4294967296"), memory_bytes("some")
    (32768.0, 4294967296.0, None)
    """
    match = _MEMORY.fullmatch(text.strip().lower())
    amount = int(match[1]) * 1024.0 ** "bkmgt".index(match[2] or "b") if match else 0.0
    return amount or None


def _seconds(text: str) -> float | None:
    """Seconds of a duration; from Flink 2.2 on, it may have the format of ISO 8601."""
    if (iso := text.strip().upper()).startswith("P"):
        with suppress(ValueError):
            return TypeAdapter(timedelta).validate_python(iso).total_seconds()
    match = _DURATION.fullmatch(text.strip().lower())
    return int(match[1]) * _SECONDS[match[2]] if match else None


def has_autoscaler(settings: Mapping[str, str]) -> bool:
    """Whether Flink's autoscaler chooses the parallelism: it is on, and does not only advise.

    If the operator has turned it on for all jobs, only the parallelism that it chose shows that.

    >>> has_autoscaler({"kubernetes.operator.job.autoscaler.enabled": "true"})
    True
    >>> has_autoscaler({OVERRIDES: "bc764cd8ddf7a0cff126f51c16239658:2"})
    True
    >>> has_autoscaler({f"job.autoscaler.{key}enabled": str(not key) for key in ("", "scaling.")})
    False
    """

    def value(key: str) -> str:
        return next((settings[p + key] for p in AUTOSCALER if p + key in settings), "").lower()

    is_on = value("enabled") == "true" and value("scaling.enabled") != "false"
    return is_on or bool(settings.get(OVERRIDES))


def scheduler_of(settings: Mapping[str, str], document: Mapping[str, Any]) -> str:
    """Scheduler of a job; before version 2, of its cluster, because the job does not name it.

    >>> scheduler_of({"jobmanager.scheduler": "adaptive"}, {})
    'Adaptive'
    >>> scheduler_of({"jobmanager.scheduler": "adaptive"}, {"schedulerType": "Default"})
    'Default'
    """
    if settings.get("scheduler-mode", "").lower() == "reactive":
        return REACTIVE
    usual = settings.get("jobmanager.scheduler", USUAL).capitalize()
    return str(document.get("schedulerType") or usual)


def scheduler_fault(scheduler: str) -> str:
    """Why a scheduler cannot be used, with the remedy; empty if it can."""
    if scheduler == USUAL:
        return ""
    if scheduler == REACTIVE:
        return f"the cluster runs in reactive mode, {REMEDY}"
    return f"the scheduler is {scheduler}, {REMEDY}"


def job_fault(rest: Rest, document: Mapping[str, Any]) -> str:
    """Why the scheduler of a job cannot be used, with the remedy; empty if it can."""
    is_named = bool(document.get("schedulerType"))
    return scheduler_fault(scheduler_of({} if is_named else shown_settings(rest) or {}, document))
