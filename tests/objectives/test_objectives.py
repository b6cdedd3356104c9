"""The objectives that fit one file each, against what can be counted by hand."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from planning_cases import chain
from ruled_problems import drawn

from streamplace.api import place
from streamplace.errors import SettingError, StreamplaceError
from streamplace.model import Cluster, Constraints, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.relocation import Relocation
from streamplace.objectives.conditions import composed_objective, read_condition, subject_to
from streamplace.objectives.registry import OBJECTIVES, named_objective
from streamplace.objectives.relocation import relocating
from streamplace.placers.registry import PLACERS, Budget

PIPE = chain(Operator("src", ipt=1e6, rate=10, payload=1e6), Operator("sink", ipt=4e6))
PAIR = [Device("a", mips=1000, watts=5), Device("b", mips=2000, watts=20)]
CLUSTER = Cluster.of(PAIR, bandwidth=8e6, latency=0.1, joules_per_byte=1e-6)
PROBLEM = Problem(PIPE, CLUSTER)


def value(name, *devices):
    return OBJECTIVES[name].value(PROBLEM, PROBLEM.placement(devices))


@pytest.mark.parametrize(
    ("name", "devices", "expected"),
    [
        ("latency", (0, 0), 0.005),
        ("latency", (0, 1), 0.001 + 0.1 + 1.0 + 0.002),
        ("cost", (1, 1), 0.0025),
        ("cost", (0, 1), 0.001 + 1.1 + 0.002),
        ("energy", (0, 0), 5 * 0.005),
        ("energy", (0, 1), 5 * 0.001 + 20 * 0.002 + 1e-6 * 1e6),
    ],
)
def test_values_are_counted_by_hand(name, devices, expected):
    """Of one tuple: 1 ms on a, 0.1 s and 1 MB at 1 MB/s to b, 2 ms there."""
    assert value(name, *devices) == pytest.approx(expected)


@pytest.mark.parametrize(
    "devices",
    [[Device("a", egress=8e6), Device("b")], [Device("a"), Device("b", ingress=8e6)]],
    ids=["egress", "ingress"],
)
def test_bytes_take_as_long_as_on_the_slowest_card(devices):
    """1 MB through a card of 1 MB/s takes 1 s in one pass, in a latency and in a cost."""
    streams = [Stream("src", "sink")]
    operators = [Operator("src", payload=1e6, rate=1), Operator("sink")]
    problem = Problem(StreamGraph.of("one", operators, streams), Cluster.of(devices))
    for name in ("latency", "cost", "makespan"):
        seconds = OBJECTIVES[name].value(problem, problem.placement([0, 1]))
        assert seconds == pytest.approx(1.0), name


def test_constant_loads_take_core_seconds_as_long_as_a_pass_lasts():
    """A tenth of a second, in which 200 MIPS are a fifth of a core of a, or a tenth of one of b."""
    commit = Operator("sink", ipt=4e6, constant=200)
    held = StreamGraph.of("held", [PIPE.operators["src"], commit], [Stream("src", "sink")])
    problem = Problem(held, CLUSTER)

    def more(name, *devices):
        return OBJECTIVES[name].value(problem, problem.placement(devices)) - value(name, *devices)

    assert more("cost", 0, 0) == pytest.approx(0.02)
    assert more("cost", 0, 1) == pytest.approx(0.1)  # a second, as the link carries a tenth
    assert more("energy", 0, 0) == pytest.approx(5 * 0.02)
    assert more("energy", 1, 1) == pytest.approx(20 * 0.01)
    assert more("latency", 0, 1) == 0


def test_devices_counts_those_in_use():
    batch = np.array([[0, 0], [0, 1], [1, 0]], np.int32)
    assert OBJECTIVES["devices"].values(PROBLEM, batch).tolist() == [1, 2, 2]


def test_energy_is_refused_where_no_device_says_what_it_draws():
    with pytest.raises(SettingError, match="power"):
        place(PIPE, Cluster.uniform(2), objective="energy")


@pytest.mark.parametrize("name", ["latency", "cost", "energy", "devices", "makespan"])
def test_searches_find_the_best_of_four_placements_for_every_objective(name):
    judge = OBJECTIVES[name]
    for placer in ("anneal", "auto", "random"):
        result = PLACERS[placer].place(PROBLEM, judge, budget=Budget(None, 200))
        every = np.array([[a, b] for a in (0, 1) for b in (0, 1)], np.int32)
        assert result.value == pytest.approx(judge.values(PROBLEM, every).min()), placer


def test_options_and_conditions_take_an_objective_away_from_the_usual_values_of_its_kind():
    """Searches that simulate the kind themselves would not see what was asked for."""
    plain = OBJECTIVES["throughput"]
    under = subject_to(plain, [read_condition("latency<=1s")])
    assert (plain.kind, plain.usual, plain.quick) == ("rate", True, True)
    assert (under.kind, under.usual, under.quick) == ("rate", False, False)
    other = named_objective("makespan:network=link")
    assert (other.kind, other.usual) == ("pass", False)
    moved = relocating(named_objective("makespan"), Relocation({"src": "a"}, 100))
    assert (moved.kind, moved.usual) == ("pass", True)


def test_values_without_a_unit_are_percentages_only_if_they_are_shares_of_the_rate():
    throughput = OBJECTIVES["throughput"]
    price = replace(throughput, name="price", kind="")
    assert throughput.format(0.625) == "62.5 %"
    assert price.format(10) == "10"
    assert price.format(0.8) == "0.8"
    assert replace(price, unit="euros").format(10) == "10 euros"


def test_constant_loads_last_as_long_as_a_pass_of_the_rate_that_is_carried():
    """Twice the rate on a device that carried exactly the first: the same energy for each tuple."""
    held = Operator("src", ipt=1.6e5, rate=1e4, constant=900)
    once, twice = (
        Problem(StreamGraph.of("held", [replace(held, rate=rate)]), CLUSTER) for rate in (1e4, 2e4)
    )
    for name in ("energy", "cost"):
        values = [OBJECTIVES[name].value(p, p.placement([1])) for p in (once, twice)]
        assert values[0] == pytest.approx(values[1])


@pytest.mark.parametrize(
    ("name", "fact", "least"), [("energy", {"watts": 50}, 0.455), ("cost", {"price": 1}, 91 / 36)]
)
def test_a_pass_that_never_ends_is_the_worst_although_its_device_is_free(name, fact, least):
    """A constant load is beyond a device without watts or price."""
    held = Operator("b", ipt=1e5, constant=900)
    graph = StreamGraph.of("g", [Operator("a", ipt=1e5, rate=100), held], [Stream("a", "b")])
    cluster = Cluster.of([Device("d0", 1000, **fact), Device("d1", 800)])
    problem = Problem(graph, cluster)
    assert np.isinf(OBJECTIVES[name].value(problem, problem.placement([0, 1])))
    result = place(graph, cluster, objective=name)
    assert result.placement.as_dict() == {"a": "d1", "b": "d0"}
    assert result.value == pytest.approx(least)


def test_energy_and_cost_tell_the_rate_that_is_carried():
    """As the placement of the least energy may carry little of it."""
    for name in ("energy", "cost"):
        assert "% of the sources' rate" in place(PIPE, CLUSTER, objective=name).explain().words


RULES = [
    {"pin": {"v0": "d0", "v1": "d1", "v2": "d2", "v3": "d3"}},
    {"pin": {"v0": "d0", "v1": "d1"}, "colocate": [{"v1", "v2"}], "exlocate": [{"v0", "v3"}]},
    {"exlocate": [{"v0", "v1", "v2"}]},
    {"exlocate": [{"v0", "v1"}, {"v2", "v3"}]},
    {"pin": {"v0": "d0"}, "exlocate": [{"v0", "v1", "v2", "v3"}]},
    {},
]


def ruled(rules, memory):
    """Four operators in a row that use 44 % of a device each, on four devices."""
    rate = [1e4, 0, 0, 0]
    rows = [Operator(f"v{i}", ipt=1.1e5, memory=memory, rate=rate[i]) for i in range(4)]
    cluster = Cluster.of([Device(f"d{i}", 2500, memory=1.3e9) for i in range(4)])
    return Problem(chain(*rows), cluster, Constraints(**rules))


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("require", [(), ("throughput>=1",), ("throughput>=0.6",)])
@pytest.mark.parametrize("memory", [0, 6e8])
def test_no_placement_needs_fewer_devices_than_the_bound(rules, require, memory):
    """Against all 256 placements of four operators: pins, rules, memory and the rate to carry."""
    problem = ruled(rules, memory)
    batch = np.array(list(product(range(4), repeat=4)), np.int32)
    legal = batch if problem.rules is None else batch[problem.rules.legal(batch)]
    judge = composed_objective("devices", require)
    assert 1 <= judge.bound(problem) <= judge.evaluate(problem, legal).min()


@pytest.mark.parametrize(
    ("rules", "require", "memory", "needed"),
    [
        (RULES[0], (), 0, 4),
        (RULES[1], (), 0, 2),
        (RULES[2], (), 0, 3),
        (RULES[3], (), 0, 2),
        (RULES[5], (), 6e8, 2),
        (RULES[5], ("throughput>=1",), 0, 2),
        (RULES[0], ("throughput>=1",), 0, 4),
    ],
)
def test_the_bound_of_devices_counts_rules_memory_and_the_rate(rules, require, memory, needed):
    problem = ruled(rules, memory)
    assert composed_objective("devices", require).bound(problem) == needed
    found = place(problem, objective="devices", require=require)
    assert (found.objective, found.value) == (" with ".join(["devices", *require]), needed)
    assert found.proven
    assert not require or OBJECTIVES["throughput"].value(found.problem, found.placement) == 1


PRICES = [replace(PAIR[0], price=0.36, cores=2), replace(PAIR[1], price=3.6)]
PRICED = Problem(PIPE, Cluster.of(PRICES, bandwidth=8e6, latency=0.1))


@pytest.mark.parametrize(("devices", "expected"), [((0, 0), 0.25), ((0, 1), 2.05), ((1, 1), 2.5)])
def test_with_prices_cost_is_money_for_a_million_passes(devices, expected):
    """A core of a costs 50, one of b 1000 per million seconds; links cost nothing."""
    judge = composed_objective("cost", problem=PRICED)
    placed = PRICED.placement(devices)
    assert judge.value(PRICED, placed) == pytest.approx(expected)
    assert f"cost {expected:g} per million passes" in judge.explained(PRICED, placed).words


def test_limits_of_cost_are_money_where_devices_have_prices():
    result = place(PRICED, objective="latency", require="cost<=0.3", budget=Budget(None, 200))
    assert set(result.placement.values()) == {"a"}
    assert result.to_json()["conditions"] == [{"condition": "cost<=0.3", "value": 0.25}]
    with pytest.raises(SettingError, match="'3ms' is not a number"):
        place(PRICED, require="cost<=3ms")
    assert place(PROBLEM, require="cost<=5ms", budget=Budget(None, 200)).value == 1


def spending(seed):
    """Problem with prices or without, with watts, and with rules of all kinds."""
    rng = np.random.default_rng(seed)
    plain = drawn(rng, int(rng.integers(2, 6)), int(rng.integers(1, 4)))
    is_priced = rng.random() < 0.5
    devices = [
        replace(
            device,
            watts=float(rng.uniform(1, 90)),
            price=float(rng.uniform(0.1, 2)) if is_priced else 0.0,
        )
        for device in plain.cluster.devices
    ]
    d = len(devices)
    cluster = Cluster.of(
        devices,
        bandwidth=rng.uniform(1e8, 1e9, (d, d)),
        latency=rng.uniform(0, 1e-3, (d, d)),
        overhead=float(rng.choice([0, 1e-5])),
        joules_per_byte=float(rng.choice([0, 1e-6])),
    )
    return Problem(plain.graph, cluster, plain.constraints)


@pytest.mark.parametrize("name", ["cost", "energy"])
def test_no_placement_costs_less_than_the_bound_and_one_of_a_tree_costs_it(name):
    """Of a tree of streams the bound is exact, without constant loads, and rules for pairs."""
    exact = 0
    for seed in range(120):
        try:
            problem = spending(seed)
        except StreamplaceError:  # rules that exclude each other
            continue
        every = np.array([*product(range(problem.n_devices), repeat=problem.n_operators)], np.int32)
        values = OBJECTIVES[name].values(problem, every[problem.legal(every)])
        least = OBJECTIVES[name].bound(problem)
        assert least <= values.min() * (1 + 1e-9)
        rules = problem.constraints
        memory = problem.graph.operators.memory.any()
        if not (rules.colocate or rules.exlocate or memory or len(problem.instance.constant)):
            exact += 1
            assert least == pytest.approx(values.min())
    assert exact > 10
