"""Profiles of jobs whose truth is known, steady or not, of a Flink as lazy as the real one."""

import json
import logging
import math
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from fake_flink import (
    CPU,
    MIPS,
    START,
    Clock,
    LazyFlink,
    Vertex,
    made_threads,
    rates,
    shop_vertices,
    source,
    with_threads,
    writing_shop,
)

from streamplace.flink.cpu import limits
from streamplace.flink.cpu import threads as cpu
from streamplace.flink.cpu.charging import JavaThread
from streamplace.flink.cpu.limits import CpuPool, CpuShare
from streamplace.flink.measure import profile as profiling
from streamplace.flink.measure.measured_graph import measured_graph
from streamplace.flink.measure.profile import (
    MIN_WINDOWS,
    LoadWindow,
    Present,
    Remedy,
    Usage,
    profile,
    steady_profile,
    why_unsteady,
    window_of,
)
from streamplace.flink.measure.source_lag import source_flow
from streamplace.flink.rest.client import FlinkError
from streamplace.io.ledger import errors_for
from streamplace.model.graph import PROFILE_DRIFT, PROFILE_WINDOWS


@dataclass
class Machine:
    """The process of the shop's TaskManager; the second reading of its threads comes late."""

    clock: Clock
    flink: LazyFlink  # the job whose threads are there
    hidden: str = ""  # name of a thread that is not there
    garbage: float = 0.0  # cores that the garbage collector takes
    late: float = 3.0

    def threads(self, process):
        """Threads with what they have taken so far."""
        assert process == 7
        self.clock.sleep(self.late if self.clock.now > START else 1.0)
        now = self.clock.now
        found = [JavaThread(99, "VM Thread", self.garbage * (now - START), now)]
        found = [*made_threads(self.flink.vertices, CPU, now), *(found if self.garbage else ())]
        return [thread for thread in found if thread.name != self.hidden]


@pytest.fixture
def machine(clock, monkeypatch):
    """The only process of Java on this machine."""
    made = Machine(clock, writing_shop(clock))
    with_threads(monkeypatch, made.threads, {"dev-0": 7})
    return made


def test_a_profile_has_the_known_values(machine):
    """Rates, selectivities, payloads, CPU per tuple, parallelism and partitioning."""
    found = profile(writing_shop(machine.clock).rest, "job", 10)
    graph = measured_graph(found, MIPS)
    assert graph.operators.name == ("src", "split", "out")
    assert graph.operators.rate.tolist() == pytest.approx([100, 0, 0])
    assert graph.operators.payload.tolist() == pytest.approx([400, 40, 0])
    assert graph.operators.parallelism.tolist() == [2, 2, 2]
    assert graph.streams.selectivity.tolist() == pytest.approx([1, 2.5])
    assert graph.streams.partitioning == ("hash", "forward")
    per_tuple = [0.01 / 100, 0.2 / 100, 0.05 / 250]
    assert graph.charged_ipt.tolist() == pytest.approx([s * MIPS * 1e6 for s in per_tuple])
    assert found.doubts == []
    assert "unmeasured" not in graph.attributes


def test_an_operator_that_reads_nothing_has_a_doubt(machine):
    """Its costs per tuple are unknown, as behind a window that does not fire meanwhile."""
    job = writing_shop(machine.clock)
    job.vertices["v2"].rates |= dict.fromkeys(("numRecordsIn", "numBytesIn"), 0.0)
    (doubt,) = profile(job.rest, "job", 10).doubts
    assert isinstance(doubt, Remedy)
    assert doubt.startswith("'out': ")


def test_rescaled_streams_are_profiled_as_such(machine):
    """Also where Flink has changed one of two numbers; the plan says FORWARD as before."""
    job = writing_shop(machine.clock)
    job.vertices["v1"].inputs, job.vertices["v2"].parallelism = [("v0", "RESCALE")], 4
    graph = measured_graph(profile(job.rest, "job", 10), MIPS)
    assert graph.streams.partitioning == ("rescale", "rescale")


