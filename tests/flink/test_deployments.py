"""How a job is deployed, and what each command does there, as the table of the docs says."""

import json
import shlex
from typing import Any

import pytest
from command_lines import settings_file
from deployment_table import check_row, rows
from fake_flink import advised, failure, jobs, write_program
from operator_stand_in import FakeKubernetes, kubeconfig, resource, specification
from pods import STATE

from streamplace.flink.deployment import deployment_of
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.program.program import Program
from streamplace.flink.rest.client import FlinkError

NATIVE = {"kubernetes.cluster-id": "count", "kubernetes.namespace": "flink"}
SESSION, APPLICATION = (
    NATIVE | {"execution.target": f"kubernetes-{kind}"} for kind in ("session", "application")
)
OPERATED = {"$internal.flink.version": "v2_3", "web.cancel.enable": "false"}
MAIN = {"$internal.application.main": "Job"}
OF_RESOURCE = "00000000" + "5ac93b21" + "0" * 15 + "2"
"""Id of a job that the operator has started: a hash, and the second generation."""
DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "session cluster, TaskManagers configured": {},
    "session cluster, TaskManagers not configured": {"pins": False},
    "session cluster without jar uploads": {"settings": {"web.submit.enable": "false"}},
    "application mode": {"settings": {"execution.target": "embedded"}},
    "native Kubernetes, session cluster": {"settings": SESSION, "pins": False},
    "native Kubernetes, application mode": {"settings": APPLICATION, "pins": False},
    "FlinkDeployment of the operator": {"settings": APPLICATION | OPERATED | MAIN, "pins": False},
    "FlinkDeployment as `kubernetes:NAMESPACE/NAME`": {
        "settings": APPLICATION | OPERATED | MAIN,
        "pins": False,
        "named": "kubernetes:flink/count",
    },
    "FlinkSessionJob of the operator": {
        "settings": SESSION | OPERATED,
        "pins": False,
        "job": OF_RESOURCE,
    },
    "adaptive scheduler": {"facts": {"schedulerType": "Adaptive"}},
    "Flink's autoscaler on": {"settings": {"job.autoscaler.enabled": "true"}},
    "high availability": {"settings": {"high-availability.type": "zookeeper"}},
    "several jobs, one named by `--job`": {"others": {"other": "RUNNING"}},
}
QUICK = (
    "session cluster, TaskManagers configured",
    "application mode",
    "FlinkDeployment as `kubernetes:NAMESPACE/NAME`",
    "adaptive scheduler",
)
"""One that each command works on, and three that refuse for reasons of their own."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in DEPLOYMENTS],
)
def test_every_command_does_what_the_table_says(run, shop, tmp_path, monkeypatch, name):
    """By what Flink answered there."""
    deployed = DEPLOYMENTS[name]
    facts = {key: deployed[key] for key in ("facts", "job", "pins") if key in deployed}
    flink = shop(settings=deployed.get("settings", {}), **facts)
    flink.answers["GET /jobs"] = jobs({flink.job: "RUNNING"} | deployed.get("others", {}))
    spec = merged(specification(), {"taskManager": {"resource": {"cpu": 2}}})
    kubernetes = FakeKubernetes({"count": spec}, {"count": flink})
    empty = {"metadata": {"name": "streamplace-journal-count"}, "data": {}}
    kubernetes.maps.create("", empty)
    with flink.served(), kubernetes.served():
        kubeconfig(tmp_path, kubernetes.url, monkeypatch)
        line = check_row(run, name, deployed.get("named", flink.url), flink.job, tmp_path)
    assert line.startswith("deployment: Flink 2.3.0, ")
    asked = (*flink.asked, *kubernetes.asked)
    changes = [request for request, _ in asked if not request.startswith("GET ")]
    assert all(request.endswith("?dryRun=All") for request in changes)


def test_the_table_has_no_other_deployments():
    assert list(rows()) == list(DEPLOYMENTS)


@pytest.mark.slow
@pytest.mark.xdist_group("kubernetes")
@pytest.mark.parametrize(
    ("name", "mode", "settings"),
    [
        ("native Kubernetes, application mode", "application", {}),
        ("FlinkDeployment of the operator", "application", OPERATED),
        ("native Kubernetes, session cluster", "session", {}),
        ("FlinkSessionJob of the operator", "session", OPERATED | {"job": OF_RESOURCE}),
    ],
)
def test_what_the_table_says_is_so_on_kubernetes(run, pods, tmp_path, name, mode, settings):
    """Stock Flink deploys itself there; keys of its operator are set as that does."""
    with getattr(pods, mode)("count", "100", "16", **settings) as (rest, job):
        line = check_row(run, name, rest.url, job, tmp_path)
        assert "flink/count, " in line
        assert rest.state(job) == "RUNNING"


@pytest.mark.slow
@pytest.mark.xdist_group("kubernetes")
def test_what_is_advised_for_an_application_changes_it(run, pods, tmp_path):
    """It ends with a savepoint, and goes on from there with the parallelism of the plan: 1.

    One pod of one slot has no room for the present parallelism of 2, which would stay otherwise.
    """
    wide = {"parallelism.default": "2", "taskmanager.numberOfTaskSlots": "2"}
    (tmp_path / "offers.toml").write_text(
        '[[offers]]\nname = "box"\nprice = 1\nmips = "2500 MIPS"\nslots = 1\n'
    )
    own = settings_file(tmp_path, seconds=2, patience=4)
    with pods.application("count", "100", "16", **wide) as (rest, job):
        asked = ("--rate", "1x", "--offers", "offers.toml", "--budget", "1")
        answer = run("flink", "advise", "--rest", rest.url, *own, *asked, "--json")
        assert answer.status == 0, answer.err
        advice = json.loads(answer.out)
        (stop,) = (line for line in advice["commands"] if line.startswith("streamplace "))
        _, *words = shlex.split(stop.replace("SAVEPOINTS", STATE))
        ended = run(*words)
        assert ended.status == 0, ended.err
    (number,) = set(advice["plan"]["parallelism"].values())
    path = ended.out.strip()
    settings = {"execution.state-recovery.path": path, "parallelism.default": str(number)}
    with pods.application("again", "100", "16", **settings) as (rest, job):
        vertices = rest.job(job)["vertices"]
        assert rest.get(f"/jobs/{job}/checkpoints")["latest"]["restored"]["external_path"] == path
    assert {vertex["parallelism"] for vertex in vertices} == {number} == {1}


def test_a_program_that_cannot_be_planned_is_refused_before_the_job_is_measured(shop, tmp_path):
    """In application mode, which takes no jar; the same advice without one is given."""
    write_program(tmp_path)
    flink = shop(settings=APPLICATION)
    with pytest.raises(FlinkError, match="leave out JAR"):
        advised(flink, program=Program(tmp_path / "job.jar"))
    assert not any("metrics" in path for path in flink.requests("GET"))


def test_an_application_is_interrupted_for_as_long_as_its_cluster_takes(shop):
    assert advised(shop(settings=APPLICATION)).interruption.low > advised(shop()).interruption.high


def test_what_a_gateway_hides_is_said_to_be_unknown(shop):
    """Only the scheduler, the TaskManagers and jobs are known then, by their ids the operator's."""
    flink = shop(job=OF_RESOURCE)
    flink.answers["GET /jobmanager/config"] = failure("forbidden", status=403)
    deployment = deployment_of(flink.rest, OF_RESOURCE)
    assert "its settings are hidden" in str(deployment)
    assert "session cluster" not in str(deployment)
    assert "belongs to a FlinkSessionJob" in deployment.obstacle


def test_the_autoscaler_is_that_of_the_resource(shop):
    """The operator does not hand its settings on to the cluster."""
    flink = shop(settings=APPLICATION | OPERATED | MAIN)
    rest = flink.rest
    assert not deployment_of(rest, flink.job).has_autoscaler
    rest.resource = resource(flinkConfiguration={"job.autoscaler.enabled": "true"})
    assert "autoscaler on" in str(deployment_of(rest, flink.job))


def test_flinks_interface_is_behind_the_port_and_scheme_of_its_settings():
    settings = {"rest": {"port": 8443}, "security.ssl.rest.enabled": True}
    assert resource().rest_path.endswith("/services/count-rest:8081/proxy")
    own = resource(flinkConfiguration=settings)
    assert own.rest_path.endswith("/services/https:count-rest:8443/proxy")


def test_a_resource_may_name_the_folder_of_savepoints_by_its_older_name():
    own = resource(flinkConfiguration={"state.savepoints.dir": "s3://saved"})
    assert str(own).endswith("savepoint upgrades in s3://saved")
