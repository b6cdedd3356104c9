"""A job as a resource of Flink's operator: its specification, its status and its pods.

``kubernetes:NAMESPACE/NAME`` names a FlinkDeployment or a FlinkSessionJob. The API server is a
proxy of Flink's REST interface, the service ``…-rest`` of the cluster.
"""

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import Any, Literal, Required
from urllib.parse import urlencode

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from streamplace.errors import SettingError
from streamplace.flink.deployment import DEPLOYMENT, SESSION_JOB
from streamplace.flink.move.savepoints import savepoint_folder
from streamplace.flink.operator.api import ApiRefusal, KubernetesApi, usual_api
from streamplace.flink.rest.answers import Amount, fields, first_fault, rows
from streamplace.flink.rest.client import ENDED, FlinkError, Rest
from streamplace.flink.rest.settings import has_autoscaler, shown_settings
from streamplace.io.fields import Finite, ListOf
from streamplace.model.message_text import counted, shown

SCHEME = "kubernetes:"
API_VERSION = "flink.apache.org/v1beta1"
GROUP = f"/apis/{API_VERSION}"
PLURALS = {DEPLOYMENT: "flinkdeployments", SESSION_JOB: "flinksessionjobs"}
CONFIGURATION = "flinkConfiguration"
BOUNDS = ("requests", "limits")
"""Of the ``resources`` of a pod."""
PREFIX = "streamplace.io/"
"""Prefix of the annotations that are read here."""
REST_PORT = "8081"
VERSION = re.compile(r"v([12])_(\d{1,3})")
"""Versions of Flink as the operator writes them, such as ``v2_3``."""
STABLE, FAILED = "STABLE", "FAILED"
OWNERS = {
    "argocd": "Argo CD",
    "kustomize-controller": "Flux",
    "helm-controller": "Flux",
    "helm": "Helm",
}
"""Tools that keep a specification in files and undo changes by others: field manager → name."""
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,251}[a-z0-9])?")


def optional_fields(**kinds: Any) -> Any:
    """Type of an object with these optional fields."""
    make: Any = TypedDict
    return make("Fields", kinds, total=False)


_ROWS: Any = ListOf
_NAMED = rows(name=str)
_POD = optional_fields(
    nodeName=str,
    containers=_ROWS[optional_fields(name=Required[str], volumeMounts=_NAMED)],
    volumes=_NAMED,
)
_PODS = optional_fields(
    replicas=Amount,
    resource=optional_fields(cpu=Finite, memory=str),
    resources=optional_fields(requests=dict[str, Any], limits=dict[str, Any]),
    podTemplate=optional_fields(spec=_POD),
)
_METADATA = optional_fields(
    name=Required[str],
    namespace=str,
    generation=Amount,
    uid=Required[str],
    resourceVersion=Required[str],
    deletionTimestamp=str,
    labels=dict[str, str],
    annotations=dict[str, str],
    ownerReferences=rows(kind=str, name=str),
    managedFields=_ROWS[optional_fields(manager=str)],
)
_SPEC = optional_fields(
    deploymentName=str,
    flinkVersion=str,
    flinkConfiguration=dict[str, Any],
    mode=str,
    podTemplate=optional_fields(spec=_POD),
    jobManager=_PODS,
    taskManager=_PODS,
    job=optional_fields(state=str, parallelism=Amount, upgradeMode=str),
)
_STATUS = optional_fields(
    observedGeneration=Amount,
    lifecycleState=str,
    error=str,
    jobManagerDeploymentStatus=str,
    jobStatus=optional_fields(state=str, jobId=str),
)
_RESOURCE = TypeAdapter(
    optional_fields(
        apiVersion=Literal["flink.apache.org/v1beta1"],
        kind=str,
        metadata=Required[_METADATA],
        spec=Required[_SPEC],
        status=_STATUS,
    )
)
"""Declared fields of a resource; others are kept unchanged."""
_LIST = TypeAdapter(fields(items=rows(metadata=fields(name=str), spec=_POD)))
_NAMES = TypeAdapter(fields(items=rows(metadata=fields(name=str))))
_EVENTS = TypeAdapter(
    fields(
        items=_ROWS[
            optional_fields(
                metadata=Required[optional_fields(creationTimestamp=str)],
                involvedObject=Required[optional_fields(kind=str, name=str)],
                type=str,
                reason=str,
                message=str,
                lastTimestamp=str,
                eventTime=str,
            )
        ]
    )
)
_FAILURE = TypeAdapter(fields(message=str))


