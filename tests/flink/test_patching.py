"""Changes of a FlinkDeployment on a real API server, with a stand-in for Flink's operator."""

import json
import shlex
from itertools import count
from typing import Any

import httpx
import pytest
import yaml
from command_lines import settings_file
from flink_clusters import awaited
from operator_stand_in import (
    BLUE_GREEN,
    CORE,
    HANDS,
    MODE,
    PATH,
    TASKS,
    ConfigMaps,
    FakeKubernetes,
    Meddled,
    claimed,
    claimed_again,
    journal,
    other_hand,
    reconciled,
    resource,
    specification,
)
from pods import NAMESPACE

from streamplace.cli.main import main
from streamplace.errors import SettingError
from streamplace.flink.advise.equal_pods import PREDICTED, PodPatch
from streamplace.flink.advise.patch_file import write_patch
from streamplace.flink.measure.profile import steady_profile
from streamplace.flink.operator.api import ApiRefusal, usual_api
from streamplace.flink.operator.journal import JournalMap, PatchClaim
from streamplace.flink.operator.merge_patch import changes, inverse, merged
from streamplace.flink.operator.patch_table import PatchStep
from streamplace.flink.operator.patching import PatchTransaction, check_change
from streamplace.flink.operator.resource import named, read_resource, rest_of
from streamplace.flink.rest.client import FlinkError, NoAnswer
from streamplace.flink.store import Holder, StoreError

pytestmark = pytest.mark.xdist_group("kubernetes")
PRICES = """
per_core = 0.04
per_gb = 0.005
[[offers]]
name = "quarter"
mips = "625 MIPS"
memory = "1024 MiB"
[[offers]]
name = "half"
mips = "1250 MIPS"
memory = "1024 MiB"
"""


@pytest.fixture
def api(context):
    return usual_api()


def transaction(api, patch=TASKS, timeout=3.0, tell=lambda _: None, at=None):
    """Change at an API server, whose journal may be at another one."""
    return PatchTransaction(api, claimed(at or api, patch), tell, timeout)


def changed(api, patch=TASKS, tell=lambda _: None, at=None):
    return transaction(api, patch, tell=tell, at=at).run()


def resumed(api, tell=lambda _: None, timeout=3.0):
    """End of an interrupted change that another command finishes."""
    return PatchTransaction(api, claimed_again(api), tell, timeout).run().step


def test_a_change_that_becomes_stable_is_kept(api, operator):
    result = changed(api)
    assert result.step is PatchStep.KEPT
    assert operator.get()["spec"] == merged(specification(), TASKS)
    assert result.seconds is not None


def test_a_change_that_does_not_run_is_taken_back_field_for_field(api, operator):
    patch = {"flinkConfiguration": {MODE: "BROKEN"}, "job": {"parallelism": 2}}
    assert changed(api, patch).step is PatchStep.RETURNED
    assert operator.get()["spec"] == specification()
    assert operator.taken_up[-2] == merged(specification(), patch)


def test_a_change_that_does_not_become_stable_is_taken_back(api, operator):
    assert changed(api, {"flinkConfiguration": {MODE: "SLOW"}}).step is PatchStep.RETURNED
    assert operator.get()["spec"] == specification()


