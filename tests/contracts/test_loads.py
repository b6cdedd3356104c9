"""Every form of a problem has the loads of the simulator, whatever the operators and devices state.

A new field goes into `TERMS` if it loads a resource, else into `NO_LOAD`. The files whose loads
lack it then fail by their names; `FORMS` has what they do not count. The page and the checker of
the library share no code with the toolkit, and have tests of their own:
`tests/report/test_page_models.py` and `tests/library/test_checker.py`.
"""

from collections.abc import Callable
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from streamsim import bottleneck, resource_loads
from streamsim._core import PilotState
from streamsim.incremental import Incremental
from streamsim.instance import with_constants_as_loads

from streamplace.learn.env import Environment, ProblemTensors
from streamplace.learn.env.throughput import _constants, _loads
from streamplace.learn.models.pilot.features import features_of
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.model.arrays import Ints
from streamplace.model.coarsening import finest_level
from streamplace.model.expansion import expand
from streamplace.model.operators import Window
from streamplace.placers.anneal.walk import peak_of
from streamplace.placers.exact.units import units_of
from streamplace.planning.demand import demand_of
from streamplace.planning.packing import CORE, CPU, EGRESS, INGRESS, packing_of, uses
from streamplace.planning.problem import catalogue_of

SEEDS = range(40)
Draw = Callable[[np.random.Generator], Any]


def some(*values):
    """One of these values."""
    return lambda rng: values[rng.integers(len(values))]


TERMS: dict[type[Any], dict[str, Draw]] = {
    Operator: {
        "ipt": some(0.0, 1e4, 5e4),
        "payload": some(0.0, 1e3, 4e3),
        "rate": some(1e4, 2e4),
        "parallelism": some(1, 2, 3),
        "max_parallelism": some(0, 4, 5),
        "window": some(None, None, Window(2.0, 1.0, 20.0, 0.5)),
        "constant": some(0.0, 0.0, 300.0, 900.0),
        "max_rate": some(0.0, 0.0, 0.0, 5e3),
        "cores": some(1.0, 1.5, 2.0),
    },
    Stream: {
        "selectivity": some(0.5, 1.0, 2.0),
        "payload": some(None, 0.0, 2e3),
        "partitioning": some("", "rebalance", "hash"),
        "ipt": some(0.0, 1e5),
    },
    Device: {
        "mips": some(1000.0, 2500.0),
        "cores": some(1, 4, 8),
        "egress": some(np.inf, 4e7),
        "ingress": some(np.inf, 4e7),
        "reserved": some(0.0, 400.0),
    },
    Cluster: {
        "bandwidth": lambda rng: rng.choice([2e7, 1e8, 1e9], (3, 3)),
        "overhead": some(0.0, 5e-5),
        "overhead_per_byte": some(0.0, 2e-7),
        "gap": some(0.0, 4e-5),
    },
}
"""Fields that load resources, with values that are drawn for them."""
NO_LOAD: dict[type[Any], set[str]] = {
    Operator: {"name", "kind", "requires", "memory", "about", "slot_sharing_group", "fires"},
    Stream: {"source", "target", "input"},
    Device: {"name", "tags", "memory", "watts", "price"},
    Cluster: {"devices", "latency", "joules_per_byte", "defaults", "interchangeable"},
}
"""Fields that load nothing; ``fires`` changes flows, which all forms have from `Flow`."""
Terms = dict[type[Any], set[str]]


def drawn(seed, without=None):
    """Three sources and operators in a row, with a shortcut; fields left out have their defaults.

    What is left out changes no other draw.
    """
    rng, omitted = np.random.default_rng(seed), without or {}

    def values(noun):
        every = {name: draw(rng) for name, draw in TERMS[noun].items()}
        return {name: v for name, v in every.items() if name not in omitted.get(noun, ())}

    rows = [values(Operator) for _ in range(4)]
    rows[0] = {"rate": 1e4} | {k: v for k, v in rows[0].items() if k != "window"}
    for row in rows:
        row["max_parallelism"] = max(row.get("max_parallelism", 0), row.get("parallelism", 1))
    operators = [
        Operator(f"v{i}", **{k: v for k, v in row.items() if k != "rate" or i == 0})
        for i, row in enumerate(rows)
    ]
    ends = [(0, 1), (1, 2), (0, 2), (2, 3)]
    streams = [Stream(f"v{u}", f"v{v}", **values(Stream)) for u, v in ends]
    devices = [Device(f"d{i}", **values(Device)) for i in range(3)]
    costs = {"bandwidth": 1e15} | values(Cluster)
    return Problem(StreamGraph.of("drawn", operators, streams), Cluster.of(devices, **costs))


def full(problem):
    """Arrays in which constant loads are among the loads."""
    return with_constants_as_loads(problem.instance)


def simulated(problem, place):
    """Largest load of a device, link, network card or core."""
    return bottleneck(resource_loads(full(problem), place)).load


def incremental(problem, place):
    return Incremental(full(problem), place).peak


