"""Profiles where sources are held back or end, metrics are missing, or nothing can be measured."""

import math
from collections.abc import Callable
from typing import Any

import pytest
from lazy_flink import MIPS, START, Clock, LazyFlink, Vertex, rates, shop_vertices, writing_shop

from streamplace.engines.flink.cpu import threads as cpu
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile, steady_profile
from streamplace.engines.flink.measure.sources import source_flow
from streamplace.engines.flink.rest.client import FlinkError


@pytest.mark.parametrize(("most", "is_held_back"), [(0.9, True), (0.05, False)])
def test_one_back_pressured_subtask_of_many_is_noticed(
    clock: Clock, most: float, *, is_held_back: bool
) -> None:
    """All 64 of them together are back-pressured 1.4 % of the time, whoever it is."""
    flink = LazyFlink(clock, shop_vertices(0.9))
    source = flink.vertices["v0"]
    source.parallelism, source.most = 64, {"accumulateBackPressuredTimeMs": 1000 * most}
    seen = profile(flink.rest, "job", 10)
    assert seen.held_back == ({"src"} if is_held_back else set())
    told = "rate of src: one of its subtasks is back-pressured 90 % of the time, so its actual rate"
    measured_graph(seen, MIPS)
    assert any(told in doubt for doubt in seen.doubts) is is_held_back
    flow = source_flow(LazyFlink(clock, {"v0": source}).rest, "job")
    assert flow is not None
    assert flow.is_limited is is_held_back


@pytest.mark.parametrize(
    ("rate", "busy", "backlog", "is_limited"),
    [
        (5000.0, 1.96, None, True),
        (5000.0, 1.5, None, False),
        (5000.0, "NaN", None, False),  # a SourceFunction: nobody knows
        (500.0, 1.96, None, False),  # it may poll for input that does not arrive
        (500.0, 1.96, 5e8, True),
        (5000.0, 1.96, 10.0, False),  # it emits all that arrives
    ],
)
def test_one_busy_task_that_is_the_whole_job_is_held_back(
    clock: Clock, rate: float, busy: float | str, backlog: float | None, *, is_limited: bool
) -> None:
    """On a TaskManager of another machine, whose CPU nobody sees, nothing else tells."""
    counts: dict[str, float | str] = {**rates(), "Source__src.numRecordsOut": rate}
    counts["accumulateBusyTimeMs"] = busy if isinstance(busy, str) else 1000 * busy
    flink = LazyFlink(clock, {"v0": Vertex("Source: src -> out: Writer", counts)})
    if backlog is not None:
        counts["Source__src.pendingRecords"] = 0.0
        flink.counted["v0"] = {"Source__src.pendingRecords": backlog}
    seen = profile(flink.rest, "job", 10)
    assert seen.is_limited is is_limited
    is_known = backlog is not None or not is_limited
    assert seen.flow.offered == (rate if is_known else None)
    graph = measured_graph(seen, MIPS)
    assert (graph.n_operators, graph.source_rate) == (1, pytest.approx(rate))
    unmeasured = str(graph.attributes.get("unmeasured", ""))
    told = "it is busy 98 % of the time, so its actual rate may be higher"
    assert (told in unmeasured) is not is_known
    assert ("ipt of src -> out: unknown and counted as 0" in unmeasured) is (busy == "NaN")


@pytest.mark.parametrize(
    ("settings", "timeout"),
    [
        ({}, 0.1),
        ({"execution.buffer-timeout": "20"}, 0.02),
        ({"execution.buffer-timeout.interval": "0 ms"}, 0.0),
        ({"execution.buffer-timeout.interval": "often"}, 0.1),
        ({"execution.buffer-timeout.interval": "-1"}, None),
        ({"execution.buffer-timeout.enabled": "false"}, None),
    ],
)
def test_messages_are_those_of_the_buffer_timeout_of_the_cluster(
    clock: Clock, settings: dict[str, str], timeout: float | None
) -> None:
    """Where only full buffers are sent, more subtasks send no more messages."""
    graph = measured_graph(
        profile(LazyFlink(clock, shop_vertices(), settings=settings).rest, "job", 10), MIPS
    )
    assert graph.attributes.get("buffer timeout") == timeout
    assert ("message ipt" in graph.attributes) is (timeout is not None)
    if timeout is not None:
        assert f"a buffer timeout of {1e3 * timeout:g} ms" in str(graph.attributes["message cost"])


@pytest.fixture
def writing(clock: Clock) -> LazyFlink:
    """The shop with a sink that is called as sinks are."""
    return writing_shop(clock)


@pytest.mark.parametrize(
    ("states", "words"),
    [
        (["FINISHED"], "has finished because it has read all"),
        (["FAILED"], "is FAILED, not RUNNING"),
        (["CREATED"], "is CREATED, not RUNNING"),
        (["RUNNING", "RUNNING", "RESTARTING"], r"is RESTARTING, not RUNNING; .*: .*the reason"),
    ],
)
def test_a_job_that_does_not_run_is_told_by_its_state(
    writing: LazyFlink, states: list[str], words: str
) -> None:
    """At once, with the reason, where Flink knows one."""
    writing.states = states
    with pytest.raises(FlinkError, match=f"job job {words}"):
        profile(writing.rest, "job", 10)
    assert writing.clock.now < START + 1


