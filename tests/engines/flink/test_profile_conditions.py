"""Profiles where sources are held back, buffers are set otherwise, or jobs end meanwhile."""

from collections.abc import Callable
from typing import Any

import pytest
from lazy_flink import (
    MIPS,
    START,
    Clock,
    LazyFlink,
    Vertex,
    rates,
    shop_vertices,
    writing_shop,
)

from streamplace.engines.flink.cpu import threads as cpu
from streamplace.engines.flink.measure import sources
from streamplace.engines.flink.measure.graph import measured_graph
from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.measure.sources import source_flow
from streamplace.engines.flink.measure.steady import steady_profile
from streamplace.engines.flink.rest.client import FlinkError


@pytest.mark.parametrize(("most", "is_held_back"), [(0.9, True), (0.05, False)])
def test_one_back_pressured_subtask_of_many_is_noticed(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, most: float, *, is_held_back: bool
) -> None:
    """All 64 of them together are back-pressured 1.4 % of the time, whoever it is."""
    monkeypatch.setattr(sources, "processes_of", lambda rest: {})
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
    told = "it is busy 98 % of the time, so its actual rate may be higher"
    unmeasured = str(measured_graph(seen, MIPS).attributes.get("unmeasured", ""))
    assert (told in unmeasured) is not is_known


@pytest.mark.parametrize(
    ("settings", "timeout"),
    [
        ({}, 0.1),
        ({"execution.buffer-timeout.interval": "2 s"}, 2.0),
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


Change = Callable[[Vertex], dict[str, Any]]


def change_first_subtasks(
    flink: LazyFlink, monkeypatch: pytest.MonkeyPatch, change: Change
) -> None:
    """Let Flink answer otherwise of the first subtask of each task."""
    usual = flink._subtasks

    def subtasks(vertex: Vertex) -> list[dict[str, Any]]:
        first, *others = usual(vertex)
        return [first | change(vertex), *others]

    monkeypatch.setattr(flink, "_subtasks", subtasks)


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("FINISHED", "has finished because it has read all"),
        ("FAILED", "is FAILED, not RUNNING"),
        ("CREATED", "is CREATED, not RUNNING"),
    ],
)
def test_a_job_that_does_not_run_is_told_by_its_state(
    writing: LazyFlink, state: str, words: str
) -> None:
    """At once: nothing is measured."""
    writing.states = [state]
    with pytest.raises(FlinkError, match=f"job job {words}"):
        profile(writing.rest, "job", 10)
    assert not [path for path in writing.requests("GET") if "metrics" in path]
    assert writing.clock.now == START


def test_a_job_that_ends_while_it_is_watched_is_told(writing: LazyFlink) -> None:
    """With the reason, where Flink knows one."""
    writing.states = ["RUNNING", "RUNNING", "RESTARTING"]
    with pytest.raises(FlinkError, match=r"is RESTARTING, not RUNNING; .*: .*the reason"):
        profile(writing.rest, "job", 10)
    assert writing.clock.now < START + 1