def annealed(problem, place):
    return peak_of(finest_level(problem), place)


def proven(problem, place):
    return units_of(problem).compiled.loads(place)[1]


def observed(problem, place):
    """In single precision, as a network reads it."""
    env, seen = Environment.of([problem]), {}
    env.reset()
    for v in env.batch.order[0].tolist():
        seen = env.step(torch.tensor([[place[v]]]).long())
    return max(float(seen[name].max()) for name in ("load", "link"))


def in_tensors(problem, place):
    batch = ProblemTensors([problem]).batch(torch.tensor([0]))
    rows = torch.from_numpy(place).long()[None, None]
    on = torch.eye(problem.n_devices).double()[rows].transpose(1, 2)
    loads = _loads(batch, rows, on)
    return float((loads + _constants(batch, rows, on, loads)).max())


def decided(problem, place):
    features = features_of(problem)
    state = PilotState(features)
    for v, device in enumerate(place.tolist()):
        state.put(v, device)
    return state.peak * features.yardstick


def packed(problem, place):
    catalogue, members = catalogue_of(problem.cluster)
    parallelism = problem.graph.operators.parallelism
    packing = packing_of(demand_of(problem.graph, fixed=True), catalogue, parallelism)
    kind = [t for d in range(problem.n_devices) for t, m in enumerate(members) if d in m]
    rows = (place == np.arange(problem.n_devices)[:, None]) * parallelism
    shares = uses(packing, np.array(kind, np.int32), rows.astype(np.int32))
    return float(shares[:, [CPU, CORE, EGRESS, INGRESS]].max())


NO_HANDLING = {"overhead", "overhead_per_byte", "gap"}
NO_LINKS = {"bandwidth", "gap"}
FORMS: list[tuple[str, Callable[[Problem, Ints], float], Terms]] = [
    ("sim/streamsim/incremental.py", incremental, {}),
    ("model/coarsening.py and placers/anneal/walk.py", annealed, {}),
    ("placers/exact/units.py and prover.py", proven, {}),
    # A constant load with a largest rate is another number; `env/test_throughput.py` has both.
    ("learn/env/throughput.py", in_tensors, {Operator: {"max_rate"}}),
    ("learn/env/throughput.py", in_tensors, {Operator: {"constant"}}),
    (
        "learn/env/environment.py",
        observed,
        {Operator: {"max_rate"}, Device: {"cores", "egress", "ingress"}, Cluster: NO_HANDLING},
    ),
    (
        "learn/models/pilot/features.py",
        decided,
        {Operator: {"max_rate"}, Device: {"cores"}, Cluster: NO_HANDLING},
    ),
    # Plans charge the largest parts by key groups to any subtask. A constant load with a largest
    # rate is another number in the simulator, which passes 1 with that of the plan.
    ("planning/packing.py", packed, {Operator: {"max_parallelism", "max_rate"}, Cluster: NO_LINKS}),
    ("planning/packing.py", packed, {Operator: {"max_parallelism", "constant"}, Cluster: NO_LINKS}),
]
"""Files with forms of the loads, the forms, and the fields that these do not count."""


@pytest.mark.parametrize("noun", TERMS)
def test_every_field_is_known_to_load_something_or_nothing(noun):
    names = {each.name.removesuffix("_s").replace("_s_", "_").removesuffix("_bps")
             for each in fields(noun)}  # fmt: skip
    unknown = names - TERMS[noun].keys() - NO_LOAD[noun]
    assert not unknown, f"say in TERMS or NO_LOAD what {unknown} of {noun.__name__} loads"


@pytest.mark.parametrize(
    ("noun", "name"), [(noun, name) for noun, names in TERMS.items() for name in names]
)
def test_every_term_decides_a_load_of_some_problem(noun, name):
    """Else no comparison would miss it."""

    def peaks(without):
        """Peaks with all operators on one device, and on three, of wholes and of subtasks."""
        problems = [drawn(seed, without) for seed in SEEDS]
        problems += [expand(problem.graph).problem(problem) for problem in problems]
        return [
            simulated(problem, np.arange(problem.n_operators, dtype=np.int32) % devices)
            for problem in problems
            for devices in (1, 3)
        ]

    assert peaks({}) != peaks({noun: {name}})


@pytest.mark.parametrize(("file", "form", "left_out"), FORMS)
def test_every_form_has_the_loads_of_the_simulator(file, form, left_out):
    for seed in SEEDS:
        problem = drawn(seed, left_out)
        if seed % 2 and form is not packed:  # which packs subtasks itself
            problem = expand(problem.graph).problem(problem)
        rng = np.random.default_rng(seed)
        for devices in (1, 2, 3):
            place = rng.integers(0, devices, problem.n_operators).astype(np.int32)
            loaded, expected = form(problem, place), simulated(problem, place)
            tolerance = 1e-6 if form is observed else 1e-9
            assert loaded == pytest.approx(expected, rel=tolerance), f"{file}, problem {seed}"
