"""What holds for any problem."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from passes_cases import Situation, situations, tasks
from streamsim.arrays import Ints
from streamsim.pass_rules import Network, Queue
from streamsim.passes import (
    Pass,
    Rules,
    bounds,
    compile_pass,
    makespans,
    schedule,
    synchronous_makespans,
)

CLOSE = 1e-9
NETWORKS: list[Network] = ["free", "sender", "link", "port", "shared"]
QUEUES: list[Queue] = ["fifo", "priority", "order"]
networks = st.sampled_from(NETWORKS)


@given(situation=situations())
def test_a_network_that_costs_nothing_keeps_the_bounds_of_list_scheduling(
    situation: Situation,
) -> None:
    """A device idles only while everything on it waits for a chain of work (Graham, 1966)."""
    n, edges = situation.one.n_operators, situation.problem
    work = situation.one.work[:, 0]
    assume(work.sum() > 0)
    one = compile_pass(
        tasks(work, list(zip(edges.source, edges.target, strict=True)), devices=3, wire=0)
    )
    longest = bounds(one).path
    for place in situation.placements:
        loads = np.bincount(place, work, 3)
        answer = makespans(one, [place])[0]
        assert max(longest, loads.max()) <= answer * (1 + CLOSE)
        assert answer <= loads.sum() * (1 + CLOSE)
    alone = makespans(one, [np.zeros(n, np.int32)])[0]
    assert alone == pytest.approx(work.sum(), rel=CLOSE)


@given(situation=situations())
def test_lock_step_on_one_core_is_the_sum_of_work(situation: Situation) -> None:
    one = situation.one
    placements = np.zeros_like(situation.placements)
    assume(one.devices["cores"][0] == 1)
    work = one.work[:, one.devices["type"][0]].sum()
    assert synchronous_makespans(one, placements).tolist() == pytest.approx([work] * 3)


def test_lock_step_waits_for_the_slowest_of_every_round() -> None:
    # 0 → 2 across, 1 → 3 at home: 2 must wait for 1 and for the transfer
    one = compile_pass(tasks([1, 5, 2, 1], [(0, 2), (1, 3)], [10, 10]))
    place = [[0, 1, 1, 1]]
    assert synchronous_makespans(one, place)[0] == (5 + 1) + 10 + 2
    assert makespans(one, place)[0] == 1 + 10 + 2


def test_lock_step_sends_an_output_once_and_all_links_at_once() -> None:
    edges = [(0, 1), (0, 2), (0, 3)]
    one = compile_pass(tasks([1, 1, 1, 1], edges, 10, devices=3), message=[0, 0, 0])
    assert synchronous_makespans(one, [[0, 1, 1, 2]])[0] == 1 + 10 + 2
    capped = compile_pass(tasks([1, 1, 1, 1], edges, 10, devices=3, egress=[1.0, 0, 0]))
    assert synchronous_makespans(capped, [[0, 1, 1, 2]])[0] == 1 + 30 + 2


def test_lock_step_adds_a_latency_to_what_is_sent_over_its_own_link_alone() -> None:
    """10 bytes to a near device arrive after 10 s, one byte to a far device after 6 s."""
    latency = np.array([[0, 0, 5], [0, 0, 0], [0, 0, 0]])
    one = compile_pass(tasks([1, 1, 1], [(0, 1), (0, 2)], [10, 1], devices=3, latency=latency))
    assert synchronous_makespans(one, [[0, 1, 2]])[0] == 1 + 10 + 1
    assert synchronous_makespans(one, [[0, 0, 2]])[0] == 2 + 6 + 1


def test_lock_step_uses_all_cores() -> None:
    one = compile_pass(tasks([3, 3, 3], [(0, 2)], devices=1, cores=[2]))
    assert synchronous_makespans(one, [[0, 0, 0]])[0] == 6


@given(situation=situations(), network=networks, queue=st.sampled_from(QUEUES))
def test_passes_of_one_size_in_turn_have_their_own_makespans(
    network: Network, queue: Queue, situation: Situation
) -> None:
    """They share buffers, which a schedule does not."""
    one, rules = situation.one, Rules(queue=queue, network=network)
    other = one._replace(devices=one.devices.copy(), work=one.work * 2)
    other.devices["cores"] += 1
    for each in (one, other, one):
        alone = [makespan_alone(each, place, rules) for place in situation.placements]
        assert makespans(each, situation.placements, rules).tolist() == alone


def makespan_alone(one_pass: Pass, place: Ints, rules: Rules) -> float:
    """Makespan in buffers of its own; ∞ if the order contradicts the streams."""
    try:
        return schedule(one_pass, place, rules).makespan
    except ValueError:
        return np.inf