@pytest.mark.parametrize("when", ["before", "after", "back"])
@pytest.mark.parametrize("hand", HANDS)
def test_another_hand_at_any_step_costs_no_state(api, operator, hand, when):
    """What is ours goes back, what is theirs stays, and nothing is patched at a risk."""
    told: list[str] = []
    theirs = HANDS[hand]
    ours = {"flinkConfiguration": {MODE: "BROKEN" if when == "back" else "TASKS"}}
    other, patches = other_hand(api, operator, theirs, when)
    ends = {"the field itself": PatchStep.CONFLICT}
    ends |= {"upgradeMode": PatchStep.AT_RISK} if when != "before" else {}
    end = ends.get(hand, PatchStep.UNCHANGED if when == "before" else PatchStep.RETURNED)
    change = transaction(other, ours, 20.0, told.append, api)
    if end is PatchStep.AT_RISK:
        with pytest.raises(FlinkError, match=end.value):
            change.run()
    else:
        assert change.run().step is end
    stays = merged(specification(), ours) if end is PatchStep.AT_RISK else specification()
    assert operator.get()["spec"] == merged(stays, theirs)
    words = " ".join(told)
    ((path, *_),) = changes(specification(), merged(specification(), theirs))
    assert f"others have changed {'.'.join(path)} (" in words
    if end is PatchStep.AT_RISK:
        assert patches == [ours]
        (command,) = (line for line in told if "kubectl patch" in line)
        spec = json.loads(shlex.split(command)[-1])["spec"]
        operator.patch(spec)
        is_broken = when == "back"
        step = PatchStep.RETURNED if is_broken else PatchStep.KEPT
        assert resumed(api, told.append, 20.0) is step
        assert operator.get()["spec"] == merged(specification(), {} if is_broken else ours)


def test_a_patch_of_an_older_version_changes_nothing(api, operator):
    """The status changed since it was read, so the patch is refused, and sent again."""
    resource = read_resource(api, NAMESPACE, "count")
    operator.change(other="1")
    version = resource.document["metadata"]["resourceVersion"]
    document = {"metadata": {"resourceVersion": version}, "spec": TASKS}
    with pytest.raises(ApiRefusal) as refusal:
        api.patch(resource.path, document)
    assert refusal.value.status == 409
    assert MODE not in operator.get()["spec"]["flinkConfiguration"]


def test_an_interrupt_takes_the_change_back(api, operator):
    own: Any = disturbed(api, interrupted=4)
    with pytest.raises(KeyboardInterrupt):
        changed(own, at=api)
    assert operator.taken_up[1] == merged(specification(), TASKS)
    assert operator.get()["spec"] == specification()


def disturbed(api, silent=(), kills="", last=0, interrupted=0):
    """An API server that is gone for some requests, and ends the process at one, or at a patch.

    ``kills``: "before" a patch or "after" it. ``last``, ``interrupted``: number of the request.
    """
    numbers = count(1)

    def meddle(kind, _, act):
        number = next(numbers)
        if number == last:
            raise MemoryError
        if number == interrupted:
            raise KeyboardInterrupt
        if number in silent:
            raise NoAnswer("gone")
        if kind == "patch" and kills:
            if kills == "after":
                act()
            raise MemoryError
        return act()

    return Meddled(api, meddle)


@pytest.mark.parametrize(
    "disturbance",
    [{"kills": "before"}, {"kills": "after"}, *({"last": number} for number in range(1, 7))],
    ids=str,
)
def test_a_killed_change_is_finished(api, operator, disturbance):
    """It reads, patches, waits, and reads again; it may end before the last request."""
    change = transaction(api)
    change.api = disturbed(api, **disturbance)
    try:
        step = change.run().step
        assert "last" in disturbance
    except MemoryError:
        with pytest.raises(FlinkError):
            claimed(api)
        step = resumed(api)
    assert step is PatchStep.KEPT
    assert operator.get()["spec"] == journal().after
    with pytest.raises(SettingError):
        claimed_again(api)


def killed(api, number, is_done):
    """An API server whose command is killed at a write: before that, or after it."""
    writes = 0

    def meddle(kind, _, act):
        nonlocal writes
        is_write = kind != "get"
        writes += is_write
        is_meant = is_write and writes == number
        answer = act() if writes < number or (is_meant and is_done) else None
        if writes >= number:
            raise MemoryError
        return answer

    return Meddled(api, meddle)


WRITES = ["journal", "try", "patch", "patched", "return", "patch back", "patched back", "end"]
"""Writes of a change that does not run; one that runs ends after the fourth."""


