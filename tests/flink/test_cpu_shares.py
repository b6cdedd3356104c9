"""CPU that TaskManagers share with other jobs, and operators that wait for something else."""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable

import limited
import pytest
from fake_flink import (
    CPU,
    MIPS,
    START,
    UNKNOWN,
    LazyFlink,
    Vertex,
    advised,
    failure,
    job,
    jobs,
    made_threads,
    rates,
    read_threads,
    source,
    with_threads,
    writing_shop,
)
from flink_clusters import pipeline

from streamplace import Operator, Stream, StreamGraph
from streamplace.errors import SettingError
from streamplace.flink.cpu import limits
from streamplace.flink.cpu import threads as cpus
from streamplace.flink.cpu.charging import (
    ClusterInterval,
    JavaThread,
    ManagerLoads,
    RunningSubtask,
    ThreadLoad,
    thread_loads,
)
from streamplace.flink.cpu.limits import CpuPool, CpuShare
from streamplace.flink.cpu.threads import named_threads
from streamplace.flink.decide.rates import JobRates
from streamplace.flink.engine import FlinkEngine
from streamplace.flink.layout import Layout
from streamplace.flink.measure import profile as profiling
from streamplace.flink.measure import windows
from streamplace.flink.measure.cluster import Measurement, cores_used
from streamplace.flink.measure.measured_graph import agreement, measured_graph
from streamplace.flink.measure.profile import Present, Usage, present_of, profile
from streamplace.flink.measure.sampling import Activity
from streamplace.flink.measure.streams import RemoteFlow, SendingCost, network_loads
from streamplace.flink.measure.windows import JobInterval
from streamplace.flink.rest.client import NoAnswer, Rest
from streamplace.flink.rest.plan import Edge, FlinkTask
from streamplace.model.defaults import FLINK_HEADROOM
from streamplace.model.graph import CONSISTENCY_ERROR
from streamplace.model.profile_trust import trust_of

Measure = Callable[..., Measurement]
BOX = CpuPool("box", 4.0)


@pytest.fixture
def sharing(clock, monkeypatch):
    """A job of a source and an operator, by the cores that each subtask uses.

    Subtask i runs on TaskManager i.
    """

    def run(pool, number, src, out, blocked=0.0, beside=None):
        read = rates(100, 0, 400, 0, busy=0.1)
        vertices = {
            "v0": source("src", 100, 4, busy=0.1, blocked=blocked),
            "v1": Vertex("out", read, [("v0", "REBALANCE")], len(out)),
        }
        vertices["v0"].parallelism = len(src)
        tasks = {"Source: src": src, "out": out}

        def cores(process):
            own = {
                f"{task} ({process + 1}/{len(each)})#0": each[process]
                for task, each in tasks.items()
                if process < len(each)
            }
            return own | {"others": (beside or {}).get(f"dev-{process}", 0.0)}

        devices = [f"dev-{i}" for i in range(number)]
        cpu = dict.fromkeys(devices, 0.0)
        flink = LazyFlink(clock, vertices, devices=devices, duration=600_000, process_cpu=cpu)
        monkeypatch.setattr(ClusterInterval, "cores_beside", lambda *_: dict(beside or {}))
        read_threads(monkeypatch, flink, cores, lambda process: pool)
        return flink

    return run


@pytest.fixture
def measure(sharing):
    """Measure such a job."""

    def run(*given, **more):
        return FlinkEngine(sharing(*given, **more).rest, mips=str(MIPS)).measure("job", 10.0)

    return run


@pytest.mark.parametrize(
    ("pool", "number", "src", "out", "facts", "is_limited"),
    [
        # four TaskManagers share four cores, and each works at its full one
        (BOX, 4, [0.49] * 4, [0.49] * 4, {"blocked": 4.0}, True),
        # of two cores one uses 1.25 and the other 0.7: no layout carries much more
        (CpuPool("", 2.0), 2, [0.55], [0.7, 0.7], {"blocked": 1.0}, True),
        # the source uses a quarter of its part, but others leave it no more
        (CpuPool("", 2.0), 2, [0.2], [0.1], {"beside": {"dev-1": 1.65}}, True),
        (CpuPool("", 2.0), 2, [0.2], [0.1], {"beside": {"dev-1": 0.9}}, False),
    ],
)
def test_a_full_machine_limits_all_its_task_managers(
    measure, pool, number, src, out, facts, *, is_limited
):
    """Their parts have no more CPU together than there is, so a job carries what it did."""
    measured = measure(pool, number, src, out, **facts)
    assert measured.flow.is_limited is is_limited
    if "blocked" in facts:
        trust, devices = trust_of(measured.graph), measured.cluster.devices
        assert abs(trust.error) < 0.05
        assert (devices.speed * devices.cores).sum() <= pool.cores * MIPS