@dataclass(frozen=True, slots=True, eq=False)
class FlinkResource:
    """A FlinkDeployment or a FlinkSessionJob, and the cluster that it runs on."""

    kind: str
    namespace: str
    name: str
    document: Mapping[str, Any]  # the resource itself
    cluster: Mapping[str, Any]  # the FlinkDeployment of the cluster
    nodes: tuple[str, ...] = ()  # of each pod of a TaskManager; "" if it waits for a node
    # Settings of the JobManager, if it was asked; they include the operator's defaults.
    running: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Kind and name."""
        return f"{self.kind} {self.namespace}/{self.name}"

    @property
    def path(self) -> str:
        """Path of the resource at the API server."""
        return _path(self.kind, self.namespace, self.name)

    @property
    def rest_path(self) -> str:
        """Path of Flink's REST interface at the API server."""
        settings, name = self.configuration, self.cluster["metadata"]["name"]
        scheme = "https:" if settings.get("security.ssl.rest.enabled", "").lower() == "true" else ""
        port = settings.get("rest.port", REST_PORT)
        if not re.fullmatch(r"\d{1,5}", port):
            raise FlinkError(f"{self.title} has rest.port {shown(port)}; set it to a number")
        service = f"{scheme}{name}-rest:{port}"
        return f"/api/v1/namespaces/{self.namespace}/services/{service}/proxy"

    @property
    def spec(self) -> Mapping[str, Any]:
        """Specification of the resource."""
        spec: Mapping[str, Any] = self.document["spec"]
        return spec

    @property
    def status(self) -> Mapping[str, Any]:
        """Status by the operator; empty until it has reported one."""
        status: Mapping[str, Any] = self.document.get("status") or {}
        return status

    @property
    def job(self) -> Mapping[str, Any]:
        """Specification of the job; empty for a session cluster."""
        job: Mapping[str, Any] = self.spec.get("job") or {}
        return job

    @property
    def annotations(self) -> Mapping[str, str]:
        """Annotations with limits set by users, without their prefix."""
        rows = self.document["metadata"].get("annotations") or {}
        return {k.removeprefix(PREFIX): v for k, v in rows.items() if k.startswith(PREFIX)}

    @property
    def job_id(self) -> str:
        """Id of the job; empty if the operator has not reported one."""
        return str((self.status.get("jobStatus") or {}).get("jobId") or "")

    @property
    def counts_pods(self) -> bool:
        """Whether the specification has a number of pods; the job then uses all of their slots.

        Otherwise, the number of pods follows from the parallelism.
        """
        manager = self.spec.get("taskManager") or {}
        return manager.get("replicas") is not None

    def pod_amounts(self, name: str) -> dict[str, Any]:
        """Amounts of ``cpu`` or ``memory`` of a TaskManager: path in the specification → value.

        Requests and limits of ``resources``, if there are any, replace ``resource``.
        """
        manager = self.cluster["spec"].get("taskManager") or {}
        parts = {part: (manager.get("resources") or {}).get(part) or {} for part in BOUNDS}
        if not any(parts.values()):
            return {f"taskManager/resource/{name}": (manager.get("resource") or {}).get(name)}
        stated = [part for part, amounts in parts.items() if name in amounts] or BOUNDS[:1]
        return {f"taskManager/resources/{part}/{name}": parts[part].get(name) for part in stated}

    @property
    def version(self) -> tuple[int, int]:
        """Major and minor version of Flink; (0, 0) if it is not known."""
        match = VERSION.fullmatch(str(self.cluster["spec"].get("flinkVersion", "")))
        return (int(match[1]), int(match[2])) if match is not None else (0, 0)

    @property
    def lifecycle(self) -> str:
        """State of the resource, such as STABLE; empty if the operator has not reported one."""
        return str(self.status.get("lifecycleState") or "")

    @property
    def error(self) -> str:
        """Error of the operator; empty if there is none."""
        text = self.status.get("error") or ""
        with suppress(ValidationError):  # the status has an exception as JSON, or a sentence
            text = _FAILURE.validate_json(text)["message"]
        return shown(text, 300)

    @property
    def configuration(self) -> Mapping[str, str]:
        """Flink's settings: of the job, else of its cluster, else of the JobManager."""
        specs = (self.cluster["spec"], self.spec)
        cluster, job = (flat(spec.get(CONFIGURATION) or {}) for spec in specs)
        return {**self.running, **cluster, **job}

    def as_run(self, rest: Rest) -> "FlinkResource":
        """The resource with the settings of the JobManager, if Flink shows them."""
        return replace(self, running=shown_settings(rest) or {})

    def setting_path(self, key: str) -> tuple[str, ...]:
        """Keys of a setting in the specification of the cluster, which may nest it."""
        settings = self.cluster["spec"].get(CONFIGURATION) or {}
        return (CONFIGURATION, *(_keys(settings, key) or (key,)))

    @property
    def has_autoscaler(self) -> bool:
        """Whether Flink's autoscaler chooses the parallelism."""
        return has_autoscaler(self.configuration)

    @property
    def has_ended(self) -> bool:
        """Whether the job has finished or was cancelled; a change would start it again."""
        state = (self.status.get("jobStatus") or {}).get("state")
        return self.lifecycle == STABLE and state in ENDED

    @property
    def is_suspended(self) -> bool:
        """Whether the specification suspends the job."""
        return bool(self.job.get("state", "running") == "suspended")

    @property
    def owners(self) -> Sequence[Mapping[str, Any]]:
        """Resources that have created this one, such as a FlinkBlueGreenDeployment."""
        return self.document["metadata"].get("ownerReferences") or ()

    @property
    def owner(self) -> str:
        """Tool that manages the specification, such as Argo CD; empty if none is known."""
        metadata = self.document["metadata"]
        if self.owners:
            return shown(f"{self.owners[0]['kind']} {self.owners[0]['name']}")
        names = [row.get("manager", "") for row in metadata.get("managedFields") or []]
        labels = metadata.get("labels") or {}
        names += [labels.get("app.kubernetes.io/managed-by", "")]
        names += ["argocd" for key in labels if key.startswith("argocd.argoproj.io/")]
        for name in names:
            for key, owner in OWNERS.items():
                if key in name.lower():
                    return owner
        return ""

    def warnings(self, api: KubernetesApi, since: str) -> list[str]:
        """Warnings of Kubernetes about the resource and its pods since a time, in order."""
        path, name = f"/api/v1/namespaces/{self.namespace}", self.cluster["metadata"]["name"]
        pods = api.get(f"{path}/pods?{urlencode({'labelSelector': f'app={name}'})}")
        objects = {(self.kind, self.name), ("Deployment", name)}
        objects |= {
            ("Pod", pod["metadata"]["name"]) for pod in checked(_LIST, pods, "the pods")["items"]
        }
        warnings = []
        for row in checked(_EVENTS, api.get(f"{path}/events"), "the events")["items"]:
            about, text = row["involvedObject"], f"{row.get('reason')}: {row.get('message')}"
            times = (row.get("lastTimestamp"), row.get("eventTime"))
            at = next(filter(None, times), row["metadata"].get("creationTimestamp")) or ""
            is_own = (about.get("kind"), about.get("name")) in objects
            if is_own and row.get("type") == "Warning" and at >= since:
                warnings.append((at, text))
        return [text for _, text in sorted(warnings)]

    def patch_command(self, path: str) -> str:
        """Command line that patches the cluster with a file."""
        return f"{self._patch_command} --patch-file {quote(path)}"

    def patch_command_of(self, spec: Mapping[str, Any]) -> str:
        """Command line that merges these fields into the specification of the cluster."""
        return f"{self._patch_command} --patch {quote(json.dumps({'spec': spec}))}"

    @property
    def _patch_command(self) -> str:
        return (
            f"kubectl patch {DEPLOYMENT.lower()} {self.cluster['metadata']['name']} --namespace "
            f"{self.namespace} --type merge"
        )

    def refuse_shared(self) -> None:
        """Raise FlinkError if other jobs share the pods."""
        if self.kind == SESSION_JOB:
            raise FlinkError(
                f"pods and balance mode are those of the cluster of {self.title}, which its "
                "other jobs share; change them in the FlinkDeployment of the cluster"
            )

    def __str__(self) -> str:
        """Describe the resource in one line."""
        cpu, memory = (next(iter(self.pod_amounts(name).values())) for name in ("cpu", "memory"))
        size = f" of {shown(str(cpu or '?'))} cpu and {shown(str(memory or '?'))}"
        nodes = sorted({*self.nodes} - {""})
        on = f" on {', '.join(map(shown, nodes))}" if nodes else ""
        mode = self.cluster["spec"].get("mode") or "native"
        parts = [
            self.title,
            f"operator, {shown(mode)}",
            f"{counted(len(self.nodes), 'TaskManager')}{size if cpu or memory else ''}{on}",
        ]
        upgrade = shown(self.job.get("upgradeMode", "stateless"))
        folder = savepoint_folder(self.configuration)
        text = f"{', '.join(parts)}; {upgrade} upgrades"
        text += f" in {shown(folder)}" if folder and upgrade == "savepoint" else ""
        return f"{text}; kept by {self.owner}" if self.owner else text

    def check(self) -> None:
        """Raise FlinkError if the job does not run as specified."""
        where = self.title
        if self.document["metadata"].get("deletionTimestamp"):
            raise FlinkError(f"{where} is being deleted")
        if self.version == (0, 0):
            version = str(self.cluster["spec"].get("flinkVersion", ""))
            raise FlinkError(f"{where} has an unknown flinkVersion {shown(version)}")
        if not self.job:
            raise FlinkError(f"{where} is a session cluster; name one of its FlinkSessionJobs")
        if self.is_suspended:
            raise FlinkError(f"{where} is suspended; set job.state to running")
        if self.error:
            raise FlinkError(f"{where} has failed: {self.error}")
        if self.has_ended:
            raise FlinkError(f"the job of {where} has ended; only a running job can be examined")