def test_a_missing_thread_has_a_doubt(machine):
    """A subtask without a thread of its name has Flink's busy time alone; so has its operator."""
    machine.hidden = "split (2/2)#0"
    found = profile(writing_shop(machine.clock).rest, "job", 10)
    assert found.cpu["v1"].cores == pytest.approx(0.2)
    (doubt,) = found.doubts
    assert doubt.startswith("ipt of split: from busy time")
    attributes = measured_graph(found, MIPS).attributes
    assert str(attributes["cpu of split"]).startswith("from busy time")
    assert not {"cpu of src", "cpu of out"} & attributes.keys()


def test_subtasks_that_have_read_all_of_their_input_use_no_cpu(machine):
    """As of a source with fewer files than subtasks; the CPU of the others is measured."""
    ended = {"status": "FINISHED", "metrics": {"accumulated-busy-time": 50.0}}
    flink = writing_shop(machine.clock)
    machine.hidden = "Source: src (2/2)#0"
    flink.otherwise_of = lambda vertex, i: ended if i and vertex.name == "Source: src" else {}
    found = profile(flink.rest, "job", 10)
    assert found.cpu["v0"][:3] == (pytest.approx(0.005), "", None)
    assert found.doubts == []


def test_threads_of_one_name_share_their_cpu(machine):
    """What they take together is known; which of them takes it, busy time must say.

    Splitter and sink bear one name, and the splitter is four times as busy.
    """
    flink = writing_shop(machine.clock)
    flink.vertices["v2"].name = "split"
    flink.vertices["v2"].tree = "split [namesake 2]<br/>"
    machine.flink, machine.late = flink, 1.0
    for vertex in flink.vertices.values():  # Flink's clock goes ten times too fast
        vertex.rates = {**vertex.rates}
        vertex.rates["accumulateBusyTimeMs"] *= 10
    found = profile(flink.rest, "job", 10)
    assert [found.cpu[v].cores for v in CPU] == pytest.approx([0.01, 0.2, 0.05])
    assert [bool(found.cpu[v].source) for v in CPU] == [False, True, True]
    assert "ipt of split (2): " in "; ".join(found.doubts)


def test_python_processes_have_a_doubt(machine, monkeypatch):
    """What they take is not in the CPU of their TaskManager."""
    assert profile(writing_shop(machine.clock).rest, "job", 10).doubts == []
    monkeypatch.setattr(profiling, "runs_python", cpu.runs_python)
    code = "import time; time.sleep(60)"
    command = [sys.executable, "-c", code, "pyflink.fn_execution.beam.beam_boot"]
    with subprocess.Popen(command) as worker:
        try:
            found = profile(writing_shop(machine.clock).rest, "job", 10)
        finally:
            worker.kill()
    (doubt,) = found.doubts
    assert doubt.startswith("ipt of Python operators: ")
    assert isinstance(doubt, Remedy)  # the job can be run without them, so moves print it


def test_a_nearly_full_heap_has_a_doubt(machine):
    """The tasks take 0.26 cores."""
    for cores, is_full in ((0.2, False), (0.4, True)):
        machine.garbage = cores
        doubts = profile(writing_shop(machine.clock).rest, "job", 10).doubts
        assert [doubt.startswith("on 'dev-0', garbage") for doubt in doubts] == [True] * is_full


def test_each_doubt_is_stated_once_for_any_number_of_graphs(clock):
    """Back-pressured sources, and busy time where there are no threads to look at."""
    seen = profile(writing_shop(clock, blocked=1.5).rest, "job", 10)
    graph, known = measured_graph(seen, MIPS), [*seen.doubts]
    told = str(graph.attributes["unmeasured"])
    assert "rate of src: it is back-pressured 75 % of the time" in told
    assert "ipt of split: from busy time" in told
    assert graph.charged_ipt[1] == pytest.approx(0.2 / 100 * MIPS * 1e6)
    assert (measured_graph(seen, MIPS), seen.doubts) == (graph, known)


