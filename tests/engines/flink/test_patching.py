"""Changes of a FlinkDeployment on a real API server, with a stand-in for Flink's operator."""

import json
import shlex
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
import yaml
from command_lines import settings_file
from operator_stand_in import BLUE_GREEN, MODE, TASKS, journal, reconciled, resource, specification
from pods import NAMESPACE

from streamplace.cli.main import main
from streamplace.engines.flink.decide.candidates import Candidate
from streamplace.engines.flink.decide.improving import JobImprover
from streamplace.engines.flink.measure.steadiness import steady_profile
from streamplace.engines.flink.operator.api import ApiRefusal, KubernetesApi, usual_api
from streamplace.engines.flink.operator.modes import (
    ModeTrials,
    check_change,
    finish,
    measured,
    modes_beside,
)
from streamplace.engines.flink.operator.patch_table import PatchStep
from streamplace.engines.flink.operator.patching import (
    PatchTransaction,
    claimed,
    claimed_again,
    inverse,
    merged,
)
from streamplace.engines.flink.operator.resource import named, read_resource, rest_of
from streamplace.engines.flink.rest.client import FlinkError, NoAnswer
from streamplace.errors import SettingError
from streamplace.model.prediction_intervals import RateInterval
from streamplace.settings.flink import FlinkMoveSettings

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


def better(_):
    return 1.0


def worse(_):
    return 0.0


def changed(api, patch=TASKS, measure=better):
    return PatchTransaction(api, claimed(journal(patch)), measure, lambda _: None, 3.0).run()


def test_a_better_change_is_kept(api, operator):
    result = changed(api)
    assert result.step is PatchStep.KEPT
    assert operator.get()["spec"] == merged(specification(), TASKS)
    assert result.seconds is not None


def test_a_change_that_is_not_better_is_taken_back_field_for_field(api, operator):
    patch = TASKS | {"job": {"parallelism": 2}, "taskManager": {"resource": {"cpu": 2}}}
    assert changed(api, patch, worse).step is PatchStep.RETURNED
    assert operator.get()["spec"] == specification()
    assert operator.taken_up[-2] == merged(specification(), patch)


@pytest.mark.parametrize("mode", ["BROKEN", "SLOW"])
def test_a_change_that_does_not_become_stable_is_taken_back(api, operator, mode):
    assert changed(api, {"flinkConfiguration": {MODE: mode}}).step is PatchStep.RETURNED
    assert operator.get()["spec"] == specification()


