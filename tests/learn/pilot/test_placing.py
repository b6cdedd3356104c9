import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from pilots import answer, answers, pilot_network, tangle, torn, uneven, weights_file
from problems import PROBLEMS

from streamplace.learn.models.pilot.placing import TrainedPilot, trained
from streamplace.model import Cluster, Device, Problem, StreamGraph

SEEDS = range(4)
seeds = st.integers(0, 2**32 - 1)


def reordered(graph, seed):
    """The same graph, its operators and streams stored in another order.

    Pilot begins at the heaviest stream. Of its two ends, neither of which is heavier, the one that
    comes first in the graph stays first.
    """
    rng = np.random.default_rng(seed)
    operators, streams = graph.operators, graph.streams
    rows = rng.permutation(len(operators)).tolist()
    problem = Problem(graph, Cluster.uniform(2))
    heaviest = int(np.argmax(problem.instance.traffic))
    ends = sorted((int(problem.instance.source[heaviest]), int(problem.instance.target[heaviest])))
    at = sorted(rows.index(end) for end in ends)
    rows[at[0]], rows[at[1]] = ends
    return StreamGraph.of(
        graph.name,
        [operators[v] for v in rows],
        [streams[e] for e in rng.permutation(len(streams)).tolist()],
    )


def named(problem, row):
    """Device of every operator, by name."""
    return dict(problem.placement(row))


@settings(max_examples=25)
@given(seeds)
def test_the_order_of_storage_does_not_matter(seed):
    """Wherever operators and streams stand in the graph, they go to the same devices."""
    graph = tangle(10, seed=seed % 7)
    first, second = (Problem(g, Cluster.uniform(3)) for g in (graph, reordered(graph, seed)))
    assert named(first, answer(first)) == named(second, answer(second))


@settings(max_examples=25)
@given(st.permutations(range(4)), st.sampled_from(SEEDS))
def test_devices_that_differ_may_be_listed_in_any_order(order, seed):
    first, second = Problem(tangle(), uneven()), Problem(tangle(), uneven(tuple(order)))
    assert named(first, answer(first, seed)) == named(second, answer(second, seed))


@settings(max_examples=25)
@given(st.permutations(range(4)), st.sampled_from(SEEDS))
def test_interchangeable_devices_may_be_listed_in_any_order(order, seed):
    """Two fast and two slow ones: the answer is the same but for what equal devices are called."""
    devices = [Device(f"d{i}", mips=mips) for i, mips in enumerate((3000, 1000, 3000, 1000))]
    first = Problem(tangle(), Cluster.of(devices))
    second = Problem(tangle(), Cluster.of([devices[d] for d in order]))
    back = np.array(order)[answer(second, seed)]
    assert np.array_equal(first.canonical(answer(first, seed)), first.canonical(back))


def test_answers_are_legal_where_choices_end_in_a_trap():
    for seed in range(20):
        greedy = [answer(torn(), seed, sweeps=sweeps) for sweeps in (1, 3)]
        assert torn().legal(np.concatenate([greedy, answers(torn(), 50, seed)])).all()


def test_more_walks_and_looks_begin_with_fewer():
    """Other rollouts begin elsewhere, so that some end elsewhere."""
    policy, others = TrainedPilot(pilot_network()), []
    for problem in PROBLEMS.values():
        rows = policy.greedy(problem, 3, 2)
        assert rows.shape == (6, problem.n_operators)
        assert np.array_equal(rows[:4], policy.greedy(problem, 2, 2))
        others.append(not np.array_equal(rows[1], rows[3]))
        sweeps = policy.greedy(problem, 1, 4)
        assert sweeps.shape == (4, problem.n_operators)
        assert np.array_equal(sweeps[:2], rows[:2])
    assert any(others)


def test_fewer_samples_are_the_first_of_more():
    few, many = (answers(PROBLEMS["fork-join"], samples, seed=3) for samples in (5, 50))
    assert np.array_equal(few, many[:5])
    assert len(np.unique(many, axis=0)) > 10


def test_a_weights_file_is_a_pilot_and_is_read_again_when_it_changes(tmp_path):
    """Whoever trains into the same file goes on with the new weights."""
    path = tmp_path / "w.safetensors"
    for seed in (5, 6):
        policy = trained(weights_file(path, seed=seed))
        for problem in PROBLEMS.values():
            assert np.array_equal(policy.greedy(problem, 1, 3)[-1], answer(problem, seed, sweeps=3))
