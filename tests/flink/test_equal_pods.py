"""Plans of equal pods, and the patches that ask for them, also in manifests of a checkout."""

import shlex
from dataclasses import replace
from math import ceil
from pathlib import Path

import numpy as np
import pytest
import yaml
from fake_flink import advised, application
from hypothesis import given, settings
from hypothesis import strategies as st
from operator_stand_in import BLUE_GREEN, MODE, resource, specification

from streamplace.errors import FormatError, ProblemError, SettingError
from streamplace.flink.advise.equal_pods import (
    EqualPods,
    JobOnPods,
    PodPatch,
    patch_commands,
    planned_pods,
)
from streamplace.flink.advise.patch_file import check_manifest, is_manifest, write_patch
from streamplace.flink.decide.slot_assignment import MODES
from streamplace.flink.deployment import deployment_of
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.watch.pods import PodModeller
from streamplace.io.ledger import MOVE, errors_of_runs, recorded_runs
from streamplace.model import Cluster, Operator, Stream, StreamGraph
from streamplace.placers.registry import Budget
from streamplace.planning.offers import Catalogue, Offer, parse_offers
from streamplace.planning.problem import PlannerSettings

PAGE = Path(__file__).parents[2] / "docs/how-to/kubernetes.md"
OFFERED, WRITTEN = (
    '```toml title="pods.toml"\n',
    "with the fields that change, also for Kustomize:\n\n```yaml\n",
)
GB = 10**9
QUICK = PlannerSettings(budget=Budget(evaluations=50))
SLOTS = "taskmanager.numberOfTaskSlots"


def job(work, rate=1000.0, parallelism=1):
    """A source without CPU, and an operator that uses so many cores of 2500 MIPS."""
    map_ = Operator("map", ipt=work * 2.5e9 / rate, parallelism=parallelism, max_parallelism=128)
    source = Operator("src", rate=rate, parallelism=parallelism, max_parallelism=128)
    return StreamGraph.of("job", [source, map_], [Stream("src", "map", partitioning="hash")])


def plan(graph, offers, now=None):
    facts = now or JobOnPods(1, "NONE", MODES, 0.0)
    return planned_pods(graph, Catalogue(tuple(offers), slot_sharing=True), QUICK, facts, {})


def patched(own, pods, memory=None):
    """Patch of a resource for pods."""
    return pods.patch(own, 2500.0, memory, plan(job(0.5), [offer(1)])[1])


def offer(cores, price=1.0, **facts):
    return Offer(f"of-{cores}", price, mips="2500 MIPS", cores=cores, **facts)


@settings(max_examples=10, deadline=None)
@given(work=st.floats(0.1, 6.0), prices=st.tuples(st.integers(1, 9), st.integers(1, 9)))
def test_pods_are_the_cheapest_that_the_work_fits_on(work, prices):
    """Each has the same part of the work, whose subtasks take a core at most."""
    offers = [offer(cores, price) for cores, price in zip((1, 4), prices, strict=True)]
    pods, result = plan(job(work), offers)
    costs = [offer.price * ceil(round(work / offer.cores, 9)) for offer in offers]
    assert result.cost == pods.number * pods.offer.price == min(costs)
    assert float(result.bound) <= result.cost
    assert result.carries >= 1000 * (1 - 1e-9)
    assert pods.parallelism <= pods.number * pods.slots


def test_the_parallelism_stays_if_it_is_enough():
    pods, _ = plan(job(0.9, parallelism=3), [offer(1)], JobOnPods(3, "TASKS", MODES, 0.0))
    assert pods == EqualPods(offer(1), 1, 3, 3, "TASKS")


def test_the_parallelism_of_the_autoscaler_stays():
    """Three subtasks, which need two cores each at most, are not divided further."""
    own = JobOnPods(3, "NONE", MODES, 0.0, keeps_parallelism=True)
    pods, _ = plan(job(2.9, parallelism=3), [offer(1), offer(4, 2)], own)
    assert pods.parallelism == 3
    assert pods.number * pods.slots >= 3
    with pytest.raises(ProblemError):
        plan(job(3.1, parallelism=3), [offer(4)], own)