def test_a_change_by_another_hand_is_left(api, operator):
    def others(_):
        operator.change(other="1")
        return 0.0

    assert changed(api, measure=others).step is PatchStep.CONFLICT
    both = {"flinkConfiguration": {MODE: "TASKS", "other": "1"}}
    assert operator.get()["spec"] == merged(specification(), both)


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
    def interrupted(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        changed(api, measure=interrupted)
    assert operator.get()["spec"] == specification()


@dataclass(slots=True)
class Disturbed:
    """An API server that is gone for some requests, and kills the process at a patch."""

    api: KubernetesApi
    silent: range = range(0)
    kills: str = ""  # "before" a patch or "after" it
    last: int = 1_000_000  # number of the request at which the process is killed
    requests: int = 0

    def get(self, path):
        """As the API server, if it answers."""
        self._answer()
        return self.api.get(path)

    def patch(self, path, document):
        """As the API server, if it answers."""
        self._answer()
        answer = None if self.kills == "before" else self.api.patch(path, document)
        if self.kills:
            raise MemoryError
        return answer

    def _answer(self):
        self.requests += 1
        if self.requests == self.last:
            raise MemoryError
        if self.requests in self.silent:
            raise NoAnswer("gone")


@pytest.mark.parametrize(
    "disturbance",
    [{"kills": "before"}, {"kills": "after"}, *({"last": number} for number in range(1, 7))],
    ids=str,
)
@pytest.mark.parametrize("measure", [better, pytest.param(worse, marks=pytest.mark.slow)])
def test_a_killed_change_is_finished(api, operator, measure, disturbance):
    """It reads, patches, waits, and reads again; it may end before the last request."""
    transaction = PatchTransaction(api, claimed(journal()), measure, lambda _: None, 3.0)
    transaction.api = Disturbed(api, **disturbance)  # type: ignore[assignment]
    owner = journal().owner
    try:
        result = transaction.run()
        assert "last" in disturbance
    except MemoryError:
        with pytest.raises(FlinkError):
            claimed(journal())
        result = PatchTransaction(api, claimed_again(owner), measure, lambda _: None, 3.0).run()
    is_kept = measure is better
    assert (result.step is PatchStep.KEPT) is is_kept
    assert operator.get()["spec"] == (journal().after if is_kept else specification())
    with pytest.raises(SettingError):
        claimed_again(owner)


def test_a_killed_change_is_finished_where_the_resource_has_failed(api, operator):
    """The job does not run as changed, so it is not measured."""
    own = journal({"flinkConfiguration": {MODE: "BROKEN"}})
    transaction = PatchTransaction(api, claimed(own), better, lambda _: None, 3.0)
    transaction.api = Disturbed(api, kills="after")  # type: ignore[assignment]
    with pytest.raises(MemoryError):
        transaction.run()

    def improver():
        raise AssertionError

    assert finish(api, own.owner, improver, lambda _: None, 3.0).step is PatchStep.RETURNED
    assert operator.get()["spec"] == specification()


def test_a_change_is_taken_back_if_flink_does_not_answer(api, operator):
    def silent(_):
        raise NoAnswer("no Flink answers")

    assert changed(api, measure=silent).step is PatchStep.RETURNED
    assert operator.get()["spec"] == specification()


@pytest.mark.parametrize(
    "first", [1, 4, *(pytest.param(number, marks=pytest.mark.slow) for number in (2, 3, 5, 6))]
)
def test_silence_of_the_api_server_is_waited_for(api, operator, monkeypatch, first):
    monkeypatch.setattr("streamplace.engines.flink.operator.patching.EFFECT_SECONDS", 0.05)
    transaction = PatchTransaction(api, claimed(journal()), better, lambda _: None, 3.0)
    transaction.api = Disturbed(api, range(first, first + 4))  # type: ignore[assignment]
    assert transaction.run().step is PatchStep.KEPT
    assert operator.get()["spec"] == journal().after


@dataclass(slots=True)
class Scripted:
    """An API server with a resource whose states are given."""

    states: list[str]  # before a patch, and after each one; "" if that is not taken up
    document: dict[str, Any] = field(
        default_factory=lambda: {
            "metadata": {"generation": 0, "resourceVersion": "1"},
            "spec": specification(),
            "status": {"jobStatus": {"state": "RUNNING"}},
        }
    )
    requests: int = 0

    def get(self, path):
        """The resource, or its events."""
        self.requests += 1
        if path.endswith("/events"):
            return {"items": [{"type": "Warning", "involvedObject": {"name": "count"}}]}
        number, status = self.document["metadata"]["generation"], self.document["status"]
        if (state := self.states[number]) == "REFUSED":
            raise ApiRefusal("log in again", 401)
        if state in ("FINISHED", "CANCELED"):
            status |= {"lifecycleState": "STABLE", "observedGeneration": number}
            status["jobStatus"] = {"state": state}
        elif state:
            status |= {"lifecycleState": state, "observedGeneration": number}
        return self.document

    def patch(self, path, document):
        """Merge a specification."""
        self.document["metadata"]["generation"] += 1
        self.document["spec"] = merged(self.document["spec"], document["spec"])


@pytest.mark.parametrize(
    ("failed", "returned"),
    [("FAILED", "FAILED"), ("ROLLED_BACK", ""), ("ROLLED_BACK", "ROLLED_BACK")],
)
def test_a_way_back_that_fails_is_waited_for_and_ends(failed, returned):
    """As the operator may start a failed job again, and takes up nothing while it is away."""
    api: Any = Scripted(["STABLE", failed, returned])
    result = PatchTransaction(api, claimed(journal()), better, lambda _: None, 1.2).run()
    assert (result.step, api.document["spec"]) == (PatchStep.NOT_STABLE, specification())
    assert api.requests < 20


@pytest.mark.parametrize("states", [["FINISHED"], ["STABLE", "FINISHED"], ["STABLE", "CANCELED"]])
def test_a_job_that_has_ended_is_not_patched_again(states):
    """The operator would start it again, from its last checkpoint."""
    api: Any = Scripted(states)
    result = PatchTransaction(api, claimed(journal()), worse, lambda _: None, 3.0).run()
    is_new = len(states) == 2
    assert result.step is (PatchStep.ENDED_AS_CHANGED if is_new else PatchStep.ENDED_AS_BEFORE)
    assert api.document["spec"] == (journal().after if is_new else specification())


def test_a_job_that_ends_while_it_returns_is_not_waited_for():
    api: Any = Scripted(["STABLE", "STABLE", "FINISHED"])
    result = PatchTransaction(api, claimed(journal()), worse, lambda _: None, 30.0).run()
    assert (result.step, api.document["spec"]) == (PatchStep.ENDED_AS_BEFORE, specification())


@pytest.mark.parametrize(
    ("state", "step"),
    [("FINISHED", PatchStep.ENDED_AS_CHANGED), ("FAILED", PatchStep.RETURNED)],
)
def test_a_job_that_ends_while_it_is_measured_is_known_from_flink(state, step):
    """The operator looks at a stable job once a minute only."""

    def job():
        raise SettingError("no job is running")

    rest = SimpleNamespace(jobs=lambda: {"0" * 32: state})
    improver: Any = SimpleNamespace(engine=SimpleNamespace(job=job, rest=rest))
    api: Any = Scripted(["STABLE", "STABLE", "STABLE"])
    transaction = PatchTransaction(
        api, claimed(journal()), lambda _: measured(improver, 3.0), lambda _: None, 3.0
    )
    assert transaction.run().step is step


def test_a_change_whose_credentials_expire_is_left_to_be_resumed(monkeypatch):
    """They may come back, as from a file that is written again, so they are waited for."""
    monkeypatch.setattr("streamplace.engines.flink.operator.patching.SILENCE_SECONDS", 1.2)
    api: Any = Scripted(["STABLE", "REFUSED"])
    told: list[str] = []
    with pytest.raises(FlinkError, match="not known"):
        PatchTransaction(api, claimed(journal()), better, told.append, 3.0).run()
    assert "log in again" in told
    assert api.requests < 20
    assert claimed_again(journal().owner).journal.is_patched


def test_a_job_that_is_not_stable_is_not_changed(pods, api):
    with reconciled(pods, "count", specification(**{MODE: "SLOW"})) as operator:
        own = journal(before=operator.get()["spec"])
        transaction = PatchTransaction(api, claimed(own), better, lambda _: None, 3.0)
        assert transaction.run().step is PatchStep.UNCHANGED


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"job": {"upgradeMode": "stateless"}}, "stateless"),
        ({"metadata": {"ownerReferences": [BLUE_GREEN]}}, "FlinkBlueGreenDeployment both"),
        ({}, "not taken up"),
    ],
)
def test_what_would_lose_state_or_be_undone_is_refused(changes, words):
    """Before Kubernetes is asked."""
    with pytest.raises(FlinkError, match=words):
        check_change(None, resource(**changes))


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


