"""Samples of the stacks of threads, as the tool ``jfr`` prints them."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.cpu.stack_samples import StackCounts, counted, read_stacks

SAMPLES = Path(__file__).parents[1] / "golden/flink-stacks/samples.txt"
"""Of Nexmark's query 3 in a TaskManager of Flink 2.3 with chaining off."""
BASE = "org.apache.flink.api.common.typeutils.base"
POJO = "org.apache.flink.api.java.typeutils.runtime.PojoSerializer"
STREAMING = "org.apache.flink.streaming.runtime"
WRITER = f"{STREAMING}.io.RecordWriterOutput.collect"
INPUT = f"{STREAMING}.io.AbstractStreamTaskNetworkInput.emitNext"
OUTPUT = f"{STREAMING}.tasks.OneInputStreamTask$StreamTaskNetworkOutput.emitRecord"


def test_stacks_of_a_real_job_are_told_apart() -> None:
    """The source writes and works, one operator reads values, another one sets fields."""
    assert read_stacks(SAMPLES.read_text().splitlines()) == {
        564: StackCounts(3, written=2, fields_written=1),
        571: StackCounts(1, read=1),
        60: StackCounts(1),
        566: StackCounts(1, read=1, fields_read=1),
    }


def test_the_innermost_layer_decides() -> None:
    """An operator works below the input of its task, and writes below the operator."""
    work = ["my.Map.map", OUTPUT, INPUT]
    assert counted(work) == StackCounts(1)
    assert counted([WRITER, *work]) == StackCounts(1, written=1)
    assert counted(["java.util.ArrayDeque.poll", INPUT]) == StackCounts(1, read=1)


def test_fields_are_those_of_composite_types() -> None:
    """A chain copies them; a single value within them is not copied, be it in a list."""
    fields = [f"{POJO}.deserialize", INPUT]
    assert counted(fields).fields_read == 1
    assert counted([f"{BASE}.StringSerializer.deserialize", *fields]).fields_read == 0
    assert counted([f"{BASE}.ListSerializer.serialize", WRITER]).fields_written == 1
    assert counted([f"{BASE}.array.BytePrimitiveArraySerializer.serialize", WRITER]).written == 1
    own = [f"{POJO}.serialize", "my.Cache.put", OUTPUT, INPUT]
    assert counted(own) == StackCounts(1)


def test_a_chain_that_reuses_objects_saves_the_copy_of_fields_as_well() -> None:
    """Else it copies them, as reading and writing do."""
    counts = StackCounts(10, written=5, read=3, fields_written=2, fields_read=1)
    assert counts.saved_by_chains(reuses_objects=False) == (3, 2)
    assert counts.saved_by_chains(reuses_objects=True) == (5, 3)


def test_stacks_tell_which_operator_of_a_chain_works() -> None:
    """By the number of times that one calls the next; a stack without its end does not tell."""
    stack = [
        "my.Score.map",
        f"{STREAMING}.tasks.CopyingChainingOutput.pushToOperator",
        f"{STREAMING}.tasks.ChainingOutput.emitWatermark",
        "java.lang.Thread.run",
    ]
    one = counted(stack)
    assert one.work == (0, 0, 1)
    assert counted([*stack[:-1], "..."]).work == (0,)
    both = counted(stack[2:]).plus(one).plus(counted(stack[3:]))
    assert both.work == (1, 1, 1)


LINES = SAMPLES.read_text().splitlines()


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=60), max_size=60))
def test_any_text_is_read(lines: list[str]) -> None:
    """No sample has more parts than one, and no text has more samples than ends of them."""
    counts = read_stacks(lines)
    assert sum(one.total for one in counts.values()) <= lines.count("}")
    for one in counts.values():
        assert one.fields_written <= one.written
        assert one.fields_read <= one.read
        assert one.written + one.read <= one.total