def test_what_the_program_sets_stays():
    graph = job(3.5)
    parallel = graph.operators.parallelism.copy()
    parallel[0] = 3
    graph = graph.with_operators(replace(graph.operators, parallelism=parallel))
    pods, result = plan(graph, [offer(1)])
    assert (pods.number, pods.parallelism) == (4, 4)
    assert result.parallelism == {"src": 3, "map": 4}


@pytest.mark.parametrize(("source", "needed"), [(0, 2), (3, 7)])
def test_slot_sharing_groups_have_slots_of_their_own(source, needed):
    """Subtasks of two groups share none; three that the program sets stay beside four."""
    graph = job(0.5, parallelism=1 if not source else 4)
    operators = replace(graph.operators, slot_sharing_group=("a", "b"))
    if source:
        operators = replace(operators, parallelism=np.array([3, 4], np.int32))
    graph = graph.with_operators(operators)
    now = JobOnPods(4 if source else 1, "NONE", MODES, 0.0)
    pods, _ = plan(graph, [offer(1, at_most=1)], now)
    assert (pods.number, pods.slots, pods.parallelism) == (1, needed, now.parallelism)


def test_every_slot_has_the_memory_that_it_has_now():
    own = JobOnPods(1, "NONE", MODES, 1.0 * GB)
    small, large = offer(2, memory=1 * GB), offer(2, 1.5, memory=2 * GB)
    assert plan(job(1.5), [small], own)[0] == EqualPods(small, 2, 1, 2, "NONE")
    both = [small, replace(large, name="large")]
    assert plan(job(1.5), both, own)[0] == EqualPods(both[1], 1, 2, 2, "NONE")


def test_a_rate_that_no_pods_carry_is_refused():
    with pytest.raises(ProblemError):
        plan(job(1.5), [offer(1, at_most=1)])


def test_a_patch_has_what_changes_and_says_what_it_was():
    pods = EqualPods(offer(2, memory=2**31), 3, 2, 6, "SLOTS")
    own = resource()
    patch = patched(own, pods, memory=2.0**30)
    spec = merged(own.spec, patch.document["spec"])
    assert spec["taskManager"]["resource"] == {"cpu": 2, "memory": "2048m"}
    assert spec["job"] == {**own.spec["job"], "parallelism": 6}
    assert spec["flinkConfiguration"] == {SLOTS: "2", MODE: "SLOTS"}
    assert spec["jobManager"] == own.spec["jobManager"]
    text = str(patch)
    assert yaml.safe_load(text) == patch.document
    assert f"parallelism: 6  # streamplace: 3 × {pods.offer.name} for " in text
    (command,) = patch_commands(own, "plan/patch.yaml", patch)
    assert shlex.split(command)[:4] == ["kubectl", "patch", "flinkdeployment", "count"]


def test_the_patch_of_the_page_is_what_is_written():
    """Of a job on two pods of half a core with a slot each, whose profile was steady."""
    page = PAGE.read_text("utf-8")
    described, written = (page.split(start)[1].split("```")[0] for start in (OFFERED, WRITTEN))
    offers = replace(parse_offers(described.encode(), "pods.toml"), slot_sharing=True)
    runs = [run for run in recorded_runs() if run.by != MOVE]
    steady = replace(QUICK, errors=errors_of_runs(runs))
    now = JobOnPods(2, "NONE", MODES, 2.0**30)
    pods, result = planned_pods(job(1.44, 40_000, 2), offers, steady, now, {})
    own = resource(taskManager={"resource": {"cpu": 0.5}}, job={"parallelism": 2})
    assert str(pods.patch(own, 2500.0, 2.0**30, result)) == written


def test_settings_are_read_and_changed_where_they_stand():
    """The operator takes nested settings and values of any type, too."""
    nested = {"taskmanager": {"numberOfTaskSlots": 4, "load-balance.mode": "SLOTS"}}
    own = resource(flinkConfiguration={SLOTS: None, **nested, "job.autoscaler.enabled": True})
    assert own.has_autoscaler
    assert own.configuration[SLOTS] == "4"
    patch = patched(own, EqualPods(offer(1), 1, 2, 1, "TASKS")).document["spec"]
    changed = {"numberOfTaskSlots": "2", "load-balance.mode": "TASKS"}
    assert patch == {"flinkConfiguration": {"taskmanager": changed}}