@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("write", WRITES)
def test_a_change_killed_at_any_write_is_finished_on_another_machine(
    api, operator, monkeypatch, write, is_done
):
    """Once the lease of the first one has ended; then the resource can be changed again."""
    mode = "BROKEN" if "back" in write or write == "return" else "TASKS"
    patch = {"flinkConfiguration": {MODE: mode}}
    number = 5 if write == "end" else WRITES.index(write) + 1
    with pytest.raises(MemoryError):
        changed(killed(api, number, is_done), patch)
    here = Holder.current()
    monkeypatch.setattr(Holder, "current", lambda: here.model_copy(update={"host": "elsewhere"}))
    monkeypatch.setattr(Holder, "is_here", property(lambda self: self.host == "elsewhere"))
    was_claimed = (write, is_done) != ("journal", False)
    if not was_claimed or (write, is_done) == ("end", True):
        with pytest.raises(SettingError, match="no change of flink/count was interrupted"):
            claimed_again(api)
    else:
        with pytest.raises(FlinkError, match=f"is being changed by process {here.process} of "):
            claimed_again(api)
        monkeypatch.setattr("streamplace.flink.store.LEASE_SECONDS", -1.0)
        with pytest.raises(FlinkError, match="finish it with"):
            check_change(api, read_resource(api, NAMESPACE, "count"))
        assert resumed(api) is (PatchStep.KEPT if mode == "TASKS" else PatchStep.RETURNED)
    is_new = was_claimed and mode == "TASKS"
    assert operator.get()["spec"] == merged(specification(), patch if is_new else {})
    operator.await_stable(10.0)
    check_change(api, read_resource(api, NAMESPACE, "count"))


def test_two_commands_do_not_both_begin_or_both_resume(api, operator):
    """Each reads before the other writes."""
    own = journal(uid=operator.get()["metadata"]["uid"])
    elsewhere = Holder.current().model_copy(update={"host": "elsewhere"})

    def after(act):
        """An API server at which another machine acts once a command has read."""
        due = [act]

        def meddle(kind, _, go):
            try:
                return go()
            finally:
                while kind == "get" and due:
                    with pytest.MonkeyPatch.context() as patch:
                        patch.setattr(Holder, "current", lambda: elsewhere)
                        due.pop()()

        return Meddled(api, meddle)

    both: Any = after(lambda: PatchClaim.begin(api, own))
    with pytest.raises(FlinkError, match=r"is being changed by .* of elsewhere"):
        PatchClaim.begin(both, own)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamplace.flink.store.LEASE_SECONDS", -1.0)
        claimed_again(api).leave()
    again: Any = after(lambda: claimed_again(api))
    with pytest.raises(FlinkError, match=r"is being changed by .* of elsewhere"):
        PatchClaim.take(again, NAMESPACE, "count")


