import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pilots import answer, answers, pilot_network, tangle, torn, uneven, weights_file
from problems import PROBLEMS, chain
from strategies import problems

from streamplace.errors import FormatError
from streamplace.learn.models.pilot.placing import TrainedPilot, trained
from streamplace.model import Cluster, Device, Operator, Problem, StreamGraph

SEEDS = range(4)
seeds = st.integers(0, 2**32 - 1)


def reordered(graph: StreamGraph, seed: int) -> StreamGraph:
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


def named(problem: Problem, row: np.ndarray) -> dict[str, str]:
    """Device of every operator, by name."""
    return dict(problem.placement(row))


@settings(max_examples=25)
@given(seeds)
def test_the_order_of_storage_does_not_matter(seed: Any) -> None:
    """Wherever operators and streams stand in the graph, they go to the same devices."""
    graph = tangle(10, seed=seed % 7)
    first, second = (Problem(g, Cluster.uniform(3)) for g in (graph, reordered(graph, seed)))
    assert named(first, answer(first)) == named(second, answer(second))


@settings(max_examples=25)
@given(st.permutations(range(4)), st.sampled_from(SEEDS))
def test_devices_that_differ_may_be_listed_in_any_order(order: Any, seed: Any) -> None:
    """The answer names the same devices."""
    first, second = Problem(tangle(), uneven()), Problem(tangle(), uneven(tuple(order)))
    assert named(first, answer(first, seed)) == named(second, answer(second, seed))


@settings(max_examples=25)
@given(st.permutations(range(4)), st.sampled_from(SEEDS))
def test_interchangeable_devices_may_be_listed_in_any_order(order: list[int], seed: int) -> None:
    """Two fast and two slow ones: the answer is the same but for what equal devices are called."""
    devices = [Device(f"d{i}", mips=mips) for i, mips in enumerate((3000, 1000, 3000, 1000))]
    first = Problem(tangle(), Cluster.of(devices))
    second = Problem(tangle(), Cluster.of([devices[d] for d in order]))
    back = np.array(order)[answer(second, seed)]
    assert np.array_equal(first.canonical(answer(first, seed)), first.canonical(back))


def test_names_of_devices_do_not_matter() -> None:
    """Pilot sees numbers."""
    called = Cluster.of([Device(name) for name in ("zoë", "b", "a")])
    for seed in SEEDS:
        rows = [answer(Problem(tangle(), c), seed) for c in (called, Cluster.uniform(3))]
        assert np.array_equal(*rows)


@given(st.integers(-6, 6).map(lambda i: 2.0**i), st.sampled_from(SEEDS))
def test_units_of_measurement_do_not_matter(k: float, seed: int) -> None:
    """K times as many tuples, of 1/k of the work and bytes, go the same ways."""
    graph = tangle()
    operators, streams = graph.operators, graph.streams
    finer = StreamGraph.of(
        "finer",
        [
            Operator(o.name, o.ipt / k, o.payload / k, o.rate * k)
            for o in (operators[v] for v in range(len(operators)))
        ],
        [
            type(s)(s.source, s.target, s.selectivity, s.payload / k)
            for s in (streams[e] for e in range(len(streams)))
        ],
    )
    rows = [answer(Problem(g, uneven()), seed) for g in (graph, finer)]
    assert np.array_equal(*rows)


@pytest.mark.parametrize("name", PROBLEMS)
def test_every_answer_is_legal(name: str) -> None:
    """Greedy, after every look, or drawn."""
    problem = PROBLEMS[name]
    greedy = [answer(problem, walks=walks, looks=walks) for walks in (1, 2, 4)]
    rows = np.concatenate([greedy, answers(problem, 200, seed=0)])
    assert rows.shape == (203, problem.n_operators)
    assert problem.legal(rows).all()
    assert rows.min() >= 0
    assert rows.max() < problem.n_devices


@settings(max_examples=30)
@given(problems(windowed=True), st.integers(1, 3), st.integers(1, 3))
def test_any_problem_is_answered_legally(problem: Problem, walks: int, looks: int) -> None:
    """Whatever its graph, cluster and rules."""
    greedy = answer(problem, walks=walks, looks=looks)
    rows = np.concatenate([greedy[None], answers(problem, 5, seed=0)])
    assert problem.legal(rows).all()


def test_answers_are_legal_where_choices_end_in_a_trap() -> None:
    """Some pilots walk into it, greedily or by chance."""
    for seed in range(20):
        greedy = [answer(torn(), seed, looks=looks) for looks in (1, 3)]
        assert torn().legal(np.concatenate([greedy, answers(torn(), 50, seed)])).all()