def test_a_subtask_that_begins_again_is_told(
    writing: LazyFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the sums over all subtasks grow on, as those of a young job may."""
    change_first_subtasks(
        writing, monkeypatch, lambda _: {"attempt": int(writing.clock.now > START + 5)}
    )
    with pytest.raises(FlinkError, match="was restarted during the measurement"):
        profile(writing.rest, "job", 10)


def test_a_subtask_without_a_task_manager_is_not_measured(
    writing: LazyFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Flink calls its TaskManager unassigned while other subtasks of its task run."""
    writing.process_cpu = {"dev-0": 0.13}
    change_first_subtasks(writing, monkeypatch, lambda _: {"taskmanager-id": "(unassigned)"})
    monkeypatch.setattr(cpu, "time", writing.clock)
    profile(writing.rest, "job", 10)
    assert not [path for path in writing.requests("GET") if "unassigned" in path]


def test_a_task_manager_of_ended_tasks_is_not_waited_for(
    writing: LazyFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be gone, as on Kubernetes, where idle ones are released."""
    writing.vertices["v3"] = Vertex("Source: file", {}, parallelism=1, ends=START)
    writing.process_cpu = {"dev-0": 0.13}
    gone = {"Source: file": {"taskmanager-id": "gone"}}
    change_first_subtasks(writing, monkeypatch, lambda vertex: gone.get(vertex.name, {}))
    profile(writing.rest, "job", 10)
    assert writing.clock.now - START < 12


def test_counts_that_begin_again_are_told(writing: LazyFlink) -> None:
    """A job can restart between two looks."""
    clock = writing.clock

    def fall() -> None:
        clock.now += 0.25
        if clock.now > START + 5:
            writing.fetched = dict.fromkeys(writing.fetched, 1.0)

    clock.sleep = lambda _: fall()  # type: ignore[method-assign]
    with pytest.raises(FlinkError, match="was restarted during the measurement"):
        profile(writing.rest, "job", 10)


def test_bytes_of_a_sink_may_fall(writing: LazyFlink) -> None:
    """As those of Kafka's do with each transaction."""
    writing.vertices["v2"].rates["numBytesOut"] = lambda at: 1e6 - 1e3 * (at - START)
    assert profile(writing.rest, "job", 10).tuples["v2"] == pytest.approx(250)


def test_a_task_manager_that_answers_late_adds_nothing_that_it_counted_before(
    writing: LazyFlink,
) -> None:
    """Flink asks each of them separately, and sums up what it has by then."""
    late = START + 3
    writing.vertices["v0"].told = lambda at: 1 if at < late else 2
    seen = profile(writing.rest, "job", 10)
    assert measured_graph(seen, MIPS).operators.rate.tolist() == pytest.approx(
        [100, 0, 0], rel=0.01
    )
    assert not [doubt for doubt in seen.doubts if "subtasks" in doubt]


def test_a_task_manager_that_answers_only_later_is_told(writing: LazyFlink) -> None:
    """What was measured before cannot be compared with what it has counted."""
    late = START + 60  # in the second window
    writing.vertices["v0"].told = lambda at: 1 if at < late else 2
    with pytest.raises(FlinkError, match="has told no metrics of some subtasks of job job; "):
        steady_profile(writing.rest, "job", 10.0)


def test_subtasks_of_which_flink_tells_no_metrics_are_told(
    writing: LazyFlink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless they have ended, as then nothing of them is missing."""
    writing.vertices["v0"].told = lambda at: 1
    (doubt,) = [one for one in profile(writing.rest, "job", 10).doubts if "wrong" in one]
    assert doubt.startswith("rate and ipt of src: wrong, because Flink tells the metrics of only 1")
    change_first_subtasks(
        writing, monkeypatch, lambda one: {"status": "FINISHED"} if one.name[-3:] == "src" else {}
    )
    assert not [one for one in profile(writing.rest, "job", 10).doubts if "wrong" in one]


def test_subtasks_that_end_while_a_job_is_measured_are_told(writing: LazyFlink) -> None:
    """Flink drops what they have counted, although the sum may grow on by the others."""
    late, source = START + 5, writing.vertices["v0"]

    def counted(rate: float) -> Callable[[float], float]:
        return lambda at: rate * at * (1 if at < late else 2)

    source.told = lambda at: 2 if at < late else 1
    source.rates = {
        name: counted(rate) if isinstance(rate, int | float) else rate
        for name, rate in source.rates.items()
    }
    with pytest.raises(FlinkError, match="restarted during the measurement, or some of its subtas"):
        profile(writing.rest, "job", 10)


def test_metrics_that_flink_does_not_update_are_no_measurement(writing: LazyFlink) -> None:
    """As for minutes after the loss of a TaskManager; what the job has sent before is no rate."""
    for vertex in writing.vertices.values():
        vertex.rates = {
            name: rate if isinstance(rate, str) else lambda _: 7.0
            for name, rate in vertex.rates.items()
        }
    writing.duration = 20_000
    with pytest.raises(FlinkError, match="has not updated the metrics of job 'shop' while it was"):
        measured_graph(profile(writing.rest, "job", 10), MIPS)
