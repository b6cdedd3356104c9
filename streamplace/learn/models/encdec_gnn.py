"""Encoder–decoder with a graph encoder: the paper's B+F1."""

from streamplace.learn.dream.family import paper_model
from streamplace.learn.dream.options import GraphAllocatorConfig

paper_model(
    "encdec-gnn",
    "Encoder–decoder with a graph encoder (B+F1 of the DREAM paper), for up to five equal devices.",
    GraphAllocatorConfig(),
)
