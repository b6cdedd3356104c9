"""What Flink's operator does with a FlinkDeployment, on a real API server, and a fake of that.

A thread takes up each new specification of a resource: UPGRADING, then STABLE, or the failure that
the specification asks for. With ``runs``, stock Flink runs the job as an application of that name,
and each change stops it, with a savepoint unless it is stateless, and starts it again; else only
the status shows what is done. Where the environment names the folder of a real operator, that runs
the jobs instead.
"""

import json
import os
from collections.abc import Callable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread, Timer
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from fake_flink import FakeFlink, said, spoken
from flink_clusters import awaited
from pods import NAMESPACE, OPERATOR, SETTINGS, STATE, TEMPLATE

from streamplace.flink.deployment import DEPLOYMENT
from streamplace.flink.operator.api import ApiRefusal, KubernetesApi
from streamplace.flink.operator.journal import PatchClaim, PatchJournal
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.resource import FlinkResource
from streamplace.flink.rest.client import FlinkError

CORE, GROUP = (
    f"/{api}/v1{beta}/namespaces/{NAMESPACE}"
    for api, beta in (("api", ""), ("apis/flink.apache.org", "beta1"))
)
PATH = f"{GROUP}/flinkdeployments"
MODE = "taskmanager.load-balance.mode"
BLUE_GREEN = {"kind": "FlinkBlueGreenDeployment", "name": "both"}
"""What may have made a resource."""
TASKS = {"flinkConfiguration": {MODE: "TASKS"}}
KEPT = ("job.autoscaler.", "kubernetes.operator.")
"""Beginnings of settings that are not handed on to Flink."""
UPGRADE_SECONDS = 0.3
OPERATED = {
    "$internal.flink.version": "v2_3",
    "execution.checkpointing.dir": f"file://{STATE}/checkpoints",
    "execution.checkpointing.externalized-checkpoint-retention": "RETAIN_ON_CANCELLATION",
    "execution.shutdown-on-application-finish": "false",
}
"""Settings that the operator makes; the cluster stays when its job is stopped."""


def specification(**configuration):
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


def resource(**changes):
    """The resource of a job on pods of one core."""
    metadata = {"name": "count", "namespace": NAMESPACE, "uid": "1", **changes.pop("metadata", {})}
    document = {"metadata": metadata, "spec": merged(specification(), changes)}
    return FlinkResource(DEPLOYMENT, NAMESPACE, "count", document, document)


def journal(patch=TASKS, before=None, uid="1"):
    """Journal of a change of that resource."""
    return PatchJournal(
        namespace=NAMESPACE,
        name="count",
        uid=uid,
        before=before or specification(),
        patch=patch,
        resume_by="streamplace flink move --resume",
    )


def claimed(api, patch=TASKS, before=None):
    """Claim on a change of the resource that an API server has."""
    uid = api.get(f"{PATH}/count")["metadata"].get("uid", "1")
    return PatchClaim.begin(api, journal(patch, before, uid))


def claimed_again(api):
    """Claim on an interrupted change of it."""
    return PatchClaim.take(api, NAMESPACE, "count")


@dataclass(slots=True)
class ConfigMaps:
    """ConfigMaps as an API server keeps them."""

    documents: dict[str, dict[str, Any]] = field(default_factory=dict)
    writes: int = 0

    def get(self, path):
        """One of them."""
        name = path.rpartition("/")[2]
        if name not in self.documents:
            raise ApiRefusal("there is none", 404, name)
        return self.documents[name]

    def create(self, folder, document):
        """A new one."""
        if document["metadata"]["name"] in self.documents:
            raise ApiRefusal("there is one", 409)
        return self._put(folder, document)

    def replace(self, path, document):
        """Another version of the one that was read."""
        known = self.get(path.partition("?")[0])
        if known["metadata"]["resourceVersion"] != document["metadata"]["resourceVersion"]:
            raise ApiRefusal("newer", 409)
        return self._put(path, document)

    def _put(self, path, document):
        if "?" in path:  # on trial
            return document
        self.writes += 1
        metadata = document["metadata"] | {"resourceVersion": f"{self.writes}"}
        self.documents[metadata["name"]] = document | {"metadata": metadata}
        return self.documents[metadata["name"]]


