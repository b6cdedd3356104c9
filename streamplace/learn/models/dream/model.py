"""The DREAM paper's three models (Ni et al. 2020): B, B+F1 and B+F1&F2."""

from typing import Any

from streamplace.learn.config import Preset, TrainingConfig
from streamplace.learn.models.dream import AllocatorConfig, GraphAllocatorConfig
from streamplace.learn.registry import LearnedModel, imported, register

POLICY = "streamplace.learn.models.dream.policy"
PAPER: dict[str, Any] = {
    "width": 512,
    "standardised": False,
    "random_ties": False,
    "on_policy": 3,
    "replayed": 3,
    "places": 3,
    "replay_best": False,
    "exploration": 20.0,
    "exploration_decay": 1.0,
    "exploration_while_poor": 20,
    "normalised": False,
    "entropy": 0.0,
}
"""Options of the paper, where they differ from the defaults; a graph encoder's are also tied."""

PAPER_CODE: dict[str, Any] = PAPER | {
    "standardised": True,
    "depth_first": True,
    "previous": False,
    "attention": "additive",
    "renumbered": True,
    "on_policy": 10,
    "replayed": 5,
    "places": 9,
    "replay_best": True,
    "baseline": "memory",
    "gain": 10.0,
    "exploration_over": "placements",
    "poor_below": 0.99,
}
"""Options of the code that was published with the paper; a graph encoder also pools by maximum."""

PAPER_TRAINING = TrainingConfig(
    epochs=40, batch=1, learning_rate=1e-3, final_learning_rate=1e-3, clip=1.0, validation=0.0
)
CODE_TRAINING = PAPER_TRAINING.model_copy(
    update={"learning_rate": 1e-2, "final_learning_rate": 1e-2}
)
FAST_TRAINING = TrainingConfig(
    epochs=70, batch=32, learning_rate=3e-3, final_learning_rate=3e-5, clip=1.0
)

DESCRIBED: dict[str, Any] = {
    "device_state": True,
    "devices": 64,
    "hops": 3,
    "on_policy": 4,
    "replayed": 1,
    "places": 2,
    "searched": 5000,
    "imitation": 4,
    "exploration": 0.0,
}
"""Options for devices that are told by what they are and hold; a search finds what to imitate."""
DESCRIBED_TRAINING = FAST_TRAINING.model_copy(
    update={"epochs": 14, "learning_rate": 2e-3, "final_learning_rate": 2e-5}
)


def paper_model(name: str, summary: str, fast: Preset) -> LearnedModel:
    """Register a model of the paper by its preset fast; its options say if it encodes graphs."""
    kind: Any = type(fast.model)
    encodes = issubclass(kind, GraphAllocatorConfig)
    paper = PAPER | ({"tied": True} if encodes else {})
    code = PAPER_CODE | ({"pooling": "max"} if encodes else {})
    presets = {
        "fast": fast,
        "paper": Preset(kind.model_validate(paper), PAPER_TRAINING),
        "paper-code": Preset(kind.model_validate(code), CODE_TRAINING),
    }

    learner, allocator = (imported(f"{POLICY}:{each}", name) for each in ("learner_of", "trained"))
    return register(LearnedModel(name, summary, kind, presets, learner, allocator))


paper_model(
    "encdec",
    "Encoder–decoder LSTMs, for up to five equal devices; by the preset paper, B of DREAM.",
    Preset(AllocatorConfig(), FAST_TRAINING),
)
paper_model(
    "encdec-gnn",
    "Encoder–decoder with a graph encoder, for up to five equal devices; by the preset paper, "
    "B+F1 of DREAM.",
    Preset(GraphAllocatorConfig(), FAST_TRAINING),
)
paper_model(
    "dream",
    "Graph-aware encoder–decoder that tells devices by what they are and hold, for up to 64; by "
    "the preset paper, B+F1&F2 of DREAM, for five equal ones.",
    Preset(GraphAllocatorConfig.model_validate(DESCRIBED), DESCRIBED_TRAINING),
)
