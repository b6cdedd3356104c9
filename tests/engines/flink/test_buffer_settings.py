"""Size and timeout of network buffers, which the JobManager's settings tell."""

import pytest
from lazy_flink import MIPS, Clock, LazyFlink, doubts, rates
from shop_flink import shop_vertices

from streamplace.engines.flink.measure.profile import profile


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
    graph = profile(LazyFlink(clock, shop_vertices(), settings=settings).rest, "job", 10).graph(
        MIPS
    )
    assert graph.attributes.get("buffer timeout") == timeout
    assert ("message ipt" in graph.attributes) is (timeout is not None)
    if timeout is not None:
        assert f"a buffer timeout of {1e3 * timeout:g} ms" in str(graph.attributes["message cost"])


@pytest.mark.parametrize(("size", "is_few"), [("32kb", True), ("4 kb", False), ("4096", False)])
def test_bytes_are_known_after_fewer_of_them_where_buffers_are_small(
    clock: Clock, size: str, is_few: bool
) -> None:
    """A sender counts whole buffers, and its receiver here counts no bytes."""
    vertices = shop_vertices()
    read = rates(100, 250, 100 * 400, 250 * 40, busy=0.2)
    vertices["v1"].rates = {name: rate for name, rate in read.items() if name != "numBytesIn"}
    vertices["v0"].rates = {**vertices["v0"].rates, "numBytesOut": 5_000.0}
    flink = LazyFlink(clock, vertices, settings={"taskmanager.memory.segment-size": size})
    told = doubts(profile(flink.rest, "job", 10))
    assert ("payload of src→split: few bytes passed; profile for longer" in told) is is_few