def flat(settings: Mapping[str, Any], above: str = "") -> dict[str, str]:
    """Flink's settings by name, from a document that may nest them, as the operator reads it.

    >>> flat({"taskmanager": {"numberOfTaskSlots": 2}, "job.autoscaler.enabled": True})
    {'taskmanager.numberOfTaskSlots': '2', 'job.autoscaler.enabled': 'true'}
    """
    result: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            result |= flat(value, f"{above}{name}.")
        else:
            values = value if isinstance(value, list) else [value]
            texts = (str(v).lower() if isinstance(v, bool) else str(v) for v in values)
            result[f"{above}{name}"] = ";".join(texts)
    return result


def keeps_state(spec: Mapping[str, Any]) -> bool:
    """Whether a job keeps its state when its specification changes."""
    return (spec.get("job") or {}).get("upgradeMode") in ("savepoint", "last-state")


def nested(keys: Sequence[str], value: object) -> dict[str, Any]:
    """Document with a value at a path of keys.

    >>> nested(["job", "parallelism"], 2)
    {'job': {'parallelism': 2}}
    """
    key, *others = keys
    return {key: nested(others, value) if others else value}


def _keys(settings: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """Keys of a setting in a document that may nest them; empty if it is missing."""
    for name, value in settings.items():
        if name == key:
            return (name,)
        is_above = isinstance(value, Mapping) and key.startswith(f"{name}.")
        if is_above and (others := _keys(value, key.removeprefix(f"{name}."))):
            return (name, *others)
    return ()


def named(address: str) -> tuple[str, str] | None:
    """Namespace and name in the address of a resource; None for another address.

    >>> named("kubernetes:flink/count"), named("http://localhost:8081")
    (('flink', 'count'), None)
    """
    if not address.startswith(SCHEME):
        return None
    parts = address.removeprefix(SCHEME).split("/")
    if len(parts) != 2 or not all(map(_NAME.fullmatch, parts)):
        raise SettingError(f"{shown(address)} names no resource; write {SCHEME}NAMESPACE/NAME")
    return parts[0], parts[1]


def namespace_in(address: str) -> str | None:
    """Namespace in an address without the name of a resource; None for another address.

    >>> namespace_in("kubernetes:flink"), namespace_in("kubernetes:flink/count")
    ('flink', None)
    """
    name = address.removeprefix(SCHEME)
    return name if name != address and _NAME.fullmatch(name) else None


def names_in(api: KubernetesApi, namespace: str) -> list[str]:
    """Names of the FlinkDeployments and FlinkSessionJobs of a namespace, in order."""
    names = set[str]()
    for kind in PLURALS:
        try:
            answer = api.get(_path(kind, namespace))
        except ApiRefusal as error:
            raise _no_operator(api) if error.status == 404 else error from None
        items = checked(_NAMES, answer, kind)["items"]
        names |= {item["metadata"]["name"] for item in items if "spec" in item}  # no canaries
    if not names:
        raise FlinkError(
            f"namespace {namespace} has no FlinkDeployment or FlinkSessionJob, or does not exist"
        )
    return sorted(names)


def read_resource(api: KubernetesApi, namespace: str, name: str) -> FlinkResource:
    """Read a resource, the cluster that it runs on, and the nodes of its pods."""
    resource = _only(api, namespace, name)
    labels = f"app={resource.cluster['metadata']['name']},component=taskmanager"
    query = urlencode({"labelSelector": labels})
    answer = api.get(f"/api/v1/namespaces/{namespace}/pods?{query}")
    pods = checked(_LIST, answer, "the pods")["items"]
    return replace(resource, nodes=tuple(pod["spec"].get("nodeName") or "" for pod in pods))


def _only(api: KubernetesApi, namespace: str, name: str) -> FlinkResource:
    """The resource of a name; the job if a session cluster and a job have the name."""
    deployment = read_deployment(api, namespace, name)
    document = _read(api, SESSION_JOB, namespace, name)
    if document is None and deployment is None:
        raise FlinkError(f"there is no FlinkDeployment or FlinkSessionJob {namespace}/{name}")
    if document is None:
        assert deployment is not None
        return deployment
    if deployment is not None and deployment.job:
        raise FlinkError(
            f"a FlinkDeployment and a FlinkSessionJob have the name {namespace}/{name}; rename one"
        )
    owner = document["spec"].get("deploymentName", "")
    cluster = _read(api, DEPLOYMENT, namespace, owner) if _NAME.fullmatch(owner) else None
    if cluster is None:
        raise FlinkError(f"{namespace}/{name} names a cluster {shown(owner)}, which does not exist")
    return FlinkResource(SESSION_JOB, namespace, name, document, cluster)


def read_deployment(api: KubernetesApi, namespace: str, name: str) -> FlinkResource | None:
    """Read a FlinkDeployment, without its pods; None if it does not exist."""
    document = _read(api, DEPLOYMENT, namespace, name)
    if document is None:
        return None
    return FlinkResource(DEPLOYMENT, namespace, name, document, document)


def _read(api: KubernetesApi, kind: str, namespace: str, name: str) -> Mapping[str, Any] | None:
    """Document of a resource; None if it does not exist."""
    try:
        answer = api.get(_path(kind, namespace, name))
    except ApiRefusal as error:
        if error.missing == name:
            return None
        raise _no_operator(api) if error.status == 404 else error from None
    document: Mapping[str, Any] = checked(_RESOURCE, answer, f"{kind} {namespace}/{name}")
    metadata = document["metadata"]
    identity = (document.get("kind", kind), metadata.get("namespace", namespace), metadata["name"])
    if identity != (kind, namespace, name):
        raise FlinkError(
            f"Kubernetes answers with {shown(' '.join(identity))} in place of {kind} {namespace}/"
            f"{name}"
        )
    return document


def _no_operator(api: KubernetesApi) -> FlinkError:
    return FlinkError(
        f"Kubernetes at {api.server} has no resources of Flink's operator; name Flink's own address"
    )


def checked(kind: TypeAdapter[Any], answer: Any, name: str) -> Any:
    """Answer without nulls, as in a merge patch; raise FlinkError if its type is wrong."""
    document = _without_nulls(answer)
    try:
        kind.validate_python(document, strict=True)
    except ValidationError as error:
        raise FlinkError(
            f"Kubernetes answers with {name} in another form than expected: {first_fault(error)}"
        ) from None
    return document


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value


def _path(kind: str, namespace: str, *name: str) -> str:
    return "/".join((GROUP, "namespaces", namespace, PLURALS[kind], *name))


def rest_of(namespace: str, name: str) -> Rest:
    """REST interface of the cluster of a resource, through the API server."""
    api = usual_api()
    resource = read_resource(api, namespace, name)
    resource.check()
    address = f"{api.server}{resource.rest_path}"
    return Rest.through(f"{SCHEME}{namespace}/{name}", address, api.client, resource)