@pytest.mark.parametrize(("first", "second"), [(0.0, 0.0), (1.5, 0.0), (0.0, 1.5), (1.5, 1.5)])
def test_held_back_sources_are_named(clock, first, second):
    flink = writing_shop(clock, blocked=first)
    flink.vertices["v3"] = source("other", 5, 400, busy=0.01, blocked=second)
    flink.vertices["v1"].inputs = [("v0", "HASH"), ("v3", "HASH")]
    seen = profile(flink.rest, "job", 10)
    assert seen.flow.held_back == {n for n, part in (("src", first), ("other", second)) if part}
    assert seen.flow.is_limited is bool(first or second)
    assert seen.flow.held_back <= set(measured_graph(seen, MIPS))


@pytest.mark.parametrize("seconds", [10.0, 50.0])
@pytest.mark.parametrize(("steady", "falls_behind"), [(0.0, False), (120.0, True)])
def test_a_backlog_that_arrives_in_transactions_does_not_grow(clock, seconds, steady, falls_behind):
    """Every minute 6,000 records, which the source reads within 57 s; or more arrive steadily."""

    def pending(at):
        return max(0.0, 6000 - 105 * ((at + 10) % 60)) + steady * at

    flink = writing_shop(clock)
    flink.vertices["v0"].rates["Source__src.pendingRecords"] = pending
    seen = profile(flink.rest, "job", seconds)
    growth = seen.activity["v0"].growth("Source__src.pendingRecords")
    assert growth > 30
    assert seen.flow.is_limited is falls_behind


def test_a_lag_that_is_reported_late_is_known(clock, monkeypatch):
    """As a source of Kafka does, from the first record that it reads on a slow TaskManager."""
    flink = writing_shop(clock)
    source, metrics = flink.vertices["v0"], flink._metrics

    def told(vertex, wanted):
        if clock.now > START + 6:
            source.rates = {**source.rates, "Source__src.pendingRecords": 0.0}
        return metrics(vertex, wanted)

    monkeypatch.setattr(flink, "_metrics", told)
    assert profile(flink.rest, "job", 20).flow.pending == 0.0


def chained(clock):
    """A source fused with what keeps a tenth, and with two writers of different payloads.

    The small ones go to a sink of their own, the big ones to one that has another input.
    """
    enters = {"Source__src.numRecordsOut": 1000.0}
    sent = 100 * 50.0 + 100 * 2000.0
    vertices = {
        "v": Vertex("Source: src -> keep -> (small, big)", rates(0, 200, 0, sent) | enters),
        "w": Vertex("Source: other", rates(0, 50, 0, 50 * 300.0)),
        "x": Vertex("x", rates(100, 0, 100 * 50.0), [("v", "HASH")]),
        "j": Vertex(
            "j", rates(150, 0, 100 * 2000.0 + 50 * 300.0), [("v", "REBALANCE"), ("w", "HASH")]
        ),
    }
    return LazyFlink(clock, vertices)


def but_for_cpu(seen):
    """What a profile tells, but for where CPU times come from."""
    measured_graph(seen, MIPS)
    return [
        doubt for doubt in seen.doubts if not doubt.startswith(("ipt of ", "thread ", "the CPU"))
    ]


def test_streams_of_fused_senders_are_told_apart(clock):
    """Each has its own payload, and so has the other sender of the mixed input.

    The rate of a fused source is what enters the job, not what leaves the chain.
    """
    seen = profile(chained(clock).rest, "job", 100)
    graph = measured_graph(seen, MIPS)
    assert graph.operators.rate.tolist() == pytest.approx([1000, 50, 0, 0])
    assert graph.streams.selectivity.tolist() == pytest.approx([0.1, 0.1, 1])
    sizes = {
        (stream.source, stream.target): stream.payload
        or graph.operators.payload[graph.operators.name.index(stream.source)]
        for stream in graph.streams
    }
    fused = "src -> keep -> small -> big"
    expected = {(fused, "x"): 50, (fused, "j"): 2000, ("other", "j"): 300}
    assert sizes == pytest.approx(expected)
    assert but_for_cpu(seen) == []


