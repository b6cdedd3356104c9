"""DREAM: the paper's B+F1&F2 (Ni et al. 2020)."""

from streamplace.learn.dream.family import paper_model
from streamplace.learn.dream.options import GraphAllocatorConfig

paper_model(
    "dream",
    "Graph-aware encoder–decoder of the DREAM paper (B+F1&F2), for up to five equal devices.",
    GraphAllocatorConfig(device_state=True),
    upstream=True,
)
