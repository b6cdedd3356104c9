"""The paper's B+F1: a graph encoder in place of the LSTM that reads."""

from streamplace.learn.dream.options import (
    FAST_TRAINING,
    PAPER,
    PAPER_TRAINING,
    GraphAllocatorConfig,
)
from streamplace.learn.learner import Learner
from streamplace.learn.registry import Model, Preset, Task, register


def _learner(task: Task, config: GraphAllocatorConfig) -> Learner:
    from streamplace.learn.dream.policies import build_policy
    from streamplace.learn.dream.reinforce import Reinforce

    return Reinforce(task, config, build_policy("encdec-gnn", config))


register(
    Model(
        "encdec-gnn",
        "The paper's B+F1: a graph encoder in place of the LSTM that reads.",
        GraphAllocatorConfig,
        {
            "fast": Preset(GraphAllocatorConfig(), FAST_TRAINING),
            "paper": Preset(GraphAllocatorConfig(**PAPER), PAPER_TRAINING),
        },
        _learner,
    )
)