def test_a_journal_goes_with_its_resource(pods, api, context):
    at = JournalMap(api, NAMESPACE, "count")
    with reconciled(pods, "count"):
        claimed(api)
        document = api.get(f"/api/v1/namespaces/{NAMESPACE}/configmaps/{at.title}")
        assert document["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "streamplace"}
    awaited(lambda: at.read() == ("", None), 30.0)


def test_a_change_of_a_resource_that_was_made_again_is_forgotten(api, operator):
    claimed(api).leave()
    own = journal(uid="another")
    assert PatchClaim.begin(api, own).journal.uid == "another"


def test_a_journal_that_cannot_be_read_is_left_as_it_is(api, operator):
    at = JournalMap(api, NAMESPACE, "count")
    claimed(api).leave()
    path = f"/api/v1/namespaces/{NAMESPACE}/configmaps/{at.title}"
    api.patch(path, {"data": {"journal": "{}"}})
    for use in (claimed, claimed_again):
        with pytest.raises(StoreError, match="journal that cannot be read"):
            use(api)
    assert api.get(path)["data"] == {"journal": "{}"}


def test_a_killed_change_is_taken_back_where_the_resource_has_failed(api, operator):
    change = transaction(api, {"flinkConfiguration": {MODE: "BROKEN"}})
    change.api = disturbed(api, kills="after")
    with pytest.raises(MemoryError):
        change.run()
    with pytest.raises(FlinkError, match="finish it with: streamplace flink move --resume"):
        check_change(api, read_resource(api, NAMESPACE, "count"))
    assert resumed(api) is PatchStep.RETURNED
    assert operator.get()["spec"] == specification()


@pytest.mark.parametrize(
    "first", [1, 4, *(pytest.param(number, marks=pytest.mark.slow) for number in (2, 3, 5, 6))]
)
def test_silence_of_the_api_server_is_waited_for(api, operator, monkeypatch, first):
    monkeypatch.setattr("streamplace.flink.operator.patching.EFFECT_SECONDS", 0.05)
    change = transaction(api)
    change.api = disturbed(api, range(first, first + 4))
    assert change.run().step is PatchStep.KEPT
    assert operator.get()["spec"] == journal().after


def scripted(*states):
    """An API server with a resource whose states are given, before a patch and after each one."""
    made = FakeKubernetes({"count": specification()}, states=states)
    made.answers[f"GET {CORE}/events"] = {"items": []}
    return made


def looks(kubernetes):
    """How often it was asked about the resource."""
    return sum("configmaps" not in path for path in kubernetes.requests("GET"))


@pytest.mark.parametrize(
    ("failed", "returned"),
    [("FAILED", "FAILED"), ("ROLLED_BACK", None), ("ROLLED_BACK", "ROLLED_BACK")],
)
def test_a_way_back_that_fails_is_waited_for_and_ends(failed, returned):
    """As the operator may start a failed job again, and takes up nothing while it is away."""
    kubernetes = scripted("STABLE", failed, returned)
    assert transaction(kubernetes.api, timeout=1.2).run().step is PatchStep.NOT_STABLE
    assert kubernetes.documents["count"]["spec"] == specification()
    assert looks(kubernetes) < 20


@pytest.mark.parametrize("states", [["FINISHED"], ["STABLE", "FINISHED"], ["STABLE", "CANCELED"]])
def test_a_job_that_has_ended_is_not_patched_again(states):
    """The operator would start it again, from its last checkpoint."""
    kubernetes = scripted(*states)
    result = transaction(kubernetes.api).run()
    is_new = len(states) == 2
    assert result.step is (PatchStep.ENDED_AS_CHANGED if is_new else PatchStep.ENDED_AS_BEFORE)
    assert kubernetes.documents["count"]["spec"] == (journal().after if is_new else specification())


def test_a_job_that_ends_while_it_returns_is_not_waited_for():
    kubernetes = scripted("STABLE", "FAILED", "FINISHED")
    assert transaction(kubernetes.api, timeout=30.0).run().step is PatchStep.ENDED_AS_BEFORE
    assert kubernetes.documents["count"]["spec"] == specification()


def test_a_change_whose_credentials_expire_is_left_to_be_resumed(monkeypatch):
    """They may come back, as from a file that is written again, so they are waited for."""
    monkeypatch.setattr("streamplace.flink.operator.patching.SILENCE_SECONDS", 1.2)
    kubernetes, told = scripted("STABLE", httpx.Response(401)), list[str]()
    with pytest.raises(FlinkError, match="not known"):
        transaction(kubernetes.api, tell=told.append).run()
    expired = "Kubernetes does not accept the credentials of the kubeconfig; log in again"
    assert expired in told
    assert looks(kubernetes) < 20
    assert claimed_again(kubernetes.maps).journal.is_patched


def test_a_job_that_is_not_stable_is_not_changed(pods, api):
    with reconciled(pods, "count", specification(**{MODE: "SLOW"})) as operator:
        claim = claimed(api, before=operator.get()["spec"])
        change = PatchTransaction(api, claim, lambda _: None, 3.0)
        assert change.run().step is PatchStep.UNCHANGED


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"job": {"upgradeMode": "stateless"}}, "stateless"),
        ({"metadata": {"ownerReferences": [BLUE_GREEN]}}, "FlinkBlueGreenDeployment both"),
        ({}, "not taken up, not STABLE"),
        ({"job": {"state": "suspended"}}, "SUSPENDED, not STABLE"),
    ],
)
def test_what_would_lose_state_or_be_undone_is_refused(changes, words):
    with pytest.raises(FlinkError, match=words):
        check_change(ConfigMaps(), resource(**changes))  # type: ignore[arg-type]


