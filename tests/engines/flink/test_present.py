"""The present layout: what it is known of, and what the model says of it."""

import json
import re
import time
from pathlib import Path

import limited
import pytest
from flink_clusters import pipeline

from streamplace.engines.flink.cpu import limits
from streamplace.engines.flink.cpu.limits import CpuPool, CpuShare
from streamplace.engines.flink.cpu.threads import ClusterInterval, RunningSubtask, ThreadLoad
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.measure.cluster import HEADROOM
from streamplace.engines.flink.measure.graph import Agreement, agreement, measured_graph
from streamplace.engines.flink.measure.profile import Present, Usage, present_of, profile
from streamplace.engines.flink.measure.sampling import Activity, JobInterval
from streamplace.engines.flink.measure.streams import RemoteFlow, SendingCost, network_loads
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import Edge, FlinkTask
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import Operator
from streamplace.model.streams import Stream

MIPS, COST, RATE = 1000.0, 0.001, 100.0


def pipe() -> StreamGraph:
    """Operators a → b; each tuple takes a millisecond of a core at a, which has two subtasks."""
    a = Operator("a", ipt=COST * MIPS * 1e6, rate=RATE, parallelism=2)
    return StreamGraph.of("pipe", [a, Operator("b")], [Stream("a", "b")], {"mips": MIPS})


GRAPH = pipe()
SENDING = SendingCost(0.0001, 0.0, fixed=0.02)


def usage(load: float, limit: float = 0.25) -> Usage:
    """A TaskManager that takes a part of its limit."""
    return Usage(CpuShare(limit, used=load * limit), {"tasks": load * limit})


def present_beside(monkeypatch: pytest.MonkeyPatch, *others: RunningSubtask) -> Present:
    """Job of two tasks beside subtasks of other jobs, on two TaskManagers; the first is full."""
    monkeypatch.setattr(limits, "cpu_pool", lambda process: CpuPool(f"quota {process}", 1.0))
    tasks = [FlinkTask("v0", "a", "a", 1, ("a",)), FlinkTask("v1", "b", "b", 2, ("b",))]
    where = [("v0", 0, "tm-0"), ("v1", 0, "tm-0"), ("v1", 1, "tm-1")]
    subtasks = [*others, *(RunningSubtask("job", v, i, at, v, 0.0) for v, i, at in where)]
    netty = "Flink Netty Server (0) Thread 0"
    loads = {
        "tm-0": [ThreadLoad("a (1/1)#0", 0.9), ThreadLoad(netty, 0.1)],
        "tm-1": [ThreadLoad("b (2/2)#0", 0.2), ThreadLoad(netty, 0.3)],
    }
    counts = {"numRecordsOut": 1e5, "numBytesOut": 5e6}, {"numRecordsIn": 1e5, "numBytesIn": 5e6}
    activity = {f"v{i}": Activity(seen, 1.0) for i, seen in enumerate(counts)}
    seen = JobInterval(activity, ClusterInterval(subtasks, loads), {}, {})
    edges, processes = [Edge("v0", "v1", "hash")], {"tm-0": 1, "tm-1": 2}
    present = present_of("job", tasks, edges, seen, processes)
    assert present is not None
    return present


def test_what_remote_tuples_cost_is_measured_where_cpu_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many tuples cross at both ends; the threads of the full one take a third of the CPU."""
    present = present_beside(monkeypatch)
    assert [one.share.is_full for one in present.usage.values()] == [True, False]
    assert present.network == network_loads({"tm-1": 0.3}, {"tm-1": RemoteFlow(5e4, 2.5e6)})


@pytest.mark.parametrize(("where", "is_measured"), [("tm-1", False), ("tm-0", True)])
def test_what_remote_tuples_cost_is_not_measured_beside_those_of_other_jobs(
    monkeypatch: pytest.MonkeyPatch, where: str, is_measured: bool
) -> None:
    """The threads that send and receive serve all jobs; what stays on one TaskManager is none."""
    source = RunningSubtask("other", "v0", 0, "tm-0", "x (1/1)#0", 0.0)
    sink = RunningSubtask("other", "v1", 0, where, "y (1/1)#0", 0.0)
    present = present_beside(monkeypatch, source, sink)
    assert bool(present.network) == is_measured


def checked(load: float, sustained: float | None = None, *, is_limited: bool = True) -> Agreement:
    """Both subtasks of a run on one TaskManager of a quarter of a core, and b on another."""
    places = {"a": ["tm-0", "tm-0"], "b": ["tm-1"]}
    present = Present(places, {"tm-0": usage(load), "tm-1": usage(0.1)}, java=0.01)
    found = agreement(GRAPH, present, SENDING, is_limited=is_limited, sustained=sustained)
    assert found is not None
    return found


def test_the_prediction_is_what_is_left_of_the_limit_over_the_cost() -> None:
    """Java, the network and the headroom are taken off, and sending costs something."""
    found = checked(1.0)
    left = (1 - HEADROOM) * (0.25 - 0.01 - 0.02)
    assert found.predicted == pytest.approx(left / (COST + 0.0001))
    assert found.measured == pytest.approx(RATE)
    assert checked(1.0, 50.0).measured == 50.0  # what lasts, if a backlog shows it


def test_more_than_was_measured_is_right_while_there_is_cpu_left() -> None:
    """A job that is offered little is not carried badly; less than was measured is wrong."""
    assert checked(1.0).contradicts
    assert checked(0.9).contradicts  # a source is held back
    idle = checked(0.9, is_limited=False)
    assert not idle.contradicts
    assert "not saturated: 100 tuples/s were measured" in str(idle)
    assert checked(0.9, 300.0, is_limited=False).contradicts


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_a_saturated_job_is_predicted_as_it_runs(flink: Flink, graph_jar: Path) -> None:
    """Fast tuples, whose source keeps its rate in a thread of its own, on two quarters of a core.

    The bounds are for machines on which others work, too.
    """
    if reason := limited.why_unlimited():
        pytest.skip(reason)
    graph = pipeline(1, 2, 1)
    graph["operators"][0]["rate"] = 1_000_000
    with limited.limited_cluster(flink, ["q-0", "q-1"], cores=0.25, bandwidth_bps=1e9) as cluster:
        rest = Rest(cluster.url)
        job = rest.run_jar(rest.upload(graph_jar), "GraphJob", [json.dumps(graph)])
        rest.wait_running(job)
        time.sleep(20)
        text = str(measured_graph(profile(rest, job, 15), MIPS).attributes["consistency"])
    error = re.search(r"\(([+-]\d+)%\)", text)
    assert error is not None, text
    assert abs(int(error[1])) <= 20, text
