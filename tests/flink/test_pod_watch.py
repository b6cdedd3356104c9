"""Watches that change the number of pods of a FlinkDeployment by patches."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from operator_stand_in import claimed, reconciled, resource, specification
from pods import NAMESPACE

from streamplace.control.policy import POLICIES
from streamplace.control.problem import MoveTerms
from streamplace.errors import SettingError
from streamplace.flink.layout import Layout
from streamplace.flink.move.savepoints import CheckpointTotals
from streamplace.flink.operator.api import usual_api
from streamplace.flink.operator.merge_patch import merged
from streamplace.flink.operator.resource import read_resource
from streamplace.flink.rest.client import FlinkError, Rest
from streamplace.flink.store import Store
from streamplace.flink.watch import pods as watching
from streamplace.flink.watch import rounds as passing
from streamplace.flink.watch.deciding import (
    Guards,
    JobModel,
    JobSample,
    LayoutOption,
    RateJudge,
    WatchChoice,
)
from streamplace.flink.watch.log import WatchLog
from streamplace.flink.watch.pods import PodMover, PodRounds
from streamplace.flink.watches import MOVED, UNBEGUN, WatchDecision
from streamplace.model import Cluster, Device
from streamplace.model.prediction_intervals import RateInterval

pytestmark = pytest.mark.xdist_group("kubernetes")
TITLE = f"FlinkDeployment {NAMESPACE}/count"
DECISION = WatchDecision("", "move", TITLE, TITLE, {"count": ["pod-0", "pod-1"]}, (1, 2), "more")


def mover():
    log = WatchLog.claimed(Store.usual(), TITLE, "count", lambda _: None)
    api = usual_api()
    return PodMover(api, read_resource(api, NAMESPACE, "count"), log, 5.0, "watch again")


def option(pods, slots=1):
    names = [f"pod-{i % pods}" for i in range(pods * slots)]
    return LayoutOption(Layout({"count": names}), RateInterval(1.0, 2.0, 3.0))


def choice(pods, slots=1):
    return WatchChoice("more", option(pods, slots))


def test_more_pods_are_a_patch_of_the_parallelism(operator):
    own = mover()
    assert own.carry_out(TITLE, option(1), choice(3, slots=2)) == TITLE
    assert operator.get()["spec"] == merged(operator.spec, {"job": {"parallelism": 6}})
    (decision,) = own.log.moves
    assert (decision.state, decision.machines, decision.after) == (MOVED, (1, 3), TITLE)


def test_replicas_are_changed_where_they_count(pods, context):
    spec = merged(specification(), {"mode": "standalone", "taskManager": {"replicas": 1}})
    with reconciled(pods, "count", spec) as operator:
        mover().carry_out(TITLE, option(1), choice(3))
        assert operator.get()["spec"]["taskManager"]["replicas"] == 3


def test_what_was_not_begun_is_known_to_be_so(operator):
    """The process ended between the decision and the patch."""
    own = mover()
    number = own.log.begin(DECISION)
    assert own.finish(number) == TITLE
    assert own.log.decisions[number].state == UNBEGUN
    assert operator.get()["spec"] == operator.spec


def test_a_change_that_was_interrupted_is_finished(operator):
    """By the next process, from its journal."""
    patch = {"job": {"parallelism": 2}}
    claimed(usual_api(), patch, operator.spec).leave()  # as of a process that has ended
    own = mover()
    number = own.log.begin(DECISION)
    assert own.finish(number) == TITLE
    assert own.log.decisions[number].state == MOVED
    assert operator.get()["spec"] == merged(operator.spec, patch)


def test_a_change_of_which_this_machine_has_no_decision_is_finished(operator):
    """As the pod of the watch was replaced by another one."""
    own, patch = mover(), {"job": {"parallelism": 2}}
    claimed(own.api, patch, operator.spec).leave()
    own.finish_unrecorded()
    assert operator.get()["spec"] == merged(operator.spec, patch)
    own.finish_unrecorded()  # there is none any more


def test_an_error_that_passes_does_not_end_a_watch(monkeypatch):
    """Such as a savepoint that failed, or a JobManager whose node was lost."""

    def states():
        for state in ("DEPLOYED", "STABLE", "FAILED"):
            status = {"lifecycleState": state, "error": "Missing JobManager deployment"}
            yield replace(resource(), document={**resource().document, "status": status})

    now, passed = states(), list[str]()
    monkeypatch.setattr(watching, "read_deployment", lambda *_: next(now))
    monkeypatch.setattr(watching, "CHECK_SECONDS", 0.0)
    own: Any = SimpleNamespace(tell=None)
    rounds: Any = SimpleNamespace(is_due=True, log=own, mover=None, pass_round=passed.append)
    with pytest.raises(FlinkError, match="has failed: Missing JobManager"):
        watching.watch_pods(own, resource(), rounds)
    assert passed == [TITLE, TITLE]


def test_unequal_pods_are_not_one_pod():
    """As on nodes of other speeds: their number does not tell what they carry."""
    equal = Cluster.of([Device("a", mips=625), Device("b", mips=600)])
    assert watching.only_pod(equal).mips == 600
    with pytest.raises(FlinkError, match="2 times the CPU of another"):
        watching.only_pod(Cluster.of([Device("a", mips=625), Device("b", mips=1250)]))


def test_a_watch_ends_with_its_job(monkeypatch):
    status = {"lifecycleState": "STABLE", "jobStatus": {"state": "FINISHED"}}
    now = replace(resource(), document={**resource().document, "status": status})
    monkeypatch.setattr(watching, "read_deployment", lambda *_: now)
    told = list[str]()
    own: Any = SimpleNamespace(is_due=True, log=SimpleNamespace(tell=told.append))
    watching.watch_pods(own, resource(), own)
    assert told == [f"the job of {TITLE} has ended"]
    with pytest.raises(FlinkError, match="has ended"):
        now.check()


def test_a_cluster_that_starts_again_does_not_end_a_watch(monkeypatch):
    """Its JobManager answers before it has the job."""

    def none(*_):
        raise SettingError("no job is running")

    monkeypatch.setattr(watching, "only_job", none)
    own: Any = None
    rounds = PodRounds(own, own, own, own, own, own)
    with pytest.raises(FlinkError, match="no job is running"):
        rounds.pass_round(TITLE)


@pytest.mark.parametrize("has_autoscaler", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_pods_follow_a_rate_that_grows_and_falls(operator, monkeypatch, has_autoscaler):
    """A pod carries 100 tuples/s; no patch is undone while the rate stays as it is.

    Beside an autoscaler, nothing is changed.
    """
    own, clock, backlog = mover(), [0.0], [0.0]

    def offered():
        return 150.0 if 3_600 <= clock[0] < 7_200 else 50.0

    def pods_now():
        number: int = operator.get()["spec"]["job"]["parallelism"]
        return number

    def model_of(job, managers, trials):
        every = {
            n: LayoutOption(option(n).layout, RateInterval(*[100.0 * n] * 3)) for n in (1, 2, 3)
        }
        return JobModel(every.pop(pods_now()), tuple(every.values()), (1, 2, 3))

    def sample_of(rest, job, at):
        """Its names change with each start."""
        number = pods_now()
        carried = min(offered() + backlog[0] / 60, 100.0 * number)
        backlog[0] = max(0.0, backlog[0] + 60 * (offered() - carried))
        start = len(operator.taken_up)
        names = [f"count-taskmanager-{start}-{i + 1}" for i in range(number)]
        totals = CheckpointTotals(int(at), 0)
        layout = Layout({"count": names})
        limited = backlog[0] > 0
        return JobSample(
            at, job, carried, limited, backlog[0], layout, totals, layout.devices, float(start)
        )

    monkeypatch.setattr(passing, "sample_of", sample_of)
    monkeypatch.setattr(watching, "only_job", lambda *_: f"{len(operator.taken_up):032x}")
    rounds = PodRounds(
        Rest("http://localhost:1"),
        own.log,
        RateJudge(POLICIES["work-function"], 60.0, MoveTerms(price=600.0, lag=60.0)),
        Guards(120.0),
        model_of,
        None if has_autoscaler else own,
        monotonic=lambda: clock[0],
        max_pods=3,
    )
    while clock[0] < 14_400:
        own.resource = read_resource(own.api, NAMESPACE, "count")  # as the watch does
        rounds.pass_round(TITLE)
        clock[0] += 60.0
    numbers = [spec["job"]["parallelism"] for spec in operator.taken_up]
    assert numbers == ([1] if has_autoscaler else [1, 2, 1])
    assert all(decision.measured for decision in own.log.moves)
