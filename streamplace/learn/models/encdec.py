"""The paper's baseline B: an LSTM reads the operators, an LSTM decides."""

from streamplace.learn.dream.options import FAST_TRAINING, PAPER, PAPER_TRAINING, AllocatorConfig
from streamplace.learn.learner import Learner
from streamplace.learn.registry import Model, Preset, Task, register


def _learner(task: Task, config: AllocatorConfig) -> Learner:
    from streamplace.learn.dream.policies import build_policy
    from streamplace.learn.dream.reinforce import Reinforce

    return Reinforce(task, config, build_policy("encdec", config))


register(
    Model(
        "encdec",
        "The paper's baseline B: an LSTM reads the operators, an LSTM decides.",
        AllocatorConfig,
        {
            "fast": Preset(AllocatorConfig(), FAST_TRAINING),
            "paper": Preset(AllocatorConfig(**PAPER), PAPER_TRAINING),
        },
        _learner,
    )
)
