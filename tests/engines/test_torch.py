"""Scripts that run a model operation by operation."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch
from engine_deployments import DEPLOYMENTS
from networks import NAMES, inputs_of, placed
from torch.utils._pytree import tree_leaves

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import EXPORTS
from streamplace.errors import FormatError
from streamplace.model import Cluster, Device, Problem

EXPORTS_OF_TORCH = [name for name in EXPORTS if EXPORTS[name].of == "torch"]
TWO = {"d0": "cpu", "d1": "cpu:0", "d2": "cpu"}
"""Two devices that every machine has; tensors are sent from one to the other."""


def script(deployment: Deployment, folder: Path) -> ModuleType:
    """Import the script of a placed network."""
    path = folder / "placement.py"
    (text,) = EXPORTS["torch"].files(deployment).values()
    path.write_text(text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("placement", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("devices", [[0, 1], [0, 0, 1, 2, 1]])
@pytest.mark.parametrize("name", NAMES)
def test_a_placed_network_computes_the_same_to_the_last_bit(
    name: str, devices: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever was changed in place, and with other inputs than those of the example."""
    monkeypatch.setattr(torch.backends.mha, "get_fastpath_enabled", lambda: False)
    model, args, kwargs = inputs_of(name)
    run = script(placed(name, devices, colocate=False), tmp_path).Placed(TWO)
    other = [tuple(a + 1 for a in args), {key: value + 1 for key, value in kwargs.items()}]
    for given, named in ((args, kwargs), other):
        with torch.no_grad():
            expected = model(*given, **named)
        answer = run(*given, **named)
        assert type(answer) is type(expected)
        pairs = zip(tree_leaves(answer), tree_leaves(expected), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
        assert run.sent > 0


def test_what_is_sent_is_what_the_streams_carry(tmp_path: Path) -> None:
    """Every output once per device."""
    deployment = placed("perceptron", [0, 1], colocate=False)
    module = script(deployment, tmp_path)
    run = module.Placed(TWO)
    run(inputs_of("perceptron")[1][0])
    streams = deployment.problem.graph.streams
    assert run.sent == sum(streams.bytes_per_tuple())


@pytest.mark.slow
def test_the_command_compares_with_the_whole_model(tmp_path: Path) -> None:
    """And says what went over the network."""
    script(placed("residual", [0, 1], colocate=False), tmp_path)
    done = subprocess.run(
        [sys.executable, "placement.py", "d0=cpu", "d1=cpu:0"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join([str(Path(__file__).parents[1]), *sys.path])},
    )
    assert done.returncode == 0, done.stderr
    assert "operators on 2 devices, " in done.stdout
    assert done.stdout.endswith("outputs equal those of the whole model: yes\n")


def test_a_model_that_has_changed_is_not_run(tmp_path: Path) -> None:
    """Its operations are others than those that were placed."""
    module = script(placed("perceptron", [0], colocate=False), tmp_path)
    module.SOURCE = "networks:residual"
    with pytest.raises(SystemExit, match="networks:residual has changed, conv2d is new; import"):
        module.Placed(TWO)


@pytest.mark.parametrize("export", EXPORTS_OF_TORCH)
def test_other_graphs_are_refused(export: str) -> None:
    """Which are taken, is told."""
    with pytest.raises(
        FormatError, match=r"needs a graph that was imported from torch.*streamplace import torch"
    ):
        EXPORTS[export].files(DEPLOYMENTS["shop"])


@pytest.mark.parametrize("export", EXPORTS_OF_TORCH)
def test_names_of_devices_are_data(export: str, tmp_path: Path) -> None:
    """In a script and in a map."""
    name = "o'd\"d {0} \\u000a \n${x}"
    graph = placed("perceptron", [0], colocate=False).problem.graph
    problem = Problem(graph, Cluster.of([Device(name)]))
    deployment = Deployment.of(problem, dict.fromkeys(graph.operators.name, name))
    if export == "torch":
        assert set(script(deployment, tmp_path).NODES.values()) == {name}
    else:
        (text,) = EXPORTS[export].files(deployment).values()
        assert json.loads(text) == {"": name}
