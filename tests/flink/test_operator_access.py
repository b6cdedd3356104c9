"""Access to the resources of Flink's operator: the Roles of the page, and what is refused."""

import json
from contextlib import contextmanager, suppress
from copy import deepcopy
from pathlib import Path

import httpx
import pytest
import yaml
from fake_flink import FakeFlink
from operator_stand_in import PATH, kubeconfig, reconciled, specification
from pods import NAMESPACE

from streamplace.flink.operator.resource import rest_of
from streamplace.flink.rest.client import NoAnswer

PAGE = Path(__file__).parents[2] / "docs/how-to/kubernetes.md"
ROLES = "/apis/rbac.authorization.k8s.io/v1/namespaces"
ADDRESS = f"kubernetes:{NAMESPACE}/count"
COMMANDS = {
    "profile": ("flink", "profile"),
    "advise": ("flink", "advise", "--rate", "2x"),
    "move": ("flink", "move", "--yes"),
    "watch": ("flink", "watch", "--apply"),
}
pytestmark = pytest.mark.xdist_group("kubernetes")


def roles():
    """The Roles of the page."""
    blocks = PAGE.read_text("utf-8").split("```")
    found = [yaml.safe_load(b.partition("\n")[2]) for b in blocks if "\nkind: Role\n" in b]
    assert [role["metadata"]["name"] for role in found] == ["streamplace-read", "streamplace-patch"]
    return found


def rules(*taken):
    """Rules of both Roles, but for some pairs of a resource and a verb."""
    every = [deepcopy(rule) for role in roles() for rule in role["rules"]]
    for rule in every:
        for resource, verb in taken:
            if resource in rule["resources"] and verb in rule["verbs"]:
                rule["resources"] = [other for other in rule["resources"] if other != resource]
    return [rule for rule in every if rule["resources"]]


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
def test_the_roles_of_the_page_are_enough(pods, run, tmp_path):
    """The service has no pods, so what is refused at the end is no right."""
    with reconciled(pods, "count"), account(pods, rules(), tmp_path):
        rest = rest_of(NAMESPACE, "count")
        assert rest.url == ADDRESS
        with pytest.raises(NoAnswer):
            rest.jobs()
        assert all("forbidden" not in refused(run, name) for name in COMMANDS)


@pytest.mark.parametrize(
    ("resource", "verb", "command"),
    [
        ("flinkdeployments", "get", "profile"),
        ("pods", "list", "profile"),
        ("services/proxy", "get", "profile"),
        ("services/proxy", "get", "advise"),
        ("flinkdeployments", "patch", "watch"),
    ],
)
def test_a_right_that_is_missing_is_named(pods, run, tmp_path, resource, verb, command):
    given = rules((resource, verb))
    with reconciled(pods, "count") as operator, account(pods, given, tmp_path):
        line = refused(run, command)
        assert f'cannot {verb} resource "{resource}"' in line.replace("\\", "")
        assert operator.get()["spec"] == operator.spec


@pytest.mark.parametrize("resource", ["flinkdeployments", "flinksessionjobs"])
def test_the_right_to_list_a_namespace_is_named(pods, run, tmp_path, resource):
    with account(pods, rules((resource, "list")), tmp_path):
        line = refused(run, "advise", f"kubernetes:{NAMESPACE}")
    assert f'cannot list resource "{resource}"' in line.replace("\\", "")


def test_the_roles_of_the_page_are_enough_for_a_namespace(pods, run, tmp_path):
    """Nothing makes the service, which is no right."""
    with reconciled(pods, "count"), account(pods, rules(), tmp_path):
        answer = run("flink", "advise", "--rest", f"kubernetes:{NAMESPACE}", "--json")
        (row,) = json.loads(answer.out)["jobs"]
    assert row["name"] == "count"
    assert 'services "count-rest" not found' in row["why"]


def test_a_namespace_that_does_not_exist_is_refused(pods, run, context):
    assert "or does not exist" in refused(run, "advise", "kubernetes:no-such-place")


def test_session_jobs_are_looked_for_where_there_is_no_deployment(pods, run, tmp_path):
    with account(pods, rules(("flinksessionjobs", "get")), tmp_path):
        assert "flinksessionjobs" in refused(run, "profile")


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
