"""Placed models: scripts that run them operation by operation, and device maps.

Maps are run by what they say on devices that exist in name only.
"""

import json
import subprocess
import sys
from contextlib import nullcontext, suppress
from pathlib import Path

import pytest
import torch
from engine_deployments import DEPLOYMENTS
from hypothesis import given, settings
from hypothesis import strategies as st
from module_files import module_of
from networks import NAMES, imported, inputs_of, placed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import EXPORTS
from streamplace.errors import FormatError
from streamplace.model import Cluster, Device, Problem

EXPORTS_OF_TORCH = [name for name in EXPORTS if EXPORTS[name].of == "torch"]
NEEDS_GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
TWO = {"d0": "cpu", "d1": "cpu:0", "d2": "cpu"}
"""Two devices that every machine has; tensors are sent from one to the other."""
turns = st.lists(st.integers(0, 2), min_size=1, max_size=9)


def script(deployment, folder):
    """Import the script of a placed network."""
    path = folder / "placement.py"
    (text,) = EXPORTS["torch"].files(deployment).values()
    path.write_text(text, encoding="utf-8")
    return module_of(path)


@pytest.mark.parametrize("devices", [[0, 1], [0, 0, 1, 2, 1]])
@pytest.mark.parametrize("name", NAMES)
def test_a_placed_network_computes_the_same_to_the_last_bit(name, devices, tmp_path, monkeypatch):
    """Whatever was changed in place, and with other inputs than those of the example."""
    monkeypatch.setattr(torch.backends.mha, "get_fastpath_enabled", lambda: False)
    model, args, kwargs = inputs_of(name)
    run = script(placed(name, devices, colocate=False), tmp_path).Placed(TWO)
    other = [tuple(a + 1 for a in args), {key: value + 1 for key, value in kwargs.items()}]
    for values, named in ((args, kwargs), other):
        with torch.no_grad():
            expected = model(*values, **named)
        answer = run(*values, **named)
        assert type(answer) is type(expected)
        pairs = zip(tree_leaves(answer), tree_leaves(expected), strict=True)
        assert all(torch.equal(a, b) for a, b in pairs)
        assert run.sent > 0


def test_what_is_sent_is_what_the_streams_carry(tmp_path):
    deployment = placed("perceptron", [0, 1], colocate=False)
    module = script(deployment, tmp_path)
    run = module.Placed(TWO)
    run(inputs_of("perceptron")[1][0])
    streams = deployment.problem.graph.streams
    assert run.sent == sum(streams.bytes_per_tuple())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["d0=cpu", "d1=cpu:0"], "yes"),
        pytest.param(["d0=cuda:0", "d1=cpu"], "yes, but for rounding", marks=NEEDS_GPU),
        pytest.param(["d0=cuda:0", "d1=cuda"], "yes, but for rounding", marks=NEEDS_GPU),
    ],
)
def test_it_compares_with_the_whole_model(tmp_path, words, said):
    script(placed("residual", [0, 1], colocate=False), tmp_path)
    done = subprocess.run(
        [sys.executable, "placement.py", *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join([str(Path(__file__).parents[1]), *sys.path])},
    )
    assert done.returncode == 0, done.stderr
    assert "operators on 2 devices, " in done.stdout
    assert done.stdout.endswith(f"outputs equal those of the whole model: {said}\n")


@pytest.mark.parametrize(
    ("kind", "factor", "said"),
    [
        ("cpu", 1, "yes"),
        ("cpu", 1 + 1e-6, "no"),
        ("cuda", 1, "yes"),
        ("cuda", 1 + 1e-6, "yes, but for rounding"),
        ("cuda", 1.01, "no"),
        ("cuda", torch.nan, "no"),
    ],
)
def test_only_a_gpu_may_round_in_its_own_way(tmp_path, monkeypatch, capsys, kind, factor, said):
    """On CPUs all bits have to be those of the whole model."""
    module = script(placed("perceptron", [0, 1], colocate=False), tmp_path)

    class Elsewhere(module.Placed):  # type: ignore[name-defined]
        """Results of the CPU, rounded otherwise, and the name of another device."""

        def __call__(self, *args, **kwargs):
            outputs = super().__call__(*args, **kwargs)
            self.devices = dict.fromkeys(self.devices, torch.device(kind))
            return tree_map(lambda output: output * factor, outputs)

    monkeypatch.setattr(module, "Placed", Elsewhere)
    monkeypatch.setattr(torch.backends.mha, "set_fastpath_enabled", lambda on: None)
    assert module.main(["d0=cpu", "d1=cpu:0"]) == (said == "no")
    assert capsys.readouterr().out.endswith(f"whole model: {said}\n")


def test_a_model_that_has_changed_is_not_run(tmp_path):
    """Its operations are others than those that were placed."""
    module = script(placed("perceptron", [0], colocate=False), tmp_path)
    module.SOURCE = "networks:residual"
    with pytest.raises(SystemExit, match=r"networks:residual .*conv2d"):
        module.Placed(TWO)


@pytest.mark.parametrize("export", EXPORTS_OF_TORCH)
def test_other_graphs_are_refused(export):
    with pytest.raises(FormatError, match="streamplace import torch"):
        EXPORTS[export].files(DEPLOYMENTS["shop"])