@pytest.mark.parametrize(("sent", "is_kept"), [(25.0, True), (0.1, False)])
def test_broadcast_tuples_count_for_every_receiver(clock, sent, *, is_kept):
    """Their sender counts them once, and their bytes as often as they are sent.

    The copies of some rules are no reason to keep the number of receivers.
    """
    flink = chained(clock)
    flink.vertices["w"].rates = rates(0, sent, 0, 2 * sent * 300.0)
    read = rates(100 + 2 * sent, 0, 100 * 2000.0 + 2 * sent * 300.0)
    flink.vertices["j"] = Vertex("j", read, [("v", "REBALANCE"), ("w", "BROADCAST")])
    seen = profile(flink.rest, "job", 100)
    graph = measured_graph(seen, MIPS)
    assert graph.streams.selectivity.tolist() == pytest.approx([0.1, 0.1, 2])
    assert graph.operators.payload[1] == pytest.approx(300)
    told = str(graph.attributes.get("keeps parallelism of j", ""))
    assert ("gets every tuple" in told) is is_kept
    assert but_for_cpu(seen) == []


@pytest.mark.parametrize(("most", "is_held_back"), [(0.9, True), (0.05, False)])
def test_one_back_pressured_subtask_of_many_is_noticed(clock, most, *, is_held_back):
    """All 64 of them together are back-pressured 1.4 % of the time, whoever it is."""
    flink = LazyFlink(clock, shop_vertices(0.9))
    source = flink.vertices["v0"]
    source.parallelism, source.most = 64, {"accumulateBackPressuredTimeMs": 1000 * most}
    seen = profile(flink.rest, "job", 10)
    assert seen.flow.held_back == ({"src"} if is_held_back else set())
    told = "rate of src: one of its subtasks is back-pressured 90 % of the time, so its actual rate"
    measured_graph(seen, MIPS)
    assert any(told in doubt for doubt in seen.doubts) is is_held_back
    flow = source_flow(LazyFlink(clock, {"v0": source}).rest, "job")
    assert flow.is_limited is is_held_back


@pytest.mark.parametrize(
    ("rate", "busy", "is_limited"),
    [
        (5000.0, 1.96, True),
        (5000.0, 1.5, False),
        (5000.0, "NaN", False),  # a SourceFunction: nobody knows
        (500.0, 1.96, False),  # it may poll for input that does not arrive
    ],
)
def test_one_busy_task_that_is_the_whole_job_is_held_back(clock, rate, busy, *, is_limited):
    """On a TaskManager of another machine, whose CPU nobody sees, nothing else tells."""
    counts: dict[str, float | str] = {**rates(), "Source__src.numRecordsOut": rate}
    counts["accumulateBusyTimeMs"] = busy if isinstance(busy, str) else 1000 * busy
    flink = LazyFlink(clock, {"v0": Vertex("Source: src -> out: Writer", counts)})
    flow = source_flow(flink.rest, "job")
    assert flow.is_limited is is_limited
    seen = profile(flink.rest, "job", 10)
    assert seen.flow.is_limited is is_limited
    assert seen.flow.offered == (None if is_limited else rate)
    graph = measured_graph(seen, MIPS)
    assert (graph.n_operators, graph.source_rate) == (1, pytest.approx(rate))
    unmeasured = str(graph.attributes.get("unmeasured", ""))
    told = "it is busy 98 % of the time, so its actual rate may be higher"
    assert (told in unmeasured) is is_limited
    assert ("ipt of src -> out: unknown and counted as 0" in unmeasured) is (busy == "NaN")


