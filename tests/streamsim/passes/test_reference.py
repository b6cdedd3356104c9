import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray
from passes_cases import Situation, situations, tied
from passes_reference import Simulation
from streamsim.pass_rules import Network, Queue
from streamsim.passes import Pass, Rules, conflict, makespans, schedule

#: Shares of a network are sums of fractions, whose last digits depend on the order of summation.
CLOSE = 1e-9


def rules(queue: Queue, network: Network, situation: Situation) -> Rules:
    """With and without pauses."""
    rests = situation.rests
    return Rules(queue, network, 0.005 if rests else 0.0, 0.0125 if rests else 0.0)


@pytest.mark.parametrize("network", ["free", "sender", "link", "port", "shared"])
@pytest.mark.parametrize("queue", ["fifo", "rows", "priority", "depth", "breadth", "order"])
@settings(max_examples=10)
@given(situation=situations())
def test_a_batch_is_one_by_one_is_the_literal_transcription(
    queue: Queue, network: Network, situation: Situation
) -> None:
    how = rules(queue, network, situation)
    noise = {"work_factors": situation.work_factors, "send_factors": situation.send_factors}
    together = makespans(situation.one, situation.placements, how, **noise)
    for i, place in enumerate(situation.placements):
        single = {name: rows[i] for name, rows in noise.items()}
        literal = Simulation(situation.task(i), place.tolist(), how)
        last = literal.run()
        if len(literal.finish) < len(place):
            assert_nothing_ends(situation.one, place, how, together[i])
            continue
        seen = schedule(situation.one, place, how, **single)
        assert together[i] == seen.makespan == pytest.approx(last, rel=CLOSE)
        for times, expected in [
            (seen.start, literal.start),
            (seen.finish, literal.finish),
            (seen.departure, literal.departure),
            (seen.arrival, literal.arrival),
        ]:
            assert times.tolist() == pytest.approx(
                [expected[k] for k in range(len(times))], rel=CLOSE, abs=1e-12
            )
        assert not np.isnan(seen.start).any()


def assert_nothing_ends(one: Pass, place: NDArray[np.int32], how: Rules, makespan: float) -> None:
    """An order that contradicts the streams takes for ever, and no schedule is made of it."""
    assert how.queue == "order"
    assert makespan == np.inf
    with pytest.raises(ValueError, match="the order of a device contradicts the streams"):
        schedule(one, place, how)
    pair = conflict(one, place, one.operators["priority"])
    assert place[pair.first] == place[pair.second]


@pytest.mark.parametrize("network", ["free", "sender", "link", "port"])
@pytest.mark.parametrize("queue", ["fifo", "rows", "priority", "order"])
def test_ties_come_out_as_in_the_literal_transcription(queue: Queue, network: Network) -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        one, place, task = tied(rng)
        literal = Simulation(task, place, Rules(queue, network))
        makespan = literal.run()
        seen = schedule(one, place, Rules(queue, network))
        assert seen.makespan == makespan
        assert seen.start.tolist() == [literal.start[v] for v in range(len(place))]
        assert seen.arrival.tolist() == [literal.arrival[e] for e in range(len(seen.arrival))]
