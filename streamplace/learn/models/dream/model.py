"""The three models of the DREAM paper (Ni et al., AAAI 2020)."""

from typing import Any, Literal

from pydantic import Field

from streamplace.errors import SettingError
from streamplace.learn.config import (
    MAX_DEVICES,
    MAX_FRESH_DEVICES,
    MemoryConfig,
    Preset,
    TrainingConfig,
)
from streamplace.learn.registry import LearnedModel, imported, register

FEATURES = ("log load", "log transfer", "load", "transfer")
"""Features of an operator; the paper has the last two, not standardised."""
COMMON = ("load per device", "transfer per device", "one by devices", "log operators")
"""Features of the problem, which all operators share, if devices are described by features."""


class AllocatorConfig(MemoryConfig):
    """Options of all three models."""

    width: int = Field(default=128, ge=4, le=4096, multiple_of=4)  # width of all vectors
    # largest number of devices that the model supports
    devices: int = Field(default=5, ge=1, le=MAX_DEVICES)
    embedding: int = Field(default=32, ge=1, le=1024)  # width of the vector of a device
    # features of an operator: its load, its transfer and the logarithms of both, standardised; or
    # load and transfer alone, not standardised
    standardised: bool = True
    random_ties: bool = True  # shuffle operators whose order is arbitrary during training
    depth_first: bool = False  # decide chain by chain; otherwise breadth first
    previous: bool = True  # a decision reads the device of the one before
    # attention of a decision: dot product and an MLP; or additive and a linear layer, with devices
    # upstream weighted by their streams, where encdec has neither attention nor encoder
    attention: Literal["dot", "additive"] = "dot"
    utilisation: bool = False  # a decision reads the loads of the devices, if additive
    # describe devices by their speed and their loads and links, not by their numbers
    device_state: bool = False

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features of an operator."""
        if self.device_state:
            return (*FEATURES, *COMMON)
        return FEATURES if self.standardised else FEATURES[2:]

    def check_beside(self, training: TrainingConfig) -> None:
        """Raise SettingError where options do not go together."""
        if self.attention == "additive" and self.device_state:
            raise SettingError("additive attention knows numbered devices; drop device_state")
        if self.fresh and self.devices < MAX_FRESH_DEVICES:
            raise SettingError(
                f"fresh problems have up to {MAX_FRESH_DEVICES} devices, but the model supports "
                f"at most {self.devices}; raise devices to {MAX_FRESH_DEVICES}, or leave fresh out"
            )


class GraphAllocatorConfig(AllocatorConfig):
    """Further options of models with a graph encoder."""

    hops: int = Field(default=2, ge=1, le=16)  # rounds of messages, K
    tied: bool = False  # share the weights of all rounds
    # mean of the messages, or GraphSAGE: their maximum over four neighbours drawn anew in training
    pooling: Literal["mean", "max"] = "mean"


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
"""Options of the paper that differ from the defaults; a graph encoder's rounds are also tied."""

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
"""Options for devices that are described by features; a search finds placements to imitate."""
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
