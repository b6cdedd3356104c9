"""HSDAG: learns groups of operators, their number, and where each goes (Duan et al. 2024)."""

from streamplace.papers.groups import group_model
from streamplace.papers.hsdag import PAPER, PAPER_TRAINING, HsdagConfig

group_model(
    "hsdag",
    "Learns to group operators, without a given number of groups, and to place the groups (HSDAG).",
    HsdagConfig,
    PAPER,
    PAPER_TRAINING,
)
