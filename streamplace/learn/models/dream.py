"""The paper's B+F1&F2: graph encoder and graph-aware decoder."""

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

    return Reinforce(task, config, build_policy("dream", config))


register(
    Model(
        "dream",
        "The paper's B+F1&F2: graph encoder and graph-aware decoder.",
        GraphAllocatorConfig,
        {
            "fast": Preset(GraphAllocatorConfig(device_state=True), FAST_TRAINING),
            "paper": Preset(GraphAllocatorConfig(**PAPER), PAPER_TRAINING),
        },
        _learner,
    )
)
