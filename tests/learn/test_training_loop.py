"""Steps of the training loop, against Adam as torch writes it out."""

from types import SimpleNamespace

import numpy as np
import torch

from streamplace.learn.config import TrainingConfig
from streamplace.learn.history import StepReport
from streamplace.learn.shards import Gradient
from streamplace.learn.training_loop import TrainingLoop

CONFIG = TrainingConfig(
    epochs=3, batch=2, learning_rate=0.1, final_learning_rate=0.1, clip=1.0, validation=0.0
)


class TransposedGradients:
    """Gives gradients as views of transposes, and one of the bias in the first step alone."""

    def __init__(self):
        self.steps: list[tuple[torch.Tensor, torch.Tensor | None]] = []

    def gradient(self, shards):
        """The next gradient, larger than the clip or smaller."""
        random = torch.Generator().manual_seed(len(self.steps))
        size = 0.1 if len(self.steps) == 1 else 10.0
        weight = size * torch.randn(3, 2, generator=random).t()
        bias = None if self.steps else torch.ones(2)
        self.steps.append((weight, bias))
        return Gradient(0.0, StepReport(2, 1.0, 1.0, 0.0, 2), (weight, bias))

    def values(self, parts):
        """Nothing is validated."""
        return np.empty(0)


def test_steps_are_those_of_adam_however_gradients_lie_in_memory(tmp_path):
    torch.manual_seed(0)
    module, expected = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)
    expected.load_state_dict(module.state_dict())
    learner = SimpleNamespace(
        module=module, sizes=lambda epoch: np.ones(2, np.int64), spec=dict, state=dict
    )
    workers, settings = TransposedGradients(), {"seed": 0, "start": None, "model": "linear"}
    facts = {"settings": settings, "origin": {}, "chosen_by": {}, "validation": 0}
    TrainingLoop(learner, workers, config=CONFIG, folder=tmp_path, **facts).run(None)
    adam = torch.optim.Adam(expected.parameters(), 0.1, fused=False)
    for weight, bias in workers.steps:
        expected.weight.grad, expected.bias.grad = weight / 2, None if bias is None else bias / 2
        torch.nn.utils.clip_grad_norm_(expected.parameters(), 1.0)
        adam.step()
    torch.testing.assert_close(module.state_dict(), expected.state_dict())
