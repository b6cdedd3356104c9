"""GiPH: a policy that improves a placement by moving one task after the other (Hu et al. 2023)."""

from typing import Literal

from streamplace.learn.config import Preset, TrainingConfig
from streamplace.papers.improving.model import PAPER_LEARNING, ImprovingConfig, improving_model

Form = Literal["two-way", "no-edges", "sage", "plain"]
NODE_FEATURES = ("compute", "slowness", "seconds", "start-time potential", "criticality")
EDGE_FEATURES = ("bytes", "latency", "seconds", "seconds per byte", "criticality")
"""Features of an edge; the criticality, of nodes too, is not in the text."""


class GiphConfig(ImprovingConfig):
    """Options of GiPH; its variants in the paper are combinations of them."""

    # graph network: messages in both directions with the features of edges, or with their mean at
    # every node instead; GraphSAGE along the streams, or no messages, with these means as well
    form: Form = "two-way"
    # choose a task and its device; otherwise a task, which goes where it finishes first
    pairs: bool = True
    # as the text says: without criticality, and with masks at every step
    printed: bool = False

    @property
    def n_own_features(self) -> int:
        """Features of a node alone, and of an edge."""
        return len(NODE_FEATURES) - self.printed


TRAINING = TrainingConfig(
    epochs=20, batch=8, shards=1, learning_rate=0.01, final_learning_rate=1e-3, clip=10.0
)
"""Of one shard: threads of Python would wait for each other between short operations of torch."""
PAPER_TRAINING = TrainingConfig(
    epochs=2, batch=1, learning_rate=0.01, final_learning_rate=0.01, clip=1e6
)
"""Some 200 episodes on the hundred problems that the family ``giph`` leaves to train with."""


for name, summary, fast in (
    ("giph", "Improves a placement by moving tasks to chosen devices (GiPH).", GiphConfig()),
    (
        "giph-task-eft",
        "Improves a placement by moving chosen tasks to the devices where they finish first "
        "(GiPH).",
        GiphConfig(pairs=False),
    ),
):
    paper = fast.model_copy(update=PAPER_LEARNING | {"printed": True})
    presets = {"fast": Preset(fast, TRAINING), "paper": Preset(paper, PAPER_TRAINING)}
    improving_model(name, summary, GiphConfig, presets, "streamplace.papers.giph.policy:GiphPolicy")
