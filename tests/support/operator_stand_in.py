"""What Flink's operator does with a FlinkDeployment, on a real API server.

A thread takes up each new specification of a resource: UPGRADING, then STABLE, or the failure that
the specification asks for. With ``runs``, stock Flink runs the job as an application of that name,
and each change stops it, with a savepoint unless it is stateless, and starts it again; else only
the status shows what is done.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Event, Thread
from typing import Any

import httpx
from flink_clusters import awaited
from pods import NAMESPACE, PodCluster

from streamplace.engines.flink.rest.client import FlinkError, Rest

PATH = f"/apis/flink.apache.org/v1beta1/namespaces/{NAMESPACE}/flinkdeployments"
MODE = "taskmanager.load-balance.mode"
UPGRADE_SECONDS = 0.3
OPERATED = {
    "$internal.flink.version": "v2_3",
    "execution.shutdown-on-application-finish": "false",
}
"""Settings that the operator makes; the cluster stays when its job is stopped."""


def specification(**configuration: str) -> dict[str, Any]:
    """Specification of a job that counts."""
    return {
        "image": "flink:2.3",
        "flinkVersion": "v2_3",
        "flinkConfiguration": {"taskmanager.numberOfTaskSlots": "1", **configuration},
        "jobManager": {"resource": {"cpu": 1, "memory": "1024m"}},
        "taskManager": {"resource": {"cpu": 1, "memory": "1024m"}},
        "job": {
            "jarURI": "local:///opt/flink/usrlib/count-job.jar",
            "parallelism": 1,
            "upgradeMode": "savepoint",
            "state": "running",
        },
    }


@contextmanager
def reconciled(
    pods: PodCluster, name: str, spec: dict[str, Any] | None = None, *, runs: bool = False
) -> Iterator["StandIn"]:
    """A resource that is taken up while the block runs."""
    document = {
        "apiVersion": "flink.apache.org/v1beta1",
        "kind": "FlinkDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": specification() if spec is None else spec,
    }
    pods.call("POST", PATH, document)
    operator = StandIn(pods, name, runs)
    try:
        operator.start()
        yield operator
    finally:
        operator.stop()
        with suppress(httpx.HTTPStatusError):
            pods.call("DELETE", f"{PATH}/{name}")


class StandIn:
    """The operator of one resource."""

    def __init__(self, pods: PodCluster, name: str, runs: bool) -> None:
        self.pods, self.name, self.runs = pods, name, runs
        self._application, self._running = ExitStack(), ()
        self.taken_up: list[dict[str, Any]] = []
        self._ends, self._thread = Event(), Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Take up the first specification, and go on."""
        self._take_up(self.get())
        self._thread.start()

    def stop(self) -> None:
        """End, as an operator that is gone."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()
        self._application.close()

    def get(self) -> dict[str, Any]:
        """The resource."""
        document: dict[str, Any] = self.pods.call("GET", f"{PATH}/{self.name}")
        return document

    def change(self, **configuration: str | None) -> None:
        """Change the specification as another user does."""
        patch = {"spec": {"flinkConfiguration": configuration}}
        self.pods.call("PATCH", f"{PATH}/{self.name}", patch)

    def _run(self) -> None:
        while not self._ends.wait(0.05):
            with suppress(httpx.HTTPError):
                document = self.get()
                seen = document.get("status", {}).get("observedGeneration")
                if document["metadata"]["generation"] != seen:
                    self._take_up(document)

    def _take_up(self, document: dict[str, Any]) -> None:
        self.taken_up.append(document["spec"])
        self._report(document, "UPGRADING", observed=False)
        if self.runs:
            self._start(document["spec"])
        else:
            self._ends.wait(UPGRADE_SECONDS)
        mode = document["spec"]["flinkConfiguration"].get(MODE)
        state = "FAILED" if mode == "BROKEN" else "UPGRADING" if mode == "SLOW" else "STABLE"
        self._report(document, state, observed=True)

    def _report(self, document: dict[str, Any], state: str, *, observed: bool) -> None:
        generation = document["metadata"]["generation"]
        status = {"lifecycleState": state, "jobStatus": {"state": "RUNNING"}}
        status |= {"observedGeneration": generation} if observed else {}
        status |= {"error": "no such class"} if state == "FAILED" else {}
        self.pods.call("PATCH", f"{PATH}/{self.name}/status", {"status": status})

    def _start(self, spec: dict[str, Any]) -> None:
        """Run the job as specified, from the savepoint of the last one if there is one."""
        pods = spec["taskManager"]["resource"]
        settings = {
            **OPERATED,
            **spec["flinkConfiguration"],
            "parallelism.default": str(spec["job"]["parallelism"]),
            "kubernetes.taskmanager.cpu.amount": str(pods["cpu"]),
            "taskmanager.memory.process.size": pods["memory"],
        }
        if self._running:
            if spec["job"]["upgradeMode"] != "stateless":
                settings["execution.savepoint.path"] = self._stop(*self._running)
            self._application.close()
        arguments = spec["job"].get("args", ())
        application = self.pods.application(self.name, *arguments, **settings)
        self._running = self._application.enter_context(application)

    def _stop(self, rest: Rest, job: str) -> str:
        """Savepoint with which a job was stopped."""
        request = rest.post(f"/jobs/{job}/stop", {"drain": False})["request-id"]
        places: list[str] = []

        def is_saved() -> bool:
            with suppress(FlinkError):
                answer = rest.get(f"/jobs/{job}/savepoints/{request}")
                places.extend(filter(None, [(answer.get("operation") or {}).get("location")]))
            return bool(places)

        awaited(is_saved)
        return places[0]
