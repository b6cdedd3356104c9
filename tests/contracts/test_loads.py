"""Every form of a problem has the loads of the simulator, whatever the operators and devices state.

A new field goes into `TERMS` (`tests/support/loaded_problems.py`) if it loads a resource, else into
`NO_LOAD`. The files whose loads
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
from loaded_problems import TERMS, Terms, drawn
from streamsim import bottleneck, resource_loads
from streamsim._core import PilotState
from streamsim.incremental import Incremental
from streamsim.instance import with_constants_as_loads

from streamplace.learn.env import Environment, ProblemTensors
from streamplace.learn.env.throughput import _constants, _loads
from streamplace.learn.models.pilot.features import features_of
from streamplace.model import Cluster, Device, Operator, Problem, Stream
from streamplace.model.arrays import Ints
from streamplace.model.coarsening import finest_level
from streamplace.model.expansion import expand
from streamplace.placers.anneal.walk import peak_of
from streamplace.placers.exact.units import units_of
from streamplace.planning.demand import demand_of
from streamplace.planning.packing import CORE, CPU, EGRESS, INGRESS, packing_of, uses
from streamplace.planning.problem import catalogue_of

SEEDS = range(40)
NO_LOAD: dict[type[Any], set[str]] = {
    Operator: {"name", "kind", "requires", "memory", "about", "slot_sharing_group", "fires"},
    Stream: {"source", "target", "input"},
    Device: {"name", "tags", "memory", "watts", "price"},
    Cluster: {"devices", "latency", "joules_per_byte", "defaults", "interchangeable"},
}
"""Fields that load nothing; ``fires`` changes flows, which all forms have from `Flow`."""


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