@pytest.mark.parametrize(
    ("settings", "timeout"),
    [
        ({}, 0.1),
        ({"execution.buffer-timeout.interval": "0 ms"}, 0.0),
        ({"execution.buffer-timeout.interval": "2 Minutes"}, 120.0),
        ({"execution.buffer-timeout.interval": "often"}, 0.1),
        ({"execution.buffer-timeout.enabled": "false"}, None),
    ],
)
def test_messages_are_those_of_the_buffer_timeout_of_the_cluster(clock, settings, timeout):
    """Where only full buffers are sent, more subtasks send no more messages."""
    graph = measured_graph(
        profile(LazyFlink(clock, shop_vertices(), settings=settings).rest, "job", 10), MIPS
    )
    assert graph.attributes.get("buffer timeout") == timeout
    assert ("message ipt" in graph.attributes) is (timeout is not None)


@pytest.fixture
def writing(clock):
    """The shop with a sink that is called as sinks are."""
    return writing_shop(clock)


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (["FINISHED"], "has finished"),
        (["FAILED"], "is FAILED"),
        (["CREATED"], "is CREATED"),
        (["RUNNING", "RUNNING", "RESTARTING"], r"is RESTARTING.*the reason"),
    ],
)
def test_a_job_that_does_not_run_is_refused_with_its_state(writing, states, words):
    """At once, with the reason, where Flink knows one."""
    writing.states = states
    with pytest.raises(FlinkError, match=f"job job {words}"):
        profile(writing.rest, "job", 10)
    assert writing.clock.now < START + 1


def _attempt(flink):
    """Although the sums over all subtasks grow on, as those of a young job may."""
    flink.otherwise_of = lambda _, i: {} if i else {"attempt": int(flink.clock.now > START + 5)}


def _ended(flink):
    """Flink drops what subtasks have counted, although the sum may grow on by the others."""
    late, source = START + 5, flink.vertices["v0"]

    def counted(rate):
        return lambda at: rate * at * (1 if at < late else 2)

    source.told = lambda at: 2 if at < late else 1
    source.rates = {
        name: counted(rate) if isinstance(rate, int | float) else rate
        for name, rate in source.rates.items()
    }


def _counts_again(flink):
    """A job can restart between two looks."""
    for vertex in flink.vertices.values():
        vertex.rates = {
            name: _from_anew(rate) if isinstance(rate, int | float) else rate
            for name, rate in vertex.rates.items()
        }


def _from_anew(rate):
    return lambda at: rate * (at if at < START + 5 else at - START - 5)


@pytest.mark.parametrize("restart", [_attempt, _counts_again, _ended])
def test_subtasks_that_restart_or_end_stop_the_measurement(writing, restart):
    """What was measured of a job that goes on otherwise is no measurement."""
    restart(writing)
    with pytest.raises(FlinkError, match="restarted"):
        profile(writing.rest, "job", 10)


@pytest.mark.parametrize("is_gone", [True, False])
def test_task_managers_without_running_tasks_are_not_asked_or_waited_for(
    writing, monkeypatch, is_gone
):
    """Those of ended tasks may be gone; Flink calls that of a task that starts unassigned."""
    writing.vertices["v3"] = Vertex("Source: file", {}, parallelism=1, ends=START)
    writing.process_cpu = {"dev-0": 0.13}
    name = "gone" if is_gone else "(unassigned)"
    there = {} if is_gone else {"taskmanager-id": name}
    gone = {"Source: file": {"taskmanager-id": name}}
    writing.otherwise_of = lambda vertex, i: {} if i else gone.get(vertex.name, there)
    monkeypatch.setattr(cpu, "time", writing.clock)
    profile(writing.rest, "job", 10)
    assert not [path for path in writing.requests("GET") if name.strip("()") in path]
    assert writing.clock.now - START < (12 if is_gone else 25)


def test_bytes_of_a_sink_may_fall(writing):
    """As those of Kafka's do with each transaction."""
    writing.vertices["v2"].rates["numBytesOut"] = lambda at: 1e6 - 1e3 * (at - START)
    assert profile(writing.rest, "job", 10).tuples["v2"] == pytest.approx(250)


