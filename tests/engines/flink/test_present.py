"""What the model says of the placement that was measured."""

import json
import math
import re
import time
from pathlib import Path

import pytest
from benchmark_modules import benchmark_modules
from flink_graphs import pipeline

from streamplace.engines.flink.cpu import limits
from streamplace.engines.flink.cpu.limits import CpuPool, CpuShare
from streamplace.engines.flink.cpu.task_cpu import ClusterInterval, RunningSubtask
from streamplace.engines.flink.cpu.threads import ThreadLoad
from streamplace.engines.flink.local.dist import Flink
from streamplace.engines.flink.measure.cluster import HEADROOM
from streamplace.engines.flink.measure.consistency import (
    Consistency,
    Present,
    Usage,
    consistency,
    present_of,
)
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.engines.flink.measure.sending_cost import RemoteFlow, SendingCost, sending_cost
from streamplace.engines.flink.rest.client import Rest
from streamplace.engines.flink.rest.plan import Edge, FlinkTask
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import Operator
from streamplace.model.streams import Stream

MIPS, COST, RATE = 1000.0, 0.001, 100.0


def pipe(b: Operator, ipt: float = COST * MIPS * 1e6) -> StreamGraph:
    """Operators a → b; each tuple takes a millisecond of a core at a, which has two subtasks."""
    a = Operator("a", ipt=ipt, rate=RATE, parallelism=2)
    return StreamGraph.of("pipe", [a, b], [Stream("a", "b")], {"mips": MIPS})


GRAPH = pipe(Operator("b"))
TUPLES = {"a": RATE, "b": RATE}


def usage(load: float, limit: float = 0.25, **kinds: float) -> Usage:
    """A TaskManager that takes a part of its limit."""
    return Usage(
        CpuShare(limit), {"tasks": load * limit - sum(kinds.values()), **kinds}, throttled=0.5
    )


def present_beside(monkeypatch: pytest.MonkeyPatch, *others: RunningSubtask) -> Present:
    """Job of two tasks beside subtasks of other jobs, on two TaskManagers; the first is full."""
    monkeypatch.setattr(limits, "cpu_pool", lambda process: CpuPool(f"quota {process}", 1.0))
    tasks = [FlinkTask("v0", "a", "a", 1, ("a",)), FlinkTask("v1", "b", "b", 2, ("b",))]
    where = [("v0", 0, "tm-0"), ("v1", 0, "tm-0"), ("v1", 1, "tm-1")]
    subtasks = [*others, *(RunningSubtask("job", v, i, at, v, 0.0) for v, i, at in where)]
    netty = "Flink Netty Server (0) Thread 0"
    loads = {
        "tm-0": [ThreadLoad(0, "a (1/1)#0", 0.9), ThreadLoad(1, netty, 0.1)],
        "tm-1": [ThreadLoad(0, "b (2/2)#0", 0.2), ThreadLoad(1, netty, 0.3)],
    }
    counts = {"numRecordsOut": 1e5, "numBytesOut": 5e6}, {"numRecordsIn": 1e5, "numBytesIn": 5e6}
    activity = {f"v{i}": Activity(seen, 1.0) for i, seen in enumerate(counts)}
    interval, edges = ClusterInterval(subtasks, loads, {}), [Edge("v0", "v1", "hash")]
    processes, throttled = {"tm-0": 1, "tm-1": 2}, {"tm-0": 0.0, "tm-1": 0.0}
    present = present_of("job", tasks, edges, interval, activity, processes, throttled)
    assert present is not None
    return present


