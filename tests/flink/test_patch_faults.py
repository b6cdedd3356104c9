"""Faults while a specification is changed: it ends as it was or as changed, and one job runs."""

import shutil
import tempfile
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from flink_clusters import awaited
from flink_jars import build_jar
from kafka import WHY_SKIPPED, broker, connector_jars, kafka_flink, kafka_jars, kafka_jobs
from operator_stand_in import (
    HANDS,
    MODE,
    TASKS,
    claimed,
    claimed_again,
    other_hand,
    reconciled,
    specification,
)
from pods import NAMESPACE, STATE

from streamplace.flink.operator.api import usual_api
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.patch_table import PatchStep
from streamplace.flink.operator.patching import PatchTransaction
from streamplace.flink.operator.resource import rest_of
from streamplace.flink.rest.client import FlinkError

pytestmark = [
    pytest.mark.xdist_group("kubernetes"),
    pytest.mark.slow,
    pytest.mark.usefixtures("context"),
]
TALLY = Path(__file__).parent / "java" / "TallyJob.java"
SAVEPOINTS = "execution.checkpointing.savepoint-dir"


SETTINGS = {
    "execution.checkpointing.interval": "2s",
    SAVEPOINTS: f"file://{STATE}/saved",
    "heartbeat.timeout": "20s",
    "kubernetes.jobmanager.node-selector": "size:large",
    "kubernetes.taskmanager.node-selector": "size:small",
}
"""TaskManager and JobManager run on different nodes."""
RATE, WARM_UP = 500, 10.0
"""Records/s of Kafka, and seconds before the change."""
IMAGE = {"image": "none:1"}
SAVEPOINT = {"flinkConfiguration": {MODE: "TASKS", SAVEPOINTS: "file:///proc/none"}}


@pytest.fixture
def operator(pods):
    """A job with state that Flink runs."""
    spec = specification(**SETTINGS)
    spec["job"]["args"] = ["100", "16"]
    with reconciled(pods, "count", spec, runs=True) as running:
        yield running


def changed(operator, patch, timeout=240.0):
    told: list[str] = []
    api = usual_api()
    transaction = PatchTransaction(api, claimed(api, patch, operator.spec), told.append, timeout)
    try:
        return transaction.run()
    finally:
        print(*told, sep="\n")


@pytest.fixture
def job(operator):
    """Id of the job before the change."""
    (job,) = rest_of(NAMESPACE, "count").live_jobs()
    return job


def check_job(operator, before):
    """One job runs: the one of before, or one from its savepoint or checkpoint."""
    operator.await_stable()
    rest = rest_of(NAMESPACE, "count")
    awaited(lambda: len(rest.live_jobs()) == 1)
    (job,) = rest.live_jobs()
    rest.wait_running(job, 120.0)
    restored = rest.get(f"/jobs/{job}/checkpoints")["latest"]["restored"]
    assert restored is not None or job == before


@pytest.mark.parametrize(
    "absence",
    [lambda pods, _: pods.stopped("apiserver", 20.0), lambda _, operator: operator.gone(60.0)],
    ids=["API server", "operator"],
)
def test_what_is_gone_for_a_while_is_waited_for(pods, operator, job, absence):
    with absence(pods, operator):
        assert changed(operator, TASKS).step is PatchStep.KEPT
    assert operator.get()["spec"] == merged(operator.spec, TASKS)
    check_job(operator, job)


@contextmanager
def lost_node(pods):
    """Lose the node of the TaskManager while the block runs."""
    selector = "app%3Dcount,component%3Dtaskmanager"
    (pod,) = pods.call("GET", f"/api/v1/namespaces/{NAMESPACE}/pods?labelSelector={selector}")[
        "items"
    ]
    name = pod["spec"]["nodeName"]
    lost = pods.work / "lost" / name

    def is_ready():
        conditions = pods.call("GET", f"/api/v1/nodes/{name}")["status"]["conditions"]
        return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)

    try:
        lost.touch()
        awaited(lambda: not is_ready())  # before that, pods are still given to it
        yield
    finally:
        lost.unlink()


def test_a_node_that_is_lost_meanwhile_is_replaced(pods, operator, job):
    with lost_node(pods):
        result = changed(operator, TASKS)
        assert result.step in (PatchStep.KEPT, PatchStep.RETURNED)
    is_kept = result.step is PatchStep.KEPT
    assert operator.get()["spec"] == (merged(operator.spec, TASKS) if is_kept else operator.spec)
    check_job(operator, job)