def test_more_looks_begin_with_fewer() -> None:
    """Looking again changes nothing about what came before."""
    policy = TrainedPilot(pilot_network())
    for problem in PROBLEMS.values():
        rows = policy.greedy(problem, 1, 4)
        assert rows.shape == (4, problem.n_operators)
        assert np.array_equal(rows[:2], policy.greedy(problem, 1, 2))


def test_more_walks_begin_with_fewer() -> None:
    """And they begin elsewhere, so that some end elsewhere."""
    policy, others = TrainedPilot(pilot_network()), []
    for problem in PROBLEMS.values():
        rows = policy.greedy(problem, 3, 2)
        assert rows.shape == (6, problem.n_operators)
        assert np.array_equal(rows[:4], policy.greedy(problem, 2, 2))
        others.append(not np.array_equal(rows[1], rows[3]))
    assert any(others)


def test_fewer_samples_are_the_first_of_more() -> None:
    """So that a larger budget finds no less."""
    few, many = (answers(PROBLEMS["fork-join"], samples, seed=3) for samples in (5, 50))
    assert np.array_equal(few, many[:5])
    assert len(np.unique(many, axis=0)) > 10


def test_the_seed_draws_the_samples() -> None:
    """The same ones, or others."""
    one, same, other = (answers(PROBLEMS["fork-join"], 20, seed) for seed in (1, 1, 2))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_a_weights_file_is_a_pilot(tmp_path: Any) -> None:
    """It answers as the network that was written."""
    policy = trained(weights_file(tmp_path / "w.safetensors", seed=5))
    for problem in PROBLEMS.values():
        assert np.array_equal(policy.greedy(problem, 1, 3)[-1], answer(problem, 5, looks=3))


def test_a_file_that_changed_is_read_again(tmp_path: Any) -> None:
    """Whoever trains into the same file goes on with the new weights."""
    path = tmp_path / "w.safetensors"
    for seed in (5, 6):
        policy = trained(weights_file(path, seed=seed))
        for problem in PROBLEMS.values():
            assert np.array_equal(policy.greedy(problem, 1, 3)[-1], answer(problem, seed, looks=3))


def test_weights_of_another_model_are_refused(tmp_path: Any) -> None:
    """In one line."""
    path = weights_file(tmp_path / "w.safetensors", model="dream")
    with pytest.raises(FormatError, match=r"^[^\n]*weights of 'dream', not of 'pilot'[^\n]*$"):
        trained(path)


def test_weights_for_other_features_are_refused(tmp_path: Any) -> None:
    """In one line."""
    path = weights_file(tmp_path / "w.safetensors", features={"names": ["unit load"]})
    with pytest.raises(FormatError, match=r"^[^\n]*trained on other features[^\n]*$"):
        trained(path)


@pytest.mark.parametrize("fault", ["lacks", "misshapen", "no number"])
@pytest.mark.parametrize("name", ["own.weight", "own.bias"])
def test_weights_that_are_no_network_are_refused(tmp_path: Any, fault: Any, name: Any) -> None:
    """A tensor is missing, of another shape than the others, or of no numbers."""
    from streamplace.io.weights import read_weights, write_weights

    path = weights_file(tmp_path / "w.safetensors")
    whole = read_weights(path)
    tensors = {other: array for other, array in whole.tensors.items() if other != name}
    if fault == "misshapen":
        tensors[name] = np.zeros((3, 5), np.float32)
    if fault == "no number":
        tensors[name] = np.full_like(whole.tensors[name], np.nan)
    write_weights(path, whole.document, tensors)
    with pytest.raises(FormatError, match=rf"^[^\n]*w\.safetensors[^\n]*{name}[^\n]*$"):
        trained(path)


def test_placing_needs_no_torch(tmp_path: Any) -> None:
    """Only training does."""
    path = weights_file(tmp_path / "w.safetensors")
    script = (
        "import sys; from pathlib import Path; from problems import PROBLEMS; "
        "from streamplace.learn.models.pilot.placing import trained; "
        f"trained(Path({str(path)!r})).greedy(PROBLEMS['diamond'], 2, 2); "
        "assert 'torch' not in sys.modules"
    )
    tests = Path(__file__).parents[2] / "support"
    subprocess.run([sys.executable, "-c", script], check=True, cwd=tests)


def test_a_chain_of_a_thousand_operators_is_placed() -> None:
    """Nothing grows with the square of the graph."""
    problem = Problem(chain(1000, ipt=1e3), Cluster.uniform(5))
    assert len(answer(problem)) == 1000