def test_more_than_an_equal_part_of_an_idle_machine_fills_nothing(measure):
    """Of five TaskManagers on eight cores, one uses cores that the others leave idle."""
    measured = measure(CpuPool("", 8.0), 5, [0.8], [0.8])
    assert measured.cluster.devices.cores.tolist() == [2, 1, 1, 1, 1]
    assert not measured.flow.is_limited
    assert trust_of(measured.graph) is None
    assert "not saturated" in str(measured.graph.attributes["consistency"])
    one = Layout({"src": ["dev-0"], "out": ["dev-0"]})
    assert JobRates(measured, one).factors[0] == 1.0


def test_present_machines_carry_the_present_rate_in_advice(sharing):
    """Of two TaskManagers on three cores, one uses more than its equal part."""
    advice = advised(sharing(CpuPool("", 3.0), 2, [0.75], [0.75]), "1x")
    assert advice.carried.value >= advice.flow.rate
    assert [machine.size for machine in advice.current.machines] == ["1 core of 2500 MIPS"] * 2


def test_another_job_may_use_more_than_an_equal_part(measure):
    """Something is left to this one, whatever that is."""
    for taken in (1.5, 5.0):
        measured = measure(CpuPool("", 2.0), 2, [0.2], [0.1], beside={"dev-1": taken})
        assert (measured.cluster.devices.speed > 0).all()


def beside(clock, monkeypatch):
    """A job that takes 0.3 cores; Flink says the same of another one, "other"."""
    vertices = {
        "v0": source("src", 100, 40, busy=0.1),
        "v1": Vertex("out", rates(100, 0, 4000, 0, busy=0.2), [("v0", "HASH")]),
    }
    flink = LazyFlink(clock, vertices, duration=60_000, process_cpu={"dev-0": 0.6})
    flink.answers["GET /jobs"] = jobs({"job": "RUNNING", "other": "RUNNING"})
    usual = flink._answer

    def answer(path):
        document = usual(path.replace("/jobs/other", "/jobs/job"))
        if path == "/jobs/other":
            document["vertices"][0]["name"] = "Source: other"
            document["vertices"][1]["name"] = "sink"
        return document

    monkeypatch.setattr(flink, "_answer", answer)
    return flink


def test_cpu_is_reserved_for_other_jobs_alone(clock, monkeypatch):
    flink = beside(clock, monkeypatch)
    assert cores_used(flink.rest, ["other", "other"], 10) == pytest.approx({"dev-0": 0.3})
    with pytest.raises(SettingError, match="its own CPU would be reserved"):
        FlinkEngine(flink.rest).cluster("job", beside=["job"])
    flink.process_cpu = {}
    (message,) = [x for x in FlinkEngine(flink.rest).measure("job", 5.0).notes if "job other" in x]
    assert message.startswith("CPU of job other beside this one: counted as 0")


def test_another_job_that_has_ended_or_waits_is_no_error(clock, monkeypatch):
    """It was still in the list of jobs when it was forgotten, or has no parallelism yet."""
    flink = beside(clock, monkeypatch)
    batch = job("batch", "RUNNING", {"v0": "RUNNING", "v1": "CREATED"})
    batch["vertices"][1]["parallelism"] = -1
    for answer in (UNKNOWN, batch):
        flink.answers["GET /jobs/other"] = answer
        assert FlinkEngine(flink.rest).measure("job", 5.0).graph.source_rate == pytest.approx(100)
    flink.answers["GET /jobs/other"] = failure("a.B: busy", status=503)
    with pytest.raises(NoAnswer):
        FlinkEngine(flink.rest).measure("job", 5.0)


