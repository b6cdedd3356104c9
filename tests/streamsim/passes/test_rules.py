from collections.abc import Callable

import numpy as np
import pytest
from passes_cases import tasks
from streamsim.passes import Rules, compile_pass, makespans, schedule, stream_records


def test_a_transfer_takes_latency_bytes_gap_and_overhead_at_both_ends():
    costs = {"latency": [[0, 8], [0, 0]], "gap": 0.25, "overhead": 0.5, "egress": [2.0, 0.0]}
    compiled = compile_pass(tasks([1, 1], [(0, 1)], 4, wire=0.5, **costs))
    assert makespans(compiled, [[0, 1]])[0] == 1 + (8 + 4 * 2 + 0.25 + 2 * 0.5) + 1
    assert makespans(compiled, [[1, 0]])[0] == 1 + (0 + 4 * 0.5 + 0.25 + 2 * 0.5) + 1
    by_byte = compile_pass(tasks([1, 1], [(0, 1)], 4, wire=0.5, overhead_per_byte=0.25))
    assert makespans(by_byte, [[0, 1]])[0] == 1 + (4 * 0.5 + 2 * 4 * 0.25) + 1


def test_a_pass_lets_the_fastest_source_emit_one_tuple():
    instance = tasks([1, 1], [(0, 1)])._replace(rate=np.array([4.0, 0.0]))
    faster = instance._replace(input_rate=np.array([4.0, 8.0]))
    assert compile_pass(faster).work.ravel().tolist() == [1, 2]


#: Two operators on one device feed two each, which have devices of their own.
FAN = [(0, 2), (0, 3), (1, 4), (1, 5)]


@pytest.mark.parametrize(
    ("network", "last"), [("free", 12), ("link", 12), ("sender", 41), ("port", 41), ("shared", 12)]
)
def test_networks_differ_in_who_sends_at_once(network, last):
    compiled = compile_pass(tasks([1, 1, 0, 0, 0, 0], FAN, 10, devices=5))
    arrivals = schedule(compiled, [0, 0, 1, 2, 3, 4], Rules(network=network)).arrival  # type: ignore[arg-type]
    assert arrivals.max() == pytest.approx(last)


def test_a_bus_sends_once_to_all_and_a_link_once_to_each():
    instance = tasks([1, 0, 0], [(0, 1), (0, 2)], 10, devices=3)
    compiled = compile_pass(instance, streams=stream_records(instance, message=[0, 0]))
    for network in ("sender", "link"):
        result = schedule(compiled, [0, 1, 2], Rules(network=network))  # type: ignore[arg-type]
        assert result.arrival.tolist() == [11, 11]
    apart = compile_pass(instance)
    assert schedule(apart, [0, 1, 2], Rules(network="sender")).arrival.tolist() == [11, 21]


def test_queues_differ_in_who_is_next():
    # 0 feeds 1; 2 and 3 are ready from the start. All on one device.
    compiled = compile_pass(tasks([1, 1, 1, 1], [(0, 1)], devices=1))
    starts = {
        queue: schedule(compiled, [0] * 4, Rules(queue=queue), priorities=[2, 1, 5, 9]).start  # type: ignore[arg-type]
        for queue in ("fifo", "rows", "priority", "depth", "breadth", "order")
    }
    assert {queue: np.argsort(start).tolist() for queue, start in starts.items()} == {
        "fifo": [0, 2, 3, 1],
        "rows": [0, 2, 3, 1],
        "priority": [3, 2, 0, 1],
        "depth": [0, 1, 2, 3],
        "breadth": [0, 2, 3, 1],
        "order": [3, 2, 0, 1],
    }


def test_a_device_that_holds_an_order_waits_for_the_next_in_line():
    # 1 gets its input at 3; until then the device of 1 and 2 waits, though 2 is ready
    compiled = compile_pass(tasks([1, 1, 5], [(0, 1)], 2))
    by_priority, held = (
        schedule(compiled, [0, 1, 1], Rules(queue=queue), priorities=[9, 5, 1])  # type: ignore[arg-type]
        for queue in ("priority", "order")
    )
    assert by_priority.start.tolist() == [0, 5, 0]
    assert held.start.tolist() == [0, 3, 4]
    kinds = [part.name for part in held.chain.parts]
    assert (kinds, held.chain.seconds.tolist()) == (
        ["RUNNING", "SENDING", "RUNNING", "RUNNING"],
        [1, 2, 1, 5],
    )


def test_in_a_line_with_an_idle_core_the_chain_waits_for_the_inputs_of_the_next():
    """From 1 to 3 s both cores are idle, because 1 is the next in line and its input comes at 3."""
    compiled = compile_pass(tasks([1, 1, 9, 1], [(3, 1)], 2, cores=[2, 1]))
    held = schedule(compiled, [0, 0, 0, 1], Rules(queue="order"), priorities=[3, 2, 1, 0])
    assert held.start.tolist() == [0, 3, 3, 0]
    kinds = [part.name for part in held.chain.parts]
    assert (kinds, held.chain.operator.tolist()) == (["RUNNING", "SENDING", "RUNNING"], [3, 3, 2])
    assert held.chain.times.tolist() == [0, 1, 3, 12]


def test_priorities_may_differ_between_placements():
    compiled = compile_pass(tasks([1, 2, 4], [(0, 2)], devices=2))
    answers = makespans(
        compiled, [[0, 0, 1]] * 2, Rules(queue="priority"), priorities=[[1, 0, 0], [0, 1, 0]]
    )
    assert answers.tolist() == [5, 7]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"queue": "lifo"}, "queue is 'lifo'"),
        ({"network": "bus"}, "network is 'bus'"),
        ({"pause": -1.0}, "pause is -1.0"),
        ({"spacing": float("nan")}, "spacing is nan"),
    ],
)
def test_rules_that_cannot_be_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        Rules(**change)  # type: ignore[arg-type]


def test_arrays_that_do_not_fit_a_graph_are_refused():
    instance, fork = tasks([1, 1], [(0, 1)]), tasks([1, 1, 1], [(0, 1), (0, 2)], [1, 2])
    silent = tasks([1, 1], [(0, 1)])._replace(rate=np.zeros(2))
    calls: dict[str, Callable[[], object]] = {
        "per stream": lambda: stream_records(instance, message=[0, 1]),
        "from 0 to 1": lambda: stream_records(instance, message=[2]),
        "streams 0 and 1": lambda: stream_records(fork, message=[0, 0]),
        "work_factors": lambda: makespans(compile_pass(instance), [[0, 0]], work_factors=[1] * 3),
        "source": lambda: compile_pass(silent),
    }
    for place, call in calls.items():
        with pytest.raises(ValueError, match=place):
            call()
