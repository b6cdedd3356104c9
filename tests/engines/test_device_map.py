"""Device maps, run by what they say on devices that exist in name only."""

import json
from contextlib import nullcontext, suppress
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from networks import NAMES, imported, inputs_of, placed
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only

from streamplace.engines.deployment import Deployment
from streamplace.engines.registry import EXPORTS
from streamplace.errors import FormatError
from streamplace.model import Cluster, Device, Problem

turns = st.lists(st.integers(0, 2), min_size=1, max_size=9)


def map_of(deployment: Deployment) -> dict[str, str]:
    """Module → device of a placed network."""
    (text,) = EXPORTS["device-map"].files(deployment).values()
    found: dict[str, str] = json.loads(text)
    return found


def run_by(found: dict[str, str], name: str) -> None:
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


def begins_on(module: torch.nn.Module, device: str) -> None:
    """Send what a module takes in to a device."""

    def sent(_: Any, args: Any, kwargs: Any) -> Any:
        return tree_map_only(torch.Tensor, lambda tensor: tensor.to(device), (args, kwargs))

    module.register_forward_pre_hook(sent, with_kwargs=True)


def move(module: torch.nn.Module, device: str) -> None:
    """Send a module's own weights to a device."""
    for key, weight in module._parameters.items():
        module._parameters[key] = None if weight is None else torch.nn.Parameter(weight.to(device))
    for key, buffer in module._buffers.items():
        module._buffers[key] = None if buffer is None else buffer.to(device)


@pytest.mark.parametrize("name", NAMES)
@given(devices=turns)
@settings(max_examples=10, deadline=None)
def test_whatever_keeps_blocks_together_has_a_map_that_runs(name: str, devices: list[int]) -> None:
    """And every tensor of the model is somewhere."""
    run_by(map_of(placed(name, devices, colocate=True)), name)


@pytest.mark.parametrize("name", NAMES)
@given(devices=turns)
@settings(max_examples=15, deadline=None)
def test_a_map_that_would_not_run_is_refused(name: str, devices: list[int]) -> None:
    """Without blocks, most are."""
    with suppress(FormatError):
        run_by(map_of(placed(name, devices, colocate=False)), name)


def test_a_refusal_says_what_to_do_instead() -> None:
    """And which operator takes in what from where."""
    with pytest.raises(
        FormatError,
        match=r"operator 'stages.0/add' on 'd1' reads data from 'd0', but 'stages.0' is on "
        r"several devices, .*; import the model with --blocks, or export to torch",
    ):
        map_of(placed("residual", [0, 1], colocate=False))
    with pytest.raises(FormatError, match=r"'attention/linear_2' on 'd0' uses weights of 'att"):
        map_of(placed("mixed", [0] * 12 + [1], colocate=False))


def test_modules_on_one_device_are_given_as_one() -> None:
    """The outermost; what computes nothing goes to the main device."""
    graph = imported("residual")
    names = graph.operators.name
    split = {name: "d1" if name.startswith("stages") else "d0" for name in names}
    problem = Problem(graph, Cluster.uniform(2))
    expected = {"spare": "d0", "stem": "d0", "stages": "d1", "head": "d0"}
    after = {name: "d1" for name in names if name.partition("/")[0] in ("mean", "view")}
    assert map_of(Deployment.of(problem, split | after)) == expected
    assert map_of(Deployment.of(problem, dict.fromkeys(names, "d1"))) == {"": "d1"}


def test_devices_that_are_numbers_are_numbers() -> None:
    """As Accelerate calls GPUs."""
    graph = imported("perceptron")
    on = dict.fromkeys(graph.operators.name, "0") | {"2/linear_1": "1"}
    cluster = Cluster.of([Device("0"), Device("1")])
    text = EXPORTS["device-map"].files(Deployment.of(Problem(graph, cluster), on))
    assert json.loads(text["placement.json"]) == {"0": 0, "1": 0, "2": 1}


@pytest.mark.parametrize("name", NAMES)
def test_accelerate_finds_that_nothing_is_missing(name: str) -> None:
    """By its own check."""
    modeling = pytest.importorskip("accelerate.utils.modeling")
    found = map_of(placed(name, [0, 1, 2], colocate=True))
    with pytest.warns(UserWarning, match="do not match") if "scale" in found else nullcontext():
        modeling.check_device_map(inputs_of(name)[0], found)