@pytest.fixture
def together(clock, monkeypatch):
    """Two jobs on two TaskManagers of two cores each, the first of which is full.

    There, this job takes 0.4 cores and the other one 1.6, of a hot key; on the second one, 0.4 and
    0.1.
    """
    flink = beside(clock, monkeypatch)
    flink.devices = ("dev-0", "dev-1")

    def cores(process):
        number = f"({process + 1}/2)#0"
        return {
            f"Source: src {number}": 0.2,
            f"out {number}": 0.2,
            f"Source: other {number}": 0.1 if process else 1.6,
            f"sink {number}": 0.0,
        }

    read_threads(monkeypatch, flink, cores, lambda process: CpuPool(f"box {process}", 2.0))
    return flink


def test_cpu_of_another_job_counts_on_its_task_managers(together):
    """One of its two subtasks has a hot key: what it takes is no CPU that this job could use."""
    taken = cores_used(together.rest, ["other"], 10)
    assert taken == pytest.approx({"dev-0": 1.6, "dev-1": 0.1})
    trust = trust_of(FlinkEngine(together.rest).measure("job", 5.0).graph)
    assert abs(trust.error) < 0.2


COST, RATE = 0.001, 100.0


def pipe():
    """Operators a → b; each tuple takes a millisecond of a core at a, which has two subtasks."""
    a = Operator("a", ipt=COST * MIPS * 1e6, rate=RATE, parallelism=2)
    return StreamGraph.of("pipe", [a, Operator("b")], [Stream("a", "b")], {"mips": MIPS})


GRAPH = pipe()
SENDING = SendingCost(0.0001, 0.0, fixed=0.02)


def usage(load, limit=0.25):
    """A TaskManager that takes a part of its limit."""
    return Usage(CpuShare(limit, used=load * limit), {"tasks": load * limit})


def present_beside(monkeypatch, *others):
    """Job of two tasks beside subtasks of other jobs, on two TaskManagers; the first is full."""
    monkeypatch.setattr(limits, "cpu_pool", lambda process: CpuPool(f"quota {process}", 1.0))
    tasks = [FlinkTask("v0", "a", "a", 1, ("a",)), FlinkTask("v1", "b", "b", 2, ("b",))]
    where = [("v0", 0, "tm-0"), ("v1", 0, "tm-0"), ("v1", 1, "tm-1")]
    subtasks = [*others, *(RunningSubtask("job", v, i, at, v, 0.0) for v, i, at in where)]
    netty = "Flink Netty Server (0) Thread 0"
    loads = {
        "tm-0": ManagerLoads([ThreadLoad("a (1/1)#0", 0.9), ThreadLoad(netty, 0.1)]),
        "tm-1": ManagerLoads([ThreadLoad("b (2/2)#0", 0.2), ThreadLoad(netty, 0.3)]),
    }
    counts = {"numRecordsOut": 1e5, "numBytesOut": 5e6}, {"numRecordsIn": 1e5, "numBytesIn": 5e6}
    activity = {f"v{i}": Activity(each, 1.0) for i, each in enumerate(counts)}
    measured = JobInterval(activity, ClusterInterval(subtasks, loads), {}, {})
    edges, processes = [Edge("v0", "v1", "hash")], {"tm-0": 1, "tm-1": 2}
    return present_of("job", tasks, edges, measured, processes)


def test_remote_tuples_are_measured_on_task_managers_with_free_cpu(monkeypatch):
    """As many tuples cross at both ends; the threads of the full one take a third of the CPU."""
    present = present_beside(monkeypatch)
    assert [one.share.is_full for one in present.usage.values()] == [True, False]
    assert present.network == network_loads({"tm-1": 0.3}, {"tm-1": RemoteFlow(5e4, 2.5e6)})


@pytest.mark.parametrize(("where", "is_measured"), [("tm-1", False), ("tm-0", True)])
def test_remote_tuples_are_not_measured_beside_those_of_other_jobs(monkeypatch, where, is_measured):
    """The threads that send and receive serve all jobs; what stays on one TaskManager is none."""
    source = RunningSubtask("other", "v0", 0, "tm-0", "x (1/1)#0", 0.0)
    sink = RunningSubtask("other", "v1", 0, where, "y (1/1)#0", 0.0)
    present = present_beside(monkeypatch, source, sink)
    assert bool(present.network) == is_measured


