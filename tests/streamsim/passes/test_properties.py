"""What holds for any problem."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from passes_cases import networks, situations, tasks
from streamsim.pass_rules import Queue
from streamsim.passes import Rules, bounds, compile_pass, makespans, schedule

CLOSE = 1e-9
QUEUES: list[Queue] = ["fifo", "priority", "order"]


@given(situation=situations())
def test_a_free_network_keeps_the_bounds_of_list_scheduling(situation):
    """A device idles only while everything on it waits for a chain of work (Graham, 1966)."""
    n, edges = situation.compiled.n_operators, situation.problem
    work = situation.compiled.work[:, 0]
    assume(work.sum() > 0)
    compiled = compile_pass(
        tasks(work, list(zip(edges.source, edges.target, strict=True)), devices=3, wire=0)
    )
    longest = bounds(compiled).path
    for place in situation.placements:
        loads = np.bincount(place, work, 3)
        answer = makespans(compiled, [place])[0]
        assert max(longest, loads.max()) <= answer * (1 + CLOSE)
        assert answer <= loads.sum() * (1 + CLOSE)
    alone = makespans(compiled, [np.zeros(n, np.int32)])[0]
    assert alone == pytest.approx(work.sum(), rel=CLOSE)


@given(situation=situations(), network=networks, queue=st.sampled_from(QUEUES))
def test_equal_sizes_stay_apart(network, queue, situation):
    """They share buffers, which a schedule does not."""
    compiled, rules = situation.compiled, Rules(queue=queue, network=network)
    other = compiled._replace(devices=compiled.devices.copy(), work=compiled.work * 2)
    other.devices["cores"] += 1
    for each in (compiled, other, compiled):
        alone = [makespan_alone(each, place, rules) for place in situation.placements]
        assert makespans(each, situation.placements, rules).tolist() == alone


def makespan_alone(one_pass, place, rules):
    """Makespan in buffers of its own; ∞ if the order contradicts the streams."""
    try:
        return schedule(one_pass, place, rules).makespan
    except ValueError:
        return np.inf