def test_warnings_are_those_of_one_resource(api, pods, operator):
    """Names of others may begin alike, and an event need not have a time."""
    path = f"/api/v1/namespaces/{NAMESPACE}/events"
    for name, about, kind in (
        ("own", "count", "FlinkDeployment"),
        ("later", "count-x", "FlinkDeployment"),
        ("pod", "count-b-taskmanager-1-1", "Pod"),
    ):
        event = {"metadata": {"name": name}, "type": "Warning", "reason": "Bad", "message": name}
        event["involvedObject"] = {"kind": kind, "name": about, "namespace": NAMESPACE}
        pods.call("POST", path, event)
    try:
        resource = read_resource(api, NAMESPACE, "count")
        assert resource.warnings(api, "") == ["Bad: own"]
        assert resource.warnings(api, "2999") == []
    finally:
        for name in ("own", "later", "pod"):
            pods.call("DELETE", f"{path}/{name}")


def test_a_job_is_found_beside_a_session_cluster_of_its_name(api, pods, context):
    """And refused beside another job."""
    session = {key: value for key, value in specification().items() if key != "job"}
    path = PATH.replace("flinkdeployments", "flinksessionjobs")
    own = {"deploymentName": "count", "job": specification()["job"]}
    metadata = {"name": "count", "namespace": NAMESPACE}
    document = {"kind": "FlinkSessionJob", "metadata": metadata, "spec": own}
    pods.call("POST", path, {"apiVersion": "flink.apache.org/v1beta1", **document})
    try:
        with reconciled(pods, "count", session):
            assert read_resource(api, NAMESPACE, "count").kind == "FlinkSessionJob"
        with (
            reconciled(pods, "count"),
            pytest.raises(FlinkError, match="have the name flink/count"),
        ):
            read_resource(api, NAMESPACE, "count")
    finally:
        pods.call("DELETE", f"{path}/count")


def test_a_resource_is_one_line(api, operator):
    line = str(read_resource(api, NAMESPACE, "count"))
    assert line.startswith("FlinkDeployment flink/count, operator, native, 0 TaskManagers of 1 cpu")
    assert line.endswith("savepoint upgrades")


def test_an_expired_token_is_told(pods, api, monkeypatch, tmp_path):
    config = (pods.work / "kubeconfig").read_text()
    token = next(line for line in config.splitlines() if "token" in line)
    path = tmp_path / "kubeconfig"
    path.write_text(config.replace(token.split(":")[1].strip().strip('",'), "expired"))
    monkeypatch.setenv("KUBECONFIG", str(path))
    with pytest.raises(ApiRefusal) as refusal:
        read_resource(usual_api(), NAMESPACE, "count")
    assert refusal.value.status == 401


@pytest.mark.parametrize(
    "address", ["kubernetes:", "kubernetes:a", "kubernetes:a/b/c", "kubernetes:A/b"]
)
def test_an_address_that_names_no_resource_is_refused(address):
    with pytest.raises(SettingError):
        named(address)


def test_a_merge_patch_is_taken_back():
    document = {"a": {"b": 1, "c": {"d": 2}}, "e": 3}
    patch = {"a": {"b": None, "c": {"d": 4, "x": 5}, "y": 6}, "z": {"w": 1}}
    assert merged(merged(document, patch), inverse(document, patch)) == document


