"""Encoder–decoder: the paper's baseline B, in place of Mirhoseini et al. (2017)."""

from streamplace.learn.dream.family import paper_model
from streamplace.learn.dream.options import AllocatorConfig

paper_model(
    "encdec",
    "Encoder–decoder LSTMs (B of the DREAM paper), for up to five equal devices.",
    AllocatorConfig(),
)
