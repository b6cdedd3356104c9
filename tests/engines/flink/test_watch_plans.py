"""Plans of a watched job: layouts on one, two and more TaskManagers, and what they carry."""

from types import SimpleNamespace
from typing import Any

import pytest
from fake_flink import FakeFlink
from flink_documents import healthy

from streamplace import Cluster, Device, Operator, Stream, StreamGraph
from streamplace.engines.flink.move.state import CheckpointTotals
from streamplace.engines.flink.watch.judging import target_of, wanted_rate
from streamplace.engines.flink.watch.look import JobLook
from streamplace.engines.flink.watch.modelling import JobModeller
from streamplace.engines.flink.watch.plans import JobModel
from streamplace.engines.live import Measurement
from streamplace.io.watch_store import WatchRound
from streamplace.placers.registry import Budget

CHAINS = StreamGraph.of(
    "chains",
    [
        Operator("clicks", ipt=1e4, rate=100_000.0),
        Operator("readings", ipt=2.5e5, rate=5_000.0),
        Operator("score", ipt=2.5e5),
    ],
    [Stream("readings", "score")],
)
"""Clicks need 1,000 MIPS. Readings need 2,500, the whole of a device."""
PRESENT = {"clicks": ["d0"], "readings": ["d1"], "score": ["d1"]}
DEVICES = Cluster.of([Device(f"d{i}") for i in range(3)])


def of_chains(*held_back: str) -> JobModel:
    """Model of the job, some or all of whose sources are held back."""
    measured = Measurement(CHAINS, DEVICES, True, held_back=frozenset(held_back))
    rest = FakeFlink(healthy("d0", "d1", "d2")).rest
    engine: Any = SimpleNamespace(rest=rest, measure=lambda *_: measured)
    seen = JobLook(
        "job", 105_000.0, True, None, PRESENT, {}, CheckpointTotals(0, 0), frozenset(["d0"])
    )
    return JobModeller(engine, print, confidence=0.0, budget=Budget(evaluations=2000))(seen)


def test_only_sources_that_are_held_back_send_more_in_other_plans() -> None:
    """A third device doubles the readings; one device carries the clicks and some readings."""
    model = of_chains("readings")
    assert model.kept == 100_000
    assert [round(one.carries.value) for one in model.plans] == [103_000, 106_000, 110_000]
    assert model.present.carries == pytest.approx((104_850.0, 105_000.0, 105_150.0))
    together = of_chains()
    assert together.kept == 0
    assert [round(one.carries.value) for one in together.plans] == [75_000, 105_000, 210_000]


def test_a_source_that_keeps_up_hides_nothing_and_its_rate_is_no_reason_to_stay() -> None:
    """A fifth more of what the readings send is wanted, and surely carried by a third device."""
    model = of_chains("readings")
    seen = WatchRound("", 0.0, "job", 105_000.0, 105_000.0, True, 0.0, 2, kept=model.kept)
    assert wanted_rate(seen) == pytest.approx(106_000)
    assert target_of(model, 2, seen) == model.plans[2]