@pytest.mark.slow
def test_a_job_that_runs_is_measured_and_a_mode_is_tried(pods, api, capsys):
    """Two TaskManagers run alike in all modes, so the change is not better, and taken back."""
    spec = specification(**{"taskmanager.numberOfTaskSlots": "2"})
    spec["job"] |= {"args": ["100", "16"], "parallelism": 4}
    with reconciled(pods, "count", spec, runs=True) as operator:
        address = f"kubernetes:{NAMESPACE}/count"
        with pytest.raises(SystemExit) as ended_with:
            main(["flink", "move", "--rest", address, "--yes", "--json"])
        assert not ended_with.value.code
        printed = capsys.readouterr()
        assert "2 TaskManagers of 1 cpu" in printed.err
        decision = json.loads(printed.out)["decision"]
        assert 50 < decision["measured"] < 150
        assert decision["next"] is None
        engine = FlinkMoveSettings(rest=address).engine()
        resource = read_resource(api, NAMESPACE, "count")
        modes = modes_beside(resource.as_run(engine.rest))
        improver = JobImprover(engine, None, decides=modes)
        trials = ModeTrials(api, resource, improver, 120.0, "resume")
        before = improver.propose(engine.job())
        rate = RateInterval(1.0, 2.0, 3.0)
        candidate = Candidate("Flink's TASKS", before.where.layout, rate, mode="TASKS")
        after, ended = trials.tried(before, candidate)
        assert ended.step is PatchStep.RETURNED
        assert [trial.name for trial in after.trials] == ["present layout", "Flink's TASKS"]
        assert after.trials[1].rate > 0
        assert operator.get()["spec"] == operator.spec
        assert [s["flinkConfiguration"].get(MODE) for s in operator.taken_up] == [
            None,
            "TASKS",
            None,
        ]
        rest = rest_of(NAMESPACE, "count")
        rest.wait_running(*rest.live_jobs())


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