def _attempt(flink: LazyFlink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although the sums over all subtasks grow on, as those of a young job may."""
    flink.otherwise_of = lambda _, i: {} if i else {"attempt": int(flink.clock.now > START + 5)}


def _counts_again(flink: LazyFlink, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job can restart between two looks."""
    usual = flink._metrics

    def metrics(v: str, wanted: str) -> list[dict[str, Any]]:
        if flink.clock.now > START + 5:
            flink.fetched = dict.fromkeys(flink.fetched, 1.0)
        return usual(v, wanted)

    monkeypatch.setattr(flink, "_metrics", metrics)


def _ended(flink: LazyFlink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Flink drops what subtasks have counted, although the sum may grow on by the others."""
    late, source = START + 5, flink.vertices["v0"]

    def counted(rate: float) -> Callable[[float], float]:
        return lambda at: rate * at * (1 if at < late else 2)

    source.told = lambda at: 2 if at < late else 1
    source.rates = {
        name: counted(rate) if isinstance(rate, int | float) else rate
        for name, rate in source.rates.items()
    }


@pytest.mark.parametrize("restart", [_attempt, _counts_again, _ended])
def test_subtasks_that_begin_again_or_end_are_told(
    writing: LazyFlink, monkeypatch: pytest.MonkeyPatch, restart: Callable[..., None]
) -> None:
    """What was measured of a job that goes on otherwise is no measurement."""
    restart(writing, monkeypatch)
    with pytest.raises(FlinkError, match="restarted during the measurement, or metrics of some"):
        profile(writing.rest, "job", 10)


@pytest.mark.parametrize("is_gone", [True, False])
def test_task_managers_without_running_tasks_are_not_asked_or_waited_for(
    writing: LazyFlink, monkeypatch: pytest.MonkeyPatch, is_gone: bool
) -> None:
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


def test_bytes_of_a_sink_may_fall(writing: LazyFlink) -> None:
    """As those of Kafka's do with each transaction."""
    writing.vertices["v2"].rates["numBytesOut"] = lambda at: 1e6 - 1e3 * (at - START)
    assert profile(writing.rest, "job", 10).tuples["v2"] == pytest.approx(250)


def test_a_task_manager_that_answers_late_adds_nothing_that_it_counted_before(
    writing: LazyFlink,
) -> None:
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
    with pytest.raises(FlinkError, match="metrics of some of its subtasks began or ended"):
        steady_profile(writing.rest, "job", 10.0)


def test_subtasks_of_which_flink_tells_no_metrics_are_told(writing: LazyFlink) -> None:
    """Unless they have ended, as then nothing of them is missing."""
    writing.vertices["v0"].told = lambda at: 1
    (doubt,) = [one for one in profile(writing.rest, "job", 10).doubts if "wrong" in one]
    assert doubt.startswith("rate and ipt of src: wrong, because Flink tells the metrics of only 1")
    ended = {"status": "FINISHED"}
    writing.otherwise_of = lambda one, i: ended if not i and one.name[-3:] == "src" else {}
    assert not [one for one in profile(writing.rest, "job", 10).doubts if "wrong" in one]


def test_metrics_that_flink_does_not_update_are_no_measurement(writing: LazyFlink) -> None:
    """As for minutes after the loss of a TaskManager; what the job has sent before is no rate."""
    for vertex in writing.vertices.values():
        vertex.rates = {name: lambda _: 7.0 for name in vertex.rates}
    with pytest.raises(FlinkError, match="source 'src' sent nothing that Flink has counted: it up"):
        steady_profile(writing.rest, "job", 10.0)
    assert writing.clock.now - START <= 41  # after the first window


def test_a_flink_without_metrics_is_told_soon(writing: LazyFlink) -> None:
    """With what may be the cause."""
    for vertex in writing.vertices.values():
        vertex.rates = {}
    with pytest.raises(FlinkError, match=r"no metrics of job job for 30 s.*up to web\.timeout"):
        steady_profile(writing.rest, "job", 30.0)
    assert writing.clock.now - START <= 31


def with_more(flink: LazyFlink, ends: float = math.inf) -> LazyFlink:
    """A job with one more source, which sends nothing; it and what only it feeds may end."""
    silent = rates() | {"Source__more.numRecordsOut": 0, "accumulateBusyTimeMs": 50}
    flink.vertices["v3"] = Vertex("Source: more", silent, ends=ends)
    flink.vertices["v4"] = Vertex("load", rates(), [("v3", "HASH")], ends=ends)
    flink.vertices["v1"].inputs = [("v0", "HASH"), ("v4", "BROADCAST")]
    return flink


def test_a_silent_source_beside_one_that_sends_has_no_rate(writing: LazyFlink) -> None:
    """A topic may be empty; what its source takes of the CPU is taken all the same."""
    seen = profile(with_more(writing).rest, "job", 10)
    graph = measured_graph(seen, MIPS)
    assert graph.operators.rate.tolist() == pytest.approx([100, 0, 0, 0, 0], abs=1e-6)
    assert graph.charged_ipt[3:].tolist() == [0, 0]
    assert seen.constant["v3"] == pytest.approx(0.05)
    told = str(graph.attributes["unmeasured"])
    assert "rate of more: it has sent nothing, so its rate counts as 0" in told
    assert "ipt of load: it received no tuples" in told
    assert not seen.is_limited


def test_what_has_ended_before_is_not_waited_for(writing: LazyFlink) -> None:
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


def test_a_source_that_ends_while_it_is_measured_is_told(writing: LazyFlink) -> None:
    """If others still run, the next measurement leaves it out."""
    with_more(writing, START + 5)
    with pytest.raises(FlinkError, match="source 'more' has ended while the job was measured"):
        profile(writing.rest, "job", 10)
    assert measured_graph(profile(writing.rest, "job", 10), MIPS).source_rate == pytest.approx(100)


@pytest.mark.parametrize("name", ["IterationSource-3", "IterationSink-3"])
def test_iterations_are_refused_by_name(writing: LazyFlink, name: str) -> None:
    """Flink's plan does not show that tuples go round."""
    writing.vertices["v1"].name = name
    with pytest.raises(FlinkError, match=f"the job has an iteration, '{name}'"):
        profile(writing.rest, "job", 10)
