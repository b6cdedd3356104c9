"""The published example, tick by tick."""

import pytest
from engine_cases import golden
from streamsim.engine import Settings, simulate, trace

PER_SINK_TUPLE = 20  # source tuples that one sink tuple stands for


def settings(policy: str) -> Settings:
    """Ticks of 10 ms and queues of 1000."""
    return Settings(duration=0.05, dt=0.01, capacity=1000, policy=policy, warm_up=0)


def test_uniform_shares_reproduce_the_published_queues_and_backlog() -> None:
    """Policy uniform passes 31.25 sink tuples a tick and fills the queues from the end."""
    run = trace(golden(), [0, 0, 0, 0], settings("uniform"))
    arrived = (run.throughput * 0.01).cumsum()
    assert arrived / PER_SINK_TUPLE == pytest.approx([31.25, 62.5, 93.75, 125, 156.25])
    assert run.queued[:, 0] == pytest.approx([0, 0, 0, 125, 375])
    assert run.queued[:, 1] == pytest.approx([187.5, 375, 562.5, 687.5, 687.5])
    assert run.backlog == pytest.approx([0, 0, 0, 0, 125], abs=1e-6)


def test_dynamic_shares_pass_everything_with_empty_queues() -> None:
    """Policy dynamic passes 50 sink tuples a tick."""
    run = trace(golden(), [0, 0, 0, 0], settings("dynamic"))
    assert run.throughput * 0.01 / PER_SINK_TUPLE == pytest.approx([50] * 5)
    assert run.queued.max() == 0
    assert run.backlog.max() == 0


@pytest.mark.parametrize(("policy", "relative"), [("uniform", 0.625), ("dynamic", 1.0)])
def test_source_equivalents_per_second_are_sink_tuples_times_twenty(
    policy: str, relative: float
) -> None:
    """0.625 · 100,000 tuples/s under uniform shares, all of them under dynamic ones."""
    runs = simulate(golden(), [[0, 0, 0, 0]], settings(policy))
    assert runs.throughput == pytest.approx([relative * 1e5])
    assert runs.relative == pytest.approx([relative])
