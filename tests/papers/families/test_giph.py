"""GiPH's benchmark."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from passes_cases import golden
from streamsim.passes import GIPH, makespans

from streamplace.errors import SettingError
from streamplace.io.problems import problem_line
from streamplace.model import Problem
from streamplace.papers.families.giph import (
    SETTINGS,
    TYPES,
    DeviceNetwork,
    Giph,
    NetworkShape,
    ProgramShape,
    draw_layers,
    draw_network,
    draw_program,
    giph,
)
from streamplace.papers.families.tasks import INSTRUCTIONS, task_graph, tasks_of

PAPER = {(10, 0.1): 34, (10, 0.2): 22, (10, 0.3): 18, (15, 0.1): 41, (15, 0.2): 29, (15, 0.3): 25}
"""Mean tasks of the published data sets by v and alpha."""


@pytest.fixture(scope="module")
def several():
    """The default setting."""
    return list(giph(Giph(), 0))


@pytest.mark.parametrize("setting", SETTINGS)
def test_graphs_have_as_many_tasks_as_the_papers(setting):
    """Within 5 % for each v and alpha, in training and in testing together."""
    sizes = defaultdict(list)
    for problem in giph(Giph(setting), 0):
        facts = problem.graph.attributes
        sizes[facts["v"], facts["alpha"]].append(problem.n_operators)
    assert {key: np.mean(size) for key, size in sizes.items()} == {
        key: pytest.approx(mean, rel=0.05) for key, mean in PAPER.items()
    }


def test_more_problems_put_the_same_graphs_on_other_networks(several):
    more = list(giph(Giph(problems=121), 0))
    assert [problem_line(p) for p in more[:120]] == [problem_line(p) for p in several[:120]]
    first, again = more[0], more[120]
    assert first.graph.operators == again.graph.operators
    assert first.graph.streams == again.graph.streams
    assert first.cluster != again.cluster


def test_networks_of_the_last_setting_differ_in_size_and_between_the_splits():
    sizes = defaultdict(set)
    for problem in giph(Giph("multiple_networks_diff"), 0):
        assert 15 <= problem.n_devices <= 24
        sizes[problem.graph.attributes["split"]].add(problem.graph.name[-3:])
    assert not sizes["train"] & sizes["test"]


def test_a_problem_takes_as_long_as_in_the_simulator_of_the_paper():
    """Compute over speed and bytes over bandwidth are seconds, but for the digits left out."""
    for case in golden("giph"):
        size = len(case["tasks"])
        operators = tasks_of(
            [f"t{i}" for i in range(size)],
            ipt=[task["compute"] * INSTRUCTIONS for task in case["tasks"]],
        )
        graph = task_graph(
            case["id"],
            operators,
            [edge[:2] for edge in case["edges"]],
            [edge[2] for edge in case["edges"]],
        )
        has = np.ones((len(case["comp_rate"]), TYPES), bool)
        names = tuple(f"d{d}" for d in range(len(has)))
        matrices = (np.array(case[name]) for name in ("delay", "inv_bw"))
        cluster = DeviceNetwork(names, 1 / np.array(case["comp_rate"]), has, *matrices).cluster()
        mappings = [placement["mapping"] for placement in case["placements"]]
        latencies = [placement["latency"] for placement in case["placements"]]
        answers = makespans(Problem(graph, cluster).one_pass, mappings, GIPH)
        np.testing.assert_allclose(answers, latencies, rtol=1e-3)


@given(
    st.integers(1, 30),
    st.sampled_from([0.1, 0.3, 1.0, 5.0, 10.0]),
    st.floats(0, 1),
    st.integers(0, 2**32),
)
def test_task_graphs_have_one_entry_one_exit_and_a_path_through_all_layers(v, alpha, p, seed):
    rng, shape = np.random.default_rng(seed), ProgramShape(v, alpha, p)
    layer = draw_layers(shape, rng)
    graph = draw_program("any", shape, layer, rng, {})
    source, target = graph.streams.source, graph.streams.target
    assert (layer[source] < layer[target]).all()
    assert (graph.sources.tolist(), graph.sinks.tolist()) == ([0], [len(layer) - 1])
    steps = layer[target] - layer[source] == 1
    assert set(layer[target][steps]) == set(range(1, layer[-1] + 1))
    assert {len(tags) for tags in graph.operators.requires} == {1}


@given(st.integers(1, 30), st.sampled_from([0.0, 0.2, 0.6]), st.integers(0, 2**32))
def test_devices_and_hardware_belong_together(devices, support, seed):
    """So every task can run somewhere, which the paper does not promise."""
    network = draw_network(NetworkShape(devices, support), np.random.default_rng(seed))
    assert network.has.any(axis=0).all()
    assert network.has.any(axis=1).all()
    assert (network.delay == network.delay.T).all()
    assert (network.seconds_per_byte == network.seconds_per_byte.T).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [({"setting": "many"}, "'many'"), ({"problems": 1201}, "multiple_networks has 1200")],
)
def test_parameters_that_make_no_sense_are_refused(values, message):
    with pytest.raises(SettingError, match=message):
        Giph(**values)
