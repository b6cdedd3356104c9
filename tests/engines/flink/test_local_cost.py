"""The cost of tuples between threads of a device, told from the work of operators."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.cpu.stack_samples import StackCounts
from streamplace.engines.flink.measure.local_cost import (
    ASSUMED_PER_BYTE,
    LocalCost,
    StreamLoad,
    chain_saving,
    local_cost,
    with_local_cost,
)
from streamplace.engines.flink.measure.sending_cost import BYTES_OF_A_TUPLE
from streamplace.engines.flink.rest.plan import Edge
from streamplace.model.graph import StreamGraph
from streamplace.model.operators import Operator
from streamplace.model.streams import Stream

MIPS = 1000.0
EDGES = [Edge("a", "b", "forward"), Edge("b", "c", "hash")]
LOADS = [StreamLoad(1000.0, 93.6), StreamLoad(500.0, 43.6)]
"""Sizes of 100 and 50 bytes with those that a tuple itself counts as."""
CORES = {"a": 0.1, "b": 0.4, "c": 0.05}


def test_each_end_pays_by_its_samples() -> None:
    """A task spends on its streams that part of its CPU that its stacks show."""
    stacks = {
        "a": StackCounts(100, written=50),
        "b": StackCounts(400, written=20, read=40),
        "c": StackCounts(50, read=25),
    }
    cost = local_cost(EDGES, LOADS, CORES, stacks)
    assert cost.seconds == pytest.approx(
        ((0.1 * 0.5 + 0.4 * 0.1) / 1000, (0.4 * 0.05 + 0.05 * 0.5) / 500)
    )
    assert cost.source == "measured by 550 samples of the stacks of 3 operators"


def test_copies_that_a_chain_makes_stay_with_the_operators() -> None:
    """Unless objects are reused."""
    stacks = {
        "a": StackCounts(100, written=50, fields_written=10),
        "b": StackCounts(400, read=40, fields_read=20),
        "c": StackCounts(50),
    }
    cost = local_cost(EDGES, LOADS, CORES, stacks)
    assert cost.seconds[0] == pytest.approx((0.1 * 0.4 + 0.4 * 0.05) / 1000)
    whole = local_cost(EDGES, LOADS, CORES, stacks, reuses_objects=True)
    assert whole.seconds[0] == pytest.approx((0.1 * 0.5 + 0.4 * 0.1) / 1000)


def test_outputs_share_what_their_sender_spends_by_their_bytes() -> None:
    """A tuple counts as some bytes."""
    edges = [Edge("a", "b", "hash"), Edge("a", "c", "hash")]
    stacks = {"a": StackCounts(100, written=30), "b": StackCounts(100), "c": StackCounts(100)}
    one, other = local_cost(edges, LOADS, CORES, stacks).seconds
    assert one == pytest.approx(2 * other)
    assert 1000 * one + 500 * other == pytest.approx(0.1 * 0.3)


def test_tasks_with_few_samples_have_the_costs_of_the_others() -> None:
    """By the bytes that they send or receive."""
    stacks = {"a": StackCounts(100, written=50), "b": StackCounts(19, written=19)}
    cost = local_cost(EDGES, LOADS, CORES, stacks)
    per_byte = 0.1 * 0.5 / (1000 * 100)
    assert cost.seconds[0] == pytest.approx(100 * (per_byte + ASSUMED_PER_BYTE))
    assert cost.seconds[1] == pytest.approx(50 * (per_byte + ASSUMED_PER_BYTE))
    assert cost.source.endswith(
        "that of 2 operators with few samples is estimated from their bytes"
    )


def test_without_samples_the_cost_is_assumed() -> None:
    """And the graph says what it is assumed to be."""
    cost = local_cost(EDGES, LOADS, CORES, {})
    assert cost.seconds == pytest.approx((200 * ASSUMED_PER_BYTE, 100 * ASSUMED_PER_BYTE))
    tuple_ns = 1e9 * ASSUMED_PER_BYTE * BYTES_OF_A_TUPLE
    assert f"1.4 ns per byte and {tuple_ns:.0f} ns per tuple at each end" in cost.source
    assert cost.source.startswith("assumed")


SECONDS = st.floats(0, 1e-4)


@given(st.lists(st.floats(0, 1e6), min_size=4, max_size=4), st.tuples(*[SECONDS] * 4))
def test_operators_cost_with_their_streams_what_they_cost_before(
    ipt: list[float], seconds: tuple[float, ...]
) -> None:
    """Whatever streams cost; nothing costs less than nothing."""
    names = "abcd"
    operators = [
        Operator(name, work, 10, rate=0.0 if i else 100.0)
        for i, (name, work) in enumerate(zip(names, ipt, strict=True))
    ]
    streams = [Stream("a", "b", 2.0), Stream("a", "c", 0.5), Stream("b", "d"), Stream("c", "d")]
    graph = StreamGraph.of("diamond", operators, streams)
    split = with_local_cost(graph, LocalCost(seconds, "measured"), MIPS)
    assert split.charged_ipt == pytest.approx(np.array(ipt), rel=1e-9, abs=1e-6)
    assert (split.operators.ipt >= 0).all()
    assert (split.streams.ipt <= np.array(seconds) * MIPS * 1e6).all()
    assert split.attributes["local cost"] == "measured"


def test_what_a_chain_saves_is_a_part_of_all_cpu() -> None:
    """20 instructions/s of 80 per tuple and second, and of the 120 with what is used always."""
    ends = [Operator("a", ipt=30, rate=1.0), Operator("b", ipt=30)]
    stream = Stream("a", "b", partitioning="forward", ipt=20)
    assert chain_saving(StreamGraph.of("two", ends, [stream])).share == pytest.approx(20 / 80)
    held = [ends[0], Operator("b", ipt=30, constant=40e-6)]
    assert chain_saving(StreamGraph.of("two", held, [stream])).share == pytest.approx(20 / 120)


def test_what_a_stream_costs_is_taken_off_the_work_of_its_ends() -> None:
    ends = [Operator("a", ipt=50, rate=1.0), Operator("b", ipt=30)]
    graph = StreamGraph.of("two", ends, [Stream("a", "b")])
    split = with_local_cost(graph, LocalCost((20e-6 / MIPS,), "measured"), MIPS)
    assert split.streams.ipt.tolist() == pytest.approx([20])
    assert split.operators.ipt.tolist() == pytest.approx([40, 20])
