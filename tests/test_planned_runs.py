"""Arithmetic of `benchmarks/plan_on_flink.py`: shares received, rates and tables."""

from pathlib import Path
from typing import Any

import plan_on_flink
import planned_facts
import planned_runs
import planned_tables
import pytest

from streamplace import Operator, Stream, StreamGraph
from streamplace.engines.flink.measure.sampling import Activity
from streamplace.io.graphs import graph_to_dict

SPLIT = StreamGraph.of(
    "split",
    [
        Operator("source", ipt=2e5, payload=100, rate=500),
        Operator("words", ipt=1e5),
        Operator("sink"),
    ],
    [Stream("source", "words", partitioning="hash"), Stream("words", "sink", 10)],
)
PROFILE = {
    "kind": "profile",
    "job": "split",
    "graph": graph_to_dict(SPLIT),
    "rates": {
        "source": {"in": 0.0, "out": 500.0},
        "words": {"in": 500.0, "out": 5000.0},
        "sink": {"in": 5000.0, "out": 0.0},
    },
    "java": 0.01,
    "per_tuple": 0.0,
    "per_byte": 0.0,
}


def rates(source: float, words: float, sink: float) -> dict[str, dict[str, float]]:
    return {
        "source": {"in": 0.0, "out": source},
        "words": {"in": words, "out": 10 * words},
        "sink": {"in": sink, "out": 0.0},
    }


def test_least_received_share_is_that_of_the_source_or_of_a_reader() -> None:
    """Cores per tuple and throughput are in tuples of the source."""
    facts = planned_facts.JobFacts.of(PROFILE)
    assert facts.received(rates(1_000, 1_000, 10_000), 1_000) == pytest.approx(1.0)
    assert facts.received(rates(900, 900, 9_000), 1_000) == pytest.approx(0.9)
    assert facts.received(rates(1_000, 800, 8_000), 1_000) == pytest.approx(0.8)
    assert facts.received(rates(1_000, 1_000, 7_000), 1_000) == pytest.approx(0.7)
    assert facts.cost == pytest.approx((2e5 + 1e5) / 1e9)
    assert facts.throughput(rates(900, 850, 8_000)) == pytest.approx(800)


def test_an_operator_receives_all_of_the_only_stream_of_another() -> None:
    """In the profile, a reader seemed to read 3 % more than was written, as it was counted later.

    Of two streams, one with some of the tuples keeps its part, and one with about all has all.
    """
    streams = [Stream("source", "words", 1.03), Stream("words", "sink", 10.3)]
    streams += [Stream("words", "rare", 2.0), Stream("rare", "end", 1.02)]
    operators = [*SPLIT.operators, Operator("rare"), Operator("end")]
    graph = StreamGraph.of("split", operators, streams)
    more = {name: {"in": 1_000.0, "out": 1_000.0} for name in ("rare", "end")}
    profile = {**PROFILE, "graph": graph_to_dict(graph), "rates": {**PROFILE["rates"], **more}}
    found = planned_facts.JobFacts.of(profile).ratios
    assert found == {
        ("source", "words"): 1,
        ("words", "sink"): 1,
        ("words", "rare"): pytest.approx(0.2),
        ("rare", "end"): 1,
    }


def test_rates_are_between_the_same_two_updates() -> None:
    def looks(first: int, last: int, late: float) -> tuple[tuple[float, dict[str, float]], ...]:
        return tuple(
            (i + late, {"numRecordsIn": 100.0 * i, "numRecordsOut": 50.0 * i})
            for i in range(first, last)
        )

    own = {"a": Activity({}, 4, {}, looks(0, 5, 0.0)), "b": Activity({}, 4, {}, looks(1, 7, 0.2))}
    found = planned_facts.rates_together(own)
    assert found["a"] == found["b"] == {"in": 100.0, "out": 50.0}


class FakeBench:
    """Stands for a cluster on which tuples of a job take more CPU than in its profile."""

    def __init__(self, output: Path, sustains: float, most: int = 99) -> None:
        self.output, self.sustains, self.left = output, sustains, most
        self.jar = output.with_name("jobs.jar")
        self.ran: list[float] = []
        self.warmed: list[str] = []

    def warm_up(self, jobs: list[str]) -> dict[str, dict[str, Any]]:
        """Facts of the programs; the fake needs none."""
        self.warmed = jobs
        return {job: {} for job in jobs}

    def run(
        self, job: str, rate: float, where: dict[str, Any], is_short: object = None
    ) -> dict[str, Any]:
        """Rates by the true costs; a stop after some runs."""
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        facts = planned_facts.JobFacts.of(PROFILE)
        carried = facts.dearer(1 / self.sustains).capacity(where)
        self.ran.append(carried)
        reached = min(rate, carried)
        return {
            "rates": rates(reached, reached, 10 * reached),
            "blocked": 0.5,
        }


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes a fake cluster, on which one job is planned for one rate."""
    monkeypatch.setattr(planned_runs, "SEARCH_SECONDS", 0.3)
    for module in (plan_on_flink, planned_runs):
        monkeypatch.setattr(module, "LEVELS", (0.3,))
    monkeypatch.setattr(plan_on_flink, "PLACEMENTS", 1)
    monkeypatch.setattr(planned_tables, "UNSEEN", ("split",))
    monkeypatch.setattr(
        plan_on_flink, "profile_row", lambda _, job, program: PROFILE | {"job": job}
    )
    return lambda *facts: FakeBench(tmp_path / "runs.jsonl", *facts)


def test_a_stopped_command_goes_on_and_corrects_plans_that_fall_short(bench: Any) -> None:
    """The job sustains 55 % of what is predicted, and the plan holds from 61 % on."""
    first = bench(0.55, 1)
    with pytest.raises(KeyboardInterrupt):
        plan_on_flink.measure(first, ["split"], 1)
    kinds = [row["kind"] for row in plan_on_flink.read_rows(first.output)]
    second = bench(0.55)
    plan_on_flink.measure(second, ["split"], 1)
    rows = plan_on_flink.read_rows(second.output)
    assert [row["kind"] for row in rows][: len(kinds)] == kinds
    runs = [row["which"] for row in rows if row["kind"] == "run"]
    assert sorted(runs) == ["corrected", "less", "plan"]
    assert len(first.ran) + len(second.ran) == 4
    third = bench(0.55)
    plan_on_flink.measure(third, ["split"], 1)
    assert third.ran == third.warmed == []
    (correction,) = [row for row in rows if row["kind"] == "correction"]
    (pair,) = [row for row in rows if row["kind"] == "pair"]
    assert correction["ratio"] == pytest.approx(0.55, rel=1e-3)
    assert correction["cost"] >= pair["cost"]
    assert pair["errors"]["from"].endswith("recorded jobs")
    text = planned_tables.summary(rows)
    assert "After one correction, 1 of 1 pairs (100%) are carried." in text
    assert "Of 1 that were never used to choose anything, intervals hold 0% of the runs" in text
