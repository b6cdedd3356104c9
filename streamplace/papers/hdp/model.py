"""The RNN placer: reads operators as a sequence and answers with one of devices (Mirhoseini)."""

from streamplace.papers.groups import group_model
from streamplace.papers.hdp import PAPER, PAPER_TRAINING, HdpConfig

group_model(
    "hdp",
    "Reads operators as a sequence and places them by an LSTM with attention (the RNN placer).",
    HdpConfig,
    PAPER,
    PAPER_TRAINING,
)
