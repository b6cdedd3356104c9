"""Times of a batch of placements; passes and placements that do not fit are refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_cases import NETWORKS, networks, situations, tasks
from streamsim.pass_rules import Queue
from streamsim.passes import Rules, compile_pass, makespans, operator_times, schedule

QUEUES: list[Queue] = ["fifo", "rows", "priority"]


@given(situation=situations(), network=networks, queue=st.sampled_from(QUEUES))
def test_times_and_producers_of_last_inputs_are_those_of_each_schedule(situation, network, queue):
    one_pass, rules = situation.compiled, Rules(queue, network)
    times = operator_times(one_pass, situation.placements, rules)
    for row, place in enumerate(situation.placements):
        alone = schedule(one_pass, place, rules)
        assert times.start[row].tolist() == alone.start.tolist()
        assert times.finish[row].tolist() == alone.finish.tolist()
        assert times.producer[row].tolist() == [*last_producers(one_pass, alone)]


def last_producers(one_pass, alone):
    """Producer of the last input of every operator, of equal ones the one of the highest index."""
    arrival, streams = alone.arrival[one_pass.stream_index], one_pass.streams
    for v in range(one_pass.n_operators):
        last = (streams["target"] == v) & (arrival == alone.ready[v])
        yield int(streams["source"][last].max(initial=-1))


def test_no_placement_has_no_times():
    one_pass = compile_pass(tasks([1, 2], [(0, 1)]))
    assert operator_times(one_pass, np.zeros((0, 2), np.int32)).start.shape == (0, 2)


def test_an_order_that_contradicts_the_streams_is_refused():
    one_pass = compile_pass(tasks([1, 2], [(0, 1)]))
    one_pass.operators["priority"] = [0, 1]
    with pytest.raises(ValueError, match="order of a device"):
        operator_times(one_pass, [[0, 1], [0, 0]], Rules(queue="order"))
    assert operator_times(one_pass, [[0, 1]], Rules(queue="order")).producer.tolist() == [[-1, 0]]


CHAIN = compile_pass(tasks([1, 2, 3], [(0, 1), (1, 2)]))


def with_field(table, field, value):
    """A copy of records, of which the first has another value."""
    changed = table.copy()
    changed[field].flat[0] = value
    return changed


@pytest.mark.parametrize(
    ("column", "field", "value"),
    [
        ("operators", "inputs", 1),
        ("operators", "out_end", 3),
        ("streams", "target", 7),
        ("streams", "source", 1),
        ("streams", "size", np.nan),
        ("streams", "more", 0),
        ("devices", "type", 1),
        ("links", "latency", -1.0),
    ],
)
def test_a_pass_that_does_not_fit_together_is_refused(column, field, value):
    wrong = CHAIN._replace(**{column: with_field(getattr(CHAIN, column), field, value)})
    with pytest.raises(ValueError, match=r"."):
        makespans(wrong, [[0, 1, 0]])


@pytest.mark.parametrize("placement", [[0, 1], [0, 1, 2], [0, -1, 0]])
def test_a_placement_that_does_not_fit_is_refused(placement):
    for times in (makespans, operator_times):
        with pytest.raises(ValueError, match=r"place|device"):
            times(CHAIN, [placement])


@pytest.mark.parametrize("network", NETWORKS)
def test_transfers_without_end_leave_nothing_for_the_next_pass(network):
    rules = Rules(network=network)
    forever = [[np.inf, np.inf], [1.0, 1.0]]
    twice = makespans(CHAIN, [[0, 1, 0]] * 2, rules, send_factors=forever)
    assert twice[1] == makespans(CHAIN, [[0, 1, 0]], rules)[0]
