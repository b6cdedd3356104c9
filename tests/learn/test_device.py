"""The device that torch computes on."""

from contextlib import ExitStack
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from default_device import NoDefaultDevice
from dream_cases import PROBLEMS, options, scale_of

from streamplace.errors import SettingError
from streamplace.learn.constructive import reinforce
from streamplace.learn.device import named_device
from streamplace.learn.env import Environment
from streamplace.learn.models.dream import policy
from streamplace.learn.models.dream.model import PAPER_CODE as PUBLISHED
from streamplace.learn.registry import LearningTask

PAPER_CODE = {name: value for name, value in PUBLISHED.items() if name != "width"}
PLAIN = {
    (False, "dream"): {"device_state": True},
    (True, "dream"): {"pooling": "max", "utilisation": True, "per_device": True},
    (False, "encdec"): {},
    (True, "encdec"): {},
}
"""Further options by whether they are those of the published code, and the model."""
READS = {getattr(torch.Tensor, name) for name in ("tolist", "numpy", "item")}


class Elsewhere(NoDefaultDevice):
    """Counts reads, too, which give zeros, since a device that is not there holds no values."""

    reads = 0

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function not in READS:
            return super().__torch_function__(function, types, args, kwargs)
        self.reads += 1
        zeros = np.zeros(args[0].shape, np.int64)
        return zeros if function is torch.Tensor.numpy else zeros.tolist()


def without_generators(monkeypatch):
    """Let draws do without, since there is none on a device that is not there."""
    for name in ("rand", "randn", "randint"):
        draw = getattr(torch, name)
        monkeypatch.setattr(
            torch, name, lambda *shape, draw=draw, generator, **how: draw(*shape, **how)
        )
    monkeypatch.setattr(torch.Tensor, "exponential_", lambda tensor, generator: tensor)


def moved(module, device):
    """The same module, whose parameters are on the device already."""
    for part in module.modules():
        part._buffers = {name: buffer.to(device) for name, buffer in part._buffers.items()}
    return module


@pytest.mark.parametrize("name", ["nothing", "cuda:99", "meta", "\n"])
def test_an_unknown_device_is_one_line(name):
    with pytest.raises(SettingError, match=r"^[^\n]*device[^\n]*such as cpu[^\n]*$"):
        named_device(name)


def test_devices_are_found_by_name():
    assert named_device("cpu") == torch.device("cpu")
    assert named_device("auto").type in ("cpu", "cuda", "mps")


@pytest.mark.parametrize("model", ["dream", "encdec"])
@pytest.mark.parametrize(
    "changes",
    [{}, {"imitation": 1, "searched": 1}, {"fresh": 9, "devices": 64}, PAPER_CODE],
    ids=["memory", "imitation", "fresh", "paper-code"],
)
def test_a_step_stays_on_the_device_of_the_policy(model, changes, monkeypatch):
    """No tensor of another device takes part; no value is read to decide, nor for throughput."""
    from torch._subclasses.fake_tensor import FakeTensorMode

    config = options(model, **PLAIN[changes is PAPER_CODE, model], **changes)
    gpu = torch.device("cuda", 0)
    told = SimpleNamespace(device=gpu, initial_seed=lambda: 0)
    monkeypatch.setattr(reinforce, "torch_generator", lambda *_: told)
    monkeypatch.setattr(torch.nn.Module, "to", moved)
    features = scale_of(config).document()
    task = LearningTask((PROBLEMS[2],) * 3, (), seed=0, device="cuda", features=features)
    with ExitStack() as modes:
        modes.enter_context(FakeTensorMode())
        with gpu:
            learner = policy.learner_of(task, config, model)
        without_generators(monkeypatch)
        mode = modes.enter_context(Elsewhere())
        assert learner.loss(np.arange(3), 0, 0)[0].device == gpu
        batch = learner.policy.on(task.training).batch(torch.arange(3, device=gpu))
        reads = mode.reads
        assert Environment(batch).reward(learner.module(batch, 2).placements).device == gpu
        assert mode.reads == reads
