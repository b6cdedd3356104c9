"""Samples of the stacks of threads, as the tool ``jfr`` prints them."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from streamplace.engines.flink.cpu.stack_samples import StackCounts, counted, read_stacks
from streamplace.engines.flink.cpu.task_cpu import ClusterInterval, RunningSubtask, stacks_by_task
from streamplace.engines.flink.cpu.threads import ReceivedTask, ThreadLoad

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


def test_samples_of_a_task_that_is_called_like_a_helper_are_its_own() -> None:
    """Another task bears the rest of its name; so does a chain of another job."""
    fetcher, users = "Price Fetcher for users (1/1)#0", "users (1/1)#0"
    threads = {1: (fetcher, 5), 2: (users, 7), 3: (f"OutputFlusher for {fetcher}", 2)}
    threads |= {4: (f"log -> {users}", 11), 5: (f"OutputFlusher for log -> {users}", 13)}
    threads |= {6: (f"new {users}", 17), 7: (f"OutputFlusher for new {users}", 19)}
    named = {"v0": fetcher, "v1": users}
    subtasks = [RunningSubtask("job", v, 0, "tm", name, 0.0) for v, name in named.items()]
    subtasks.append(RunningSubtask("other", "v0", 0, "tm", f"new {users}", 0.0))
    loads = {"tm": [ThreadLoad(number, name, 0.1) for number, (name, _) in threads.items()]}
    samples = {"tm": {number: StackCounts(total) for number, (_, total) in threads.items()}}
    found = stacks_by_task(ClusterInterval(subtasks, loads, {}), "job", samples)
    assert {vertex: one.total for vertex, one in found.items()} == {"v0": 7, "v1": 7}


def test_samples_of_the_same_task_of_another_job_are_not_counted() -> None:
    """Jobs of one jar have the same vertices and threads, which the log tells apart."""
    name = "map (1/1)#0"
    subtasks = [RunningSubtask(job, "v0", 0, "tm", name, 0.0) for job in ("job", "twin")]
    loads = {"tm": [ThreadLoad(number, name, 0.1) for number in (1, 2)]}
    received = {"tm": [ReceivedTask(name, "v0", job) for job in ("twin", "job")]}
    samples = {"tm": {1: StackCounts(5), 2: StackCounts(7)}}
    interval = ClusterInterval(subtasks, loads, received)
    assert stacks_by_task(interval, "job", samples) == {"v0": StackCounts(7)}
    unlogged = ClusterInterval(subtasks, loads, {})
    assert stacks_by_task(unlogged, "job", samples) == {"v0": StackCounts(12)}
