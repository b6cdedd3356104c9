import numpy as np
import pytest
from hypothesis import given, settings
from passes_cases import NETWORKS, situations, tied
from passes_reference import Simulation
from streamsim.passes import Rules, conflict, makespans, schedule

#: Shares of a network are sums of fractions, whose last digits depend on the order of summation.
CLOSE = 1e-9


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("queue", ["fifo", "rows", "priority", "depth", "breadth", "order"])
@settings(max_examples=10)
@given(situation=situations())
def test_batches_are_as_transcribed(queue, network, situation):
    how = Rules(queue, network, *((0.005, 0.0125) if situation.rests else ()))
    noise = {"work_factors": situation.work_factors, "send_factors": situation.send_factors}
    together = makespans(situation.compiled, situation.placements, how, **noise)
    for i, place in enumerate(situation.placements):
        single = {name: rows[i] for name, rows in noise.items()}
        literal = Simulation(situation.task(i), place.tolist(), how)
        last = literal.run()
        if len(literal.finish) < len(place):
            assert_nothing_ends(situation.compiled, place, how, together[i])
            continue
        result = schedule(situation.compiled, place, how, **single)
        assert together[i] == result.makespan == pytest.approx(last, rel=CLOSE)
        for times, expected in [
            (result.start, literal.start),
            (result.finish, literal.finish),
            (result.departure, literal.departure),
            (result.arrival, literal.arrival),
        ]:
            assert times.tolist() == pytest.approx(
                [expected[k] for k in range(len(times))], rel=CLOSE, abs=1e-12
            )
        assert not np.isnan(result.start).any()


def assert_nothing_ends(compiled, place, how, makespan):
    """An order that contradicts the streams takes for ever, and no schedule is made of it."""
    assert how.queue == "order"
    assert makespan == np.inf
    with pytest.raises(ValueError, match="the order of a device contradicts the streams"):
        schedule(compiled, place, how)
    pair = conflict(compiled, place, compiled.operators["priority"])
    assert place[pair.first] == place[pair.second]


@pytest.mark.parametrize("network", ["free", "sender", "link", "port"])
@pytest.mark.parametrize("queue", ["fifo", "rows", "priority", "order"])
def test_ties_come_out_as_in_the_literal_transcription(queue, network):
    rng = np.random.default_rng(0)
    for _ in range(60):
        situation = tied(rng)
        (place,) = situation.placements
        literal = Simulation(situation.task(0), place.tolist(), Rules(queue, network))
        makespan = literal.run()
        result = schedule(situation.compiled, place, Rules(queue, network))
        assert result.makespan == makespan
        assert result.start.tolist() == [literal.start[v] for v in range(len(place))]
        assert result.arrival.tolist() == [literal.arrival[e] for e in range(len(result.arrival))]
