"""Constant loads count wherever the work per tuple does."""

import numpy as np
import pytest
from engine_deployments import GENERAL

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import EXPORTS
from streamplace.model import Cluster, Device, Operator, Problem, Stream, StreamGraph
from streamplace.objectives.registry import OBJECTIVES

LEFT_OUT = {"latency", "makespan"}
"""Objectives of one pass that has the devices for itself."""


def asked(constant=0.0, ipt=2e5):
    """A pipe on two devices that draw power, whose second operator differs."""
    operators = [
        Operator("src", ipt=1e5, payload=100, rate=1e4),
        Operator("commit", ipt=ipt, constant=constant),
    ]
    devices = [Device("d0", mips=2500, cores=2, watts=5), Device("d1", mips=2000, watts=9)]
    graph = StreamGraph.of("pipe", operators, [Stream("src", "commit")])
    return Problem(graph, Cluster.of(devices, bandwidth=1e9))


def deployment(problem):
    return Deployment.of(problem, {"src": "d0", "commit": "d1"})


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_objectives_count_constant_loads_with_the_work_per_tuple(name):
    judge, places = OBJECTIVES[name], np.array([[0, 1]], np.int32)
    plain, held, heavier = (
        judge.evaluate(problem, places)[0]
        for problem in (asked(), asked(constant=1500), asked(ipt=9e5))
    )
    if plain == heavier:
        pytest.skip("it does not depend on work")
    assert (held != plain) == (name not in LEFT_OUT)


@pytest.mark.parametrize("name", GENERAL)
def test_exports_that_tell_the_work_per_tuple_tell_constant_loads(name):
    written = EXPORTS[name].files
    plain, held, heavier = (
        written(deployment(problem)) for problem in (asked(), asked(constant=1500), asked(ipt=9e5))
    )
    assert (held != plain) or (heavier == plain)


def test_loads_are_shares_of_single_devices():
    """Operators × devices: unlike speeds, cores and constant loads included."""
    devices = [Device("slow", mips=1000), Device("fast", mips=2000, cores=2), Device("slower", 500)]
    rows = [Operator("a", ipt=1e5, rate=1e4), Operator("b", rate=1, constant=500)]
    problem = Problem(StreamGraph.of("two", rows), Cluster.of(devices))
    assert problem.load.tolist() == [[1, 0.25, 2], [0.5, 0.125, 1]]
