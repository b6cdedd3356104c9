"""The maximum parallelism of operators in what Flink and its operator for Kubernetes are given."""

import itertools
import json

import numpy as np

from streamplace.engines.deployment import Deployment
from streamplace.engines.flink.pin.export import as_flink
from streamplace.engines.flink_kubernetes import as_flink_kubernetes
from streamplace.io.placements import parse_document
from streamplace.model import Cluster, Operator, Problem, Stream, StreamGraph


def test_a_placement_for_flink_says_what_maximum_parallelism_it_is_for() -> None:
    """In its file, which is read again, as the setting that a new job takes, and in its manifest.

    The source has no key groups, and two of the other three operators have equally many.
    """
    operators = [
        Operator("src", ipt=1, rate=100),
        Operator("map", ipt=1, max_parallelism=128),
        Operator("join", ipt=1, parallelism=3, max_parallelism=720),
        Operator("sink", ipt=1, max_parallelism=720),
    ]
    names = [operator.name for operator in operators]
    streams = [Stream(*ends) for ends in itertools.pairwise(names)]
    problem = Problem(StreamGraph.of("shop", operators, streams), Cluster.uniform(2))
    deployment = Deployment(problem, problem.placement(np.zeros(4, np.int32)))
    files = as_flink(deployment)
    placement = parse_document(files["placement.json"].encode(), "placement.json")
    groups = {"map": 128, "join": 720, "sink": 720}
    assert placement["max_parallelism"] == groups
    assert json.loads(files["groups.json"])["max_parallelism"] == groups
    about = "\n".join(placement["about"])
    assert "-D pipeline.max-parallelism=720" in about
    assert "map: 128" in about
    manifest = as_flink_kubernetes(deployment)["application.yaml"]
    assert '"pipeline.max-parallelism": "720"' in manifest
