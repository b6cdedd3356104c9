"""Doppler: one policy for the next task, one for its device (Yao et al. 2025)."""

from streamplace.learn.config import Preset
from streamplace.learn.registry import LearnedModel, imported, register
from streamplace.papers.doppler import PAPER, PAPER_TRAINING, TRAINING, DopplerConfig

register(
    LearnedModel(
        "doppler",
        "Learns which task to place next and on which device, for one pass (Doppler).",
        DopplerConfig,
        {
            "fast": Preset(DopplerConfig(), TRAINING),
            "paper": Preset(DopplerConfig().model_copy(update=PAPER), PAPER_TRAINING),
        },
        imported("streamplace.papers.doppler.policy:DopplerLearner"),
        imported("streamplace.papers.doppler.policy:trained"),
    )
)