def test_earlier_counts_of_a_late_task_manager_are_not_new(writing):
    """Flink asks each separately, and sums up what it has by then.

    What was measured before cannot be compared with what one has counted that answers in the second
    window.
    """
    source = writing.vertices["v0"]
    source.told = lambda at: 1 if at < START + 3 else 2
    seen = profile(writing.rest, "job", 10)
    assert measured_graph(seen, MIPS).operators.rate.tolist() == pytest.approx(
        [100, 0, 0], rel=0.01
    )
    assert not [doubt for doubt in seen.doubts if "subtasks" in doubt]
    late = writing.clock.now + 60
    source.told = lambda at: 1 if at < late else 2
    with pytest.raises(FlinkError, match="subtasks"):
        steady_profile(writing.rest, "job", 10.0)


def test_subtasks_without_metrics_have_a_doubt(writing):
    """Unless they have ended, as then nothing of them is missing."""
    writing.vertices["v0"].told = lambda at: 1
    (doubt,) = [one for one in profile(writing.rest, "job", 10).doubts if "wrong" in one]
    assert doubt.startswith("rate and ipt of src: wrong, because Flink reports the metrics of only")
    ended = {"status": "FINISHED"}
    writing.otherwise_of = lambda one, i: ended if not i and one.name[-3:] == "src" else {}
    assert not [one for one in profile(writing.rest, "job", 10).doubts if "wrong" in one]


def test_metrics_without_updates_are_no_measurement(writing):
    """As for minutes after the loss of a TaskManager; what the job has sent before is no rate."""
    writing.vertices["v0"].rates["Source__src.pendingRecords"] = 0.0
    for vertex in writing.vertices.values():
        vertex.rates = {name: lambda _: 7.0 for name in vertex.rates}
    with pytest.raises(FlinkError, match="source 'src'"):
        steady_profile(writing.rest, "job", 10.0)
    assert writing.clock.now - START <= 41  # after the first window


def held_back(clock, seconds):
    """Profile of a job whose source sends nothing for so long, because it is back-pressured."""
    flink = writing_shop(clock, blocked=1.0)
    sent = flink.vertices["v0"].rates
    for name in ("numRecordsOut", "Source__src.numRecordsOut"):
        sent[name] = lambda at: 100 * max(0.0, at - START - seconds)
    return steady_profile(flink.rest, "job", 10.0)


def test_a_source_that_is_held_back_for_a_window_is_awaited(clock):
    """What reads from it may write all results of a time at once, and read nothing meanwhile."""
    assert held_back(clock, 40).flow.rate == pytest.approx(100, rel=0.25)


def test_a_source_that_is_held_back_for_good_has_no_rate(clock):
    seen = held_back(clock, math.inf)
    with pytest.raises(FlinkError, match="source 'src'"):
        measured_graph(seen, MIPS)


def test_a_flink_without_metrics_is_refused_soon(writing):
    """With what may be the cause."""
    for vertex in writing.vertices.values():
        vertex.rates = {}
    with pytest.raises(FlinkError, match=r"job job for 30 s.*web\.timeout"):
        steady_profile(writing.rest, "job", 30.0)
    assert writing.clock.now - START <= 31


def with_more(flink, ends=math.inf):
    """A job with one more source, which sends nothing; it and what only it feeds may end."""
    flink.vertices["v3"] = replace(source("more", 0, busy=0.05), ends=ends)
    flink.vertices["v4"] = Vertex("load", rates(), [("v3", "HASH")], ends=ends)
    flink.vertices["v1"].inputs = [("v0", "HASH"), ("v4", "BROADCAST")]
    return flink


def test_a_silent_source_beside_one_that_sends_has_no_rate(writing):
    """A topic may be empty; what its source takes of the CPU is taken all the same."""
    seen = profile(with_more(writing).rest, "job", 10)
    graph = measured_graph(seen, MIPS)
    assert graph.operators.rate.tolist() == pytest.approx([100, 0, 0, 0, 0], abs=1e-6)
    assert graph.charged_ipt[3:].tolist() == [0, 0]
    assert seen.constant["v3"] == pytest.approx(0.05)
    told = str(graph.attributes["unmeasured"])
    assert "rate of more: it has sent nothing, so its rate counts as 0" in told
    assert not seen.flow.is_limited


