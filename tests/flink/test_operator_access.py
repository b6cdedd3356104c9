"""Access to the resources of Flink's operator: the Roles of the page, and what is refused."""

import json
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
import yaml
from fake_flink import FakeFlink
from flink_clusters import awaited
from operator_stand_in import PATH, kubeconfig, reconciled, resource, specification
from pods import NAMESPACE

from streamplace.errors import StreamplaceError
from streamplace.flink.operator.api import ApiRefusal, usual_api
from streamplace.flink.operator.journal import PatchClaim, PatchJournal
from streamplace.flink.operator.patch_table import PatchStep
from streamplace.flink.operator.patching import PatchTransaction, check_change
from streamplace.flink.operator.resource import read_resource, rest_of
from streamplace.flink.rest.client import NoAnswer
from streamplace.flink.settings import FlinkAdviseSettings, FlinkWatchSettings

EXAMPLES = Path(__file__).parents[2] / "examples"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces"
ADDRESS = f"kubernetes:{NAMESPACE}/count"
COMMANDS = {
    "profile": ("flink", "profile"),
    "advise": ("flink", "advise", "--rate", "2x"),
    "move": ("flink", "move", "--yes"),
    "watch": ("flink", "watch", "--apply"),
}
pytestmark = pytest.mark.xdist_group("kubernetes")


def documents(name):
    """Manifests of an example."""
    return [*yaml.safe_load_all((EXAMPLES / f"kubernetes-{name}.yaml").read_text("utf-8"))]


def rules(*taken, name="watch"):
    """Rules of the Role of an example, but for some pairs of a resource and a verb."""
    (role,) = (own for own in documents(name) if own["kind"] == "Role")
    found = []
    for rule in role["rules"]:
        pairs = [(kind, verb) for kind in rule["resources"] for verb in rule["verbs"]]
        own = {key: rule[key] for key in ("apiGroups", "resourceNames") if key in rule}
        left = (pair for pair in pairs if pair not in taken)
        found += [own | {"resources": [kind], "verbs": [verb]} for kind, verb in left]
    return found


@contextmanager
def account(pods, given, folder):
    """A service account with these rules, whose token is in the kubeconfig while the block runs."""
    name, core = "streamplace", f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts"
    metadata = {"metadata": {"name": name}}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}
    made = {
        core: metadata,
        f"{ROLES}/{NAMESPACE}/roles": metadata | {"rules": given},
        f"{ROLES}/{NAMESPACE}/rolebindings": metadata | {"roleRef": role, "subjects": [subject]},
    }
    try:
        for path, document in made.items():
            pods.call("POST", path, document)
        token = pods.call("POST", f"{core}/{name}/token", {"spec": {}})["status"]["token"]
        config = json.loads((pods.work / "kubeconfig").read_text())
        config["users"][0]["user"] = {"token": token}
        (folder / "kubeconfig").write_text(json.dumps(config))
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("KUBECONFIG", str(folder / "kubeconfig"))
            yield patch
    finally:
        for path in made:
            with suppress(httpx.HTTPStatusError):
                pods.call("DELETE", f"{path}/{name}")


def refused(run, name, address=ADDRESS):
    """The line with which a command refuses."""
    answer = run(*COMMANDS[name], "--rest", address)
    assert (answer.status, answer.out) == (2, ""), answer
    *deployment, line = answer.err.splitlines()
    assert line.startswith("error: "), answer
    assert all(before.startswith("deployment: ") for before in deployment), answer
    return str(line)


@pytest.mark.slow
def test_the_role_of_the_watch_is_enough(pods, run, tmp_path):
    """The service has no pods, so what is refused at the end is no right."""
    with reconciled(pods, "count"), account(pods, rules(), tmp_path):
        rest = rest_of(NAMESPACE, "count")
        assert rest.url == ADDRESS
        with pytest.raises(NoAnswer):
            rest.jobs()
        assert all("forbidden" not in refused(run, name) for name in COMMANDS)


def pairs(name):
    """Resources and verbs of the Role of an example."""
    return [(*rule["resources"], *rule["verbs"]) for rule in rules(name=name)]


@pytest.mark.parametrize(
    ("name", "resource", "verb"),
    [(name, *pair) for name in ("advise", "watch") for pair in pairs(name)],
)
def test_each_rule_of_the_roles_is_needed_and_named_where_it_is_missing(
    pods, run, tmp_path, name, resource, verb
):
    """Warnings are only told, so they may be missing."""
    given = rules((resource, verb), name=name)
    with suppress(httpx.HTTPStatusError):  # of an earlier resource
        pods.call("DELETE", f"/api/v1/namespaces/{NAMESPACE}/configmaps/streamplace-journal-count")
    with reconciled(pods, "count") as operator, account(pods, given, tmp_path):
        if resource == "events":
            with pytest.raises(ApiRefusal) as refusal:
                read_resource(usual_api(), NAMESPACE, "count").warnings(usual_api(), "")
            line = str(refusal.value)
        else:
            lists = verb == "list" and resource.startswith("flink")
            line = refused(run, name, f"kubernetes:{NAMESPACE}" if lists else ADDRESS)
        assert f"resources: [{resource}], verbs: [{verb}]}} of system:serviceaccount:" in line
        assert operator.get()["spec"] == operator.spec