@pytest.mark.parametrize("patch", [IMAGE, SAVEPOINT], ids=["image", "savepoint"])
def test_a_change_that_cannot_be_taken_up_is_taken_back(operator, job, patch):
    assert changed(operator, patch, 90.0).step is PatchStep.RETURNED
    assert operator.get()["spec"] == operator.spec
    check_job(operator, job)


@pytest.fixture
def tally(pods, flink):
    """A job that tells how often it has seen each key, and its folder."""
    build_jar(flink, [TALLY], pods.home / "usrlib" / "tally.jar")
    shared = pods.work / "state"  # what pods have at STATE
    shared.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=shared))
    spec = specification(**SETTINGS)
    spec["job"] |= {
        "jarURI": "local:///opt/flink/usrlib/tally.jar",
        "entryClass": "TallyJob",
        "args": [f"{STATE}/{folder.name}", "200"],
    }
    with reconciled(pods, "count", spec, runs=True) as running:
        yield running, folder


def told_counts(folder):
    """How often a key was seen at last, by its state, and how often it must have been."""
    newest = max(folder.glob("counts-*"), key=lambda path: path.stat().st_mtime, default=None)
    lines = [] if newest is None else newest.read_text().splitlines()
    seen, expected = lines[-2].split() if len(lines) > 1 else (0, 0)  # the last may not be whole
    return int(seen), int(expected)


@pytest.mark.parametrize(
    ("hand", "when"),
    [*((hand, when) for hand in HANDS for when in ("before", "after")), ("upgradeMode", "back")],
)
def test_another_hand_costs_no_state(tally, hand, when):
    """Counts per key go on where they were, whatever another hand sets at a step."""
    operator, folder = tally
    awaited(lambda: told_counts(folder)[0] > 100, 120.0)
    before, _ = told_counts(folder)
    told: list[str] = []
    ours = IMAGE if when == "back" else TASKS
    other, _ = other_hand(usual_api(), operator, HANDS[hand], when)
    claim = claimed(usual_api(), ours, operator.spec)
    change = PatchTransaction(other, claim, told.append, 90.0)
    if hand == "upgradeMode" and when != "before":
        with pytest.raises(FlinkError, match=PatchStep.AT_RISK.value):
            change.run()
        operator.patch({"job": {"upgradeMode": "savepoint"}})
        claim = claimed_again(usual_api())
        ended = PatchTransaction(usual_api(), claim, told.append, 120.0).run()
        assert ended.step is (PatchStep.RETURNED if when == "back" else PatchStep.KEPT)
    else:
        ended = change.run()
    operator.patch({"job": {"state": "running"}})
    operator.await_stable()
    reached = max(before, told_counts(folder)[0])
    awaited(lambda: told_counts(folder)[0] > reached + 20, 120.0)
    after, expected = told_counts(folder)
    print(f"{hand}, {when}: {ended.step.value}; a key: {before}, then {after}", *told, sep="\n")
    assert after == expected


@pytest.mark.skipif(not kafka_jars(), reason=WHY_SKIPPED)
@pytest.mark.parametrize(
    ("patch", "fault"),
    [(TASKS, nullcontext), (TASKS, lost_node), (IMAGE, nullcontext), (SAVEPOINT, nullcontext)],
    ids=["none", "node", "image", "savepoint"],
)
def test_each_record_of_kafka_counts_once(pods, flink, tmp_path, patch, fault):
    """Windows are committed exactly once, whether the change is kept or taken back."""
    folder = pods.home / "usrlib"
    for jar in connector_jars():
        shutil.copy(jar, folder)
    jar = kafka_jobs(kafka_flink(flink, tmp_path / "flink"), folder / "orders.jar")
    spec = specification(**SETTINGS)
    spec["job"] |= {"jarURI": f"local:///opt/flink/usrlib/{jar.name}", "entryClass": "WindowsJob"}
    with broker(tmp_path, jar, pods.gateway) as kafka:
        kafka.create("orders", "windows")
        spec["job"]["args"] = [kafka.address]
        with reconciled(pods, "count", spec, runs=True) as operator:
            with kafka.fed("orders", rate=RATE) as feed:
                time.sleep(WARM_UP)
                with fault(pods):
                    changed(operator, patch, 120.0)
                operator.await_stable()
            windows = kafka.await_total("windows", feed.number, seconds=240)
    assert (windows.total, windows.repeated) == (feed.number, 0)
