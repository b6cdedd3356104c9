"""Placed models that OpenVINO runs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import streamplace
from streamplace.engines.hetero import Hetero
from streamplace.errors import FormatError, ProblemError
from streamplace.io.registry import FORMATS
from streamplace.model import Cluster, Problem, StreamGraph
from streamplace.objectives.registry import OBJECTIVES
from streamplace.placers.registry import Budget

openvino = pytest.importorskip("openvino")
DEVICES = ("CPU", "AUTO")
"""Two names for one processor: HETERO takes a model apart between them all the same."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two convolutions, saved."""
    from openvino import opset13 as ops

    x = ops.parameter([1, 4, 16, 16], np.float32, "x")
    y = x
    for i in range(2):
        kernel = ops.constant(np.full((4, 4, 3, 3), 0.1 + i, np.float32))
        y = ops.relu(ops.convolution(y, kernel, [1, 1], [1, 1], [1, 1], [1, 1], name=f"c{i}"))
    path = tmp_path_factory.mktemp("openvino") / "net.xml"
    openvino.save_model(openvino.Model([ops.result(y)], [x], "net"), path)
    return path


def problem_of(path: Path) -> Problem:
    """The model on two devices."""
    (graph,) = FORMATS["openvino"].read(path)
    assert isinstance(graph, StreamGraph)
    return Problem(graph, Cluster.uniform(2))


def test_a_placement_takes_the_model_apart(model: Path) -> None:
    """Weights go along; what runs together is compiled together, and says the same."""
    problem, hetero = problem_of(model), Hetero(model, DEVICES)
    names = problem.graph.operators.name
    apart = np.array([int(name in ("c1",)) for name in names], np.int32)
    whole = np.zeros_like(apart)
    answers: list[Any] = []
    for row in (whole, apart):
        compiled = hetero.compiled(problem, row)
        (answer,) = compiled(np.ones((1, 4, 16, 16), np.float32)).values()
        answers.append(answer)
    assert np.allclose(answers[0], answers[1], rtol=1e-3)
    found = hetero.compiled(problem, apart).get_runtime_model().get_ops()
    assert len(found) > len(hetero.compiled(problem, whole).get_runtime_model().get_ops())


def test_what_is_measured_can_be_searched_and_learned_from(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal placements are measured once, so answers have the value that they were found by."""
    problem, hetero = problem_of(model), Hetero(model, DEVICES)
    assert list(OBJECTIVES)
    judge = hetero.objective("measured")
    monkeypatch.setattr(OBJECTIVES, "_found", {**OBJECTIVES._found, "measured": judge})
    found = streamplace.place(
        problem, placer="random", objective="measured", budget=Budget(None, 3)
    )
    assert found.value == hetero.seconds(problem, found.placement.index) > 0
    config = tmp_path / "few.toml"
    config.write_text("[model]\non_policy = 2\nrounds = 2\n[training]\nvalidation = 0.0\n")
    run = streamplace.train(
        "hsdag", [problem], tmp_path / "run", objective="measured", epochs=1, config=config
    )
    assert 0 < run.history.epochs[0].reward < 1


def test_other_models_and_other_devices_are_refused(model: Path) -> None:
    """In one line that says what to do."""
    problem = problem_of(model)
    row = np.zeros(problem.n_operators, np.int32)
    with pytest.raises(ProblemError, match="has 2 devices, but 1 OpenVINO devices are named"):
        Hetero(model, ("CPU",)).compiled(problem, row)
    graph = StreamGraph.of("other", [streamplace.Operator("a")], [], fires="all")
    with pytest.raises(
        FormatError, match=r"net.xml: is not the model that graph 'other' was imported from"
    ):
        Hetero(model, DEVICES).compiled(Problem(graph, Cluster.uniform(2)), row[:1])
