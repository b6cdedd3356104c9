"""A profile of a real job, against its truth."""

from collections.abc import Callable

import pytest

from streamplace.engines.flink.profile import profile
from streamplace.engines.flink.rest import Rest
from streamplace.model.graph import StreamGraph

pytestmark = pytest.mark.xdist_group("flink")
JOB = {
    "name": "known",
    "operators": [
        {"name": "src", "rate": 200, "payload": 2000},
        {"name": "light", "rounds": 20_000, "payload": 500},
        {"name": "heavy", "rounds": 400_000, "payload": 8000},
        {"name": "out"},
    ],
    "streams": [
        {"from": "src", "to": "light"},
        {"from": "light", "to": "heavy", "selectivity": 0.5},
        {"from": "heavy", "to": "out", "selectivity": 2},
    ],
}
PLACEMENT = {"src": ["dev-0"], "light": ["dev-1"], "heavy": ["dev-2"], "out": ["dev-3"]}


@pytest.fixture(scope="module")
def measured() -> list[StreamGraph]:
    """The profile, made by the first test that asks."""
    return []


@pytest.fixture
def graph(measured: list[StreamGraph], rest: Rest, submit: Callable[..., str]) -> StreamGraph:
    """Five seconds of the job, chaining off."""
    if not measured:
        job = submit(JOB, PLACEMENT)
        measured.append(profile(rest, job, 5.0).graph(1000.0))
    return measured[0]


def test_rates_selectivities_and_payloads_come_back(graph: StreamGraph) -> None:
    """Within a tenth of the truth; bytes on the wire carry some framing."""
    assert graph.operators.name == ("src", "light", "heavy", "out")
    assert graph.source_rate == pytest.approx(200, rel=0.1)
    selectivity = {stream.source: stream.selectivity for stream in graph.streams}
    assert selectivity == pytest.approx({"src": 1, "light": 0.5, "heavy": 2}, rel=0.1)
    assert graph.operators.payload[:3].tolist() == pytest.approx([2000, 500, 8000], rel=0.1)


def test_the_cpu_of_work_is_told_from_that_of_handing_on(graph: StreamGraph) -> None:
    """Twenty times the work; tuples cost something besides, so not twenty times the CPU."""
    light, heavy = graph.operators.ipt[1:3]
    assert heavy > 5 * light