def test_ended_tasks_are_not_awaited(writing):
    """Such as a source that has read a file, and what loads that; the others run on."""
    writing.process_cpu = {"dev-0": 0.3}
    seen = steady_profile(with_more(writing, START).rest, "job", 10.0)
    assert writing.clock.now - START <= 80
    graph = measured_graph(seen, MIPS)
    assert graph.operators.rate.tolist() == pytest.approx([100, 0, 0, 0, 0], abs=1e-6)
    assert graph.charged_ipt[3:].tolist() == [0, 0]
    assert not graph.operators.constant.any()
    (told,) = [doubt for doubt in seen.doubts if "more" in doubt and "payload" not in doubt]
    assert told.startswith("rate and ipt of 'more', 'load': counted as 0")


def test_a_source_that_ends_during_the_measurement_stops_it(writing):
    """If others still run, the next measurement leaves it out."""
    with_more(writing, START + 5)
    with pytest.raises(FlinkError, match="source 'more'"):
        profile(writing.rest, "job", 10)
    assert measured_graph(profile(writing.rest, "job", 10), MIPS).source_rate == pytest.approx(100)


def test_iterations_are_refused_by_name(writing):
    """Flink's plan does not show that tuples go round."""
    writing.vertices["v1"].name = "IterationSource-3"
    with pytest.raises(FlinkError, match="job job has an iteration, 'IterationSource-3'"):
        profile(writing.rest, "job", 10)


RATE, COLD, WARM = 3400.0, 52_500.0, 12_800.0
"""Tuples/s of a taxi job, and instructions per tuple of its source, measured cold and warm."""
RECORDED = json.loads((Path(__file__).parent / "recorded_windows.json").read_text())
"""Windows of jobs that were started under a quota, as they were measured."""
STEP = 0.25


class Warming:
    """A job whose source becomes cheaper by a half of what is left every 20 s."""

    def __init__(self, clock):
        self.clock, self.half_life = clock, 20.0
        self.compilers = 0.58  # their part of the CPU at first; it falls with the source's cost
        self.seen, self.spent, self.compiled = clock.now, 0.0, 0.0
        vertices = {
            "v0": replace(source("trips", RATE, 90, busy=0.2), parallelism=1),
            "v1": Vertex(
                "sink", rates(RATE, 0, RATE * 90, 0, busy=0.002), [("v0", "REBALANCE")], 1
            ),
        }
        self.flink = LazyFlink(clock, vertices)

    def threads(self, _):
        """Threads of the only TaskManager, with what they have taken so far."""
        while self.seen < self.clock.now:
            left = 0.5 ** ((self.seen - START) / self.half_life)
            cores = RATE * (WARM + (COLD - WARM) * left) / 1e9
            part = self.compilers * left
            self.spent += STEP * cores
            self.compiled += STEP * cores * part / (1 - part)
            self.seen += STEP
        taken = {
            "Source: trips (1/1)#0": self.spent,
            "sink (1/1)#0": 0.002 * self.seen,
            "C2 CompilerThread0": self.compiled,
        }
        return [JavaThread(i, name, cpu, self.seen) for i, (name, cpu) in enumerate(taken.items())]


@pytest.fixture
def warming(clock, monkeypatch):
    """A job that has just started."""
    made = Warming(clock)
    with_threads(monkeypatch, made.threads, {"dev-0": 7})
    monkeypatch.setattr(limits, "cpu_pool", lambda process: CpuPool("own", 0.15))
    return made