def changed(api):
    """End of a change of the number of pods."""
    own = read_resource(api, NAMESPACE, "count")
    check_change(api, own)
    journal = PatchJournal.of(own, {"job": {"parallelism": 2}}, "")
    return PatchTransaction(api, PatchClaim.begin(api, journal), print, 5.0).run().step


def test_the_role_of_the_watch_is_enough_for_changes_and_that_of_advice_is_not(pods, tmp_path):
    with reconciled(pods, "count") as operator:
        with account(pods, rules(name="advise"), tmp_path):
            own = read_resource(usual_api(), NAMESPACE, "count")
            with pytest.raises(ApiRefusal, match="configmaps"):
                changed(usual_api())
            with pytest.raises(ApiRefusal, match="flinkdeployments"):
                usual_api().patch(own.path, {"spec": {"job": {"parallelism": 2}}})
        with account(pods, rules(), tmp_path):
            assert changed(usual_api()) is PatchStep.KEPT
            own = read_resource(usual_api(), NAMESPACE, "count")
            assert own.warnings(usual_api(), "2999") == []
        assert operator.get()["spec"]["job"]["parallelism"] == 2


@pytest.mark.parametrize("name", ["advise", "watch"])
def test_the_examples_run_in_the_cluster_as_they_are(pods, name, tmp_path):
    """But for the image: a pod has this machine's Python. Flink has no pods, which is told."""
    manifests = documents(name)
    (template,) = (
        own["spec"].get("jobTemplate", own)["spec"]["template"]
        for own in manifests
        if own["kind"] in ("CronJob", "Deployment")
    )
    (container,) = template["spec"]["containers"]
    paths = ":".join(map(str, (EXAMPLES.parent, EXAMPLES.parent / "sim")))
    command = [sys.executable, "-m", "streamplace"]
    container |= {"image": "flink:tests", "imagePullPolicy": "Never", "command": command}
    container["env"].append({"name": "PYTHONPATH", "value": paths})
    pod = {"apiVersion": "v1", "kind": "Pod", **template}
    pod["metadata"] |= {"name": f"streamplace-{name}", "namespace": NAMESPACE}
    pod["spec"] |= {"restartPolicy": "Never"}
    path = tmp_path / "manifests.yaml"
    given = str(EXAMPLES / f"kubernetes-{name}.yaml")
    with reconciled(pods, "count"):
        pods.kubectl("apply", "--dry-run=server", "--filename", given)
        others = [own for own in manifests if own["kind"] not in ("CronJob", "Deployment")]
        path.write_text(yaml.safe_dump_all([*others, pod]))
        try:
            pods.kubectl("apply", "--filename", str(path))
            place = f"/api/v1/namespaces/{NAMESPACE}/pods/streamplace-{name}"
            awaited(lambda: pods.call("GET", place)["status"]["phase"] == "Failed", 120.0)
            told = pods.kubectl("logs", "--namespace", NAMESPACE, f"streamplace-{name}")
        finally:
            pods.kubectl("delete", "--filename", str(path), "--ignore-not-found", "--wait=false")
    assert 'services "count-rest" not found' in told


def test_the_role_of_advice_is_enough_for_a_namespace(pods, run, tmp_path):
    """Nothing makes the service, which is no right."""
    with reconciled(pods, "count"), account(pods, rules(name="advise"), tmp_path):
        answer = run("flink", "advise", "--rest", f"kubernetes:{NAMESPACE}", "--json")
        (row,) = json.loads(answer.out)["jobs"]
    assert row["name"] == "count"
    assert 'services "count-rest" not found' in row["why"]


def test_a_namespace_that_does_not_exist_is_refused(pods, run, context):
    assert "or does not exist" in refused(run, "advise", "kubernetes:no-such-place")


def test_session_jobs_are_looked_for_where_there_is_no_deployment(pods, run, tmp_path):
    with account(pods, rules(("flinksessionjobs", "get")), tmp_path):
        assert "flinksessionjobs" in refused(run, "profile")


def annotated(settings, **annotations):
    """Settings with annotations of the resource."""
    names = {f"streamplace.io/{k.replace('_', '-')}": v for k, v in annotations.items()}
    others = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
    return settings.annotated(resource(metadata={"annotations": names | others}))


