"""Arithmetic of `benchmarks/plan_on_flink.py`: shares received, rates and tables."""

from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from streamplace import Operator, Stream, StreamGraph
from streamplace.engines.flink.sampling import Activity
from streamplace.io.graphs import graph_to_dict

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"
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


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The benchmark's modules, which are no package."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    names = ("flink_jobs", "planned_rates", "planned_runs", "planned_tables")
    return SimpleNamespace(**{name: import_module(name) for name in names})


def rates(source: float, words: float, sink: float) -> dict[str, dict[str, float]]:
    return {
        "source": {"in": 0.0, "out": source},
        "words": {"in": words, "out": 10 * words},
        "sink": {"in": sink, "out": 0.0},
    }


def test_least_received_share_is_that_of_the_source_or_of_a_reader(modules: Any) -> None:
    facts = modules.planned_runs.JobFacts.of(PROFILE)
    assert facts.received(rates(1_000, 1_000, 10_000), 1_000) == pytest.approx(1.0)
    assert facts.received(rates(900, 900, 9_000), 1_000) == pytest.approx(0.9)
    assert facts.received(rates(1_000, 800, 8_000), 1_000) == pytest.approx(0.8)
    assert facts.received(rates(1_000, 1_000, 7_000), 1_000) == pytest.approx(0.7)


def test_cores_per_tuple_and_throughput_are_in_tuples_of_the_source(modules: Any) -> None:
    facts = modules.planned_runs.JobFacts.of(PROFILE)
    assert facts.cost == pytest.approx((2e5 + 1e5) / 1e9)
    assert facts.throughput(rates(900, 850, 8_000)) == pytest.approx(800)


def test_rates_are_between_the_same_two_updates(modules: Any) -> None:
    def looks(first: int, last: int, late: float) -> tuple[tuple[float, dict[str, float]], ...]:
        return tuple(
            (i + late, {"numRecordsIn": 100.0 * i, "numRecordsOut": 50.0 * i})
            for i in range(first, last)
        )

    own = {"a": Activity({}, 4, {}, looks(0, 5, 0.0)), "b": Activity({}, 4, {}, looks(1, 7, 0.2))}
    found = modules.planned_rates.rates_together(own)
    assert found["a"] == found["b"] == {"in": 100.0, "out": 50.0}


def test_arguments_hold_rate_and_parallelism_of_a_graph(modules: Any) -> None:
    text = modules.flink_jobs.JOBS["heavy pipeline"].arguments(300, {"w1": 2})[0]
    assert '"name": "src", "payload": 64, "rate": 300, "parallelism": 1' in text
    assert '"name": "w1", "rounds": 20000, "payload": 64, "parallelism": 2' in text
    assert modules.flink_jobs.JOBS["word-count"].arguments(300) == ["300"]


def test_tables_count_pairs_and_runs(modules: Any) -> None:
    pair = {"kind": "pair", "job": "split", "level": 0.3, "rate": 1_000.0}
    pair |= {
        "machines": {"small": 2},
        "plan": {"predicted": 1_100.0, "vectors": {"source": ["tm-0"]}},
        "less": {"predicted": 600.0},
    }
    run = {"kind": "run", "job": "split", "level": 0.3}
    received = {"plan": (1_000, 990, 900), "less": (700, 700, 1_000)}
    rows = [PROFILE, pair]
    rows += [
        run | {"which": which, "repeat": i, "rates": rates(n, n, 10 * n)}
        for which, numbers in received.items()
        for i, n in enumerate(numbers)
    ]
    rows.append(
        {"kind": "eight", "job": "split", "predicted": 110.0, "rates": rates(100, 100, 1_000)}
    )
    text = modules.planned_tables.summary(rows)
    assert "| split | 1,000 | 2 small | 1.10 | 0.990 | 2 of 3 | 0.60 | 0.700 | 1 of 3 |" in text
    assert "The plan carries the rate of 1 of 1 pairs (100%), and in 2 of 3 runs." in text
    assert "does not carry the rate of 1 of 1 pairs (100%), and in 2 of 3 runs." in text
    assert "1 of 1 in repeat 1, 1 of 1 in repeat 2, 0 of 1 in repeat 3." in text
    assert "fewer than 20 subtasks, 1 of 1 carry the rate; of the others, 0 of 0." in text
    assert "| all | 1 |  | 10.0% | 10.0% | +10.0% |" in text