def test_a_patch_file_is_taken_by_kubectl_and_by_kustomize(pods, api, operator, tmp_path):
    fields = (("job/parallelism", 3, "was 1"), (f"flinkConfiguration/{MODE}", "TASKS", ""))
    patch = PodPatch((PREDICTED,), fields, "3 × half", NAMESPACE, "count")
    path = tmp_path / "patch.yaml"
    write_patch(patch, path)
    manifest = {key: operator.get()[key] for key in ("apiVersion", "kind", "spec")}
    manifest["metadata"] = {"name": "count", "namespace": NAMESPACE}
    (tmp_path / "count.yaml").write_text(yaml.safe_dump(manifest))
    kustomization = {"resources": ["count.yaml"], "patches": [{"path": "patch.yaml"}]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(kustomization))
    spec = merged(specification(), patch.document["spec"])
    assert yaml.safe_load(pods.kubectl("kustomize", str(tmp_path)))["spec"] == spec
    command = read_resource(api, NAMESPACE, "count").patch_command(str(path))
    assert "patched" in pods.kubectl(*shlex.split(command)[1:])
    assert operator.get()["spec"] == spec


@pytest.mark.slow
def test_modes_of_a_job_that_runs_are_told_and_not_tried(pods, context, capsys):
    spec = specification(**{"taskmanager.numberOfTaskSlots": "2"})
    spec["job"] |= {"args": ["100", "16"], "parallelism": 4}
    with reconciled(pods, "count", spec, runs=True) as operator:
        with pytest.raises(SystemExit) as ended_with:
            main(["flink", "move", "--rest", f"kubernetes:{NAMESPACE}/count", "--json"])
        assert not ended_with.value.code
        printed = capsys.readouterr()
        assert "2 TaskManagers of 1 cpu" in printed.err
        decision = json.loads(printed.out)["decision"]
        assert 50 < decision["measured"] < 150
        assert {row["name"] for row in decision["layouts"]} == {"Flink's SLOTS", "Flink's TASKS"}
        assert len(operator.taken_up) == 1


@pytest.mark.slow
def test_what_is_advised_carries_the_rate_once_it_is_applied(pods, api, run, tmp_path):
    """The numbers come three times as fast then; a generator with state keeps its one split."""
    spec = specification(**{"taskmanager.numberOfTaskSlots": "1"})
    spec["job"] |= {"args": ["30000", "1000"], "upgradeMode": "stateless"}
    spec["taskManager"]["resource"]["cpu"] = 0.5
    (tmp_path / "offers.toml").write_text(PRICES)
    address = f"kubernetes:{NAMESPACE}/count"
    with reconciled(pods, "count", spec, runs=True) as operator:
        own = settings_file(tmp_path, seconds=3, patience=20)
        given = ("--rate", "3x", "--offers", str(tmp_path / "offers.toml"), "--budget", "2")
        told = run("flink", "advise", "--rest", address, *own, *given, "-o", str(tmp_path / "plan"))
        assert told.status == 0, told.err
        patch = yaml.safe_load((tmp_path / "plan" / "patch.yaml").read_text())
        command = next(line for line in told.out.splitlines() if "kubectl patch" in line)
        patch["spec"]["job"] = {**patch["spec"].get("job", {}), "args": ["90000", "1000"]}
        (tmp_path / "plan" / "patch.yaml").write_text(json.dumps(patch))
        assert "patched" in pods.kubectl(*shlex.split(command)[1:])
        operator.await_stable()
        rest = rest_of(NAMESPACE, "count")
        (job,) = rest.live_jobs()
        rest.wait_running(job, 60.0)
        profile = steady_profile(rest, job, 3.0, 30.0)
        assert profile.flow.rate > 0.95 * 90_000
        assert not profile.flow.is_limited