@pytest.mark.parametrize("export", EXPORTS_OF_TORCH)
def test_names_of_devices_are_data(export, tmp_path):
    name = "o'd\"d {0} \\u000a \n${x}"
    graph = placed("perceptron", [0], colocate=False).problem.graph
    problem = Problem(graph, Cluster.of([Device(name)]))
    deployment = Deployment.of(problem, dict.fromkeys(graph.operators.name, name))
    if export == "torch":
        assert set(script(deployment, tmp_path).NODES.values()) == {name}
    else:
        (text,) = EXPORTS[export].files(deployment).values()
        assert json.loads(text) == {"": name}


def test_the_command_names_devices_as_a_shell_takes_them():
    deployment = placed("perceptron", [0], colocate=False)
    graph = deployment.problem.graph
    problem = Problem(graph, Cluster.of([Device("box 1")]))
    deployment = Deployment.of(problem, dict.fromkeys(graph.operators.name, "box 1"))
    (text,) = EXPORTS["torch"].files(deployment).values()
    assert "Use: python FILE 'box 1=cuda:0'\n" in text


def map_of(deployment):
    """Module → device of a placed network."""
    (text,) = EXPORTS["device-map"].files(deployment).values()
    found: dict[str, str] = json.loads(text)
    return found


def run_by(found, name):
    """Move modules, and data where a module begins, and nothing else; torch refuses a mixture."""
    fake = {module: f"cuda:{device[1:]}" for module, device in found.items()}
    main = next(iter(fake.values()))
    with FakeTensorMode(), torch.no_grad():
        model, args, kwargs = inputs_of(name)
        known = dict(model.named_modules())
        begins_on(model, main)
        for module, device in fake.items():
            if module in known:
                begins_on(known[module], device)
                for inner in known[module].modules():
                    move(inner, device)
                    if inner.state_dict():  # as Accelerate does
                        begins_on(inner, device)
            else:
                model._parameters[module] = torch.nn.Parameter(model._parameters[module].to(main))
        assert not any(p.device.type == "cpu" for p in model.parameters())
        model(*args, **kwargs)


def begins_on(module, device):
    """Send what a module takes in to a device."""

    def sent(_, args, kwargs):
        return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), (args, kwargs))

    module.register_forward_pre_hook(sent, with_kwargs=True)


def move(module, device):
    """Send a module's own weights to a device."""
    for key, weight in module._parameters.items():
        module._parameters[key] = None if weight is None else torch.nn.Parameter(weight.to(device))
    for key, buffer in module._buffers.items():
        module._buffers[key] = None if buffer is None else buffer.to(device)


@pytest.mark.parametrize("name", NAMES)
@given(devices=turns)
@settings(max_examples=10, deadline=None)
def test_whatever_keeps_blocks_together_has_a_map_that_runs(name, devices):
    run_by(map_of(placed(name, devices, colocate=True)), name)


@pytest.mark.parametrize("name", NAMES)
@given(devices=turns)
@settings(max_examples=15, deadline=None)
def test_a_map_that_would_not_run_is_refused(name, devices):
    with suppress(FormatError):
        run_by(map_of(placed(name, devices, colocate=False)), name)


def test_a_refusal_says_what_to_do_instead():
    with pytest.raises(FormatError, match=r"'stages.0/add' on 'd1' .*'d0'.*--blocks"):
        map_of(placed("residual", [0, 1], colocate=False))
    with pytest.raises(FormatError, match=r"'attention/linear_2' on 'd0' "):
        map_of(placed("mixed", [0] * 12 + [1], colocate=False))


def test_modules_on_one_device_are_given_as_one():
    """The outermost; what computes nothing goes to the main device."""
    graph = imported("residual")
    names = graph.operators.name
    split = {name: "d1" if name.startswith("stages") else "d0" for name in names}
    problem = Problem(graph, Cluster.uniform(2))
    expected = {"spare": "d0", "stem": "d0", "stages": "d1", "head": "d0"}
    after = {name: "d1" for name in names if name.partition("/")[0] in ("mean", "view")}
    assert map_of(Deployment.of(problem, split | after)) == expected
    assert map_of(Deployment.of(problem, dict.fromkeys(names, "d1"))) == {"": "d1"}


def test_devices_that_are_numbers_are_numbers():
    graph = imported("perceptron")
    on = dict.fromkeys(graph.operators.name, "0") | {"2/linear_1": "1"}
    cluster = Cluster.of([Device("0"), Device("1")])
    text = EXPORTS["device-map"].files(Deployment.of(Problem(graph, cluster), on))
    assert json.loads(text["placement.json"]) == {"0": 0, "1": 0, "2": 1}


@pytest.mark.parametrize("name", NAMES)
def test_accelerate_finds_that_nothing_is_missing(name):
    modeling = pytest.importorskip("accelerate.utils.modeling")
    found = map_of(placed(name, [0, 1, 2], colocate=True))
    with pytest.warns(UserWarning, match="do not match") if "scale" in found else nullcontext():
        modeling.check_device_map(inputs_of(name)[0], found)
