import numpy as np
import pytest
from hypothesis import given
from passes_cases import networks, situations, tasks
from streamsim.passes import Part, Rules, bounds, compile_pass, makespans, schedule


def test_the_chain_tells_what_kept_it_waiting():
    edges = [(0, 1), (0, 2), (2, 3)]
    compiled = compile_pass(tasks([1, 5, 2, 1], edges, [10, 10, 0]))
    chain = schedule(compiled, [0, 1, 1, 1], Rules(network="link")).chain
    assert [
        (part.name, v, e)
        for part, v, e in zip(
            chain.parts, chain.operator.tolist(), chain.stream.tolist(), strict=True
        )
    ] == [
        ("RUNNING", 0, -1),
        ("NETWORK", 0, 1),
        ("SENDING", 0, 1),
        ("RUNNING", 2, -1),
        ("RUNNING", 3, -1),
    ]
    assert chain.times.tolist() == [0, 1, 11, 21, 23, 24]


def test_the_chain_shows_waiting_for_a_core():
    compiled = compile_pass(tasks([1, 5, 2], [], devices=1))
    chain = schedule(compiled, [0, 0, 0]).chain
    assert chain.parts == (Part.CORE, Part.RUNNING)
    assert chain.times.tolist() == [0, 6, 8]


def test_the_chain_ends_with_what_trails():
    compiled = compile_pass(tasks([1, 1], [(0, 1)], 10))
    paused = schedule(compiled, [0, 1], Rules(pause=0.5)).chain
    assert (paused.parts[-1], paused.times[-1]) == (Part.TRAILING, 12.5)
    spaced = schedule(compiled, [0, 1], Rules(network="link", spacing=20)).chain
    assert spaced.parts == (Part.RUNNING, Part.SENDING, Part.TRAILING)
    assert spaced.times.tolist() == [0, 1, 11, 31]


@given(situation=situations(count=1), network=networks)
def test_parts_of_a_chain_add_up_to_the_makespan(network, situation):
    rules = Rules("fifo", network, pause=0.005, spacing=0.0125)
    result = schedule(situation.compiled, situation.placements[0], rules)
    times = result.chain.times
    assert len(times) == len(result.chain.parts) + 1
    assert times[-1] == result.makespan
    assert times[0] == 0 or not result.chain.parts
    assert (result.chain.seconds > 0).all()


def test_busy_times_count_work():
    compiled = compile_pass(tasks([1, 5, 2], [(0, 1), (0, 2)], [10, 10]))
    result = schedule(compiled, [0, 1, 1], Rules(network="link"))
    assert result.device_busy.tolist() == [1, 7]


def test_bounds_are_attained_where_nothing_is_lost():
    chain = compile_pass(tasks([[1, 2], [4, 2]], [(0, 1)], device_type=[0, 1], wire=0))
    assert bounds(chain).path == 3 == makespans(chain, [[0, 1]])[0]
    flat = compile_pass(tasks([3, 3, 3, 3], []))
    assert bounds(flat).work == 6 == makespans(flat, [[0, 0, 1, 1]])[0]


def test_bounds_know_what_must_be_sent():
    compiled = compile_pass(tasks([1, 1], [(0, 1)], 10))
    apart = [[True, False], [False, True]]
    assert bounds(compiled).path == 2
    assert bounds(compiled, apart).best == 12 == makespans(compiled, [[0, 1]])[0]


def test_work_is_bound_by_class_of_hardware():
    compiled = compile_pass(tasks([4, 4, 4, 1], [], devices=3))
    gpu = [[True, False, False]] * 2 + [[True, True, True]] * 2
    assert bounds(compiled, gpu).work == 8
    assert bounds(compiled).work == pytest.approx(13 / 3)


def test_speeds_that_are_proportional_give_total_work_over_total_speed():
    work = np.array([6.0, 12.0, 18.0])
    compiled = compile_pass(tasks(work[:, None] / [1.0, 2.0], [], device_type=[0, 1]))
    assert bounds(compiled).work == pytest.approx(36 / 3)


def test_an_operator_that_may_run_nowhere_is_refused():
    compiled = compile_pass(tasks([1, 1], []))
    with pytest.raises(ValueError, match="2 devices"):
        bounds(compiled, [[True, True], [False, False]])


@given(situation=situations(), network=networks)
def test_no_placement_beats_a_bound(network, situation):
    compiled, placements = situation.compiled, situation.placements
    answers = makespans(compiled, placements, Rules(network=network))
    may = np.zeros((compiled.n_operators, compiled.n_devices), np.bool_)
    may[np.arange(compiled.n_operators), placements] = True
    for limits in (bounds(compiled), bounds(compiled, may)):
        assert limits.best <= answers.min() * (1 + 1e-9)