def test_a_patch_of_what_there_is_is_empty():
    own = resource()
    for facts in ({}, {"memory": 9}):
        patch = patched(own, EqualPods(offer(1, **facts), 1, 1, 1, "NONE"), memory=9.0)
        assert not patch.changes
        assert not [*patch_commands(own, "patch.yaml", patch)]


def test_replicas_are_changed_where_they_count():
    """The operator then makes the parallelism that of all slots."""
    for own, changes in (
        (resource(mode="standalone"), {"job": {"parallelism": 3}}),
        (resource(taskManager={"replicas": 1}), {"taskManager": {"replicas": 3}}),
    ):
        patch = patched(own, EqualPods(offer(1), 3, 1, 3, "NONE"))
        assert patch.document["spec"] == changes
    own = JobOnPods(3, "NONE", MODES, 0.0, fills_slots=True)
    pods, _ = plan(job(1.9, parallelism=3), [offer(2, at_least=2)], own)
    assert (pods.number * pods.slots, pods.parallelism) == (2, 2)


def test_what_is_requested_is_less_than_the_limit_by_its_factor():
    own = resource(flinkConfiguration={"kubernetes.taskmanager.cpu.limit-factor": "2.0"})
    patch = patched(own, EqualPods(offer(4), 1, 1, 1, "NONE"))
    assert patch.document["spec"] == {"taskManager": {"resource": {"cpu": 2}}}


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"flinkConfiguration": {"job.autoscaler.enabled": "true"}}, "autoscaler"),
        ({"metadata": {"managedFields": [{"manager": "argocd-controller"}]}}, "Argo CD"),
        ({"metadata": {"labels": {"app.kubernetes.io/managed-by": "Helm"}}}, "Helm"),
        ({"metadata": {"managedFields": [{"manager": "kustomize-controller"}]}}, "Flux"),
        ({"metadata": {"ownerReferences": [BLUE_GREEN]}}, "FlinkBlueGreenDeployment both"),
    ],
)
def test_who_else_changes_the_specification_is_told(changes, word):
    own = resource(**changes)
    patch = patched(own, EqualPods(offer(2), 3, 2, 6, "SLOTS"))
    told, command = patch_commands(own, "patch.yaml", patch)
    assert word in told
    assert command.startswith("kubectl")
    assert ("job" in patch.document["spec"]) == (word != "autoscaler")


@pytest.mark.slow
def test_an_application_on_kubernetes_gets_a_patch(shop, tmp_path):
    flink = application(shop)
    offers = Catalogue.of([Offer("pod", 0.5, cores=1), Offer("large", 0.9, cores=2)])
    assert any(line.startswith("# change in") for line in advised(flink, "20x", offers).commands)
    rest = flink.rest
    rest.resource = resource()
    engine = FlinkEngine(rest)
    advice = engine.advise("job", "20x", offers, QUICK, folder=tmp_path)
    spec = merged(specification(), advice.patch.document["spec"])
    ((name, number),) = advice.plan.machines.items()
    slots = int(spec["flinkConfiguration"][SLOTS])
    assert spec["taskManager"]["resource"]["cpu"] == {"pod": 1, "large": 2}[name]
    assert ceil(spec["job"]["parallelism"] / slots) == number
    assert advice.write(tmp_path).endswith("patch.yaml")
    assert yaml.safe_load((tmp_path / "patch.yaml").read_text()) == advice.to_json()["patch"]
    assert advice.commands[-1].startswith("kubectl patch flinkdeployment count --namespace flink ")
    with pytest.raises(SettingError):
        engine.advise("job", "2x", Cluster.uniform(2), QUICK)