def test_limits_of_a_resource_hold_for_what_is_not_typed():
    """Each command reads those that it has."""
    limits = {"lag": "2 min", "at_most": "6", "not_between": "08:00-12:00, 13:00-18:00"}
    limits |= {"headroom": "0.2"}
    watch = annotated(FlinkWatchSettings.of_command({"at_most": "4", "apply": True}), **limits)
    assert (watch.lag, watch.at_most) == (120.0, 4)
    assert [hours.start.hour for hours in watch.guards().quiet] == [8, 13]
    advise = annotated(FlinkAdviseSettings.of_command({"rate": "2x"}), **limits)
    assert advise.of_plan().headroom == 0.2


@pytest.mark.parametrize(
    ("annotations", "words"),
    [
        ({"lag": "soon"}, "streamplace.io/lag of FlinkDeployment flink/count"),
        ({"at_most": "0"}, "streamplace.io/at-most of FlinkDeployment flink/count is '0'"),
        ({"not_between": "day"}, "streamplace.io/not-between of FlinkDeployment flink/count is"),
        ({"lagg": "1s"}, "streamplace.io/lagg of FlinkDeployment flink/count is not known; did"),
    ],
)
def test_a_bad_annotation_is_named_with_its_resource(annotations, words):
    with pytest.raises(StreamplaceError, match=words) as refusal:
        annotated(FlinkWatchSettings.of_command({}), **annotations).guards()
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("command", ["advise", "move", "watch"])
def test_annotations_are_read_before_a_job_is_measured(pods, run, context, command):
    with reconciled(pods, "count"):
        pods.call("PATCH", f"{PATH}/count", {"metadata": {"annotations": {"streamplace.io/x": ""}}})
        assert "annotation streamplace.io/x of FlinkDeployment" in refused(run, command)


def each(first, *others):
    """Every command with the first of some faults, and one that changes jobs with the others."""
    faults = [*((command, first) for command in COMMANDS), *(("watch", other) for other in others)]
    return pytest.mark.parametrize(("command", "fault"), faults)


@each(
    ({"job": {"state": "suspended"}}, "suspended"),
    ({"flinkVersion": "v9_9"}, "v9_9"),
    ({"job": None}, "session cluster"),
)
def test_a_job_that_cannot_be_measured_is_refused(pods, run, context, command, fault):
    """Nothing is changed."""
    changes, words = fault
    with reconciled(pods, "count", {**specification(), **changes}) as operator:
        assert words in refused(run, command)
        assert operator.get()["spec"] == operator.spec


@pytest.mark.parametrize("command", COMMANDS)
def test_a_resource_that_is_being_deleted_is_refused(pods, run, context, command):
    path = f"{PATH}/count"
    with reconciled(pods, "count"):
        pods.call("PATCH", path, {"metadata": {"finalizers": ["streamplace.example/test"]}})
        pods.call("DELETE", path)
        assert "being deleted" in refused(run, command)
        pods.call("PATCH", path, {"metadata": {"finalizers": None}})


@each("flink/none", "no-such-place/count")
def test_a_name_that_no_resource_has_is_refused(pods, run, context, command, fault):
    assert fault in refused(run, command, f"kubernetes:{fault}")


@each(
    (httpx.Response(404, text="404 page not found\n"), "no resources of Flink's operator"),
    (httpx.Response(503, json={"message": "overloaded"}), "503"),
    (httpx.Response(429, json={"message": "too many requests"}), "answers 429 at"),
    (httpx.Response(401, json={"message": "Unauthorized"}), "log in"),
    (httpx.Response(302, headers={"Location": "http://elsewhere"}), "302"),
    (httpx.Response(200, text="<html>"), "200"),
    (httpx.Response(200, json=["FlinkDeployment"]), "200"),
    (httpx.Response(200, json={"kind": "FlinkDeployment"}), "metadata"),
)
def test_a_kubernetes_that_does_not_answer_as_it_should_is_refused(
    run, tmp_path, monkeypatch, command, fault
):
    """Without the operator's resources, overloaded, with an expired token, or something else."""
    answer, words = fault
    flink = FakeFlink(otherwise=answer)
    with flink.served() as served:
        kubeconfig(tmp_path, served.url, monkeypatch)
        assert words in refused(run, command)
    assert {request.partition(" ")[0] for request, _ in flink.asked} == {"GET"}


@each(None, "", "{}", "a: [", "clusters: 1")
def test_without_a_kubeconfig_that_can_be_read_every_command_is_refused(
    run, tmp_path, monkeypatch, command, fault
):
    path = tmp_path / "kubeconfig"
    if fault is not None:
        path.write_text(fault)
    monkeypatch.setenv("KUBECONFIG", str(path))
    refused(run, command)