def checked(load, sustained=None, *, is_limited=True):
    """Both subtasks of a run on one TaskManager of a quarter of a core, and b on another."""
    places = {"a": ["tm-0", "tm-0"], "b": ["tm-1"]}
    present = Present(places, {"tm-0": usage(load), "tm-1": usage(0.1)}, java=0.01)
    found = agreement(GRAPH, present, SENDING, is_limited=is_limited, sustained=sustained)
    assert found is not None
    return found


def test_the_prediction_is_the_rest_of_the_limit_over_the_cost():
    """Java, the network and the headroom are taken off, and sending costs something."""
    found = checked(1.0)
    left = (1 - FLINK_HEADROOM) * (0.25 - 0.01 - 0.02)
    assert found.predicted == pytest.approx(left / (COST + 0.0001))
    assert found.measured == pytest.approx(RATE)
    assert checked(1.0, 50.0).measured == 50.0  # what lasts, if a backlog shows it


def test_a_prediction_above_the_measured_rate_holds_while_cpu_is_free():
    """A job that is offered little is not carried badly; less than was measured is wrong."""
    assert checked(1.0).contradicts
    assert checked(0.9).contradicts  # a source is held back
    idle = checked(0.9, is_limited=False)
    assert not idle.contradicts
    assert "not saturated: 100 tuples/s were measured" in str(idle)
    assert checked(0.9, 300.0, is_limited=False).contradicts


@pytest.mark.slow
@pytest.mark.xdist_group("flink")
def test_a_saturated_job_is_predicted_at_its_rate(flink, graph_jar):
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


def splitting(clock, busy):
    """The shop, whose splitter reads 100 tuples/s with two subtasks, which are that busy."""
    flink = writing_shop(clock)
    split = flink.vertices["v1"]
    split.rates = {**split.rates, "accumulateBusyTimeMs": 1000 * busy}
    return flink


@pytest.fixture
def looked(clock, monkeypatch):
    """Profiles the shop, whose threads can be read, in one process of this machine."""

    def look(*, busy, flink=None, cpu=CPU["v1"], delay=0.0, garbage=0.0):
        job = flink or splitting(clock, busy)

        def measured(process):
            clock.sleep(3.0 if clock.now > START else 1.0)
            own = {**dict.fromkeys(job.vertices, 0.01), **CPU, "v1": cpu}
            delays = {**dict.fromkeys(job.vertices, 0.0), "v1": delay}
            part = garbage / 2 * clock.now
            collector = JavaThread(0, "VM Thread", part, clock.now, delay=part)
            return [*made_threads(job.vertices, own, clock.now, delays), collector]

        monkeypatch.setattr(cpus, "java_threads", measured)
        return profile(job.rest, "job", 10)

    with_threads(monkeypatch, lambda process: [], {"dev-0": 7})
    return look


def most_rates(measured):
    """Limits of the subtasks of all operators of a profile; 0 for none."""
    return measured_graph(measured, MIPS).operators.max_rate.tolist()


def notes(measured):
    """What a profile tells about limits of subtasks."""
    measured_graph(measured, MIPS)
    return [doubt for doubt in measured.doubts if doubt.startswith("max_rate of ")]


@pytest.mark.parametrize(
    ("cpu", "busy", "delay", "garbage", "limit", "part"),
    [
        # two subtasks are busy for 0.8 s/s with 100 tuples/s
        (0.1, 0.8, 0.0, 0.0, 125, 88),
        # each is stopped while the only collector runs, or waits for a core
        (0.1, 0.8, 0.0, 0.3, 0, None),
        # waiting for a core is not waiting for something else, nor a part of what a tuple takes
        (0.2, 2.0, 1.7, 0.0, 0, None),
        (0.2, 2.0, 1.0, 0.0, 100, 40),
        # what limits is most of the busy time
        (0.45, 1.0, 0.0, 0.0, 100, 55),
        (0.55, 1.0, 0.0, 0.0, 0, None),
        (0.01, 0.2, 0.0, 0.0, 0, None),  # locks, or counters that are read late
    ],
)
def test_a_waiting_operator_has_the_rate_of_an_always_busy_subtask(
    looked, cpu, busy, delay, garbage, limit, part
):
    measured = looked(busy=busy, cpu=cpu, delay=delay, garbage=garbage)
    assert most_rates(measured) == [0, limit, 0]
    message = (
        f"max_rate of split: it waits {part} % of its busy time for something other than CPU: a "
        f"subtask reads at most {limit} tuples/s"
    )
    assert notes(measured) == ([] if part is None else [message])