def test_what_the_operator_gives_to_all_jobs_is_changed_where_it_has_to_be(shop):
    """No specification shows the defaults of its own configuration; the JobManager does."""
    own = resource(flinkConfiguration={SLOTS: None})
    own = own.as_run(application(shop, **{MODE: "SLOTS"}).rest)
    changes = EqualPods(offer(1), 1, 1, 1, "NONE").changes(own, 2500.0, None)
    assert [change[1:] for change in changes] == [("1", "was 2"), ("NONE", "was SLOTS")]


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, {"resource/cpu": (1.0, "was 2"), "resource/memory": ("2048m", "was 1024m")}),
        (
            {"requests": {"cpu": "500m", "memory": "1Gi"}},
            {
                "resources/requests/cpu": (1.0, "was 500m"),
                "resources/requests/memory": ("2048Mi", "was 1Gi"),
            },
        ),
        (
            {"requests": {"cpu": "250m"}, "limits": {"cpu": "1000m", "memory": "1Gi"}},
            {
                "resources/requests/cpu": (0.25, ""),
                "resources/limits/cpu": (1.0, ""),
                "resources/limits/memory": ("2048Mi", "was 1Gi"),
            },
        ),
    ],
)
def test_the_amounts_change_that_the_operator_reads(resources, expected):
    """It ignores ``resource`` where ``resources`` have amounts, and makes their ratio a factor."""
    factor = {"kubernetes.taskmanager.cpu.limit-factor": "4"} if "limits" in resources else {}
    manager = {"resource": {"cpu": 2, "memory": "1024m"}, "resources": resources}
    own = replace(resource(taskManager=manager), running=factor)
    assert ("of 2 cpu and 1024m" in str(own)) == (not resources)
    changes = EqualPods(offer(1, memory="2 GiB"), 1, 1, 1, "NONE").changes(own, 2500.0, None)
    amounts = {path.removeprefix("taskManager/"): row for path, *row in changes if "/re" in path}
    assert amounts == {path: [*row] for path, row in expected.items() if row[1]}


@pytest.mark.parametrize(("version", "mode"), [("1.20", "SLOTS"), ("2.3", "NONE")])
def test_the_older_setting_for_slots_counts_as_in_that_version(shop, version, mode):
    """A patch to the mode that Flink has would start the cluster again for nothing."""
    spread = {"cluster.evenly-spread-out-slots": "true"}
    flink = application(shop, **spread)
    flink.answers["GET /config"] = {"flink-version": f"{version}.0"}
    assert JobOnPods.of(flink.rest, deployment_of(flink.rest, "job"), 0.0).mode == mode
    own = resource(flinkVersion=f"v{version.replace('.', '_')}", flinkConfiguration=spread)
    patched = [path for path, *_ in EqualPods(offer(1), 1, 1, 1, mode).changes(own, 2500.0, None)]
    assert patched == []


def test_a_watch_expects_more_of_more_pods(shop):
    """Up to the parallelism that the program sets."""
    engine = FlinkEngine(application(shop).rest, patience=0.0)
    model = PodModeller(engine, 5.0, 4)("FlinkDeployment flink/count", frozenset(), ())
    assert model.sizes == (1, 2, 3, 4)
    assert model.here.devices == ["pod-0", "pod-1"]
    carried = {other.machines: other.carries.value for other in model.others}
    assert sorted(carried) == [1, 3, 4]
    assert carried[1] <= model.here.carries.value <= carried[3] <= carried[4]
    assert all(other.carries.low <= other.carries.value for other in model.others)


def test_a_watch_keeps_the_pods_that_the_program_needs(shop):
    """An operator with two subtasks has no place on a pod of one slot."""
    flink = application(shop, slots="1", **{"parallelism.default": "1"})
    engine = FlinkEngine(flink.rest, patience=0.0)
    model = PodModeller(engine, 5.0, 4)("FlinkDeployment flink/count", frozenset(), ())
    assert model.sizes == (2, 3, 4)


HEAD = ("predicted by streamplace to carry 9 tuples/s",)
WHY = "3 × half for 12000 tuples/s"
MANIFEST = """\
# The job of the counters.
apiVersion: v1
kind: Service
metadata: {name: count}
---
apiVersion: flink.apache.org/v1beta1
kind: FlinkDeployment
metadata:
  name: count  # in all clusters
spec:
  flinkConfiguration:
    taskmanager.numberOfTaskSlots: "1"
    # how long we wait
    heartbeat.timeout: 20s
  taskManager:
    resource: {memory: "1024m", cpu: 1}  # small
  job:
    parallelism: 1  # streamplace: 2 × half for 9 tuples/s; was 3
    args: ["a # streamplace: b", 'c']
    upgradeMode: savepoint
"""