def test_a_cold_job_is_measured_until_it_is_steady(warming, caplog):
    """The source's cost is that of the warm job, not four times as much; the log says why."""
    caplog.set_level(logging.DEBUG)
    seen = steady_profile(warming.flink.rest, "job", 5.0, 300.0)
    assert 1e9 * seen.cpu["v0"].cores / RATE == pytest.approx(WARM, rel=0.15)
    assert "compilers take" in caplog.text
    assert "its CPU per tuple changed by -" in caplog.text
    assert not any("not steady" in doubt for doubt in seen.doubts)
    assert seen.drift == 0


def test_the_drift_is_part_of_the_profile(warming):
    """The patience is over while the source still becomes cheaper: its rates are less certain."""
    warming.half_life, warming.compilers = 40.0, 0.1
    seen = steady_profile(warming.flink.rest, "job", 10.0, 40.0)
    assert 0.1 < seen.drift < 1
    graph = measured_graph(seen, MIPS)
    assert graph.attributes[PROFILE_DRIFT] == pytest.approx(seen.drift, rel=0.01)
    assert any("intervals allow for that" in doubt for doubt in seen.doubts)
    errors, steady = errors_for(graph), errors_for(replace(graph, attributes={PROFILE_WINDOWS: 6}))
    assert errors.low * (1 + seen.drift) == pytest.approx(steady.low, rel=0.01)


def test_no_patience_is_one_window(warming):
    """For those who know what they do."""
    began = warming.clock.now
    steady_profile(warming.flink.rest, "job", 10.0, 0.0)
    assert warming.clock.now - began < 12


@pytest.mark.parametrize("row", RECORDED, ids=lambda row: row["job"])
def test_recorded_jobs_are_steady_only_at_their_final_cost(row):
    """RIoT on quotas of 0.18 core: its source takes 50 µs per tuple at first, and 8 at the end.

    For a minute its cost hardly falls, while compilers take most of the CPU.
    """
    sent, taken = ([one[fact][0] for one in row["windows"]] for fact in ("tuples", "cores"))
    seen = [
        LoadWindow(one["seconds"], rate, sum(one["cores"]), one["compilers"] or 0.0)
        for one, rate in zip(row["windows"], sent, strict=True)
    ]
    costs = [cores / rate for cores, rate in zip(taken, sent, strict=True)]
    for last in range(MIN_WINDOWS, len(seen) + 1):
        if not why_unsteady(seen[last - MIN_WINDOWS : last]):
            assert costs[last - 1] < 1.3 * np.median(costs[-6:])


def test_rates_are_means_of_all_windows_of_the_warm_job(warming):
    """A window operator that emits every 8 s, which one window of ten sees once or twice."""
    emitted = dict(warming.flink.vertices["v1"].rates)
    emitted["numRecordsOut"] = lambda now: 0.1 * RATE * 8 * math.floor(now / 8)
    warming.flink.vertices["v1"].rates = emitted
    warming.flink.vertices["v2"] = Vertex(
        "out", emitted | {"numRecordsIn": emitted["numRecordsOut"]}, [("v1", "HASH")], 1
    )
    warming.compilers, warming.half_life = 0.0, 1e-3
    seen = steady_profile(warming.flink.rest, "job", 10.0)
    assert len(seen.windows) == MIN_WINDOWS
    assert 1e9 * seen.cpu["v0"].cores / RATE == pytest.approx(WARM, rel=0.05)
    assert seen.activity["v0"].seconds >= MIN_WINDOWS * 9.5
    assert measured_graph(seen, MIPS).streams.selectivity[1] == pytest.approx(0.1, rel=0.1)


def test_compilers_of_an_idle_machine_are_ignored(warming):
    """A hundredth of a core is much of what a small job takes, and says nothing of it."""
    seen = profile(warming.flink.rest, "job", 5)
    for tasks, compilers, part in ((0.05, 0.015, 0.0), (0.05, 0.03, 0.375), (0.9, 0.03, 0.032)):
        usage = {"dev-0": Usage(CpuShare(1.0), {"tasks": tasks, "compilers": compilers})}
        object.__setattr__(seen, "present", Present({}, usage, 0.0))
        assert window_of(seen).compilers == pytest.approx(part, abs=0.001)
