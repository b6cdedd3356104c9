"""A profile of a real job, against its truth."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from flink_clusters import await_flow

from streamplace.engines.flink.measure.profile import profile
from streamplace.engines.flink.move.pause import START_SECONDS, expected_pause
from streamplace.engines.flink.rest.client import Rest
from streamplace.model.graph import StreamGraph

pytestmark = [pytest.mark.xdist_group("flink"), pytest.mark.slow]
TRIES, SECONDS, ALIKE = 6, 15.0, 0.1
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


def looked_at(rest: Rest, job: str, offered: dict[str, float]) -> StreamGraph:
    """A profile of a time in which the machine let the sources send what they offer.

    Where it does not come the last one counts, whatever it says.
    """
    for _ in range(TRIES):
        graph = profile(rest, job, SECONDS).graph(1000.0)
        rates = dict(zip(graph.operators.name, graph.operators.rate, strict=True))
        if all(rates[name] == pytest.approx(rate, rel=ALIKE) for name, rate in offered.items()):
            break
    return graph


@pytest.fixture(scope="module")
def measured() -> list[StreamGraph]:
    """The profile, made by the first test that asks."""
    return []


@pytest.fixture
def graph(measured: list[StreamGraph], rest: Rest, submit: Callable[..., str]) -> StreamGraph:
    """A quarter of a minute of the job, chaining off: other load on the machine evens out."""
    if not measured:
        job = submit(JOB, PLACEMENT)
        measured.append(looked_at(rest, job, {"src": 200}))
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


SATURATED = {
    "name": "saturated",
    "operators": [
        {"name": "src", "rate": 1_000_000, "payload": 2000},
        {"name": "slow", "rounds": 20_000_000},
    ],
    "streams": [{"from": "src", "to": "slow"}],
}


def test_full_queues_prolong_the_expected_interruption(
    rest: Rest, submit: Callable[..., str]
) -> None:
    """Hundreds of tuples wait, each of which takes some ten milliseconds."""
    job = submit(SATURATED, {"src": ["dev-0"], "slow": ["dev-1"]})
    await_flow(rest, job)
    deadline = time.monotonic() + 60
    while expected_pause(rest, job) < 2 * START_SECONDS:
        assert time.monotonic() < deadline
        time.sleep(0.5)


FUSED: dict[str, Any] = {
    "name": "fused",
    "chain": True,
    "operators": [
        {"name": "src", "rate": 500, "payload": 100},
        {"name": "other, too", "rate": 100, "payload": 1500},
        {"name": "keep(a -> b)"},
        {"name": "small", "payload": 40},
        {"name": "big", "payload": 4000},
        {"name": "x"},
        {"name": "j"},
    ],
    "streams": [
        {"from": "src", "to": "keep(a -> b)"},
        {"from": "keep(a -> b)", "to": "small", "selectivity": 0.2},
        {"from": "keep(a -> b)", "to": "big", "selectivity": 0.4},
        {"from": "small", "to": "x", "partitioning": "rebalance"},
        {"from": "big", "to": "j", "partitioning": "rebalance"},
        {"from": "other, too", "to": "j", "partitioning": "rebalance"},
    ],
}


def test_fused_operators_are_measured_at_both_ends(rest: Rest, submit: Callable[..., str]) -> None:
    """What enters them, and what each of their streams carries, into a mixed input too."""
    names = [operator["name"] for operator in FUSED["operators"]]
    devices = ["dev-0", "dev-1", *["dev-0"] * 3, "dev-2", "dev-3"]
    job = submit(FUSED, {name: [device] for name, device in zip(names, devices, strict=True)})
    fused = "src -> keep(a -> b) -> small -> big"
    graph = looked_at(rest, job, {fused: 500, "other, too": 100})
    rates = dict(zip(graph.operators.name, graph.operators.rate, strict=True))
    assert rates == pytest.approx({fused: 500, "other, too": 100, "x": 0, "j": 0}, rel=0.1)
    usual = dict(zip(graph.operators.name, graph.operators.payload, strict=True))
    found = {
        (stream.source, stream.target): (stream.selectivity, stream.payload or usual[stream.source])
        for stream in graph.streams
    }
    assert {pair: selectivity for pair, (selectivity, _) in found.items()} == pytest.approx(
        {(fused, "x"): 0.2, (fused, "j"): 0.4, ("other, too", "j"): 1}, rel=0.15
    )
    assert {pair: payload for pair, (_, payload) in found.items()} == pytest.approx(
        {(fused, "x"): 57, (fused, "j"): 4017, ("other, too", "j"): 1517}, rel=0.3
    )


def test_a_source_that_watermark_alignment_holds_back_is_measured(rest: Rest, jobs: Path) -> None:
    """It waits for the other one, and sends nothing meanwhile; before, it has sent a little."""
    document = {"programArgsList": ["100"], "entryClass": "AlignedJob"}
    job = str(rest.post(f"/jars/{rest.upload(jobs)}/run", document)["jobid"])
    rest.wait_running(job)
    graph = profile(rest, job, 4).graph(1000.0)
    hours, milliseconds = graph.operators.rate[:2]
    assert 0 < hours < milliseconds
    assert "rate of hours: it sent nothing during the measurement" in str(
        graph.attributes["unmeasured"]
    )