def test_what_remote_tuples_cost_is_measured_where_cpu_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many tuples cross at both ends; the threads of the full one take a third of the CPU."""
    present = present_beside(monkeypatch)
    assert [one.is_full for one in present.usage.values()] == [True, False]
    assert present.sending == sending_cost({"tm-1": 0.3}, {"tm-1": RemoteFlow(5e4, 2.5e6)})


@pytest.mark.parametrize(
    ("read", "where", "is_measured"),
    [(1e3, "tm-1", True), (1e5, "tm-1", False), (math.nan, "tm-1", False), (1e5, "tm-0", True)],
)
def test_what_remote_tuples_cost_is_not_measured_beside_those_of_other_jobs(
    monkeypatch: pytest.MonkeyPatch, read: float, where: str, is_measured: bool
) -> None:
    """The threads that send and receive serve all jobs; what stays on one TaskManager is none."""
    source = RunningSubtask("other", "v0", 0, "tm-0", "x (1/1)#0", 0.0, 0.0)
    sink = RunningSubtask("other", "v1", 0, where, "y (1/1)#0", 0.0, read)
    present = present_beside(monkeypatch, source, sink)
    assert (present.sending is not None) == is_measured


def answered(
    graph: StreamGraph, present: Present, tuples: dict[str, float], *, is_blocked: bool = True
) -> Consistency:
    """What the model says of a placement that can be checked."""
    found = consistency(graph, present, tuples, is_blocked=is_blocked)
    assert found is not None
    return found


def checked(
    top: Usage, tuples: dict[str, float] = TUPLES, *, is_blocked: bool = True
) -> Consistency:
    """Both subtasks of a run on one TaskManager of a quarter of a core, and b on another."""
    places = {"a": ["tm-0", "tm-0"], "b": ["tm-1"]}
    used = {"tm-0": top, "tm-1": usage(0.1)}
    present = Present(places, used, java=0.01, sending=SendingCost(0.0001, 0.0))
    return answered(GRAPH, present, tuples, is_blocked=is_blocked)


TOGETHER = Present({"a": ["t", "t"], "b": ["t"]}, {"t": usage(1.0)}, 0.0)
"""All of the job runs on one TaskManager, which is full."""


def test_the_prediction_is_what_is_left_of_the_limit_over_the_cost() -> None:
    """Java and the headroom are taken off, and sending costs something."""
    found = checked(usage(1.0))
    left = (1 - HEADROOM) * (0.25 - 0.01)
    assert found.predicted == pytest.approx(left / (COST + 0.0001))
    assert found.measured == pytest.approx(RATE)


def test_more_than_was_measured_is_right_while_there_is_cpu_left() -> None:
    """A job that is offered little is not carried badly; less than was measured is wrong."""
    assert not checked(usage(1.0)).agrees
    assert not checked(usage(0.9)).agrees  # a source is held back
    assert checked(usage(0.9), is_blocked=False).agrees
    assert "not saturated: 100 tuples/s were measured" in str(checked(usage(0.9), is_blocked=False))
    present = Present({"a": ["t", "t"], "b": ["t"]}, {"t": usage(0.9)}, 0.01, 0.0)
    faster, tuples = GRAPH.at_rate(3 * RATE), {"a": 300.0, "b": 300.0}
    assert not answered(faster, present, tuples, is_blocked=False).agrees


def test_what_is_known_of_the_difference_is_said() -> None:
    """Threads that are not the operators', and the quota."""
    text = str(checked(usage(1.0, **{"garbage collection": 0.05, "compilers": 0.001})))
    assert "'tm-0' took 100% of its CPU, of which garbage collection 20%" in text
    assert "compilers" not in text
    assert "its quota throttled it in 50% of its periods" in text
    assert "so CPU is not the limit" in str(checked(usage(0.5)))


def test_of_equally_full_task_managers_the_first_one_is_named() -> None:
    """Whatever the hash of their names; those that share a machine are always equally full."""
    names = [f"tm-{i}" for i in range(20)]
    graph = pipe(Operator("b", parallelism=18))
    present = Present({"a": names[:2], "b": names[2:]}, dict.fromkeys(names, usage(1.0)), 0.01)
    found = answered(graph, present, TUPLES)
    assert found.causes[0].startswith("'tm-0' took 100% of its CPU")


def test_the_slowest_operator_is_what_is_carried() -> None:
    """What comes before it fills queues, which is said."""
    found = checked(usage(1.0), {"a": RATE, "b": 80.0})
    assert found.measured == pytest.approx(80)
    assert "queues filled or drained" in str(found)


def test_task_managers_elsewhere_are_not_checked() -> None:
    """Nothing is known of their CPU."""
    present = Present({"a": ["tm-0", "far"], "b": ["tm-0"]}, {"tm-0": usage(1.0)}, 0.0, 0.0)
    assert consistency(GRAPH, present, TUPLES, is_blocked=True) is None


def test_the_operator_that_is_charged_for_what_it_did_not_take_is_named() -> None:
    """A selectivity that is too large charges b for tuples that it never read."""
    dear = pipe(Operator("b", ipt=2e8))
    assert answered(dear, TOGETHER, TUPLES | {"b": 1.0}).culprit == "b"
    assert checked(usage(1.0)).culprit == "a"
    assert answered(dear, TOGETHER, TUPLES | {"b": 0.0}).error > 1


def test_the_dearest_operator_is_so_with_what_it_uses_at_any_rate() -> None:
    """Operator b costs next to nothing per tuple, but three times as much as a at any rate."""
    held = pipe(Operator("b", ipt=1, constant=300), ipt=1e6)
    assert answered(held, TOGETHER, TUPLES).culprit == "b"


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_a_saturated_job_is_predicted_as_it_runs(flink: Flink, graph_jar: Path) -> None:
    """Fast tuples, whose source keeps its rate in a thread of its own, on two quarters of a core.

    The bounds are for machines on which others work, too.
    """
    limited = benchmark_modules("limited").limited
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