def patch(*changes):
    return PodPatch(HEAD, changes, WHY, "flink", "count")


PATCH = patch(
    ("taskManager/resource/cpu", 0.5, "was 1"),
    ("taskManager/resource/memory", "2048m", "was 1024m"),
    (f"flinkConfiguration/{SLOTS}", "2", "was 1"),
    (f"flinkConfiguration/{MODE}", "TASKS", ""),
    ("job/parallelism", 6, "was 1"),
)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_fields_of_a_manifest_change_in_their_lines(tmp_path, end):
    """All other lines, comments and documents stay."""
    path = tmp_path / "count.yaml"
    path.write_bytes(MANIFEST.replace("\n", end).encode())
    assert is_manifest(path)
    check_manifest(path, "flink", "count")
    write_patch(PATCH, path)
    text = path.read_bytes().decode()
    assert text.count("\n") == text.count(end)
    old, new = MANIFEST.splitlines(), text.splitlines()
    assert set(old) - set(new) == {old[11], old[15], old[17]}
    assert set(new) - set(old) == {
        f'    {SLOTS}: "2"  # streamplace: {WHY}; was 1',
        f'    {MODE}: "TASKS"  # streamplace: {WHY}',
        f'    resource: {{memory: "2048m", cpu: 0.5}}  # small  # streamplace: {WHY}; was 1024m',
        f"    parallelism: 6  # streamplace: {WHY}; was 1",
    }
    before = [*yaml.safe_load_all(MANIFEST)]
    assert [*yaml.safe_load_all(text)] == [
        before[0],
        merged(before[1], {"spec": PATCH.document["spec"]}),
    ]


def test_a_new_file_is_a_patch_and_is_written_again(tmp_path):
    path = tmp_path / "patch.yaml"
    for _ in range(2):
        assert not is_manifest(path)
        write_patch(PATCH, path)
    document = yaml.safe_load(path.read_text())
    assert document == PATCH.document
    assert merged(resource().spec, document["spec"])["job"]["parallelism"] == 6


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("name: count  #", "name: other  #", "no manifest of FlinkDeployment flink/count"),
        ("name: count  #", "name: count\n  namespace: b  #", "no manifest of FlinkDeployment"),
        ("parallelism: 1", "parallelism: {{ .Values.parallelism }}", "is not valid YAML"),
        ("  job:", "  job: &job", "its fields cannot be changed one by one"),
        ("    resource: {", "    resources: {", "no line to change for taskManager/resource/cpu"),
        ('"1024m"', "|\n      1024m", "is not valid YAML"),
        ("cpu: 1}", "cpu: [1]}", "no line to change for taskManager/resource/cpu"),
        ("parallelism: 1", "parallelism: >\n      1", "no line to change for job/parallelism"),
    ],
)
def test_a_file_that_cannot_be_changed_line_by_line_is_refused_and_stays(tmp_path, old, new, words):
    path = tmp_path / "count.yaml"
    content = MANIFEST.replace(old, new)
    if "&job" in new:  # a mapping that another document part shares
        content += "  other: *job\n"
    path.write_text(content)
    with pytest.raises(FormatError, match=words) as refusal:
        write_patch(PATCH, path)
    assert "\n" not in str(refusal.value)
    assert path.read_text() == content


def test_a_file_of_another_resource_is_refused_before_a_job_is_measured(run, tmp_path):
    path = tmp_path / "count.yaml"
    path.write_text(MANIFEST)
    for address, words in {
        "kubernetes:flink/other": "no manifest of FlinkDeployment flink/other",
        "http://localhost:1": "is for the patch of a FlinkDeployment",
    }.items():
        told = run("flink", "advise", "--rest", address, "--rate", "2x", "-o", str(path))
        assert (told.status, words in told.err) == (2, True), told
    assert path.read_text() == MANIFEST
