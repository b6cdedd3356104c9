"""Jobs on pods, started by Flink's operator or a stand-in, and files of their measured rows."""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from flink_clusters import awaited
from flink_jobs import jobs_jar
from operator_stand_in import StandIn, reconciled, specification
from pods import NAMESPACE, PodCluster, kubernetes
from studies import append_row, read_rows

from streamplace.flink.local.session import find_flink
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.mounting import CONFIG_MAP, reporter_files, reporter_patch
from streamplace.flink.operator.resource import FlinkResource, rest_of
from streamplace.flink.rest.client import RUNNING, FlinkError, Rest

Rows = Iterator[dict[str, Any]]
ADDRESS = f"kubernetes:{NAMESPACE}/job"
OPERATOR = "real" if os.environ.get("STREAMPLACE_OPERATOR") else "stand-in"


def completed(
    path: Path,
    missing: Mapping[str, Sequence[Any]],
    measured: Callable[[PodCluster, str, Any], Rows],
) -> list[dict[str, Any]]:
    """Rows of a file, after those that jobs miss were measured."""
    if any(missing.values()):
        with tempfile.TemporaryDirectory() as name:
            flink = find_flink(None)
            with kubernetes(flink, Path(name)) as pods:
                jobs_jar(flink, pods.home / "usrlib" / "jobs.jar")
                os.environ["KUBECONFIG"] = str(pods.work / "kubeconfig")
                for job, of_job in missing.items():
                    for row in measured(pods, job, of_job) if of_job else ():
                        append_row(path, row)
    return read_rows(path)


@contextmanager
def deployed(
    pods: PodCluster,
    entry: str,
    arguments: Sequence[str],
    parallelism: int,
    *,
    cores: float,
    slots: int,
    manager_cores: float | None = None,
) -> Iterator[StandIn]:
    """Run a job with the reporter on pods of so many cores and slots, while the block runs."""
    spec = specification(**{"taskmanager.numberOfTaskSlots": str(slots)})
    spec["job"] |= {
        "jarURI": "local:///opt/flink/usrlib/jobs.jar",
        "entryClass": entry,
        "args": [*arguments],
        "parallelism": parallelism,
        "upgradeMode": "stateless",
    }
    spec["taskManager"]["resource"]["cpu"] = cores
    if manager_cores is not None:
        spec["jobManager"]["resource"]["cpu"] = manager_cores
    document = {"metadata": {"name": "job", "namespace": NAMESPACE}, "spec": spec}
    resource = FlinkResource("FlinkDeployment", NAMESPACE, "job", document, document)
    config_map = pods.work / CONFIG_MAP
    config_map.write_text(reporter_files(resource)[CONFIG_MAP])
    pods.kubectl("apply", "--filename", str(config_map))
    with reconciled(pods, "job", merged(spec, reporter_patch(resource)), runs=True) as operator:
        yield operator


def rest() -> Rest:
    """REST interface of the job's cluster."""
    return rest_of(*ADDRESS.removeprefix("kubernetes:").split("/"))


def restarted(operator: StandIn, patch: Mapping[str, Any]) -> float:
    """Patch a job, and wait until it is stable; returns the seconds until it ran again."""
    began = time.time()
    operator.patch(patch)
    awaited(lambda: _runs_since(began), 240.0)
    seconds = time.time() - began
    operator.await_stable()
    return round(seconds, 1)


def _runs_since(moment: float) -> bool:
    """Whether all subtasks of a job run that began after a moment."""
    with suppress(FlinkError):
        own = rest()
        for job in own.live_jobs():
            document = own.job(job)
            states = {vertex["status"] for vertex in document["vertices"]}
            if document["timestamps"]["CREATED"] >= 1000 * moment and states == {RUNNING}:
                return True
    return False
