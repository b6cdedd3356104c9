"""GiPH: a policy that improves a placement by moving one task after the other (Hu et al. 2023)."""

from typing import Literal

from streamplace.learn.config import TrainingConfig
from streamplace.papers.improving import ImprovingConfig

Form = Literal["two-way", "sage", "plain"]


class GiphConfig(ImprovingConfig):
    """Options of GiPH; its variants in the paper are combinations of them."""

    # graph network: messages in both directions, GraphSAGE along the streams, or none
    form: Form = "two-way"
    edges: bool = True  # put the features of edges into messages; otherwise nodes get their mean
    # choose a task and its device; otherwise a task, for the device where it finishes first
    pairs: bool = True


TRAINING = TrainingConfig(
    epochs=20, batch=8, learning_rate=0.01, final_learning_rate=1e-3, clip=10.0
)
PAPER_TRAINING = TrainingConfig(
    epochs=2, batch=1, learning_rate=0.01, final_learning_rate=0.01, clip=1e6
)
"""Some 200 episodes on the hundred problems that the family ``giph`` leaves to train with."""
