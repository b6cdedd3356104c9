"""The maximum parallelism of operators in what Flink and its operator for Kubernetes are given."""

import itertools
import json

import numpy as np
import pytest

from streamplace.engines.deployment import Deployment
from streamplace.engines.flink.pin.export import as_flink
from streamplace.engines.flink_kubernetes_operator import application
from streamplace.io.placements import parse_document
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph


@pytest.fixture
def deployment() -> Deployment:
    """A source without key groups, and three operators of which two have equally many."""
    operators = [
        Operator("src", ipt=1, rate=100),
        Operator("map", ipt=1, max_parallelism=128),
        Operator("join", ipt=1, parallelism=3, max_parallelism=720),
        Operator("sink", ipt=1, max_parallelism=720),
    ]
    names = [operator.name for operator in operators]
    streams = [Stream(*ends) for ends in itertools.pairwise(names)]
    problem = Problem(StreamGraph.of("shop", operators, streams), Cluster.uniform(2))
    return Deployment(problem, problem.placement(np.zeros(4, np.int32)))


def test_a_placement_for_flink_says_what_maximum_parallelism_it_is_for(
    deployment: Deployment,
) -> None:
    """In its file, which is read again, and as the setting that a new job takes."""
    files = as_flink(deployment)
    placement = parse_document(files["placement.json"].encode(), "placement.json")
    groups = {"map": 128, "join": 720, "sink": 720}
    assert placement["max_parallelism"] == groups
    assert json.loads(files["groups.json"])["max_parallelism"] == groups
    about = "\n".join(placement["about"])
    assert "-D pipeline.max-parallelism=720" in about
    assert "map: 128" in about


def test_the_manifest_of_a_job_sets_its_maximum_parallelism(deployment: Deployment) -> None:
    assert '"pipeline.max-parallelism": "720"' in application(deployment)
