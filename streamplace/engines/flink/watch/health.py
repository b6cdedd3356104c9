"""Health of a job and of the TaskManagers that it is placed on, as Flink reports it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from streamplace.engines.flink.rest.client import ENDED, Rest

FAILED = "FAILED"
HEARD_MS = 1000
"""A heartbeat that arrived this long after a failure was sent after it."""


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