def test_under_a_quota_an_operator_may_wait_for_cpu(looked, clock, monkeypatch):
    monkeypatch.setattr(windows, "throttled_seconds", lambda _: 0.3 * clock.now)
    assert most_rates(looked(busy=0.8, cpu=0.1)) == [0, 0, 0]


def test_sources_and_committers_have_no_limit(looked, clock):
    """Some sources are busy while they wait for input, or for what limits their rate.

    A committer reads a message per second, and waits for what it commits to.
    """
    flink = splitting(clock, 0.2)
    source, sink = flink.vertices["v0"], flink.vertices["v2"]
    source.rates = {**source.rates, "accumulateBusyTimeMs": 2000.0}
    sink.rates = {**sink.rates, "numRecordsOut": 250.0, "numBytesOut": 150.0}
    reads = rates(0.5, 0, 0.5 * 300, 0, busy=1.5)
    flink.vertices["v3"] = Vertex("out: Committer", reads, [("v2", "FORWARD")])
    assert not any(most_rates(looked(busy=0.2, flink=flink)))


def test_operators_that_wait_for_python_have_no_limit(looked, monkeypatch):
    """What they wait for is CPU, of other processes."""
    monkeypatch.setattr(profiling, "runs_python", lambda: True)
    measured = looked(busy=2.0, cpu=0.1)
    assert not any(most_rates(measured))
    assert notes(measured) == []


def test_a_runnable_thread_runs_or_has_run_delay():
    """Two processes that never sleep share a core."""
    core = min(os.sched_getaffinity(0))
    code = f"import os; os.sched_setaffinity(0, [{core}]); os.write(1, b'up')\nwhile True: pass"
    command = [sys.executable, "-c", code]
    pipe = subprocess.PIPE
    with (
        subprocess.Popen(command, stdout=pipe) as one,
        subprocess.Popen(command, stdout=pipe) as other,
    ):
        try:
            for process in (one, other):
                assert process.stdout.read(2) == b"up"
            first = named_threads(one.pid, {one.pid: "spins"})
            time.sleep(1.0)
            (load,) = thread_loads(first, named_threads(one.pid, {one.pid: "spins"}))
        finally:
            one.kill()
            other.kill()
    assert load.delay > 0.2
    assert load.cores + load.delay == pytest.approx(1.0, abs=0.1)
    assert load.wakes < 5


def test_threads_that_serve_a_subtask_use_cores_beside_it(sharing, monkeypatch):
    """A source fills a core, and predictions allow its fetcher and the garbage collection more."""
    flink = sharing(BOX, 1, [1.0], [0.2], blocked=0.5)
    threads = {
        "Source: src (1/1)#0": 1.0,
        "Source Data Fetcher for Source: src (1/1)#0": 0.4,
        "out (1/1)#0": 0.2,
        "GC Thread#0": 0.15,
    }
    read_threads(monkeypatch, flink, lambda process: threads, lambda process: BOX)
    graph = measured_graph(profile(flink.rest, "job", 10), MIPS)
    assert graph.operators.cores.tolist() == [1.53, 1.09]
    assert graph.attributes[CONSISTENCY_ERROR] == pytest.approx(0.0, abs=0.05)


def test_a_profile_predicts_the_limit_of_a_waiting_operator(looked, clock):
    """A subtask reads 50 tuples/s while it is busy all the time; CPU would carry far more."""
    flink = splitting(clock, 2.0)
    source = flink.vertices["v0"]
    source.rates = {**source.rates, "accumulateBackPressuredTimeMs": 1500.0}
    graph = measured_graph(looked(busy=2.0, cpu=0.1, flink=flink), MIPS)
    assert graph.attributes[CONSISTENCY_ERROR] == pytest.approx(0.0, abs=0.05)
