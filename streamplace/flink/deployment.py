"""Deployment of a running job, by REST, and whether streamplace can move the job."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from streamplace.flink.move.savepoints import savepoint_folder
from streamplace.flink.pin.free_resources import is_pinnable
from streamplace.flink.rest.client import FlinkError, Rest
from streamplace.flink.rest.settings import (
    has_autoscaler,
    scheduler_fault,
    scheduler_of,
    shown_settings,
)
from streamplace.flink.versions import version_text
from streamplace.model.message_text import counted, listed, shown

DEPLOYMENT, SESSION_JOB = "FlinkDeployment", "FlinkSessionJob"
"""Resources of Flink's operator for Kubernetes that start jobs."""
_OPERATED = ("$internal.flink.version", "kubernetes.jobmanager.owner.reference")
"""Settings that only Flink's operator makes."""
_AVAILABILITY = ("high-availability.type", "high-availability")
"""Setting of high availability, and its name before Flink 1.17."""
_OF_SESSION_JOB = re.compile(r"(?:0{8}|f{8})[0-9a-f]{8}0{8}[0-9a-f]{8}")
"""Ids of jobs of a FlinkSessionJob: the hash (32 bits) of the resource's id, and its generation."""


@dataclass(frozen=True, slots=True)
class JobDeployment:
    """Deployment of a job, as Flink's REST interface shows it."""

    version: str  # of Flink
    scheduler: str  # such as "Default", "Adaptive" or "Reactive"
    is_application: bool  # whether the cluster runs in application mode
    manager: str  # kind of the operator's resource that the job belongs to; "" for other jobs
    is_operated: bool  # whether Flink's operator for Kubernetes has created the cluster
    kubernetes: str  # namespace and name of the cluster on Kubernetes; "" for other clusters
    task_managers: int
    unpinned: tuple[str, ...]  # TaskManagers without resources for pins
    accepts_jars: bool
    has_autoscaler: bool  # whether Flink's autoscaler changes the parallelism
    savepoints: str | None  # folder of savepoints in the settings of the cluster
    high_availability: str | None  # its kind; None if the JobManager forgets jobs when it ends
    others: tuple[str, ...] = ()  # ids of other running jobs of the cluster
    shows_settings: bool = True  # whether REST shows the settings; a gateway may hide them
    resource: str = ""  # one line on the operator's resource; "" if Kubernetes was not asked

    def __str__(self) -> str:
        """One line."""
        place = "application mode" if self.is_application else "session cluster"
        if self.resource:
            place = self.resource
        elif self.kubernetes:
            kind = self.manager or "native Kubernetes"
            on = "on " if self.manager == SESSION_JOB else ""
            place = f"{kind} {on}{shown(self.kubernetes)}, {place}"
        pins = ""
        if self.unpinned:
            managers = "them" if self.is_unpinned else listed(self.unpinned)
            pins = f" (nothing can be pinned to {managers})"
        folder = "no folder for savepoints"
        if self.savepoints is not None:
            folder = f"savepoints in {shown(self.savepoints)}"
        parts = [
            f"Flink {shown(self.version)}",
            place if self.shows_settings else "its settings are hidden",
            f"{shown(self.scheduler.lower())} scheduler",
            *([] if self.resource else [f"{counted(self.task_managers, 'TaskManager')}{pins}"]),
            *([folder] if self.shows_settings and not self.resource else []),
            *([f"high availability by {shown(k)}"] if (k := self.high_availability) else []),
            *(["autoscaler on"] if self.has_autoscaler else []),
            *([f"beside {counted(len(self.others), 'other job')}"] if self.others else []),
        ]
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON document."""
        return asdict(self)

    @property
    def is_unpinned(self) -> bool:
        """Whether nothing can be pinned to any TaskManager."""
        return 0 < len(self.unpinned) == self.task_managers

    @property
    def has_equal_pods(self) -> bool:
        """Whether it is an application on equal pods."""
        return bool(self.kubernetes) and self.is_application and self.is_unpinned

    @property
    def restarts_cluster(self) -> bool:
        """Whether a change of the job restarts its whole cluster."""
        return self.is_application or bool(self.manager)

    @property
    def without_jars(self) -> str:
        """Why the cluster accepts no jars; empty if it does."""
        if self.is_application:
            return "the cluster runs in application mode, so it accepts no other job"
        return "" if self.accepts_jars else "the cluster accepts no jars (web.submit.enable: false)"

    @property
    def obstacle(self) -> str:
        """Why streamplace cannot move the job, with an alternative; empty if it can."""
        if self.manager:
            return (
                f"the job belongs to a {self.manager}, whose operator would start a second copy "
                "beside a moved one; change its specification, as 'streamplace flink move --rest "
                "kubernetes:NAMESPACE/NAME' does, or 'streamplace flink advise' prints"
            )
        if obstacle := self.obstacle_to_jobs:
            return obstacle
        return self.obstacle_to_pins if self.is_unpinned else ""

    @property
    def obstacle_to_pins(self) -> str:
        """Why nothing can be pinned to some TaskManagers, and an alternative; empty if it can."""
        if not self.unpinned:
            return ""
        if self.kubernetes:
            return (
                "nothing can be pinned to TaskManagers of native Kubernetes, which are all alike; "
                "'streamplace flink advise' prints what can be changed there"
            )
        return (
            f"nothing can be pinned to {listed(self.unpinned)}; add the output of "
            "'streamplace flink config' to their config.yaml and restart them"
        )

    @property
    def obstacle_to_jobs(self) -> str:
        """Why streamplace cannot submit any job, with an alternative; empty if it can."""
        if fault := scheduler_fault(self.scheduler):
            return fault
        if self.is_application and self.kubernetes:
            return (
                f"{self.without_jars}; start it again with the settings that 'streamplace flink "
                "advise' prints"
            )
        if self.is_application:
            return (
                f"{self.without_jars}; write the jar of that job with 'streamplace flink jar', and "
                "start the application again with it, from a savepoint"
            )
        if not self.accepts_jars:
            return (
                f"{self.without_jars}; write a jar with 'streamplace flink jar' and submit it with "
                "'flink run'"
            )
        return ""

    def check_moves(self) -> None:
        """Raise FlinkError if streamplace cannot move the job here."""
        if self.obstacle:
            raise FlinkError(self.obstacle)


def deployment_of(rest: Rest, job: str | None = None) -> JobDeployment:
    """Look up the deployment of a job, or of a cluster without a job."""
    shows, settings = True, shown_settings(rest)
    if settings is None:
        shows, settings = False, {}
    managers = rest.task_managers()
    document: Mapping[str, Any] = {} if job is None else rest.job(job)
    is_application = "$internal.application.main" in settings or settings.get(
        "execution.target", ""
    ).endswith(("embedded", "application"))
    namespace, name = (settings.get(f"kubernetes.{key}", "") for key in ("namespace", "cluster-id"))
    is_operated, manager = any(key in settings for key in _OPERATED), ""
    if is_operated and is_application:
        manager = DEPLOYMENT
    elif (is_operated or not shows) and _OF_SESSION_JOB.fullmatch(job or ""):
        manager = SESSION_JOB
    kind = next((settings[key] for key in _AVAILABILITY if key in settings), "none").lower()
    is_scaled = rest.resource is not None and rest.resource.has_autoscaler
    return JobDeployment(
        version=version_text(rest),
        scheduler=scheduler_of(settings, document),
        is_application=is_application,
        manager=manager,
        is_operated=is_operated,
        kubernetes=f"{namespace or 'default'}/{name}" if name else "",
        task_managers=len(managers),
        unpinned=tuple(row["id"] for row in managers if not is_pinnable(row)),
        accepts_jars=settings.get("web.submit.enable", "").lower() != "false",
        has_autoscaler=is_scaled or has_autoscaler(settings),
        savepoints=savepoint_folder(settings),
        high_availability=None if kind == "none" else kind,
        others=tuple(other for other in rest.live_jobs() if job not in (None, other)),
        shows_settings=shows,
        resource=str(rest.resource or ""),
    )