class FakeKubernetes(FakeFlink):
    """An API server with FlinkDeployments whose jobs run, and the Flink of each behind its service.

    Parameters
    ----------
    deployments
        Name → specification.
    flinks
        Name → what its service answers; others do not.
    states
        States of a resource before it is patched, and after each patch; the last one stays. None
        stands for one that is not taken up, and an answer for one of the API server.
    clock
        By which a patch is taken up after five seconds; else it is at once.

    Attributes
    ----------
    documents
        The resources by their names.
    maps
        What journals are in.
    patches
        Changes of specifications.
    """

    def __init__(self, deployments, flinks=MappingProxyType({}), states=("STABLE",), clock=None):
        none: dict[str, list[Any]] = {"items": []}
        super().__init__({f"GET {GROUP}/flinksessionjobs": none, f"GET {CORE}/pods": none})
        self.flinks, self.states, self.clock, self.changed = flinks, states, clock, 0.0
        self.documents = {name: _deployed(name, spec) for name, spec in deployments.items()}
        self.maps, self.patches = ConfigMaps(), list[dict[str, Any]]()

    @property
    def api(self):
        """A client that needs no connection."""
        transport = httpx.MockTransport(self.respond)
        return KubernetesApi("http://kubernetes", httpx.Client(transport=transport))

    def respond(self, request):
        """Answer to a request of that client."""
        path, document = request.extensions["target"].decode(), json.loads(request.content or "{}")
        return spoken(self.answer(f"{request.method} {path}", document))

    def answer(self, request, document=None):
        """Answer to a request, by a job's Flink if it is for its service."""
        method, _, path = request.partition(" ")
        service, is_proxy, rest = path.removeprefix(f"{CORE}/services/").partition("/proxy")
        flink = self.flinks.get(service.rpartition("-rest:")[0].removeprefix("https:"))
        if is_proxy and flink is not None:
            return flink.answer(f"{method} {rest}", document)
        found = super().answer(request, document)
        if found is not self.otherwise:
            return found
        if "/configmaps" in path:
            return self._of_map(method, path, document)
        folder, _, name = path.partition("?")[0].rpartition("/")
        if path == PATH:
            return {"items": [*self.documents.values()]}
        if folder == PATH and name in self.documents:
            return self._of_resource(method, path, self.documents[name], document)
        return _missing(name) if folder.startswith(GROUP) else found

    def _of_map(self, method, path, document):
        act = {"GET": self.maps.get, "POST": self.maps.create, "PUT": self.maps.replace}[method]
        try:
            return act(path) if method == "GET" else act(path, document)
        except ApiRefusal as error:
            return _missing(error.missing) if error.missing else said(b"{}", error.status)

    def _of_resource(self, method, path, known, document):
        metadata, status = known["metadata"], known["status"]
        state = self.states[min(metadata["generation"], len(self.states)) - 1]
        if isinstance(state, httpx.Response):
            return state
        if state and (self.clock is None or self.clock.now > self.changed + 5):
            has_ended = state in ("FINISHED", "CANCELED")
            status["observedGeneration"] = metadata["generation"]
            status["lifecycleState"] = "STABLE" if has_ended else state
            status["jobStatus"] |= {"state": state} if has_ended else {}
        if method == "PATCH" and "?" not in path:
            if document["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
                return said(b'{"message": "newer"}', 409)
            assert known["spec"]["job"]["upgradeMode"] == "savepoint"
            self.patches.append(document["spec"])
            known["spec"] = merged(known["spec"], document["spec"])
            metadata["generation"] += 1
            metadata["resourceVersion"] += "1"
            self.changed = self.clock.now if self.clock else 0.0
        return known


def _document(name, spec):
    """A new FlinkDeployment."""
    return {
        "apiVersion": "flink.apache.org/v1beta1",
        "kind": "FlinkDeployment",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": spec,
    }


def _deployed(name, spec):
    """One whose job runs."""
    made = _document(name, spec)
    made["metadata"] |= {"uid": "1", "resourceVersion": "1", "generation": 1}
    status = {"lifecycleState": "STABLE", "observedGeneration": 1, "error": None}
    return made | {"status": status | {"jobStatus": {"state": "RUNNING"}}}


def _missing(name):
    missing = {"reason": "NotFound", "details": {"name": name}, "message": "not found"}
    return said(json.dumps(missing).encode(), 404)


def kubeconfig(folder, server, patch):
    """Let a kubeconfig name a server."""
    own = {"name": "own"}
    config = {
        "clusters": [own | {"cluster": {"server": server}}],
        "users": [own | {"user": {"token": "secret"}}],
        "contexts": [own | {"context": {"cluster": "own", "user": "own"}}],
        "current-context": "own",
    }
    (folder / "kubeconfig").write_text(json.dumps(config))
    patch.setenv("KUBECONFIG", str(folder / "kubeconfig"))


@contextmanager
def reconciled(pods, name, spec=None, *, runs=False):
    """A resource that is taken up while the block runs."""
    document = _document(name, specification() if spec is None else spec)
    if OPERATOR in os.environ:
        if not runs:
            pytest.skip(f"of the stand-in alone, and {OPERATOR} is set")
        document["spec"] = _for_operator(pods, document["spec"])
    pods.call("POST", PATH, document)
    operator = (Operated if OPERATOR in os.environ else StandIn)(pods, name, runs)
    try:
        operator.start()
        yield operator
    finally:
        operator.stop()
        with suppress(httpx.HTTPStatusError):
            pods.call("DELETE", f"{PATH}/{name}")
            awaited(lambda: not _is_there(pods, name), 60.0)


def _end_of(spec):
    """State in which the operator ends with a specification."""
    settings = spec["flinkConfiguration"]
    if settings.get(MODE) == "BROKEN" or spec["image"].startswith("none"):
        return "FAILED"
    saved = settings.get("execution.checkpointing.savepoint-dir", "")
    return "UPGRADING" if settings.get(MODE) == "SLOW" or "/proc/" in saved else "STABLE"


def _is_there(pods, name):
    with suppress(httpx.HTTPStatusError):
        pods.call("GET", f"{PATH}/{name}")
        return True
    return False


def _for_operator(pods, spec):
    """Specification with what the stand-in gives to Flink itself."""
    own = ("kubernetes.", "jobmanager.memory", "taskmanager.memory")
    settings = {key: value for key, value in SETTINGS.items() if not key.startswith(own)}
    settings |= {key: value for key, value in OPERATED.items() if "checkpointing" in key}
    return {
        "serviceAccount": "flink",
        **spec,
        "podTemplate": {"spec": pods.template_spec(spec.get("podTemplate"))},
        "flinkConfiguration": settings | spec["flinkConfiguration"],
        "job": {"entryClass": "CountJob", **spec["job"]},
    }


class StandIn:
    """The operator of one resource."""

    def __init__(self, pods, name, runs):
        self.pods, self.name, self.runs = pods, name, runs
        self._application, self._running = ExitStack(), ()
        self.spec: dict[str, Any] = self.get()["spec"]
        self.taken_up: list[dict[str, Any]] = []
        self._ends, self._thread = Event(), Thread(target=self._run, daemon=True)
        self._is_away = Event()

    def start(self):
        """Take up the first specification, and go on."""
        self._take_up(self.get())
        self._thread.start()

    def stop(self):
        """End, as an operator that is gone."""
        self._ends.set()
        if self._thread.is_alive():
            self._thread.join()
        self._application.close()

    def get(self):
        """The resource."""
        document: dict[str, Any] = self.pods.call("GET", f"{PATH}/{self.name}")
        return document

    def await_stable(self, seconds=240.0):
        """Wait until the specification as it is has been taken up and the job runs."""

        def is_stable():
            document = self.get()
            status = document.get("status", {})
            is_new = document["metadata"]["generation"] == status.get("observedGeneration")
            return bool(is_new and status.get("lifecycleState") == "STABLE")

        awaited(is_stable, seconds)

    def change(self, **configuration):
        """Change settings as another user does."""
        self.patch({"flinkConfiguration": configuration})

    def patch(self, change):
        """Change the specification as another user does."""
        self.pods.call("PATCH", f"{PATH}/{self.name}", {"spec": change})

    @contextmanager
    def gone(self, seconds):
        """Take up nothing for some seconds, from the beginning of the block."""
        timer = Timer(seconds, self._is_away.clear)
        self._is_away.set()
        timer.start()
        try:
            yield
        finally:
            timer.join()

    def _run(self):
        while not self._ends.wait(0.05):
            if self._is_away.is_set():
                continue
            with suppress(httpx.HTTPError):
                document = self.get()
                seen = document.get("status", {}).get("observedGeneration")
                if document["metadata"]["generation"] != seen:
                    self._take_up(document)

    def _take_up(self, document):
        self.taken_up.append(document["spec"])
        self._report(document, "UPGRADING", observed=False)
        state = _end_of(document["spec"])
        if self.runs and state == "STABLE":
            self._start(document["spec"])
        else:
            self._ends.wait(UPGRADE_SECONDS)
        self._report(document, state, observed=True)

    def _report(self, document, state, *, observed):
        generation = document["metadata"]["generation"]
        status: dict[str, Any] = {"lifecycleState": state, "jobStatus": {"state": "RUNNING"}}
        status |= {"observedGeneration": generation} if observed else {}
        status |= {"error": "no such class" if state == "FAILED" else None}
        self.pods.call("PATCH", f"{PATH}/{self.name}/status", {"status": status})

    def _start(self, spec):
        """Run the job as specified, from the savepoint of the last one if there is one."""
        pods = spec["taskManager"]["resource"]
        own = {k: v for k, v in spec["flinkConfiguration"].items() if not k.startswith(KEPT)}
        settings = {
            **OPERATED,
            **own,
            "parallelism.default": str(spec["job"]["parallelism"]),
            "kubernetes.taskmanager.cpu.amount": str(pods["cpu"]),
            "taskmanager.memory.process.size": pods["memory"],
        }
        if self._running:
            if spec["job"]["upgradeMode"] != "stateless":
                settings["execution.savepoint.path"] = self._stop(*self._running)
            self._application.close()
        if template := spec.get("podTemplate"):
            settings[TEMPLATE] = str(self.pods.template(template))
        job = spec["job"]
        of = (job.get("entryClass", "CountJob"), job["jarURI"])
        application = self.pods.application(self.name, *job.get("args", ()), of=of, **settings)
        self._running = self._application.enter_context(application)

    def _stop(self, rest, job):
        """Savepoint with which a job was stopped, or the last checkpoint if that failed."""
        operation: dict[str, Any] = {}

        def has_ended(request):
            answer = rest.get(f"/jobs/{job}/savepoints/{request}")
            operation.update(answer.get("operation") or {})
            return bool(operation)

        with suppress(FlinkError):
            request = rest.post(f"/jobs/{job}/stop", {"drain": False})["request-id"]
            awaited(lambda: has_ended(request))
        if "location" in operation:
            return str(operation["location"])
        checkpoints = rest.get(f"/jobs/{job}/checkpoints")
        return str(checkpoints["latest"]["completed"]["external_path"])


class Operated(StandIn):
    """A resource of a real operator."""

    def start(self):
        """Wait until the job runs, and look on."""
        self.await_stable()
        super().start()

    def _take_up(self, document):
        """Remember a specification once the operator has taken it up."""
        is_new = document["spec"] not in self.taken_up[-1:]
        observed = document["status"].get("observedGeneration")
        if is_new and document["metadata"]["generation"] == observed:
            self.taken_up.append(document["spec"])

    @contextmanager
    def gone(self, seconds):
        """Stop the operator's process for some seconds, from the beginning of the block."""
        with self.pods.stopped("operator", seconds):
            yield

    def _run(self):
        while not self._ends.wait(0.2):
            with suppress(httpx.HTTPError):
                self._take_up(self.get())


@dataclass(frozen=True, slots=True)
class Meddled:
    """An API server at whose requests something happens.

    ``meddle`` is given the kind of a request, such as "patch", its document, and what carries it
    out.
    """

    api: Any
    meddle: Callable[[str, Any, Callable[[], Any]], Any]

    def __getattr__(self, kind):
        act = getattr(self.api, kind)
        return lambda *given: self.meddle(kind, given[-1], lambda: act(*given))


def other_hand(api, operator, change, when):
    """An API server at which others change the specification once, and patches that it gets.

    ``when``: "before" the patch, "after" it, or before it goes "back".
    """
    due, patches = [when], list[dict[str, Any]]()

    def meddle(kind, document, act):
        answer, now = act(), "after"
        if kind == "get":
            status = answer.get("status", {})
            states = {status.get("lifecycleState"), status.get("jobManagerDeploymentStatus")}
            now = "before" if states.isdisjoint({"FAILED", "ERROR"}) else "back"
        else:
            patches.append(document["spec"])
        if due == [now] or (due == ["before"] and kind == "get"):
            due.clear()
            operator.patch(change)
        return answer

    return Meddled(api, meddle), patches


HANDS = {
    "upgradeMode": {"job": {"upgradeMode": "stateless"}},
    "parallelism": {"job": {"parallelism": 3}},
    "replicas": {"taskManager": {"replicas": 2}},
    "image": {"image": "flink:2.4"},
    "suspension": {"job": {"state": "suspended"}},
    "another setting": {"flinkConfiguration": {"other": "1"}},
    "the field itself": {"flinkConfiguration": {MODE: "SLOTS"}},
}
"""What another hand may do to a resource."""
